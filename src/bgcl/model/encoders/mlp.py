"""An encoder that looks at each node by itself. What it learns about neighbors comes from the objective."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import Features, PreparedGraph
from bgcl.model.encoders.base import Activation, Jump, LayeredEncoder, Norm, masked_product


class MaskedLinear(nn.Module):
    """`(X * Z) W + bias`. Shapes: features `(N, F)`, result `(N, H)`."""

    def __init__(self, width_in: int, width_out: int, *, wide: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width_in, width_out))
        self.bias = nn.Parameter(torch.zeros(width_out))
        self.wide = wide  # whether weights start at variance 1, as suits a layer that is normalized afterwards

    def reset_parameters(self, generator: torch.Generator) -> None:
        if self.wide:
            nn.init.normal_(self.weight, generator=generator)
        else:
            nn.init.normal_(self.weight, std=len(self.weight) ** -0.5, generator=generator)
        nn.init.zeros_(self.bias)

    def weight_matrices(self) -> list[Tensor]:
        return [self.weight]

    def forward(self, graph: PreparedGraph, features: Features, mask: LayerMask) -> Tensor:
        return masked_product(features, mask, self.weight) + self.bias


class MLPEncoder(LayeredEncoder):
    """Linear layers with normalization and activation between them. Shapes: result `(N, d)`.

    With `norm="layer"` the first layer starts at weights of variance 1. The normalization hides their size, and a step
    of Adam then turns them by little: the random projection of the attributes, which keeps their geometry, changes
    slowly.
    """

    propagates = False

    def __init__(
        self, widths: Sequence[int], *, activation: Activation = "relu", norm: Norm = "layer", skip: bool = False,
        jump: Jump = "last",
    ) -> None:  # fmt: skip
        layers = [
            MaskedLinear(*pair, wide=norm == "layer" and i == 0 and len(widths) > 2)
            for i, pair in enumerate(pairwise(widths))
        ]
        super().__init__(layers, widths, activation=activation, norm=norm, skip=skip, jump=jump, last=False)
