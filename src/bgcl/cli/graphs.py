"""Graphs on the command line: names of data sets, files, and the options that say how tables are read."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.data.recipe import Reading
    from bgcl.estimator import BGCL

GRAPH = (
    "A data set's name (see 'bgcl data list'), a folder with edges.csv and nodes.csv (or .tsv, .parquet), a table of "
    "edges, a .graphml or a .npz."
)
_PANEL = "Tables of your own; what is not said is guessed, and told"


def _column(flag: str, text: str) -> Any:
    return typer.Option(flag, metavar="COLUMN", help=text, rich_help_panel=_PANEL)


Nodes = Annotated[str | None, typer.Option("--nodes", help="Table of the nodes, if GRAPH is one of the edges.",
                                           metavar="FILE", rich_help_panel=_PANEL)]  # fmt: skip
Label = Annotated[str | None, _column("--label", "What to predict; may be empty for some nodes.")]
Id = Annotated[str | None, _column("--id", "The id of a node.")]
Source = Annotated[str | None, _column("--source", "Where an edge begins, in the table of edges.")]
Target = Annotated[str | None, _column("--target", "Where it ends.")]
Ignore = Annotated[list[str] | None, _column("--ignore", "Not an attribute; may be given again, or with commas.")]
Categorical = Annotated[list[str] | None, _column("--categorical", "Categories, though numbers, say.")]
Text = Annotated[list[str] | None, _column("--text", "Text, to be read as words.")]
WordLimit = Annotated[
    int, typer.Option("--words", help="Keep at most so many words of a text.", rich_help_panel=_PANEL)
]
SkipUnknown = Annotated[
    bool,
    typer.Option("--skip-unknown", help="Leave out edges to nodes that are not there.", rich_help_panel=_PANEL),
]


def columns(given: list[str] | None) -> tuple[str, ...]:
    """`a,b` and `a` given with `b` are the same."""
    return tuple(name.strip() for part in given or [] for name in part.split(",") if name.strip())


def load_graph(graph: str, nodes: str | None, quiet: bool, **options: Any) -> "tuple[Data, Reading | None]":
    """A graph by name or file, which remembers what it was called; what was guessed of tables goes to stderr."""
    from bgcl.data.store import is_tables, load

    options |= {name: columns(options[name]) for name in ("ignore", "categorical", "text") if name in options}
    if is_tables(graph):
        from bgcl.data.own import make_options, read_files

        reading = read_files(graph, nodes, make_options(**options))
        tell(reading, quiet)
        return reading.data, reading
    plain = {"words": 2000, "skip_unknown": False}
    data = load(graph, nodes, quiet=quiet, **{n: v for n, v in options.items() if v and v != plain.get(n)})
    if "name" not in data:
        data.name = str(Path(graph).resolve())
    return data, None


def tell(reading: "Reading", quiet: bool) -> None:
    """What was guessed and what looks wrong, on stderr."""
    if quiet:
        return
    if reading.guesses:
        print(f"Guessed from the names: {'; '.join(reading.guesses)}.", file=sys.stderr)
    for note in reading.notes:
        print(f"Note: {note}", file=sys.stderr)


def graph_of(model: "BGCL", run: Path, graph: str | None, nodes: str | None, quiet: bool) -> "Data":
    """The graph of a run, read as it was at training, or another in the same way."""
    from bgcl.data.store import is_tables

    if model.recipe_ is not None and (graph is None or is_tables(graph)):
        from bgcl.data.own import read_again

        if graph is None and not Path(model.recipe_.edges_file).exists():
            raise BGCLError(f"{run}: its graph is no longer at {model.recipe_.edges_file}. Name it with --graph.")
        reading = read_again(model.recipe_, graph, nodes)
        tell(dataclasses.replace(reading, guesses=[]), quiet)
        return reading.data
    if not (graph or model.graph_.name):
        raise BGCLError(f"{run} does not say which graph it was trained on. Name it with --graph.")
    return load_graph(graph or model.graph_.name, nodes, quiet)[0]
