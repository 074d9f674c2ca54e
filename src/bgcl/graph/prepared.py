"""A graph in the form that the encoder needs: connections with self-connections, and attributes, sparse or dense."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from bgcl.graph.sparse import Pattern, row_pointer

RowNorm = Literal["length", "sum", "none"]


@dataclass(frozen=True)
class SparseFeatures:
    """Features that are mostly zero, as values on a pattern `(N, F)` whose columns are sorted within each row."""

    pattern: Pattern
    values: Tensor

    @property
    def width(self) -> int:
        return self.pattern.columns

    def split(self, blocks: int) -> Pattern:
        """The pattern of the stacked blocks, `(N * B, F)`: row `u * B + b` holds the features of node u in block b.

        The entries keep their order, because the columns of a row are sorted and a block is a slice of them.
        """
        key = ("stacked", blocks)
        if key not in self.pattern.derived:
            size = -(-self.width // blocks)
            row = self.pattern.row * blocks + self.pattern.column // size
            pattern = Pattern(row_pointer(row, self.pattern.rows * blocks), self.pattern.column, self.width)
            self.pattern.derived[key] = pattern, row
        return self.pattern.derived[key][0]


Features = Tensor | SparseFeatures


@dataclass(frozen=True)
class PreparedGraph:
    """N nodes with their attributes, and E connections: the edges in both directions and a self-connection per node."""

    connections: Pattern  # (N, N), sorted by row, then column
    features: Features
    keys: Tensor | None = None  # (N,), a number for each node that another graph with the node has too
    counts: Tensor | None = None  # (E,), how many connections each one stands for in a sample; None: 1
    weights: Tensor | None = None  # (E,), the weight of each connection; None: 1
    relations: Tensor | None = None  # (E, R), the weight in each relation, 0 for self-connections; None: one relation
    numbers: Tensor | None = None  # (N,), the row of each node in the whole graph; None: this is the whole graph
    seeds: int | None = None  # the first nodes, which alone are in the loss; None: all are

    @property
    def nodes(self) -> int:
        return self.connections.rows

    @cached_property
    def is_self(self) -> Tensor:
        """True for self-connections, `(E, 1)`."""
        return (self.connections.row == self.connections.column)[:, None]


def numbers_of(graph: PreparedGraph) -> Tensor:
    """The row of each node in the whole graph, `(N,)`."""
    device = graph.connections.column.device
    return torch.arange(graph.nodes, device=device) if graph.numbers is None else graph.numbers


def mean_weight(data: Data) -> float:
    """The mean weight of the edges of a checked graph; 0 if they have no weights, or if all weights are equal.

    Edges of equal weight may still have other weights in each relation.
    """
    weights, by_relation = data.get("edge_weight"), data.get("edge_relations")
    if weights is None or not len(weights):
        return 0.0
    in_relations = None if by_relation is None else by_relation[by_relation > 0]
    if _are_equal(weights) and (in_relations is None or _are_equal(in_relations)):
        return 0.0
    return float(weights.cpu().double().mean())


def _are_equal(values: Tensor) -> bool:
    return bool((values == values[:1]).all())


def relations_of(data: Data) -> tuple[str, ...]:
    """The names of the relations of a checked graph that tell its edges apart; none if there are fewer than two."""
    names = tuple(data.get("relations") or ())
    return names if len(names) > 1 else ()


def relative_weights(data: Data, unit: float | None = None) -> Tensor | None:
    """The weights of the edges of a checked graph divided by `unit`, `(2E,)` in float64; None if they are not used.

    In a graph without weights, each edge has the weight 1.

    Args:
        data: the graph.
        unit: the weight that counts as 1; 0: weights are not used; None: the mean weight.
    """
    unit = mean_weight(data) if unit is None else unit
    weights = data.get("edge_weight")
    if not unit:
        return None
    return torch.ones(data.num_edges, dtype=torch.float64) / unit if weights is None else weights.cpu().double() / unit


def prepare(
    data: Data, *, row_norm: RowNorm, device: torch.device | str = "cpu", unit: float | None = None,
    relations: Sequence[str] = (),
) -> PreparedGraph:  # fmt: skip
    """Prepare a graph that `check_graph` returned, whose edges go in both directions.

    Weights of edges are divided by `unit`. A self-connection has the weight 1, so it weighs as much as a usual edge,
    and the unit in which weights are measured makes no difference.

    Args:
        data: the graph, with `x` of shape `(N, F)`, dense or sparse CSR.
        row_norm: divide each node's attributes by their "length", the "sum" of their absolute values, or nothing
            ("none").
        device: device of the result.
        unit: the weight that counts as 1; 0: weights are not used; None: the mean weight, see `mean_weight`.
        relations: names of the relations, in order. One that the graph does not have has no connections.

    Returns:
        The graph with a self-connection for each node.
    """
    edges, order = _sorted(data.edge_index.cpu(), data.num_nodes)
    pointer, column, place = _with_self_connections(edges, data.num_nodes)
    connections = Pattern(pointer.to(device), column.to(device), data.num_nodes)
    relative, weights = relative_weights(data, unit), None
    if relative is not None:
        weights = torch.ones(len(column))
        weights[place] = relative[order].float()
        weights = weights.to(device)
    features, by_relation = _features(data.x, row_norm, torch.device(device)), None
    if relations:
        by_relation = torch.zeros(len(column), len(relations))
        by_relation[place] = _relations(data, relations, unit)[order]
        by_relation = by_relation.to(device)
    return PreparedGraph(connections, features, weights=weights, relations=by_relation)


def _relations(data: Data, names: Sequence[str], unit: float | None) -> Tensor:
    """The weight of each edge in some relations, `(2E, R)`; 0 and 1 if weights are not used."""
    found = torch.zeros(data.edge_index.shape[1], len(names))
    unit = mean_weight(data) if unit is None else unit
    for i, name in enumerate(names):
        if name in data.relations:
            own = data.edge_relations[:, data.relations.index(name)].cpu().double()
            found[:, i] = (own / unit if unit else own > 0).float()
    return found


def _sorted(edge_index: Tensor, nodes: int) -> tuple[Tensor, Tensor | slice]:
    """Edges sorted by row and column, and the order of what belongs to them. Only unsorted edges are sorted."""
    key = edge_index[0] * nodes + edge_index[1]
    if bool((key.diff() > 0).all()):
        return edge_index, slice(None)
    key, order = torch.sort(key)
    return torch.stack([key // nodes, key % nodes]), order


def _with_self_connections(edge_index: Tensor, nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sorted edges and the diagonal in compressed rows: `pointer`, `column`, and the place of each edge among them."""
    row, column = edge_index
    # An edge of row v comes after the self-connections of the rows above, and of v if the column is greater than v.
    place = torch.arange(len(row)) + row + (column > row)
    result = torch.empty(len(row) + nodes, dtype=torch.int64)
    result[place] = column
    pointer = row_pointer(row, nodes)
    below = torch.bincount(row[column < row], minlength=nodes)  # edges of a row that come before the diagonal
    node = torch.arange(nodes)
    result[pointer[:-1] + node + below] = node
    return pointer + torch.arange(nodes + 1), result, place


