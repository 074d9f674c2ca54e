"""GraphSAGE with the mean over neighbors (Hamilton et al., 2017), whose inputs and connections are masked."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import Features, PreparedGraph
from bgcl.graph.sparse import row_sum
from bgcl.model.encoders.base import (
    Activation,
    Jump,
    LayeredEncoder,
    Norm,
    kept_connections,
    masked_product,
    masked_propagation,
)

_LEAST_TOTAL = 1e-12  # below it, a node has lost all its neighbors, and the gradient of the mean overflows


class MaskedMean(nn.Module):
    r"""One layer, before its activation:

        U' = (X * Z) W_self + sum_b A_b (X * Z)_b W_neighbors,b + bias

    `A_b` is the mean over the neighbors, weighted by the keep values of block b. A row of it sums to 1, or is 0 if the
    node has no kept neighbor. Masks of self-connections have no effect, because a node is not its own neighbor.

    Shapes: features `(N, F)`, result `(N, H)`.
    """

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.weight_self = nn.Parameter(torch.empty(width_in, width_out))
        self.weight_neighbors = nn.Parameter(torch.empty(width_in, width_out))
        self.bias = nn.Parameter(torch.zeros(width_out))

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.xavier_uniform_(self.weight_self, generator=generator)
        nn.init.xavier_uniform_(self.weight_neighbors, generator=generator)
        nn.init.zeros_(self.bias)

    def weight_matrices(self) -> list[Tensor]:
        return [self.weight_self, self.weight_neighbors]

    def forward(self, graph: PreparedGraph, features: Features, mask: LayerMask) -> Tensor:
        mean = neighbor_mean(graph, kept_connections(graph, mask, self.bias))  # (E, B)
        from_neighbors = masked_propagation(graph, mean, features, mask, self.weight_neighbors)
        return masked_product(features, mask, self.weight_self) + from_neighbors + self.bias


def neighbor_mean(graph: PreparedGraph, keep: Tensor) -> Tensor:
    """`z_vu / sum_u z_vu` over the neighbors u of v, without v, and 0 for self-connections. Shapes: `(E, B)`."""
    keep = keep.masked_fill(graph.is_self, 0.0)
    total = row_sum(graph.connections, keep)
    # Without a kept neighbor the divisor is 1, so that the gradient of a dropped connection is finite.
    divisor = torch.where(total > 0, total.clamp(min=_LEAST_TOTAL), 1.0)
    return keep / divisor.index_select(0, graph.connections.row)


class SAGEEncoder(LayeredEncoder):
    """GraphSAGE layers, each followed by normalization and activation. Shapes: result `(N, d)`."""

    def __init__(
        self, widths: Sequence[int], *, activation: Activation = "relu", norm: Norm = "none", skip: bool = False,
        jump: Jump = "last",
    ) -> None:  # fmt: skip
        layers = [MaskedMean(*pair) for pair in pairwise(widths)]
        super().__init__(layers, widths, activation=activation, norm=norm, skip=skip, jump=jump)
