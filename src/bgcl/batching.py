"""Cluster batching: METIS cuts a graph into parts with few edges between them, and each part is a batch."""

import numpy as np
import pymetis
import torch
from torch import Tensor

from bgcl.errors import BGCLError
from bgcl.graph import Graph, SparseFeatures
from bgcl.propagation import Pattern, row_pointer


def clusters(graph: Graph, parts: int) -> list[Graph]:
    """The subgraphs that the parts of a METIS partition induce; every node is in one of them."""
    if parts == 1:
        return [graph]
    if parts > graph.nodes:
        raise BGCLError(f"The setting 'batches' is {parts}, more than the graph has nodes ({graph.nodes}).")
    # METIS wants a graph without self-connections.
    row, column = graph.connections.row.cpu(), graph.connections.column.cpu()
    other = row != column
    adjacency = pymetis.CSRAdjacency(
        row_pointer(row[other], graph.nodes).numpy().astype(np.int32), column[other].numpy().astype(np.int32)
    )
    _, membership = pymetis.part_graph(parts, adjacency=adjacency)
    part = torch.as_tensor(np.asarray(membership), device=graph.connections.column.device)
    members = (torch.nonzero(part == i)[:, 0] for i in range(parts))
    return [induced(graph, nodes) for nodes in members if len(nodes)]


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
