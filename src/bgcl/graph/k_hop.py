"""The part of a graph around some nodes."""

import torch
from torch import Tensor

from bgcl.graph.clusters import induced, rows_of_pattern
from bgcl.graph.prepared import PreparedGraph


def k_hop(graph: PreparedGraph, nodes: Tensor, hops: int) -> PreparedGraph:
    """The subgraph of all nodes within some hops of others, which are its first nodes, in the given order.

    All connections of a node that is closer than `hops` are there.

    Args:
        graph: the graph.
        nodes: the nodes, each once, `(n,)`.
        hops: how many steps along connections are taken.
    """
    seen = torch.zeros(graph.nodes, dtype=torch.bool, device=nodes.device)
    seen[nodes] = True
    found, new = [nodes], nodes
    for _ in range(hops):
        entries, _ = rows_of_pattern(graph.connections, new)
        new = torch.unique(graph.connections.column[entries].long())
        new = new[~seen[new]]
        seen[new] = True
        found.append(new)
    return induced(graph, torch.cat(found))
