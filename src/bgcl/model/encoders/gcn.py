"""The paper's encoder: graph convolutions whose inputs and connections are masked at random."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import Features, PreparedGraph
from bgcl.graph.sparse import normalize
from bgcl.model.encoders.base import (
    Activation,
    Jump,
    LayeredEncoder,
    Norm,
    Order,
    kept_connections,
    masked_propagation,
)


class MaskedConvolution(nn.Module):
    r"""One layer with generalized augmentation, before its activation:

        U'_j = sum_i g_a(A * Z^(i)) U_i W_ij + bias_j

    The input features of one block share a mask Z. With `normalize_after = False` the mask multiplies the normalized
    matrix instead, `g_a(A) * Z`.

    Shapes: features `(N, F)`, result `(N, H)`.
    """

    def __init__(self, width_in: int, width_out: int, *, normalize_after: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width_in, width_out))
        self.bias = nn.Parameter(torch.zeros(width_out))
        self.normalize_after = normalize_after

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.xavier_uniform_(self.weight, generator=generator)
        nn.init.zeros_(self.bias)

    def weight_matrices(self) -> list[Tensor]:
        return [self.weight]

    def forward(self, graph: PreparedGraph, features: Features, mask: LayerMask, order: Order | None = None) -> Tensor:
        """`order` is for tests; by default the layer chooses the cheaper one."""
        values = self.connection_weights(graph, mask)  # (E, B)
        return masked_propagation(graph, values, features, mask, self.weight, order) + self.bias

    def connection_weights(self, graph: PreparedGraph, mask: LayerMask) -> Tensor:
        """`g_a(A * Z)`, `(E, B)`."""
        if self.normalize_after or mask.connections is None:
            return normalize(graph.connections, kept_connections(graph, mask, self.weight))
        return normalize(graph.connections, kept_connections(graph, LayerMask(), self.weight)) * mask.connections


class GCNEncoder(LayeredEncoder):
    """Masked convolutions, each followed by the activation. Shapes: result `(N, d)`."""

    def __init__(
        self, widths: Sequence[int], *, activation: Activation = "relu", norm: Norm = "none", skip: bool = False,
        jump: Jump = "last", normalize_after: bool = True,
    ) -> None:  # fmt: skip
        layers = [MaskedConvolution(*pair, normalize_after=normalize_after) for pair in pairwise(widths)]
        super().__init__(layers, widths, activation=activation, norm=norm, skip=skip, jump=jump)
