"""Inspect a graph before training: its size, its labels, and what looks wrong."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data

from bgcl.data.columns import Category, LeftOut, Number
from bgcl.data.pyg import check_graph, unused_fields
from bgcl.data.reading import Reading
from bgcl.data.tables import Table
from bgcl.data.values import coded, numbers
from bgcl.graph.prepared import mean_weight, relations_of

Array = npt.NDArray[Any]

FEW_LABELS = 3  # predictions need this many labeled nodes of each class
LIKE_THE_LABEL = 0.99  # a column that determines this share of the labels may leak them


@dataclass
class Inspection:
    """The result of `bgcl.inspect`.

    Attributes:
        nodes: number of nodes.
        edges: number of undirected edges.
        degree: the "mean", "median" and "greatest" number of neighbors.
        components: number of connected components.
        largest_component: number of nodes in the largest component.
        isolated: number of nodes without edges.
        num_attributes: number of attributes of a node.
        filled: share of the attributes' entries that are not zero.
        weights: the "least", "mean" and "greatest" weight of the edges; empty if they have no weights.
        relations: number of edges of each type or direction; empty if they are not told apart.
        columns: what each column of the table of nodes became.
        labeled: number of labeled nodes.
        classes: number of labeled nodes of each class, or with each label.
        labels_per_node: mean number of labels of a labeled node; None if a node has one at most.
        numbers: "mean", "deviation", "least" and "greatest" of the labels, if they are numbers to predict.
        homophily: share of the edges between labeled nodes that join nodes of the same class.
        homophily_by_chance: the expected share if edges did not depend on the labels.
        guesses: which columns were inferred.
        warnings: what looks wrong.
    """

    nodes: int
    edges: int
    degree: dict[str, float]
    components: int
    largest_component: int
    isolated: int
    num_attributes: int
    filled: float
    weights: dict[str, float] = field(default_factory=dict)
    relations: dict[str, int] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    labeled: int = 0
    classes: dict[str, int] = field(default_factory=dict)
    labels_per_node: float | None = None
    numbers: dict[str, float] | None = None
    homophily: float | None = None
    homophily_by_chance: float | None = None
    guesses: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dictionary."""
        return asdict(self)


def inspect(graph: Data | Reading) -> Inspection:
    """Describe a graph and report what looks wrong with it.

    Args:
        graph: a PyTorch Geometric `Data`, or a `bgcl.data.reading.Reading`, of which the columns are inspected too.

    Returns:
        Size, degrees, components, labels and homophily of the graph, and warnings.

    Raises:
        BGCLError: if the graph is not valid, see `bgcl.data.check_graph`.

    >>> import bgcl
    >>> found = bgcl.inspect(bgcl.load("cora"))
    >>> found.nodes, found.edges
    (2708, 5278)
    """
    data = check_graph(graph.data if isinstance(graph, Reading) else graph)
    row, column = data.edge_index.cpu().numpy()
    nodes = int(data.num_nodes)
    degree = np.bincount(row, minlength=nodes)
    count, part = connected_components(csr_matrix((np.ones(len(row)), (row, column)), shape=(nodes, nodes)))
    values = data.x if data.x.layout == torch.strided else data.x.values()
    found = Inspection(
        nodes=nodes,
        edges=len(row) // 2,
        degree={"mean": float(degree.mean()), "median": float(np.median(degree)), "greatest": int(degree.max())},
        components=int(count),
        largest_component=int(np.bincount(part).max()),
        isolated=int((degree == 0).sum()),
        num_attributes=int(data.x.shape[1]),
        filled=float((values != 0).sum()) / data.x.numel(),
    )
    names = relations_of(data)
    for i, name in enumerate(names):
        found.relations[name] = _count_edges(row, column, data.edge_relations[:, i].cpu().numpy() > 0)
    if "edge_weight" in data:
        weights = data.edge_weight.double()
        found.weights = {"least": float(weights.min()), "mean": float(weights.mean()), "greatest": float(weights.max())}
    if data.y is not None and not data.y.is_floating_point() and data.y.dim() == 1:
        _look_at_labels(found, data.y.cpu().numpy(), getattr(data, "classes", None), row, column)
    elif data.y is not None and data.y.dim() == 1:
        known = data.y[~torch.isnan(data.y)].double()
        found.labeled = len(known)
        if len(known):
            spread = float(known.std(correction=0))
            found.numbers = {"mean": float(known.mean()), "deviation": spread}
            found.numbers |= {"least": float(known.min()), "greatest": float(known.max())}
    elif data.y is not None:
        _look_at_label_sets(found, data.y.cpu().numpy(), getattr(data, "classes", None))
    else:
        found.warnings.append(
            "The nodes have no labels. Training needs none, but predictions do: name their column with --label."
        )
    _look_at_structure(found)
    if isinstance(graph, Data) and (unused := unused_fields(graph)):
        found.warnings.append(f"These fields of the graph are not used: {', '.join(unused)}.")
    if isinstance(graph, Reading):
        _look_at_reading(found, graph)
    return found


