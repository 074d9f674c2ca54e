r"""Encoders of graphs with several relations, such as edges of several types: each relation has weights of its own.

- In layers, `U' = sum_r layer_r(A_r, U)` before the activation, as in R-GCN (Schlichtkrull et al., 2018) and, for
  the two directions of edges, in Dir-GNN (Rossi et al., 2023).
- An encoder that is not made of such layers is there once for each relation, side by side.

`A_r` has the weights of relation r, and 1 for self-connections.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import Features, PreparedGraph
from bgcl.graph.relations import in_relation
from bgcl.model.encoders.base import Encoder, LayeredEncoder


def for_relations(make: Callable[[], Encoder], relations: int) -> Encoder:
    """An encoder for graphs with some relations.

    Args:
        make: makes the encoder for a graph without relations.
        relations: number of relations; 1: the encoder as it is.
    """
    encoder = make()
    if relations == 1 or not encoder.propagates:
        return encoder
    every = [encoder, *(make() for _ in range(relations - 1))]
    if not isinstance(encoder, LayeredEncoder):
        return SideBySide(every)
    layers = zip(*(each.layers for each in every), strict=True)
    encoder.layers = nn.ModuleList(RelationalLayer(same) for same in layers)
    return encoder


class RelationalLayer(nn.Module):
    """A layer for each relation, whose results are added. Shapes: features `(N, F)`, result `(N, H)`."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def reset_parameters(self, generator: torch.Generator) -> None:
        for layer in self.layers:
            layer.reset_parameters(generator)  # type: ignore[operator]

    def weight_matrices(self) -> list[Tensor]:
        return [weight for layer in self.layers for weight in layer.weight_matrices()]  # type: ignore[operator]

    def forward(self, graph: PreparedGraph, features: Features, mask: LayerMask) -> Tensor:
        found = [
            layer(in_relation(graph, r, itself=True), features, mask_of(mask, r)) for r, layer in enumerate(self.layers)
        ]
        return torch.stack(found).sum(0)


class SideBySide(Encoder):
    """An encoder for each relation, with their outputs side by side. Shapes: result `(N, R d)`."""

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(encoders)
        self.width, self.inner = sum(each.width for each in encoders), encoders[0].inner

    def reset_parameters(self, generator: torch.Generator) -> None:
        for encoder in self.encoders:
            encoder.reset_parameters(generator)  # type: ignore[operator]

    def weight_matrices(self) -> list[list[Tensor]]:
        of_layers = zip(*(each.weight_matrices() for each in self.encoders), strict=True)  # type: ignore[operator]
        return [[weight for weights in layer for weight in weights] for layer in of_layers]

    def forward(self, graph: PreparedGraph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        found = [
            encoder(in_relation(graph, r, itself=True), None if masks is None else [mask_of(mask, r) for mask in masks])
            for r, encoder in enumerate(self.encoders)
        ]
        return torch.cat(found, 1)


def mask_of(mask: LayerMask, relation: int) -> LayerMask:
    """The mask of a layer in one relation."""
    if mask.relations is None:
        return mask
    kept = mask.relations[:, relation, None]
    return replace(mask, connections=kept if mask.connections is None else mask.connections * kept, relations=None)
