r"""The paper's contrastive loss (InfoNCE with negatives in both views), computed in tiles.

With unit vectors `x_i`, `y_i` of node i in view o and t, similarity `s(x, y) = x . y / tau` and

    D_i(x, y) = sum_k exp s(x_i, y_k) + sum_{k != i} exp s(x_i, x_k),

the loss is `1/2N sum_i [log D_i(x, y) - s(x_i, y_i) + log D_i(y, x) - s(y_i, x_i)]`. It needs three products of N x N:
one between the views for both directions, and the upper triangle of one within each view. No N x N matrix is stored:
tiles of exponentials are kept for the backward pass until the memory budget is used, and the others are computed again.
Similarities are at most `1 / tau`, so no running maximum is needed.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

TILE = 1024
BUDGET = 1 << 30  # bytes of tiles to keep


def contrastive_loss(o: Tensor, t: Tensor, tau: float, *, tile: int = TILE, budget: int = BUDGET) -> Tensor:
    """`L_CNT` of the projections of two views, each `(N, d)`: a scalar. At most `budget` bytes of tiles are kept."""
    scale = tau**-0.5
    x, y = F.normalize(o, dim=-1) * scale, F.normalize(t, dim=-1) * scale
    loss: Tensor = _TiledLoss.apply(x, y, tile, budget)  # type: ignore[no-untyped-call]
    return loss


class _TiledLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, tile: int, budget: int) -> Tensor:
        nodes = len(x)
        kept: dict[tuple[int, int, int], Tensor] = {}
        sums = torch.zeros(2, nodes, dtype=x.dtype, device=x.device)  # D_i of either direction
        for key, left, right, rows, columns in _tiles(x, y, tile):
            exp = _exponentials(left[rows], right[columns], _is_diagonal(key))
            row_view, column_view = _VIEWS[key[0]]
            sums[row_view, rows] += exp.sum(1)
            if not _is_diagonal(key):
                sums[column_view, columns] += exp.sum(0)
            budget -= exp.nbytes
            if budget >= 0 and ctx.needs_input_grad[0] | ctx.needs_input_grad[1]:
                kept[key] = exp
        ctx.save_for_backward(x, y, sums)
        ctx.tile, ctx.kept = tile, kept
        return (sums.log().mean(1).sum() / 2) - (x * y).sum() / nodes

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, y, sums = ctx.saved_tensors
        weight = 0.5 / sums  # d loss / d D, times N
        grads = -y, -x
        grads = grads[0].contiguous(), grads[1].contiguous()
        for key, left, right, rows, columns in _tiles(x, y, ctx.tile):
            exp = ctx.kept.pop(key, None)
            if exp is None:
                exp = _exponentials(left[rows], right[columns], _is_diagonal(key))
            row_view, column_view = _VIEWS[key[0]]
            # exp s_ij is a term of D_i in the row's view and of D_j in the column's view.
            exp.mul_(weight[row_view, rows, None] + weight[column_view, None, columns])
            grads[row_view][rows].addmm_(exp, right[columns])
            if not _is_diagonal(key):
                grads[column_view][columns].addmm_(exp.t(), left[rows])
        scale = grad / len(x)
        return grads[0].mul_(scale), grads[1].mul_(scale), None, None


_VIEWS = ((0, 1), (0, 0), (1, 1))  # the views of the rows and columns: between them, within o, within t


def _tiles(x: Tensor, y: Tensor, tile: int) -> Iterator[tuple[tuple[int, int, int], Tensor, Tensor, slice, slice]]:
    """Every tile once: `(product, row, column)`, the two matrices, and the slices of their rows."""
    starts = range(0, len(x), tile)
    for product, (left, right) in enumerate(((x, y), (x, x), (y, y))):
        for i in starts:
            for j in starts:
                if product == 0 or j >= i:
                    yield (product, i, j), left, right, slice(i, i + tile), slice(j, j + tile)


def _is_diagonal(key: tuple[int, int, int]) -> bool:
    """Whether a tile is on the diagonal within a view. Such a tile is symmetric, and a node is not its own negative."""
    product, i, j = key
    return product > 0 and i == j


def _exponentials(left: Tensor, right: Tensor, without_diagonal: bool) -> Tensor:
    exp = (left @ right.t()).exp_()
    return exp.fill_diagonal_(0) if without_diagonal else exp


def contrastive_log_likelihood(o: Tensor, t: Tensor, tau: float, *, tile: int = TILE) -> Tensor:
    """`log l` of each node, `(N,)`, for projections `(N, d)` of both views, averaged over the two directions.

    `l_i = exp s(x_i, y_i) / D_i(x, y)` is the probability that node i picks itself out of all nodes of both views. The
    contrastive loss is minus its mean.
    """
    x, y = F.normalize(o, dim=-1), F.normalize(t, dim=-1)
    own = (x * y).sum(-1) / tau
    sums = [_denominator(a, b, tau, tile) for a, b in ((x, y), (y, x))]
    return own - (sums[0].log() + sums[1].log()) / 2


def _denominator(x: Tensor, y: Tensor, tau: float, tile: int) -> Tensor:
    """`D_i(x, y)`, a tile of nodes i at a time."""
    parts = []
    for start in range(0, len(x), tile):
        rows = x[start : start + tile]
        within = (rows @ x.t() / tau).exp_()
        itself = torch.arange(len(rows), device=x.device)
        within[itself, itself + start] = 0
        parts.append((rows @ y.t() / tau).exp_().sum(1) + within.sum(1))
    return torch.cat(parts)
