"""The graph isomorphism network (Xu et al., 2019), whose inputs and connections are masked."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import Features, PreparedGraph
from bgcl.model.encoders.base import Activation, Jump, LayeredEncoder, Norm, kept_connections, masked_propagation


class MaskedSum(nn.Module):
    r"""One layer, before its activation:

        s_v = (1 + eps) z_vv x_v + sum_u z_vu x_u,    U' = relu(S W_1 + bias_1) W_2 + bias_2

    The sum is over the neighbors u of v. The input features of one block share keep values z, and eps is learned.

    Shapes: features `(N, F)`, result `(N, H)`.
    """

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(()))
        self.first = nn.Parameter(torch.empty(width_in, width_out))
        self.first_bias = nn.Parameter(torch.zeros(width_out))
        self.second = nn.Parameter(torch.empty(width_out, width_out))
        self.second_bias = nn.Parameter(torch.zeros(width_out))

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.xavier_uniform_(self.first, generator=generator)
        nn.init.xavier_uniform_(self.second, generator=generator)
        for parameter in (self.eps, self.first_bias, self.second_bias):
            nn.init.zeros_(parameter)

    def weight_matrices(self) -> list[Tensor]:
        return [self.first, self.second]

    def forward(self, graph: PreparedGraph, features: Features, mask: LayerMask) -> Tensor:
        keep = kept_connections(graph, mask, self.first)
        values = torch.where(graph.is_self, (1 + self.eps) * keep, keep)  # (E, B)
        hidden = masked_propagation(graph, values, features, mask, self.first) + self.first_bias
        return torch.relu(hidden) @ self.second + self.second_bias


class GINEncoder(LayeredEncoder):
    """Layers that sum over neighbors, each followed by normalization and activation. Shapes: result `(N, d)`."""

    def __init__(
        self, widths: Sequence[int], *, activation: Activation = "relu", norm: Norm = "none", skip: bool = False,
        jump: Jump = "last",
    ) -> None:  # fmt: skip
        layers = [MaskedSum(*pair) for pair in pairwise(widths)]
        super().__init__(layers, widths, activation=activation, norm=norm, skip=skip, jump=jump)
