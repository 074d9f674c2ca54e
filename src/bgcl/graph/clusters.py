"""Batches of clusters: METIS cuts a graph into clusters with few edges between them, and a batch joins some of them.

The nodes of one cluster are mostly of one class. If a batch were one cluster, the negatives of a node would mostly have
its class, and the loss would push apart nodes that belong together. So a batch joins several random clusters and the
edges between them, and each epoch joins different ones (Chiang et al., 2019, stochastic multiple partitions).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymetis
import torch
from torch import Tensor

from bgcl.errors import BGCLError
from bgcl.graph.epoch_batches import EpochBatches
from bgcl.graph.prepared import Features, PreparedGraph, SparseFeatures, numbers_of
from bgcl.graph.sparse import Pattern, row_pointer

MOST_WEIGHT = 10_000  # of an edge in METIS: sums of greater ones may be too great for builds with numbers of 32 bits
METIS_BYTES = 84  # of memory for an entry of the adjacency matrix, measured at 10^5 to 10^6 nodes of degree 20


class Batches(EpochBatches):
    """The batches of an epoch: `count` random unions of `clusters` clusters each. A single batch is the whole graph.

    Args:
        graph: the graph.
        count: batches in an epoch.
        clusters: clusters in a batch.
        partition: makes the part of each node, `(N,)`, from the graph and the number of parts. Default: METIS.
    """

    def __init__(
        self, graph: PreparedGraph, count: int = 1, clusters: int = 1,
        partition: Callable[[PreparedGraph, int], Tensor] | None = None,
    ) -> None:  # fmt: skip
        if count > graph.nodes:
            raise BGCLError(f"The setting 'batches' is {count}, more than the graph has nodes ({graph.nodes}).")
        self.graph, self.count = graph, count
        parts = min(count * clusters, graph.nodes)
        self.members = members_of((partition or membership)(graph, parts)) if count > 1 else []
        self._number = torch.full((graph.nodes,), -1, device=graph.connections.column.device) if count > 1 else None
        # Batches of one cluster each are the same in every epoch.
        self._fixed = [induced(graph, nodes, self._number) for nodes in self.members] if clusters == 1 else []

    def plans(self, generator: torch.Generator) -> list[list[int]]:
        """The clusters of each batch, in random order; none if a batch is the whole graph."""
        if self.count == 1:
            return [[]]
        order = torch.randperm(len(self.members), generator=generator, device=generator.device).numpy(force=True)
        count = min(self.count, len(order))  # METIS may return empty parts
        return [group.tolist() for group in np.array_split(order, len(order) if self._fixed else count)]

    def make(self, plan: list[int], generator: torch.Generator) -> PreparedGraph:
        if self.count == 1:
            return self.graph
        if self._fixed:
            return self._fixed[plan[0]]
        return induced(self.graph, torch.cat([self.members[i] for i in plan]), self._number)


def metis(graph: PreparedGraph, parts: int) -> list[Tensor]:
    """The nodes of each part of a METIS partition, without empty parts."""
    return members_of(membership(graph, parts))


def membership(graph: PreparedGraph, parts: int) -> Tensor:
    """The part of each node in a METIS partition, `(N,)`."""
    # METIS needs a graph without self-connections.
    row, column = graph.connections.row.cpu(), graph.connections.column.cpu()
    other = row != column
    whole = pymetis.zero_copy_dtype()  # the whole numbers that this build of METIS counts with
    if int(other.sum()) > np.iinfo(whole).max:
        raise BGCLError(
            f"This build of pymetis counts with {np.iinfo(whole).bits} bits, which is too few for {len(column):,} "
            "connections. Install one that counts with 64 bits, as its wheels do."
        )
    adjacency = pymetis.CSRAdjacency(
        row_pointer(row[other], graph.nodes).numpy().astype(whole, copy=False),
        column[other].numpy().astype(whole, copy=False),
    )
    heavy = None if graph.weights is None else _whole(graph.weights.cpu()[other], whole)
    _, found = pymetis.part_graph(parts, adjacency=adjacency, eweights=heavy)
    return torch.as_tensor(np.asarray(found), device=graph.connections.column.device)


def members_of(part: Tensor) -> list[Tensor]:
    """The nodes of each part, ascending, without empty parts. All of them come from one sort."""
    order = torch.argsort(part, stable=True)
    counts = torch.bincount(part)
    return list(torch.split(order, counts[counts > 0].tolist()))


def _whole(weights: Tensor, kind: np.dtype[Any]) -> np.ndarray:
    """Weights as METIS takes them: whole numbers from 1 on, 100 for a usual edge."""
    return (100 * weights).round().clamp(1, MOST_WEIGHT).numpy().astype(kind)


def induced(graph: PreparedGraph, nodes: Tensor, number: Tensor | None = None) -> PreparedGraph:
    """The subgraph of `nodes`, which are numbered in the given order.

    Args:
        graph: the graph.
        nodes: the nodes, each once, `(n,)`.
        number: room for the new number of each node, `(N,)`, -1 everywhere. With it, the cost depends only on the
            nodes and their connections, not on N.
    """
    if number is None:
        number = torch.full((graph.nodes,), -1, device=nodes.device)
    own = torch.arange(len(nodes), device=nodes.device)
    number[nodes] = own
    connections, counts = rows_of_pattern(graph.connections, nodes)
    column = number[graph.connections.column[connections]]
    number[nodes] = -1  # for the next subgraph
    inside = column >= 0
    row = torch.repeat_interleave(own, counts, output_size=len(connections))[inside]
    features = feature_rows(graph.features, nodes)
    kept = [None if each is None else each[connections][inside] for each in (graph.weights, graph.relations)]
    pattern = Pattern(row_pointer(row, len(nodes)), column[inside], len(nodes))
    numbers = numbers_of(graph)[nodes]
    keys = None if graph.keys is None else graph.keys[nodes]
    return PreparedGraph(pattern, features, keys=keys, weights=kept[0], relations=kept[1], numbers=numbers)


def feature_rows(features: Features, nodes: Tensor) -> Features:
    """The features of some nodes, in the given order. A node may occur more than once."""
    if not isinstance(features, SparseFeatures):
        return features[nodes]
    entries, counts = rows_of_pattern(features.pattern, nodes)
    pointer = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return SparseFeatures(Pattern(pointer, features.pattern.column[entries], features.width), features.values[entries])


def rows_of_pattern(pattern: Pattern, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """The entries of the rows `nodes`, in the given order, and how many each row has."""
    first = pattern.pointer[nodes]
    counts = pattern.pointer[nodes + 1] - first
    start = torch.repeat_interleave(first - (counts.cumsum(0) - counts), counts)
    return start + torch.arange(len(start), device=nodes.device), counts
