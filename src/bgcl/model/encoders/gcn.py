"""The paper's encoder: graph convolutions whose inputs and connections are masked at random."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.augmentation.masks import LayerInput
from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import Features, PreparedGraph, SparseFeatures
from bgcl.graph.sparse import block_gather, block_propagate, normalize, spmm

Order = Literal["propagate", "transform"]
_SPARSE_COST = 5.0  # a multiplication in a sparse product takes about as long as five in a dense one


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

    def forward(self, graph: PreparedGraph, features: Features, mask: LayerMask, order: Order | None = None) -> Tensor:
        """`order` is for tests; by default the layer chooses the cheaper one."""
        values = self.connection_weights(graph, mask)  # (E, B)
        order = order or cheaper_order(graph, features, values.shape[1], self.weight.shape[1])
        compute = _propagate_then_transform if order == "propagate" else _transform_then_propagate
        return compute(graph, values, features, mask, self.weight) + self.bias

    def connection_weights(self, graph: PreparedGraph, mask: LayerMask) -> Tensor:
        """`g_a(A * Z)`, `(E, B)`."""
        ones = graph.connections.row.new_ones((len(graph.connections), 1), dtype=self.weight.dtype)
        if mask.connections is None:
            return normalize(graph.connections, ones)
        if self.normalize_after:
            return normalize(graph.connections, mask.connections)
        return normalize(graph.connections, ones) * mask.connections


def _propagate_then_transform(
    graph: PreparedGraph, values: Tensor, features: Features, mask: LayerMask, W: Tensor
) -> Tensor:
    if isinstance(features, SparseFeatures):
        pattern = features.pattern
        entries = features.values if mask.entries is None else features.values * mask.entries
        dense = torch.zeros(pattern.rows, pattern.columns, dtype=W.dtype, device=W.device)
        dense = dense.index_put((pattern.row, pattern.column), entries)
    else:
        dense = features if mask.entries is None else features * mask.entries
    return block_propagate(graph.connections, values, dense) @ _mask_rows(W, mask)


def _transform_then_propagate(
    graph: PreparedGraph, values: Tensor, features: Features, mask: LayerMask, W: Tensor
) -> Tensor:
    blocks = values.shape[1]
    W = _mask_rows(W, mask)
    if isinstance(features, SparseFeatures):
        entries = features.values if mask.entries is None else features.values * mask.entries
        stacked = spmm(features.split(blocks), entries, W)  # (N * B, H)
    else:
        dense = features if mask.entries is None else features * mask.entries
        missing = -len(W) % blocks
        by_block = F.pad(dense, (0, missing)).reshape(len(dense), blocks, -1).transpose(0, 1)  # (B, N, F / B)
        products = by_block @ F.pad(W, (0, 0, 0, missing)).reshape(blocks, -1, W.shape[1])  # (B, N, H)
        stacked = products.transpose(0, 1).reshape(-1, W.shape[1])
    return block_gather(graph.connections, values, stacked)


def _mask_rows(W: Tensor, mask: LayerMask) -> Tensor:
    """Mask the rows of the weights, which is cheaper than to mask the columns of the features."""
    return W if mask.columns is None else W * mask.columns[:, None]


def cheaper_order(graph: PreparedGraph, features: Features, blocks: int, width_out: int) -> Order:
    """The order that computes a layer in less time, estimated from the number of multiplications."""
    edges, nodes = len(graph.connections), graph.nodes
    if isinstance(features, SparseFeatures):
        width = features.width
        transform = _SPARSE_COST * len(features.pattern) * width_out
    else:
        width = features.shape[1]
        transform = float(nodes * width * width_out)
    propagate_first = _SPARSE_COST * edges * width + nodes * width * width_out
    transform_first = transform + _SPARSE_COST * edges * blocks * width_out
    return "propagate" if propagate_first <= transform_first else "transform"


class GCNEncoder(nn.Module):
    """Masked convolutions, each followed by the activation. Shapes: result `(N, d)`."""

    def __init__(
        self, widths: Sequence[int], *, activation: Literal["relu", "prelu"] = "relu", normalize_after: bool = True
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            MaskedConvolution(width_in, width_out, normalize_after=normalize_after)
            for width_in, width_out in pairwise(widths)
        )
        self.activation = nn.ReLU() if activation == "relu" else nn.PReLU()
        self.widths = tuple(widths)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Initialize all layers from one generator."""
        for layer in self.layers:
            layer.reset_parameters(generator)  # type: ignore[operator]

    def weight_matrices(self) -> list[Tensor]:
        """The weights of each layer, without biases."""
        return [layer.weight for layer in self.layers]  # type: ignore[misc]

    def inputs(self, graph: PreparedGraph) -> list[LayerInput]:
        """The shape of each layer's input, which the masks need."""
        features = graph.features
        entries = features.values.shape if isinstance(features, SparseFeatures) else features.shape
        inner = [LayerInput(width, torch.Size((graph.nodes, width))) for width in self.widths[1:-1]]
        return [LayerInput(self.widths[0], entries), *inner]

    def forward(self, graph: PreparedGraph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        """Without masks this is the deterministic encoder of the non-Bayesian setting."""
        features: Features = graph.features
        for i, layer in enumerate(self.layers):
            features = self.activation(layer(graph, features, LayerMask() if masks is None else masks[i]))
        assert isinstance(features, Tensor)
        return features
