"""Open the graphs and runs that a command names."""

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgcl.cli.options import names
from bgcl.cli.printing import visible
from bgcl.errors import BGCLError
from bgcl.progress import stage

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.data.reading import Reading
    from bgcl.data.recipe import Recipe
    from bgcl.downstream.kept_results import KeptResults
    from bgcl.estimator import BGCL

_LISTS = ("ignore", "categorical", "text", "header", "no_header")


def load_graph(
    graph: str, nodes: str | None, quiet: bool, labels: str | None = None, **options: Any
) -> "tuple[Data, Reading | None]":
    """Load a graph by name or file. For tables, print to stderr what was inferred, and return how they were read."""
    from bgcl.data.options import given_options, make_options
    from bgcl.data.store import is_tables, load

    options |= {name: names(options[name]) for name in _LISTS if name in options}
    if isinstance(options.get("missing_label"), str):
        options["missing_label"] = without_label(options["missing_label"])
    given = given_options(options)
    if is_tables(graph):
        from bgcl.data.own import read_files
        from bgcl.data.unused_options import check_used

        with stage("reading the tables"):
            reading = read_files(graph, nodes, make_options(**given), labels=labels)
        check_used(reading, given)
        print_reading(reading, quiet)
        return reading.data, reading
    with stage(f"reading {visible(graph)}"):
        data = load(graph, nodes, quiet=quiet, labels=labels, **given)
    if "name" not in data:
        data.name = str(Path(graph).resolve())
    return data, None


def without_label(text: str) -> tuple[str, ...]:
    """The labels that mean "no label", from a list with commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def print_reading(reading: "Reading", quiet: bool) -> None:
    """Print to stderr which columns were inferred, and what looks wrong."""
    if quiet:
        return
    if reading.guesses:
        print(visible(f"Inferred: {'; '.join(reading.guesses)}."), file=sys.stderr)
    for note in reading.notes:
        print(visible(f"Note: {note}"), file=sys.stderr)


def graph_of(model: "BGCL", run: Path, graph: str | None, nodes: str | None, quiet: bool) -> "Data":
    """Load the training graph of a run, or another graph in the same way."""
    from bgcl.data.store import is_tables

    if model.recipe_ is not None and (graph is None or is_tables(graph)):
        from bgcl.data.own import read_again

        if graph is None and not Path(model.recipe_.edges_file).exists():
            raise BGCLError(f"{run}: the graph is no longer at {model.recipe_.edges_file}. Name it with --graph.")
        with stage("reading the tables"):
            reading = read_again(model.recipe_, graph, nodes)
        print_reading(dataclasses.replace(reading, guesses=[]), quiet)
        return reading.data
    if not (graph or model.graph_.name):
        raise BGCLError(f"{run} does not say which graph it was trained on. Name it with --graph.")
    return load_graph(graph or model.graph_.name, nodes, quiet)[0]


def is_graph_of(recipe: "Recipe | None", graph: str) -> bool:
    """Whether a path names the tables that a recipe was made from: the edges, or their folder."""
    if recipe is None:
        return False
    trained, given = Path(recipe.edges_file).resolve(), Path(graph).resolve()
    inner, outer = (given, trained) if trained.is_dir() else (trained, given)
    return given == trained or (inner.is_file() and inner.parent == outer and inner.name.split(".")[0] == "edges")


def open_run(run: Path, graph: str | None, quiet: bool) -> "tuple[BGCL, Data]":
    """Load the model of a run and its training graph, which the user has to name only if it has moved."""
    from bgcl.estimator import BGCL
    from bgcl.processes.team import Team

    with stage("reading the run"):
        model = BGCL.load(run)
    model.team = Team.current()
    data = graph_of(model, run, graph, None, quiet)
    try:
        model.check_trained_on(data)
    except BGCLError as error:
        if graph is not None:
            raise
        raise BGCLError(
            f"{str(error)[:-1]}: its files have changed. To use the new files, name them with --graph in 'bgcl embed' "
            "or 'bgcl predict'."
        ) from None
    return model, data


def open_run_on(run: Path, graph: str | None, nodes: str | None, quiet: bool) -> "tuple[BGCL, Data]":
    """Load the model of a run, and its training graph or any other graph with the same attributes."""
    if graph is None:
        if nodes is not None:
            raise BGCLError("--nodes belongs to the edges that --graph names: give --graph too, or leave out --nodes.")
        return open_run(run, graph, quiet)
    from bgcl.estimator import BGCL
    from bgcl.processes.team import Team

    with stage("reading the run"):
        model = BGCL.load(run)
    model.team = Team.current()
    return model, graph_of(model, run, graph, nodes, quiet)


@contextmanager
def kept_in(run: Path, model: "BGCL", keep: bool, quiet: bool) -> "Iterator[KeptResults | None]":
    """What earlier commands kept in a run, None if the user wants none. At the end, say what could not be kept.

    Of several processes none has it, because all of them have to make the same draws.
    """
    if not keep or model.team.size > 1:
        yield None
        return
    from bgcl.downstream.kept_results import KeptResults

    kept = KeptResults(run, model)
    yield kept
    for note in [] if quiet else dict.fromkeys(kept.notes):
        print(visible(f"Note: {note}"), file=sys.stderr)