def _count_edges(row: Array, column: Array, use: Array) -> int:
    """The number of edges of a relation. One that is there in both directions counts once."""
    pairs = np.stack([np.minimum(row, column), np.maximum(row, column)])[:, use]
    return int(np.unique(pairs, axis=1).shape[1])


def _look_at_labels(found: Inspection, y: Array, names: Any, row: Array, column: Array) -> None:
    counts = np.bincount(y[y >= 0], minlength=len(names or ()))
    found.labeled = int((y >= 0).sum())
    found.classes = {str(names[i] if names else i): int(n) for i, n in enumerate(counts) if n or names}
    both = (y[row] >= 0) & (y[column] >= 0)
    if both.any():
        found.homophily = float((y[row] == y[column])[both].mean())
        ends = np.bincount(y[row][both], minlength=len(counts)) / both.sum()
        found.homophily_by_chance = float(np.square(ends).sum())
        if both.sum() >= 40 and found.homophily < found.homophily_by_chance + 0.05:
            found.warnings.append(
                f"Heterophily: {found.homophily:.0%} of the edges join nodes of the same class, and "
                f"{found.homophily_by_chance:.0%} would by chance. Embeddings that average neighbors may say little "
                "about the label."
            )
    small = {name: n for name, n in found.classes.items() if 0 < n < FEW_LABELS}
    for name, n in list(small.items())[:3]:
        found.warnings.append(
            f"Class {name} has {n} labeled node(s), fewer than {FEW_LABELS}. It is left out (--small-classes)."
        )
    if len([n for n in found.classes.values() if n]) == 1:
        found.warnings.append("All labeled nodes have the same class, so there is nothing to predict.")
    elif counts.size and counts.max() > 0.95 * counts.sum():
        found.warnings.append(f"{counts.max() / counts.sum():.0%} of the labeled nodes have the same class.")


def _look_at_label_sets(found: Inspection, y: Array, names: Any) -> None:
    known = y[(y >= 0).all(1)]
    counts = known.sum(0).astype(int).tolist()
    found.labeled = len(known)
    found.classes = {str(names[i] if names else i): count for i, count in enumerate(counts)}
    found.labels_per_node = float(known.sum(1).mean()) if len(known) else None
    small = [name for name, count in found.classes.items() if count < FEW_LABELS]
    if small:
        found.warnings.append(
            f"{len(small):,} label(s), such as {small[0]}, have fewer than {FEW_LABELS} nodes: too few to learn."
        )


