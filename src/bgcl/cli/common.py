"""What the commands share: options, opening graphs and runs, printing results."""

import json as json_
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgcl.cli.graphs import graph_of
from bgcl.errors import BGCLError, InterruptedRunError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results alone, no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print results as JSON.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, as 'bgcl train' makes it.")]
GraphOf = Annotated[str | None, typer.Option("--graph", help="Where the graph is, if not where the run says.")]
AnyGraph = Annotated[
    str | None, typer.Option("--graph", help="Another graph, such as one with new nodes; by itself that of the run.")
]
Samples = Annotated[int, typer.Option(help="Number of draws from the posterior.")]
DrawSeed = Annotated[int | None, typer.Option("--seed", help="Of the draws; by itself the run's.")]
NodesOf = Annotated[str | None, typer.Option("--nodes", help="Table of the nodes of --graph, if that is a file.")]


def open_run(run: Path, graph: str | None, quiet: bool, nodes: str | None = None) -> tuple["BGCL", "Data"]:
    """A run's model and the graph that it was trained on, which is named again only if it has moved."""
    from bgcl.estimator import BGCL

    model = BGCL.load(run)
    data = graph_of(model, run, graph, nodes, quiet)
    try:
        model.check_trained_on(data)
    except BGCLError as error:
        if graph is not None:
            raise
        raise BGCLError(
            f"{str(error)[:-1]}: its files have changed. Embed or predict it as it is with --graph."
        ) from None
    return model, data


def open_run_on(run: Path, graph: str | None, nodes: str | None, quiet: bool) -> tuple["BGCL", "Data"]:
    """A run's model and any graph that has the same attributes: the one of training, or one with new nodes."""
    if graph is None:
        return open_run(run, graph, quiet, nodes)
    from bgcl.estimator import BGCL

    model = BGCL.load(run)
    return model, graph_of(model, run, graph, nodes, quiet)


def print_table(rows: list[dict[str, Any]]) -> None:
    """Rows of equal keys as a plain table; numbers to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name, value in rows[0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    Console().print(table)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_rates(model: "BGCL") -> None:
    """The posterior of each drop rate, as a table."""
    rows = []
    for view, masks in model.drop_rates_.items():
        for mask in masks:
            for i, layer in enumerate(mask["mean"]):
                for j, rate in enumerate(layer):
                    row = {"view": view, "drops": mask["mask"]}
                    row["layer"] = str(i + 1) if len(mask["mean"]) > 1 else ""
                    row["block"] = str(j + 1) if len(layer) > 1 else ""
                    spread = mask["deviation"][i][j] if "a" in mask else "fixed"
                    rows.append({**row, "rate": rate, "deviation": spread})
    print_table(rows)


def versions() -> dict[str, str]:
    """What results were computed with."""
    from importlib.metadata import version

    return {name: version(name) for name in ("bgcl", "torch", "torch_geometric", "numpy", "scipy", "scikit-learn")}


def print_json(value: Any) -> None:
    print(json_.dumps(_defined(value), indent=2, allow_nan=False))


def _defined(value: Any) -> Any:
    """NaN, which JSON does not have, as null."""
    if isinstance(value, dict):
        return {name: _defined(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def parse_setting(pair: str) -> tuple[str, Any]:
    """`NAME=VALUE`, the value written as in TOML; what is not TOML is a string."""
    import tomllib

    name, equals, value = pair.partition("=")
    if not equals:
        raise BGCLError(f"Cannot read --set '{pair}': write NAME=VALUE, such as tau=0.5.")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value


def fit_and_keep(
    model: "BGCL", data: "Data", out: Path, graph: str, *, resume: bool = False, show: bool = True,
    tensorboard: Path | None = None,
) -> None:  # fmt: skip
    """Train, keeping every epoch; if interrupted, say what was kept and how to go on."""
    progress: list[Any] = [show]
    if tensorboard is not None:
        from bgcl.reporting.tensorboard import TensorBoard

        progress.append(TensorBoard(tensorboard))
    try:
        model.fit(data, out=out, resume=resume, progress=progress)
    except KeyboardInterrupt:
        if not getattr(model, "history_", None):
            raise
        again = shlex.join(["bgcl", "train", graph, "--out", str(out), "--resume"])
        raise InterruptedRunError(f"{out} holds epoch {model.history_[-1]['epoch']}. Go on with: {again}") from None
