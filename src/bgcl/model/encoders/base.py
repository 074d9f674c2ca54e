"""What all encoders share: the interface, layers one after the other, and products with masked features."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.augmentation.masks import LayerInput
from bgcl.augmentation.views import LayerMask
from bgcl.errors import BGCLError
from bgcl.graph.prepared import Features, PreparedGraph, SparseFeatures, to_dense
from bgcl.graph.sparse import block_gather, block_propagate, spmm

Order = Literal["propagate", "transform"]
Activation = Literal["relu", "prelu"]
Norm = Literal["none", "layer", "batch"]
Jump = Literal["last", "concatenate", "max"]
_SPARSE_COST = 5.0  # a multiplication in a sparse product takes about as long as five in a dense one


class Encoder(nn.Module):
    """Base class of encoders: from a graph and masks to one vector per node.

    A subclass sets `width`, the width of its output, and `inner`, the input width of each masked layer after the first.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(encoder="hops", hops=1, widths=[8], epochs=1).fit(data, progress=False)
    >>> model.network_.encoder.width  # hops 0 and 1
    16
    """

    width: int
    inner: tuple[int, ...] = ()
    propagates = True  # whether a node's vector depends on its neighbors

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Initialize all parameters from one generator."""
        raise NotImplementedError

    def weight_matrices(self) -> list[list[Tensor]]:
        """For each masked layer its weights, without biases."""
        raise NotImplementedError

    @property
    def masked_layers(self) -> int:
        """The number of layers that masks reach."""
        return 1 + len(self.inner)

    def inputs(self, graph: PreparedGraph) -> list[LayerInput]:
        """The shape of each masked layer's input, which the masks need."""
        features = graph.features
        if isinstance(features, SparseFeatures):
            first = LayerInput(features.width, features.values.shape)
        else:
            first = LayerInput(features.shape[1], features.shape)
        return [first, *(LayerInput(width, torch.Size((graph.nodes, width))) for width in self.inner)]

    def forward(self, graph: PreparedGraph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        """The vectors of all nodes, `(N, width)`. Without masks this is the deterministic encoder."""
        raise NotImplementedError


class LayeredEncoder(Encoder):
    """Masked layers one after the other, each followed by a normalization and an activation.

    Args:
        layers: modules that are called with graph, features and mask, and have `reset_parameters` and
            `weight_matrices`.
        widths: width of the input, then the output width of each layer.
        activation: activation function.
        norm: normalization before the activation.
        skip: add the input of a layer to its output, from the second layer on.
        jump: what is handed on (jumping knowledge, Xu et al., 2018): the output of the last layer, those of all layers
            side by side, or the greatest value of each column.
        last: whether normalization and activation follow the last layer too.
    """

    def __init__(
        self, layers: Sequence[nn.Module], widths: Sequence[int], *, activation: Activation = "relu",
        norm: Norm = "none", skip: bool = False, jump: Jump = "last", last: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.activation = nn.ReLU() if activation == "relu" else nn.PReLU()
        self.widths, self.inner = tuple(widths), tuple(widths[1:-1])
        self.jump, self.last = jump, last
        outputs = self.widths[1:]
        if jump == "max" and len(set(outputs)) > 1:
            raise BGCLError(f"jump = 'max' needs layers of one width. Got widths = {list(outputs)}.")
        self.width = sum(outputs) if jump == "concatenate" else outputs[-1]
        followed = outputs if last else outputs[:-1]
        self.norms = nn.ModuleList(make_norm(norm, width) for width in followed)
        self.skips = nn.ModuleList(_skip(*pair) for pair in pairwise(outputs)) if skip else None

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Initialize all layers from one generator."""
        for layer in self.layers:
            layer.reset_parameters(generator)  # type: ignore[operator]
        for norm in self.norms:
            if not isinstance(norm, nn.Identity):
                norm.reset_parameters()  # type: ignore[operator]
        for skip in self.skips or ():
            if isinstance(skip, nn.Linear):
                nn.init.xavier_uniform_(skip.weight, generator=generator)

    def weight_matrices(self) -> list[list[Tensor]]:
        """For each layer its weights, without biases."""
        return [layer.weight_matrices() for layer in self.layers]  # type: ignore[operator]

    def forward(self, graph: PreparedGraph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        features: Features = graph.features
        outputs = []
        for i, layer in enumerate(self.layers):
            result = layer(graph, features, LayerMask() if masks is None else masks[i])
            if i < len(self.norms):
                result = self.activation(self.norms[i](result))
            if i and self.skips is not None:
                result = result + self.skips[i - 1](features)
            outputs.append(result)
            features = result
        if self.jump == "concatenate":
            return torch.cat(outputs, 1)
        return torch.stack(outputs).amax(0) if self.jump == "max" else outputs[-1]


def make_norm(norm: Norm, width: int) -> nn.Module:
    """A normalization of `(N, width)`. BatchNorm always uses the statistics of the nodes that it gets."""
    if norm == "batch":
        return nn.BatchNorm1d(width, track_running_stats=False)
    return nn.LayerNorm(width) if norm == "layer" else nn.Identity()


def _skip(width_in: int, width_out: int) -> nn.Module:
    return nn.Identity() if width_in == width_out else nn.Linear(width_in, width_out, bias=False)


def masked_dense(features: Features, mask: LayerMask) -> Tensor:
    """The masked features as a plain matrix, `(N, F)`."""
    if isinstance(features, SparseFeatures):
        values = features.values if mask.entries is None else features.values * mask.entries
        dense = to_dense(SparseFeatures(features.pattern, values))
    else:
        dense = features if mask.entries is None else features * mask.entries
    return dense if mask.columns is None else dense * mask.columns


DENSE = 0.1  # features with a greater share of nonzero entries are multiplied as a plain matrix


def masked_product(features: Features, mask: LayerMask, weight: Tensor) -> Tensor:
    """`(X * Z) W`, `(N, H)`, for weights `(F, H)`, without propagation."""
    (found,) = masked_products(features, mask, [weight])
    return found


def masked_products(features: Features, mask: LayerMask, weights: Sequence[Tensor]) -> list[Tensor]:
    """`masked_product` of several weights. The features are masked once."""
    if not weights:
        return []
    if isinstance(features, SparseFeatures):
        pattern = features.pattern
        if len(pattern) <= DENSE * pattern.rows * pattern.columns:
            entries = features.values if mask.entries is None else features.values * mask.entries
            return [spmm(pattern, entries, mask_rows(weight, mask)) for weight in weights]
    dense = masked_dense(features, mask)
    return [dense @ weight for weight in weights]


def masked_propagation(
    graph: PreparedGraph, values: Tensor, features: Features, mask: LayerMask, weight: Tensor,
    order: Order | None = None,
) -> Tensor:  # fmt: skip
    """`sum_b A_b (X * Z)_b W_b`, `(N, H)`, with `values` `(E, B)` on the connections, in the cheaper order.

    `order` is for tests.
    """
    order = order or cheaper_order(graph, features, values.shape[1], weight.shape[1])
    compute = _propagate_then_transform if order == "propagate" else _transform_then_propagate
    return compute(graph, values, features, mask, weight)


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
    return block_propagate(graph.connections, values, dense) @ mask_rows(W, mask)


def _transform_then_propagate(
    graph: PreparedGraph, values: Tensor, features: Features, mask: LayerMask, W: Tensor
) -> Tensor:
    return block_gather(graph.connections, values, stacked_product(features, mask, W, values.shape[1]))


def stacked_product(features: Features, mask: LayerMask, W: Tensor, blocks: int) -> Tensor:
    """`(X * Z)_b W_b` of each block b of the features, `(N * B, H)`: row `u * B + b` is node u, block b."""
    W = mask_rows(W, mask)
    if isinstance(features, SparseFeatures):
        entries = features.values if mask.entries is None else features.values * mask.entries
        return spmm(features.split(blocks), entries, W)
    dense = features if mask.entries is None else features * mask.entries
    missing = -len(W) % blocks
    by_block = F.pad(dense, (0, missing)).reshape(len(dense), blocks, -1).transpose(0, 1)  # (B, N, F / B)
    products = by_block @ F.pad(W, (0, 0, 0, missing)).reshape(blocks, -1, W.shape[1])  # (B, N, H)
    return products.transpose(0, 1).reshape(-1, W.shape[1])


def mask_rows(W: Tensor, mask: LayerMask) -> Tensor:
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


def kept_connections(graph: PreparedGraph, mask: LayerMask, like: Tensor) -> Tensor:
    """The weight of each connection times its keep values, `(E, B)`; keep values are 1 if nothing is masked."""
    kept = mask.connections
    if kept is None:
        kept = torch.ones(len(graph.connections), 1, dtype=like.dtype, device=like.device)
    return kept if graph.weights is None else kept * graph.weights[:, None]
