r"""An encoder that keeps every hop: what a node is, what its neighbors are, what theirs are, side by side.

With K hops, and the normalized adjacency matrix `A_k` of hop k under its own masks,

    H = [unit(U W_0) | unit(A_1 U W_1) | ... | unit(A_K ... A_1 U W_K)]

where U are the masked attributes, or the output of masked layers before. Each part has rows of length one. The weights
come first, so that a propagation costs as much as the output is wide.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import Features, PreparedGraph
from bgcl.graph.sparse import block_propagate, normalize
from bgcl.model.encoders.base import Activation, Encoder, Norm, kept_connections, make_norm, masked_product
from bgcl.model.encoders.mlp import MaskedLinear

_LEAST_LENGTH = 1e-12  # shorter rows count as zeros


class HopsEncoder(Encoder):
    """Parts of unit length for the hops 0 to K, `(N, (K + 1) w)`.

    Args:
        widths: width of the input, of masked layers before the hops if there are any, and of each part.
        hops: K, 1 or more.
        activation: activation function.
        norm: normalization before the activation, of the layers before the hops and of each part.
    """

    def __init__(
        self, widths: Sequence[int], *, hops: int = 2, activation: Activation = "relu", norm: Norm = "none"
    ) -> None:
        super().__init__()
        *before, last_in, part = widths
        self.layers = nn.ModuleList(MaskedLinear(*pair) for pair in pairwise([*before, last_in]))
        self.weights = nn.ParameterList(nn.Parameter(torch.empty(last_in, part)) for _ in range(hops + 1))
        self.norms = nn.ModuleList(make_norm(norm, width) for width in (*widths[1:-1], *[part] * (hops + 1)))
        self.activation = nn.ReLU() if activation == "relu" else nn.PReLU()
        self.hops, self.width = hops, part * (hops + 1)
        # Layer 1 + l masks the input of layer l; the last K of them mask the connections of hop 1 to K.
        self.inner = (*widths[1:-1], *[part] * (hops - 1))

    def reset_parameters(self, generator: torch.Generator) -> None:
        for layer in self.layers:
            layer.reset_parameters(generator)  # type: ignore[operator]
        for weight in self.weights:
            nn.init.xavier_uniform_(weight, generator=generator)
        for norm in self.norms:
            if not isinstance(norm, nn.Identity):
                norm.reset_parameters()  # type: ignore[operator]

    def weight_matrices(self) -> list[list[Tensor]]:
        first, *others = self.weights
        hops = [[first, others[0]], *([weight] for weight in others[1:])]
        return [*(layer.weight_matrices() for layer in self.layers), *hops]  # type: ignore[operator]

    def forward(self, graph: PreparedGraph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        masks = masks or [LayerMask()] * self.masked_layers
        features: Features = graph.features
        before = len(self.layers)
        for i, layer in enumerate(self.layers):
            features = self.activation(self.norms[i](layer(graph, features, masks[i])))
        # All parts are transformed at once, and each hop propagates the parts that are still to go further.
        weight = torch.cat(list(self.weights), 1)
        there = masked_product(features, masks[before], weight)
        part = self.weights[0].shape[1]
        parts = [there[:, :part]]
        for hop in range(self.hops):
            mask = masks[before + hop]
            values = normalize(graph.connections, kept_connections(graph, mask, weight))
            there = there[:, part:]
            if hop:  # the columns and entries of the first hop are those of the input
                there = _masked(there, mask, part)
            there = _propagate_parts(graph, values, there, part)
            parts.append(there[:, :part])
        found = (self.activation(self.norms[before + i](each)) for i, each in enumerate(parts))
        return torch.cat([_unit(each) for each in found], 1)


def _masked(features: Tensor, mask: LayerMask, width: int) -> Tensor:
    """Features of several parts of equal width, each under the same masks of columns and entries."""
    parts = features.reshape(len(features), -1, width)
    if mask.columns is not None:
        parts = parts * mask.columns
    if mask.entries is not None:
        parts = parts * mask.entries[:, None]
    return parts.reshape(features.shape)


def _propagate_parts(graph: PreparedGraph, values: Tensor, features: Tensor, width: int) -> Tensor:
    """`[A_1 X_1 | ... | A_B X_B]` of each part, for `(E, B)` values; block b of a part is an equal slice of it."""
    blocks, (nodes, _) = values.shape[1], features.shape
    by_part = F.pad(features.reshape(nodes, -1, width), (0, -width % blocks))  # (N, parts, B * size)
    by_block = by_part.reshape(nodes, by_part.shape[1], blocks, -1).transpose(1, 2)  # (N, B, parts, size)
    result = block_propagate(graph.connections, values, by_block.reshape(nodes, -1))
    result = result.reshape(by_block.shape).transpose(1, 2).reshape(by_part.shape)
    return result[:, :, :width].reshape(features.shape)


def _unit(features: Tensor) -> Tensor:
    """Rows of length one. Rows of zeros, which dropped nodes have, stay zero and have a gradient of usual size."""
    length = torch.linalg.vector_norm(features, dim=1, keepdim=True)
    return features / torch.where(length > _LEAST_LENGTH, length, 1.0)
