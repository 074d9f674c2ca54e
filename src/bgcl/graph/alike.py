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
    found = nearest(F.normalize(vectors, dim=1), references(graph))
    counts, column, weight = connected_rows(graph, found, 0, graph.nodes, and_neighbors=and_neighbors)
    pattern = Pattern(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), column, graph.nodes)
    return replace(graph, connections=pattern, weights=weight, relations=None)


class Nearest:
    """The nearest nodes of each node of a graph, without itself.

    Args:
        near: the nearest nodes, `(N, few)`.
        cosine: the cosines of their vectors, `(N, few)`.
    """

    def __init__(self, near: Tensor, cosine: Tensor) -> None:
        self.near, self.cosine = near, cosine
        nodes, self.few = near.shape
        # The places of the pairs in the order of the nearest node, to find those that have a node as a nearest one.
        self.order = torch.argsort(near.flatten(), stable=True).to(near.dtype)
        self.pointer = row_pointer(near.flatten().long(), nodes)

    def of_rows(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs of some nodes and their nearest nodes, in both directions: row, column and cosine."""
        own = torch.arange(start, stop, device=self.near.device).repeat_interleave(self.few)
        places = self.order[int(self.pointer[start]) : int(self.pointer[stop])].long()
        theirs = torch.arange(start, stop, device=self.near.device).repeat_interleave(
            self.pointer[start : stop + 1].diff()
        )
        column = torch.cat([self.near[start:stop].flatten().long(), places // max(self.few, 1)])
        return (
            torch.cat([own, theirs]),
            column,
            torch.cat([self.cosine[start:stop].flatten(), self.cosine.flatten()[places]]),
        )


def connected_rows(
    graph: PreparedGraph, found: Nearest, start: int, stop: int, *, and_neighbors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Some rows of the graph whose connections are those between nodes and their nearest nodes, see `among_alike`.

    Args:
        graph: the graph.
        found: the nearest nodes.
        start, stop: the first row, and the one after the last.
        and_neighbors: whether the connections of the graph are there too.

    Returns:
        How many connections each row has, `(stop - start,)`, their columns and their weights.
    """
    row, column, cosine = found.of_rows(start, stop)
    key, weight = _distinct((row - start) * graph.nodes + column, torch.exp((cosine - 1) / SOFTNESS), "amax")
    if and_neighbors:
        own = slice(int(graph.connections.pointer[start]), int(graph.connections.pointer[stop]))
        row = torch.repeat_interleave(graph.connections.pointer[start : stop + 1].diff().long())
        theirs = row * graph.nodes + graph.connections.column[own].long()
        ones = weight.new_ones(len(theirs)) if graph.weights is None else graph.weights[own]
    else:
        itself = torch.arange(stop - start, device=key.device)
        theirs = itself * graph.nodes + itself + start
        ones = weight.new_ones(len(theirs))
    key, weight = _distinct(torch.cat([key, theirs]), torch.cat([weight, ones]), "sum")
    return torch.bincount(key // graph.nodes, minlength=stop - start), key % graph.nodes, weight


def nearest(unit: Tensor, among: Tensor, most: int = NEAREST) -> Nearest:
    """The nearest nodes of each node: `most`, or all if there are fewer.

    Args:
        unit: vectors of length one, `(N, d)`.
        among: the nodes that are looked at, ascending, `(R,)`.
        most: how many nodes to find.
    """
    itself = torch.full((len(unit),), -1, device=unit.device)
    itself[among] = torch.arange(len(among), device=unit.device)
    _, found, cosine = nearest_among(unit, unit[among], itself, most)
    return Nearest(among[found].reshape(len(unit), -1), cosine.reshape(len(unit), -1))


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
