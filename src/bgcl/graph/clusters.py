"""Batches of clusters: METIS cuts a graph into clusters with few edges between them, and a batch joins some of them.

The nodes of one cluster are mostly of one class. If a batch were one cluster, the negatives of a node would mostly have
its class, and the loss would push apart nodes that belong together. So a batch joins several random clusters and the
edges between them, and each epoch joins different ones (Chiang et al., 2019, stochastic multiple partitions).
"""

from collections.abc import Iterator

import numpy as np
import pymetis
import torch
from torch import Tensor

from bgcl.errors import BGCLError
from bgcl.graph.prepared import Features, PreparedGraph, SparseFeatures, numbers_of
from bgcl.graph.sparse import Pattern, row_pointer

MOST_WEIGHT = 10_000  # of an edge in METIS, which adds weights as numbers of 32 bits


class Batches:
    """The batches of an epoch: `count` random unions of `clusters` clusters each. A single batch is the whole graph."""

    def __init__(self, graph: PreparedGraph, count: int = 1, clusters: int = 1) -> None:
        if count > graph.nodes:
            raise BGCLError(f"The setting 'batches' is {count}, more than the graph has nodes ({graph.nodes}).")
        self.graph, self.count = graph, count
        self.members = metis(graph, min(count * clusters, graph.nodes)) if count > 1 else []
        # Batches of one cluster each are the same in every epoch.
        self._fixed = [induced(graph, nodes) for nodes in self.members] if clusters == 1 else []

    def epoch(self, generator: torch.Generator) -> Iterator[PreparedGraph]:
        """The batches of one epoch in random order. Every node is in exactly one of them."""
        if self.count == 1:
            yield self.graph
            return
        order = torch.randperm(len(self.members), generator=generator, device=generator.device).tolist()
        if self._fixed:
            yield from (self._fixed[i] for i in order)
            return
        for group in np.array_split(order, min(self.count, len(order))):  # METIS may return empty parts
            yield induced(self.graph, torch.cat([self.members[i] for i in group]))


def metis(graph: PreparedGraph, parts: int) -> list[Tensor]:
    """The nodes of each part of a METIS partition, without empty parts."""
    # METIS needs a graph without self-connections.
    row, column = graph.connections.row.cpu(), graph.connections.column.cpu()
    other = row != column
    adjacency = pymetis.CSRAdjacency(
        row_pointer(row[other], graph.nodes).numpy().astype(np.int32), column[other].numpy().astype(np.int32)
    )
    heavy = None if graph.weights is None else _whole(graph.weights.cpu()[other])
    _, membership = pymetis.part_graph(parts, adjacency=adjacency, eweights=heavy)
    part = torch.as_tensor(np.asarray(membership), device=graph.connections.column.device)
    members = (torch.nonzero(part == i)[:, 0] for i in range(parts))
    return [nodes for nodes in members if len(nodes)]


def _whole(weights: Tensor) -> np.ndarray:
    """Weights as METIS takes them: whole numbers from 1 on, 100 for a usual edge."""
    return (100 * weights).round().clamp(1, MOST_WEIGHT).numpy().astype(np.int32)


def induced(graph: PreparedGraph, nodes: Tensor) -> PreparedGraph:
    """The subgraph of `nodes`, which are numbered in the given order."""
    number = torch.full((graph.nodes,), -1, device=nodes.device)
    number[nodes] = torch.arange(len(nodes), device=nodes.device)
    connections = _rows(graph.connections, nodes)
    column = number[graph.connections.column[connections]]
    inside = column >= 0
    row = number[graph.connections.row[connections]][inside]
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
    entries = _rows(features.pattern, nodes)
    counts = features.pattern.pointer.diff()[nodes]
    pointer = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return SparseFeatures(Pattern(pointer, features.pattern.column[entries], features.width), features.values[entries])


def _rows(pattern: Pattern, nodes: Tensor) -> Tensor:
    """The entries of the rows `nodes`, in the given order."""
    counts = pattern.pointer.diff()[nodes]
    start = torch.repeat_interleave(pattern.pointer[:-1][nodes] - (counts.cumsum(0) - counts), counts)
    return start + torch.arange(len(start), device=nodes.device)
