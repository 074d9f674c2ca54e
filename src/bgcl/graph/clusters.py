"""Cluster batching: METIS cuts a graph into clusters with few edges between them, and some of them make a batch.

A cluster is mostly of one class, and a node whose negatives are all of its own class learns to tell what should be
alike. So a batch is made of several clusters from all over the graph, other ones in every epoch, with the edges between
them (Chiang et al., 2019, stochastic multiple partitions).
"""

from collections.abc import Iterator

import numpy as np
import pymetis
import torch
from torch import Tensor

from bgcl.errors import BGCLError
from bgcl.graph.prepared import Graph, SparseFeatures
from bgcl.graph.sparse import Pattern, row_pointer


class Batches:
    """The batches of an epoch: `count` random unions of `clusters` clusters each; one batch is the graph itself."""

    def __init__(self, graph: Graph, count: int = 1, clusters: int = 1) -> None:
        if count > graph.nodes:
            raise BGCLError(f"The setting 'batches' is {count}, more than the graph has nodes ({graph.nodes}).")
        self.graph, self.count = graph, count
        self.members = metis(graph, min(count * clusters, graph.nodes)) if count > 1 else []
        # Batches of one cluster each are the same in every epoch.
        self._fixed = [induced(graph, nodes) for nodes in self.members] if clusters == 1 else []

    def epoch(self, generator: torch.Generator) -> Iterator[Graph]:
        """The batches of one epoch, in random order; every node is in one of them."""
        if self.count == 1:
            yield self.graph
            return
        order = torch.randperm(len(self.members), generator=generator, device=generator.device).tolist()
        if self._fixed:
            yield from (self._fixed[i] for i in order)
            return
        for group in np.array_split(order, min(self.count, len(order))):  # METIS may leave parts empty
            yield induced(self.graph, torch.cat([self.members[i] for i in group]))


def metis(graph: Graph, parts: int) -> list[Tensor]:
    """The nodes of each part of a METIS partition; none is empty."""
    # METIS wants a graph without self-connections.
    row, column = graph.connections.row.cpu(), graph.connections.column.cpu()
    other = row != column
    adjacency = pymetis.CSRAdjacency(
        row_pointer(row[other], graph.nodes).numpy().astype(np.int32), column[other].numpy().astype(np.int32)
    )
    _, membership = pymetis.part_graph(parts, adjacency=adjacency)
    part = torch.as_tensor(np.asarray(membership), device=graph.connections.column.device)
    members = (torch.nonzero(part == i)[:, 0] for i in range(parts))
    return [nodes for nodes in members if len(nodes)]


def induced(graph: Graph, nodes: Tensor) -> Graph:
    """The subgraph of `nodes`, which are renumbered in their order."""
    number = torch.full((graph.nodes,), -1, device=nodes.device)
    number[nodes] = torch.arange(len(nodes), device=nodes.device)
    connections = _rows(graph.connections, nodes)
    column = number[graph.connections.column[connections]]
    inside = column >= 0
    row = number[graph.connections.row[connections]][inside]
    features = graph.features
    if isinstance(features, SparseFeatures):
        entries = _rows(features.pattern, nodes)
        pointer = row_pointer(number[features.pattern.row[entries]], len(nodes))
        pattern = Pattern(pointer, features.pattern.column[entries], features.width)
        features = SparseFeatures(pattern, features.values[entries])
    else:
        features = features[nodes]
    return Graph(Pattern(row_pointer(row, len(nodes)), column[inside], len(nodes)), features)


def _rows(pattern: Pattern, nodes: Tensor) -> Tensor:
    """The entries of the rows `nodes`, in their order."""
    counts = pattern.pointer.diff()[nodes]
    start = torch.repeat_interleave(pattern.pointer[:-1][nodes] - (counts.cumsum(0) - counts), counts)
    return start + torch.arange(len(start), device=nodes.device)
