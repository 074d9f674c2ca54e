"""Graph attention (Velickovic et al., 2018), whose inputs and connections are masked."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.augmentation.views import LayerMask
from bgcl.errors import BGCLError
from bgcl.graph.prepared import Features, PreparedGraph
from bgcl.graph.sparse import Pattern, block_gather, row_sum
from bgcl.model.encoders.base import Activation, Jump, LayeredEncoder, Norm, kept_connections, stacked_product

_SLOPE = 0.2  # of negative scores
_LEAST_KEEP = 1e-12  # connections with smaller keep values count as dropped; below it, gradients overflow


class MaskedAttention(nn.Module):
    r"""One layer, before its activation. For each head, with `h_b = (X * Z)_b W_b` and `h = sum_b h_b`:

        e_vu = leaky_relu(a_self . h_v + a_neighbor . h_u)
        A_b,vu = z_b,vu exp(e_vu) / sum_w z_b,vw exp(e_vw),    U' = sum_b A_b h_b + bias

    The connections of v include its self-connection. A node that has lost them all gets 0, then the bias. The heads
    are side by side.

    Shapes: features `(N, F)`, result `(N, H)`, weights of attention `(heads, H / heads)`.
    """

    def __init__(self, width_in: int, width_out: int, *, heads: int = 4) -> None:
        super().__init__()
        if heads < 1 or width_out % heads:
            raise BGCLError(
                f"Graph attention splits each output width among its heads: the width must be divisible by their "
                f"number. Got width {width_out} and heads = {heads}."
            )
        self.weight = nn.Parameter(torch.empty(width_in, width_out))
        self.attention_self = nn.Parameter(torch.empty(heads, width_out // heads))
        self.attention_neighbor = nn.Parameter(torch.empty(heads, width_out // heads))
        self.bias = nn.Parameter(torch.zeros(width_out))

    def reset_parameters(self, generator: torch.Generator) -> None:
        for weight in self.weight_matrices():
            nn.init.xavier_uniform_(weight, generator=generator)
        nn.init.zeros_(self.bias)

    def weight_matrices(self) -> list[Tensor]:
        return [self.weight, self.attention_self, self.attention_neighbor]

    def forward(self, graph: PreparedGraph, features: Features, mask: LayerMask) -> Tensor:
        keep = kept_connections(graph, mask, self.weight)  # (E, B)
        stacked = stacked_product(features, mask, self.weight, keep.shape[1])  # (N * B, H)
        scores = self.scores(graph.connections, stacked.reshape(graph.nodes, keep.shape[1], -1).sum(1))
        # Each head has its slice of the columns and its own attention.
        parts = zip(stacked.chunk(scores.shape[1], 1), scores.unbind(1), strict=True)
        heads = [
            block_gather(graph.connections, masked_softmax(graph.connections, score[:, None], keep), part)
            for part, score in parts
        ]
        return torch.cat(heads, 1) + self.bias

    def scores(self, connections: Pattern, h: Tensor) -> Tensor:
        """`e_vu` of each head, `(E, heads)`, for h `(N, H)`."""
        by_head = h.reshape(len(h), *self.attention_self.shape)  # (N, heads, H / heads)
        target = (by_head * self.attention_self).sum(2).index_select(0, connections.row)
        source = (by_head * self.attention_neighbor).sum(2).index_select(0, connections.column)
        return F.leaky_relu(target + source, _SLOPE)


def masked_softmax(connections: Pattern, scores: Tensor, keep: Tensor) -> Tensor:
    """`z_vu exp(e_vu) / sum_w z_vw exp(e_vw)` in each row, 0 if a row is dropped. Shapes: `(E, 1)` or `(E, B)`."""
    kept = keep > _LEAST_KEEP
    with torch.no_grad():  # a number that cancels from the fraction, and keeps the exponents small
        weighted = torch.where(kept, scores + keep.clamp(min=_LEAST_KEEP).log(), -torch.inf)
        greatest = _row_max(connections, weighted)
        greatest = torch.where(greatest > -torch.inf, greatest, _row_max(connections, scores.expand_as(keep)))
    exponent = scores - greatest.index_select(0, connections.row)
    # A dropped connection may have any score. Its gradient is at most what it would be if its score were the greatest.
    weights = keep * torch.where(kept, exponent, exponent.clamp(max=0)).exp()
    total = row_sum(connections, weights)  # at least 1, unless the whole row is dropped
    return weights / torch.where(total > 0.5, total, 1.0).index_select(0, connections.row)


def _row_max(connections: Pattern, values: Tensor) -> Tensor:
    """The greatest of the `(E, B)` values in each row, `(N, B)`."""
    index = connections.row[:, None].expand_as(values)
    start = values.new_full((connections.rows, values.shape[1]), -torch.inf)
    return start.scatter_reduce(0, index, values, "amax")


class GATEncoder(LayeredEncoder):
    """Attention layers, each followed by normalization and activation. Shapes: result `(N, d)`.

    Args:
        widths: width of the input, then the output width of each layer, which must be divisible by `heads`.
        activation: activation function.
        norm: normalization before the activation.
        skip: add the input of a layer to its output, from the second layer on.
        jump: which layers are handed on.
        heads: number of attention heads of each layer.

    Raises:
        BGCLError: an output width is not divisible by `heads`.
    """

    def __init__(
        self, widths: Sequence[int], *, activation: Activation = "relu", norm: Norm = "none", skip: bool = False,
        jump: Jump = "last", heads: int = 4,
    ) -> None:  # fmt: skip
        layers = [MaskedAttention(*pair, heads=heads) for pair in pairwise(widths)]
        super().__init__(layers, widths, activation=activation, norm=norm, skip=skip, jump=jump)
