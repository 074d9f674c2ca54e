"""What a graph is, and what looks wrong with it, before any training."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data

from bgcl.data.columns import Category, LeftOut, Number
from bgcl.data.pyg import check_graph
from bgcl.data.recipe import Reading
from bgcl.data.tables import Table
from bgcl.data.values import coded, numbers

Array = npt.NDArray[Any]

FEW_LABELS = 3  # predictions need so many of a class
LIKE_THE_LABEL = 0.99


@dataclass
class Inspection:
    """What was understood of a graph."""

    nodes: int
    edges: int
    degree: dict[str, float]  # mean, median and greatest
    components: int
    largest_component: int
    isolated: int
    attributes: int
    filled: float  # share of attributes other than zero
    columns: dict[str, str] = field(default_factory=dict)  # of a table, and what each became
    labelled: int = 0
    classes: dict[str, int] = field(default_factory=dict)  # labelled nodes of each
    homophily: float | None = None  # share of edges between labelled nodes that join the same class
    homophily_by_chance: float | None = None  # the same, were edges drawn without regard to the labels
    guesses: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def inspect(graph: Data | Reading) -> Inspection:
    """Look at a graph; of one that was just read from tables, at its columns too.

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
        attributes=int(data.x.shape[1]),
        filled=float((values != 0).sum()) / data.x.numel(),
    )
    if data.y is not None and not data.y.is_floating_point() and data.y.dim() == 1:
        _look_at_labels(found, data.y.cpu().numpy(), getattr(data, "classes", None), row, column)
    elif data.y is not None:
        found.warnings.append("The label is a quantity, not a class: commands predict classes; see MixtureRegressor.")
    else:
        found.warnings.append("Nodes have no labels: training needs none, but predictions do. Name some with --label.")
    _look_at_structure(found)
    if isinstance(graph, Reading):
        _look_at_reading(found, graph)
    return found


def _look_at_labels(found: Inspection, y: Array, names: Any, row: Array, column: Array) -> None:
    counts = np.bincount(y[y >= 0], minlength=len(names or ()))
    found.labelled = int((y >= 0).sum())
    found.classes = {str(names[i] if names else i): int(n) for i, n in enumerate(counts) if n or names}
    both = (y[row] >= 0) & (y[column] >= 0)
    if both.any():
        found.homophily = float((y[row] == y[column])[both].mean())
        ends = np.bincount(y[row][both], minlength=len(counts)) / both.sum()
        found.homophily_by_chance = float(np.square(ends).sum())
        if both.sum() >= 40 and found.homophily < found.homophily_by_chance + 0.05:
            found.warnings.append(
                f"Heterophily: {found.homophily:.0%} of the edges join the same class, {found.homophily_by_chance:.0%} "
                "would by chance. Embeddings that average neighbours may tell little of the label."
            )
    small = {name: n for name, n in found.classes.items() if 0 < n < FEW_LABELS}
    for name, n in list(small.items())[:3]:
        found.warnings.append(f"Class {name} has {n} labelled node(s): predictions need {FEW_LABELS}.")
    if len([n for n in found.classes.values() if n]) == 1:
        found.warnings.append("All labels are the same class: there is nothing to tell apart.")
    elif counts.size and counts.max() > 0.95 * counts.sum():
        found.warnings.append(f"{counts.max() / counts.sum():.0%} of the labels are one class.")


def _look_at_structure(found: Inspection) -> None:
    if found.isolated > 0.2 * found.nodes:
        found.warnings.append(
            f"{found.isolated:,} of {found.nodes:,} nodes have no edge: the graph tells nothing of them. Do ids match?"
        )
    if found.components - found.isolated > max(1, 0.2 * found.nodes):
        found.warnings.append(f"The graph falls into {found.components:,} parts.")
    if found.degree["greatest"] > 0.5 * found.nodes > 50:
        found.warnings.append("A node is joined to most others: it makes all embeddings alike. Is it a real node?")


def _look_at_reading(found: Inspection, reading: Reading) -> None:
    found.guesses = reading.guesses
    found.columns = {column.name: str(column) for column in reading.recipe.columns}
    found.warnings += reading.notes
    repeated = reading.rows - reading.loops - reading.unknown - found.edges
    if repeated:
        found.warnings.append(f"{repeated:,} row(s) repeat an edge, in either direction: each counts once.")
    if reading.loops:
        found.warnings.append(f"{reading.loops:,} edge(s) lead from a node to itself: left out.")
    if reading.unknown:
        found.warnings.append(f"{reading.unknown:,} edge(s) lead to nodes that are not there: left out.")
    if reading.unused:
        found.warnings.append(f"Columns of the edges that are not used: {', '.join(reading.unused)}.")
    if reading.nodes is not None:
        for column in reading.recipe.columns:
            _look_at_column(found, reading.nodes, column, reading)


def _look_at_column(found: Inspection, table: Table, column: Any, reading: Reading) -> None:
    """Hints on a column that was understood, but perhaps not as it was meant."""
    name = column.name
    if isinstance(column, LeftOut) or name not in table.columns.column_names:
        return
    if isinstance(column, Number):
        values = numbers(table, name)
        known = values[~np.isnan(values)]
        whole = bool((known == np.floor(known)).all())
        different = len(np.unique(known))
        if whole and different == len(known) > 20 and known.max() - known.min() < 2 * len(known):
            found.warnings.append(f"Column '{name}' counts the rows, as an id does: leave it out with --ignore {name}?")
        elif whole and 2 < different <= 12 and 5 * different <= len(known):
            found.warnings.append(
                f"Column '{name}' has {different} whole numbers: if they are codes, read it with --categorical {name}."
            )
    if found.labelled and isinstance(column, Number | Category) and reading.data.y is not None:
        share = _tells_label(table, column, reading.data.y.numpy())
        if share >= LIKE_THE_LABEL:
            found.warnings.append(
                f"Column '{name}' alone tells the label of {share:.0%} of the nodes: does it leak? --ignore {name}."
            )


def _tells_label(table: Table, column: Number | Category, y: Array) -> float:
    """The share of labelled nodes that have the commonest label among those with the same value; 0 if values are
    mostly their own, or if there are hardly fewer classes than nodes.
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
    together = csr_matrix((np.ones(len(y)), (codes, y)))
    return float(together.max(axis=1).sum() / len(y)) if _better_than_one_class(y) else 0.0


def _better_than_one_class(y: Array) -> bool:
    """Where nearly all labels are one class, any column would tell them."""
    return float(np.bincount(y).max()) < LIKE_THE_LABEL * len(y)