def _features(x: Tensor, row_norm: RowNorm, device: torch.device) -> Features:
    if x.layout == torch.strided:
        return scale_rows(x.to(device, torch.float32), row_norm)
    row = torch.repeat_interleave(torch.arange(len(x)), x.crow_indices().cpu().diff())
    key, values = row * x.shape[1] + x.col_indices().cpu(), x.values().cpu()
    column = x.col_indices().cpu()
    if not bool((key.diff() > 0).all()):
        order = torch.argsort(key)
        column, values = column[order], values[order]
    pattern = Pattern(x.crow_indices().to(device), column.to(device), x.shape[1])
    return scale_features(SparseFeatures(pattern, values.to(device, torch.float32)), row_norm)


def scale_features(features: Features, norm: RowNorm) -> Features:
    """Divide each row of sparse or dense features by its length or by the sum of its absolute values."""
    if isinstance(features, Tensor):
        return scale_rows(features, norm)
    if norm == "none":
        return features
    pattern, values = features.pattern, _values_within_range(features)
    sizes = values.abs() if norm == "sum" else values.square()
    total = torch.zeros(pattern.rows, device=values.device).index_add_(0, pattern.row, sizes)
    return SparseFeatures(pattern, values / _divisor(total if norm == "sum" else total.sqrt())[pattern.row])


def scale_rows(dense: Tensor, norm: RowNorm) -> Tensor:
    """Divide each row of the attributes `(N, F)` by its length or by the sum of its absolute values."""
    if norm == "none":
        return dense
    dense = _without_exponent(dense, dense.abs().amax(1, keepdim=True))
    return dense / _divisor(torch.linalg.vector_norm(dense, ord=1 if norm == "sum" else 2, dim=1, keepdim=True))


def within_range(features: Features) -> Features:
    """Multiply each row by a power of two, so that its greatest entry is between 1/2 and 1.

    Squares and sums of the row are then neither too great nor too small for float32. A power of two changes no digit,
    so a row that is divided by its length afterwards is the same, bit for bit.
    """
    if isinstance(features, SparseFeatures):
        return SparseFeatures(features.pattern, _values_within_range(features))
    return _without_exponent(features, features.abs().amax(1, keepdim=True))


def _values_within_range(features: SparseFeatures) -> Tensor:
    pattern, values = features.pattern, features.values
    greatest = values.new_zeros(pattern.rows).scatter_reduce(0, pattern.row, values.abs(), "amax")
    return _without_exponent(values, greatest[pattern.row])


def _without_exponent(values: Tensor, greatest: Tensor) -> Tensor:
    exponent = torch.frexp(greatest).exponent
    half = exponent // 2  # in two steps, because 2^-exponent itself may be too great or too small
    return torch.ldexp(torch.ldexp(values, -half), half - exponent)


def to_dense(features: Features) -> Tensor:
    """Features as a plain matrix, `(N, F)`."""
    if isinstance(features, Tensor):
        return features
    pattern = features.pattern
    zeros = torch.zeros(pattern.rows, pattern.columns, dtype=features.values.dtype, device=features.values.device)
    return zeros.index_put((pattern.row, pattern.column), features.values)


def width_of(graph: PreparedGraph) -> int:
    """The number of attributes."""
    return graph.features.shape[1] if isinstance(graph.features, Tensor) else graph.features.width


def _divisor(total: Tensor) -> Tensor:
    """The total, or 1 if it is 0, so that rows of zeros stay zero."""
    return torch.where(total > 0, total, 1.0)
