"""`bgcl inspect`: how a graph was read, and what looks wrong with it."""

from typing import TYPE_CHECKING

from bgcl.cli import options
from bgcl.cli.opening import load_graph
from bgcl.cli.printing import print_json, print_rich, visible
from bgcl.progress import stage

if TYPE_CHECKING:
    from bgcl.data.inspection import Inspection

SHOWN = 12  # number of classes and columns that are printed


def inspect(
    graph: options.Graph,
    nodes: options.Nodes = None, label: options.Label = None, id_: options.Id = None,
    source: options.Source = None, target: options.Target = None, ignore: options.Ignore = None,
    categorical: options.Categorical = None, text: options.Text = None, words: options.WordLimit = None,
    skip_unknown: options.SkipUnknown = False, labels: options.Labels = None, weight: options.Weight = None,
    bipartite: options.Bipartite = None, missing_label: options.MissingLabel = None, exact: options.Exact = False,
    feature: options.Feature = None, value: options.Value = None, delimiter: options.Delimiter = None,
    header: options.Header = None, no_header: options.NoHeader = None, decimal: options.Decimal = None,
    dates: options.Dates = None, directed: options.Directed = False, edge_type: options.EdgeType = None,
    node_type: options.NodeType = None, task: options.Task = None, many_labels: options.ManyLabels = None,
    quiet: options.Quiet = False, json: options.Json = False,
) -> None:  # fmt: skip
    """Show how a graph is read and what looks wrong with it, before any training."""
    from bgcl.data.inspection import inspect as look_at

    data, reading = load_graph(
        graph, nodes, True, labels, label=label, id=id_, source=source, target=target, ignore=ignore,
        categorical=categorical, text=text, words=words, skip_unknown=skip_unknown, weight=weight, bipartite=bipartite,
        missing_label=missing_label, exact=exact, feature=feature, value=value, delimiter=delimiter, header=header,
        no_header=no_header, decimal=decimal, dates=dates, directed=directed, edge_type=edge_type, node_type=node_type,
        task=task, many_labels=many_labels,
    )  # fmt: skip
    with stage("inspecting the graph"):
        found = look_at(reading or data)
    if json:
        print_json({"graph": graph, **found.to_dict()})
    else:
        _print(graph, found)


def _print(graph: str, found: "Inspection") -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    degree = found.degree
    names = [f"{name} ({count:,})" for name, count in found.classes.items()]
    for name, text in {
        "graph": graph,
        "inferred": "; ".join(found.guesses),
        "nodes": f"{found.nodes:,}, of which {found.isolated:,} have no edge",
        "edges": f"{found.edges:,}; a node has {degree['mean']:.1f} neighbors, at most {degree['greatest']:,}",
        "weights": _weights(found),
        "relations": _few([f"{name} {count:,}" for name, count in found.relations.items()]),
        "components": f"{found.components:,}, the largest with {found.largest_component:,} nodes",
        "attributes": f"{found.num_attributes:,}, of which {_percent(found.filled)} are not zero",
        "columns": _few([f"{name} ({became})" for name, became in found.columns.items()]),
        "labels": _labels(found),
        "numbers": _numbers(found),
        "each label" if found.labels_per_node else "classes": _few(names),
        "homophily": _homophily(found),
    }.items():
        if text:
            table.add_row(name, Text(visible(text)))
    for number, warning in enumerate(found.warnings):
        table.add_row("" if number else "check", Text(visible(f"- {warning}")))
    print_rich(table)


def _percent(share: float) -> str:
    """A share in percent; a small one is not written as 0%."""
    return f"{share:.0%}" if share >= 0.01 or not share else f"{share:.2%}"


def _labels(found: "Inspection") -> str:
    """How many nodes have labels, and how many of them if they may have several."""
    several = f"; such a node has {found.labels_per_node:.1f} on average" if found.labels_per_node else ""
    return f"{found.labeled:,} of {found.nodes:,} nodes ({_percent(found.labeled / found.nodes)}){several}"


def _weights(found: "Inspection") -> str:
    """Weights of the edges, and what they are used for."""
    if not found.weights:
        return ""
    least, mean, greatest = (format(found.weights[name], ".4g") for name in ("least", "mean", "greatest"))
    return f"of the edges: from {least} to {greatest}, {mean} on average"


def _numbers(found: "Inspection") -> str:
    if found.numbers is None:
        return ""
    return "to predict; " + ", ".join(f"{name} {value:.6g}" for name, value in found.numbers.items())


def _homophily(found: "Inspection") -> str:
    if found.homophily is None:
        return ""
    return (
        f"{found.homophily:.2f} of the edges join nodes of one class; {found.homophily_by_chance:.2f} would by chance"
    )


def _few(parts: list[str]) -> str:
    more = f" and {len(parts) - SHOWN:,} more" if len(parts) > SHOWN else ""
    return ", ".join(parts[:SHOWN]) + more
