r"""Connections between nodes whose vectors are alike.

A node is connected with its `NEAREST` nearest nodes by the cosine of their vectors, and they with it. A connection has
the weight `exp((cos - 1) / SOFTNESS)`, so it is at most 1, and a self-connection has 1. In a graph of more than
`REFERENCES` nodes, the nearest nodes are looked for among this many of them, which are chosen by a hash of their keys.
So the cost is linear in the nodes, and the order of the nodes does not matter.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from bgcl.graph.keys import keys_of, mixed
from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.sparse import Pattern, row_pointer

NEAREST, REFERENCES, SOFTNESS = 10, 8192, 0.1
_ROWS = 2048  # nodes that are compared at a time


def among_alike(graph: PreparedGraph, vectors: Tensor, *, and_neighbors: bool = False) -> PreparedGraph:
    """A graph with the same nodes whose connections are those between alike nodes.

    Args:
        graph: the graph.
        vectors: a vector for each node, `(N, d)`.
        and_neighbors: whether the connections of the graph are there too, each with the weight 1. Where both are, their
            weights are added.

    Returns:
        A graph whose connections have weights.
    """
    return connected(graph, *nearest(F.normalize(vectors, dim=1), references(graph)), and_neighbors=and_neighbors)


def connected(
    graph: PreparedGraph, row: Tensor, column: Tensor, cosine: Tensor, *, and_neighbors: bool = False
) -> PreparedGraph:
    """The graph whose connections are those between nodes and their nearest nodes, see `among_alike`.

    Args:
        graph: the graph.
        row, column, cosine: nodes, nearest nodes and their cosine, as `nearest` finds them.
        and_neighbors: whether the connections of the graph are there too.
    """
    weight = torch.exp((cosine - 1) / SOFTNESS)
    key, weight = _distinct(
        torch.cat([row * graph.nodes + column, column * graph.nodes + row]), weight.repeat(2), "amax"
    )
    own = graph.connections
    if and_neighbors:
        theirs = own.row * graph.nodes + own.column
        ones = weight.new_ones(len(theirs)) if graph.weights is None else graph.weights
    else:
        theirs = torch.arange(graph.nodes, device=key.device) * (graph.nodes + 1)
        ones = weight.new_ones(graph.nodes)
    key, weight = _distinct(torch.cat([key, theirs]), torch.cat([weight, ones]), "sum")
    row, column = key // graph.nodes, key % graph.nodes
    pattern = Pattern(row_pointer(row, graph.nodes), column, graph.nodes)
    return replace(graph, connections=pattern, weights=weight, relations=None)


def nearest(unit: Tensor, among: Tensor, most: int = NEAREST) -> tuple[Tensor, Tensor, Tensor]:
    """The nearest nodes of each node, without itself: node, nearest node and their cosine, each `(N * most,)` or less.

    Args:
        unit: vectors of length one, `(N, d)`.
        among: the nodes that are looked at, ascending, `(R,)`.
        most: how many nodes to find.
    """
    itself = torch.full((len(unit),), -1, device=unit.device)
    itself[among] = torch.arange(len(among), device=unit.device)
    row, found, cosine = nearest_among(unit, unit[among], itself, most)
    return row, among[found], cosine


def nearest_among(unit: Tensor, theirs: Tensor, itself: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """The nearest of some vectors: the number of the vector, that of the nearest one, and their cosine.

    Args:
        unit: vectors of length one, `(n, d)`.
        theirs: the vectors that are looked at, `(R, d)`.
        itself: which of them is the vector itself, and so is left out; -1: none, `(n,)`.
        most: how many to find.
    """
    few = min(most, len(theirs) - 1)
    if few < 1:
        none = itself.new_empty(0)
        return none, none, unit.new_empty(0)
    rows, columns, cosines = [], [], []
    there = theirs.T.contiguous()  # (d, R)
    for start in range(0, len(unit), _ROWS):
        nodes = torch.arange(start, min(start + _ROWS, len(unit)), device=unit.device)
        cosine = unit[nodes] @ there
        own = itself[nodes]
        cosine[(own >= 0).nonzero()[:, 0], own[own >= 0]] = -torch.inf
        best = cosine.topk(few)
        rows.append(nodes.repeat_interleave(few))
        columns.append(best.indices.flatten())
        cosines.append(best.values.flatten().clamp(-1, 1))
    return torch.cat(rows), torch.cat(columns), torch.cat(cosines)


def references(graph: PreparedGraph, most: int = REFERENCES) -> Tensor:
    """At most this many nodes, chosen by a hash of their keys, ascending, `(R,)`."""
    if graph.nodes <= most:
        return torch.arange(graph.nodes, device=graph.connections.column.device)
    return mixed(keys_of(graph)).argsort(stable=True)[:most].sort().values


def _distinct(keys: Tensor, weights: Tensor, reduce: str) -> tuple[Tensor, Tensor]:
    """Every key once, ascending, with the greatest of its weights ("amax") or their sum."""
    found, place = torch.unique(keys, return_inverse=True)
    return found, weights.new_zeros(len(found)).scatter_reduce(0, place, weights, reduce)
