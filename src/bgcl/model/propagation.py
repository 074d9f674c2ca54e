"""Multiplication with the normalized adjacency matrix, without weights to learn."""

from copy import copy

import torch
from torch import Tensor

from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.sparse import normalize, spmm


class Propagation:
    """Multiplies `(N, d)` with the normalized adjacency matrix of a graph.

    Args:
        graph: the graph. Its connections may have weights.
        kept: keep values of the connections, `(E, 1)`; None: all are kept.
    """

    def __init__(self, graph: PreparedGraph, kept: Tensor | None = None) -> None:
        if kept is None:
            kept = torch.ones(len(graph.connections), 1, device=graph.connections.column.device)
        if graph.weights is not None:
            kept = kept * graph.weights[:, None]
        self.pattern, self.values = graph.connections, normalize(graph.connections, kept)[:, 0]

    def __call__(self, dense: Tensor) -> Tensor:
        return spmm(self.pattern, self.values, dense)

    def transposed(self) -> "Propagation":
        """Multiplies with the transposed matrix."""
        twin = copy(self)
        twin.pattern, order = self.pattern.transposed
        twin.values = self.values[order]
        return twin
