"""Several encoders of one kind side by side, the members, each trained from a start of its own.

Where a trained encoder ends depends on where it starts, so each member knows something that the others do not.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from bgcl.augmentation.masks import LayerInput
from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.encoders.base import Encoder


def with_members(make: Callable[[], Encoder], members: int) -> Encoder:
    """An encoder of some members; with one, the encoder as it is.

    Args:
        make: makes one of them.
        members: how many.
    """
    return make() if members == 1 else Members([make() for _ in range(members)])


class Members(Encoder):
    """Encoders that see the same masks, with their outputs side by side. Shapes: result `(N, M d)`."""

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(encoders)
        first = encoders[0]
        self.width, self.inner = sum(each.width for each in encoders), first.inner
        self.propagates, self.count = first.propagates, len(encoders)

    def reset_parameters(self, generator: torch.Generator) -> None:
        for encoder in self.encoders:
            encoder.reset_parameters(generator)  # type: ignore[operator]

    def weight_matrices(self) -> list[list[Tensor]]:
        of_layers = zip(*(each.weight_matrices() for each in self.encoders), strict=True)  # type: ignore[operator]
        return [[weight for weights in layer for weight in weights] for layer in of_layers]

    def inputs(self, graph: PreparedGraph) -> list[LayerInput]:
        found: list[LayerInput] = self.encoders[0].inputs(graph)  # type: ignore[operator]
        return found

    def forward(self, graph: PreparedGraph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        return torch.cat([encoder(graph, masks) for encoder in self.encoders], 1)
