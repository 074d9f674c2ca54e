"""`bgcl inspect`: what was understood of a graph, and what looks wrong."""

from typing import TYPE_CHECKING, Annotated

import typer

from bgcl.cli import graphs
from bgcl.cli.common import Json, Quiet, print_json

if TYPE_CHECKING:
    from bgcl.data.inspection import Inspection

SHOWN = 12  # classes and columns that fit on a screen


def inspect(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help=graphs.GRAPH)],
    nodes: graphs.Nodes = None,
    label: graphs.Label = None,
    id_: graphs.Id = None,
    source: graphs.Source = None,
    target: graphs.Target = None,
    ignore: graphs.Ignore = None,
    categorical: graphs.Categorical = None,
    text: graphs.Text = None,
    words: graphs.WordLimit = 2000,
    skip_unknown: graphs.SkipUnknown = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Say what was understood of a graph and what looks wrong, before any training."""
    from bgcl.data.inspection import inspect as look_at

    data, reading = graphs.load_graph(
        graph, nodes, True, label=label, id=id_, source=source, target=target, ignore=ignore, categorical=categorical,
        text=text, words=words, skip_unknown=skip_unknown,
    )  # fmt: skip
    found = look_at(reading or data)
    if json:
        print_json({"graph": graph, **found.to_dict()})
    else:
        _print(graph, found)


def _print(graph: str, found: "Inspection") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    degree = found.degree
    for name, text in {
        "graph": graph,
        "guessed": "; ".join(found.guesses),
        "nodes": f"{found.nodes:,}, of which {found.isolated:,} without an edge",
        "edges": f"{found.edges:,}; a node has {degree['mean']:.1f} neighbours, at most {degree['greatest']:,}",
        "components": f"{found.components:,}, the largest of {found.largest_component:,} nodes",
        "attributes": f"{found.attributes:,}, {found.filled:.0%} of them other than zero",
        "columns": _few([f"{name} ({became})" for name, became in found.columns.items()]),
        "labels": f"{found.labelled:,} of {found.nodes:,} nodes ({found.labelled / found.nodes:.0%})",
        "classes": _few([f"{name} {count:,}" for name, count in found.classes.items()]),
        "homophily": ""
        if found.homophily is None
        else f"{found.homophily:.2f} of the edges join the same class; {found.homophily_by_chance:.2f} would by chance",
    }.items():
        if text:
            table.add_row(name, text)
    for number, warning in enumerate(found.warnings):
        table.add_row("" if number else "to look at", f"- {warning}")
    Console(highlight=False, markup=False).print(table)


def _few(parts: list[str]) -> str:
    more = f" and {len(parts) - SHOWN:,} more" if len(parts) > SHOWN else ""
    return ", ".join(parts[:SHOWN]) + more