def _look_at_structure(found: Inspection) -> None:
    if found.isolated > 0.2 * found.nodes:
        found.warnings.append(
            f"{found.isolated:,} of {found.nodes:,} nodes have no edge. Do the ids in the two tables match?"
        )
    if found.components - found.isolated > max(1, 0.2 * found.nodes):
        found.warnings.append(f"The graph has {found.components:,} components that are not connected.")
    if found.degree["greatest"] > 0.5 * found.nodes > 50:
        found.warnings.append("A node is a neighbor of most others, which makes embeddings similar. Is it a real node?")


def _look_at_reading(found: Inspection, reading: Reading) -> None:
    found.guesses = reading.guesses
    found.columns = {column.name: str(column) for column in reading.recipe.columns}
    found.warnings += reading.notes
    repeated = reading.rows - reading.loops - reading.unknown - reading.without_weight - found.edges
    if repeated:
        heavy = mean_weight(reading.data) > 0
        counts = "Both directions of an edge count." if reading.recipe.directed else "Each edge counts once."
        if heavy:
            counts = "Their weights are added, unless both directions have the same weight everywhere."
        found.warnings.append(f"{repeated:,} row(s) repeat an edge, in either direction. {counts}")
    if reading.loops:
        found.warnings.append(f"{reading.loops:,} edge(s) lead from a node to itself. They are left out.")
    if reading.unknown:
        found.warnings.append(f"{reading.unknown:,} edge(s) lead to nodes not in the table. They are left out.")
    if reading.without_weight:
        found.warnings.append(f"{reading.without_weight:,} edge(s) have the weight 0. They are left out.")
    if reading.nodes is not None:
        there = set(reading.nodes.columns.column_names)  # once: it is a new list each time
        for column in reading.recipe.columns:
            if column.name in there and not isinstance(column, LeftOut):
                _look_at_column(found, reading.nodes, column, reading)


def _look_at_column(found: Inspection, table: Table, column: Any, reading: Reading) -> None:
    """Warn of a column that was perhaps not read as the user meant it."""
    name = column.name
    if isinstance(column, Number):
        values = numbers(table, name)
        known = values[~np.isnan(values)]
        whole = bool((known == np.floor(known)).all())
        different = len(np.unique(known))
        if whole and different == len(known) > 20 and known.max() - known.min() < 2 * len(known):
            found.warnings.append(f"Column '{name}' counts the rows, like an id. Leave it out with --ignore {name}?")
        elif whole and 2 < different <= 12 and 5 * different <= len(known):
            found.warnings.append(
                f"Column '{name}' has {different} whole numbers. If they are categories, use --categorical {name}."
            )
    one = found.classes and found.labels_per_node is None
    if found.labeled and isinstance(column, Number | Category) and one:
        share = _share_explained(table, column, reading.data.y.numpy())
        if share >= LIKE_THE_LABEL:
            found.warnings.append(
                f"Column '{name}' alone determines the label of {share:.0%} of the nodes. Does it leak the label? If "
                f"so, use --ignore {name}."
            )


def _share_explained(table: Table, column: Number | Category, y: Array) -> float:
    """The share of labels that are right if each value of a column predicts its most frequent label.

    It is 0 if that means nothing: if there are few labels, many different values, or nearly all labels are one class.
    """
    if isinstance(column, Category):
        codes, _ = coded(table, column.name)
    else:
        values = numbers(table, column.name)
        codes = np.where(np.isnan(values), -1, np.unique(values, return_inverse=True)[1])
    use = (y >= 0) & (codes >= 0)
    if use.sum() < 10:
        return 0.0
    codes, y = np.unique(codes[use], return_inverse=True)[1], y[use]
    if codes.max() + 1 > 0.2 * len(codes) or len(np.unique(y)) < 2:
        return 0.0
    classes = int(y.max()) + 1
    counts = np.bincount(codes * classes + y, minlength=(codes.max() + 1) * classes).reshape(-1, classes)
    nearly_one_class = float(np.bincount(y).max()) >= LIKE_THE_LABEL * len(y)
    return 0.0 if nearly_one_class else float(counts.max(1).sum() / len(y))
