r"""The paper's contrastive loss (InfoNCE), computed in tiles.

With unit vectors `x_i`, `y_i` of node i in view o and t, similarity `s(x, y) = x . y / tau` and

    D_i(x, y) = sum_k exp s(x_i, y_k) + sum_{k != i} exp s(x_i, x_k),

the loss is `1/2N sum_i [log D_i(x, y) - s(x_i, y_i) + log D_i(y, x) - s(y_i, x_i)]`. It needs three products of N x N:
one between the views for both directions, and the upper triangle of one within each view. No N x N matrix is stored:
tiles of exponentials are kept for the backward pass until the memory budget is used, and the others are computed again.
Similarities are at most `1 / tau`, so no running maximum is needed.

With `negatives = "other view"`, the second sum of `D_i` is left out. Then one product is left of three.

With neighbors as positives, `s(x_i, y_i)` becomes the mean of `s(x_i, y_j)` over the positives j of node i.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.model.objectives.base import Objective, Outcome, Step
from bgcl.model.projection import ProjectionHead

Negatives = Literal["both views", "other view"]

TILE = 1024
BUDGET = 1 << 30  # bytes of tiles to keep
MOST = 4096  # nodes that a node is told from when likelihoods are computed; in a smaller graph, all


class InfoNCE(Objective):
    """The paper's objective. Its cost grows with the square of the nodes.

    Args:
        width: width of the encoder's output.
        tau: temperature.
        projection: whether a projection head comes before the loss.
        negatives: the nodes that a node is told from: those of both views, or those of the other view alone.
        budget: bytes of tiles to keep.
    """

    takes_positives = True

    def __init__(
        self, width: int, *, tau: float, projection: bool = True, negatives: Negatives = "both views",
        budget: int = BUDGET,
    ) -> None:  # fmt: skip
        super().__init__()
        self.head = ProjectionHead(width) if projection else nn.Identity()
        self.tau, self.negatives, self.budget = tau, negatives, budget

    def reset_parameters(self, generator: torch.Generator) -> None:
        if isinstance(self.head, ProjectionHead):
            self.head.reset_parameters(generator)

    def forward(self, step: Step) -> Outcome:
        o, t = step.encode("o"), step.encode("t")
        positives = step.draw_positives("o"), step.draw_positives("t")
        if positives[0] is None or positives[1] is None:
            x, y = step.some(o, t)
            loss = self._loss(self.head(x), self.head(y), step)
        else:
            x, y = F.normalize(self.head(o), dim=-1), F.normalize(self.head(t), dim=-1)
            x, y, of_x, of_y = step.some(x, y, positives[0].average(y), positives[1].average(x))
            loss = self._loss(x, y, step)
            own, others = (x * y).sum(), ((x * of_x).sum() + (y * of_y).sum()) / 2
            loss = loss + (own - others) / (len(x) * self.tau)
        return Outcome(loss, (self._greatest(len(x)) - loss) * self.tau, o, len(x))

    def _loss(self, o: Tensor, t: Tensor, step: Step) -> Tensor:
        return contrastive_loss(o, t, self.tau, self.negatives, budget=self.budget, products=step.products)

    def _greatest(self, nodes: int) -> float:
        """The loss of a node that looks like all others: the logarithm of the terms in `D_i`."""
        return math.log(2 * nodes - 1 if self.negatives == "both views" else nodes)

    def adversary(self, outcome: Outcome, least: float) -> Tensor:
        r"""`ceiling - |L_CNT - ceiling|`.

        With T terms in `D_i`, `log T - L_CNT` is a lower bound of the information that the views share, and at most
        about `1 / tau`. T is `2N - 1`, or N with negatives of the other view alone. At `ceiling = log T - least / tau`
        the views still share the fraction `least` of it. A loss beyond the ceiling lowers the objective. With
        `least = 0` there is no ceiling.
        """
        ceiling = self._greatest(outcome.nodes) - least / self.tau
        return ceiling - (outcome.loss - ceiling).abs() if least else outcome.loss

    def log_likelihood(self, o: Tensor, t: Tensor) -> Tensor:
        """`log l` of each node, `(N,)`. With more than `MOST` nodes, `D_i` is estimated from `MOST` of them."""
        among = some_nodes(len(o), MOST).to(o.device)
        return contrastive_log_likelihood(self.head(o), self.head(t), self.tau, self.negatives, among=among)

    def log_likelihoods(self, anchor: Tensor, others: Tensor, positives: Iterable[Tensor]) -> Iterator[Tensor]:
        """`log l = s(x_i, p_i) - log(exp s(x_i, p_i) + R_i)`: `R_i` is the sum over negatives, the same for all."""
        among = some_nodes(len(anchor), MOST).to(anchor.device)
        x, y = F.normalize(self.head(anchor), dim=-1), F.normalize(self.head(others), dim=-1)
        rest = _denominator(x, y, torch.zeros_like(x[:, 0]), self.tau, self.negatives, among, TILE)
        for positive in positives:
            own = (x * F.normalize(self.head(positive), dim=-1)).sum(-1) / self.tau
            yield own - (own.exp() + rest).log()


def contrastive_loss(
    o: Tensor, t: Tensor, tau: float, negatives: Negatives = "both views", *, tile: int = TILE, budget: int = BUDGET,
    products: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """`L_CNT` of the projections of two views, each `(N, d)`: a scalar. At most `budget` bytes of tiles are kept.

    Tiles are multiplied in the numbers `products`. Exponentials and sums have as many bits as the projections.
    """
    scale = tau**-0.5
    x, y = F.normalize(o, dim=-1) * scale, F.normalize(t, dim=-1) * scale
    how = _How(PRODUCTS[negatives], tile, x.dtype if products is None else products)
    loss: Tensor = _TiledLoss.apply(x, y, how, budget)  # type: ignore[no-untyped-call]
    return loss


class _How(NamedTuple):
    """How the loss is computed."""

    products: int  # of N x N
    tile: int  # rows and columns of a tile
    dtype: torch.dtype  # in which tiles are multiplied


class _TiledLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, how: _How, budget: int) -> Tensor:
        nodes = len(x)
        kept: dict[tuple[int, int, int], Tensor] = {}
        sums = torch.zeros(2, nodes, dtype=x.dtype, device=x.device)  # D_i of either direction
        for key, left, right, rows, columns in _tiles(x.to(how.dtype), y.to(how.dtype), how.products, how.tile):
            exp = _exponentials(left[rows], right[columns], _is_diagonal(key), x.dtype)
            row_view, column_view = _VIEWS[key[0]]
            sums[row_view, rows] += exp.sum(1)
            if not _is_diagonal(key):
                sums[column_view, columns] += exp.sum(0)
            budget -= exp.nbytes
            if budget >= 0 and ctx.needs_input_grad[0] | ctx.needs_input_grad[1]:
                kept[key] = exp
        ctx.save_for_backward(x, y, sums)
        ctx.how, ctx.kept = how, kept
        return (sums.log().mean(1).sum() / 2) - (x * y).sum() / nodes

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, y, sums = ctx.saved_tensors
        weight = 0.5 / sums  # d loss / d D, times N
        grads = -y, -x
        grads = grads[0].contiguous(), grads[1].contiguous()
        how: _How = ctx.how
        for key, left, right, rows, columns in _tiles(x.to(how.dtype), y.to(how.dtype), how.products, how.tile):
            exp = ctx.kept.pop(key, None)
            if exp is None:
                exp = _exponentials(left[rows], right[columns], _is_diagonal(key), x.dtype)
            row_view, column_view = _VIEWS[key[0]]
            # exp s_ij is a term of D_i in the row's view and of D_j in the column's view.
            exp.mul_(weight[row_view, rows, None] + weight[column_view, None, columns])
            _add_product(grads[row_view][rows], exp.to(how.dtype), right[columns])
            if not _is_diagonal(key):
                _add_product(grads[column_view][columns], exp.to(how.dtype).t(), left[rows])
        scale = grad / len(x)
        return grads[0].mul_(scale), grads[1].mul_(scale), None, None


_VIEWS = ((0, 1), (0, 0), (1, 1))  # the views of the rows and columns: between them, within o, within t
PRODUCTS: dict[Negatives, int] = {"other view": 1, "both views": 3}  # how many of them the loss has


def _tiles(
    x: Tensor, y: Tensor, products: int, tile: int
) -> Iterator[tuple[tuple[int, int, int], Tensor, Tensor, slice, slice]]:
    """Every tile once: `(product, row, column)`, the two matrices, and the slices of their rows."""
    starts = range(0, len(x), tile)
    for product, (left, right) in enumerate(((x, y), (x, x), (y, y))[:products]):
        for i in starts:
            for j in starts:
                if product == 0 or j >= i:
                    yield (product, i, j), left, right, slice(i, i + tile), slice(j, j + tile)


def _is_diagonal(key: tuple[int, int, int]) -> bool:
    """Whether a tile is on the diagonal within a view. Such a tile is symmetric, and a node is not its own negative."""
    product, i, j = key
    return product > 0 and i == j


def _exponentials(left: Tensor, right: Tensor, without_diagonal: bool, dtype: torch.dtype) -> Tensor:
    exp = (left @ right.t()).to(dtype).exp_()
    return exp.fill_diagonal_(0) if without_diagonal else exp


def _add_product(to: Tensor, left: Tensor, right: Tensor) -> None:
    """Add `left @ right` in place. A sum has the bits of what it is added to."""
    if left.dtype == to.dtype:
        to.addmm_(left, right)
    else:
        to.add_(left @ right)


def some_nodes(nodes: int, most: int) -> Tensor:
    """`most` nodes of a graph in ascending order, or all. They are random, and the same in every call."""
    if nodes <= most:
        return torch.arange(nodes)
    return torch.randperm(nodes, generator=torch.Generator().manual_seed(0))[:most].sort().values


def contrastive_log_likelihood(
    o: Tensor, t: Tensor, tau: float, negatives: Negatives = "both views", *, among: Tensor | None = None,
    tile: int = TILE,
) -> Tensor:  # fmt: skip
    """`log l` of each node, `(N,)`, for projections `(N, d)` of both views, averaged over the two directions.

    `l_i = exp s(x_i, y_i) / D_i(x, y)` is the probability that node i picks itself out of the nodes in `D_i`. The
    contrastive loss is minus its mean.

    With M nodes in `among`, the sum over the other nodes in `D_i` is estimated from those of them that are not i,
    `(N - 1) / |among - {i}|` times their sum. The term of node i itself is exact. The cost is `N M`, not `N^2`.
    """
    x, y = F.normalize(o, dim=-1), F.normalize(t, dim=-1)
    among = torch.arange(len(x), device=x.device) if among is None else among
    own = (x * y).sum(-1) / tau
    sums = [_denominator(a, b, own.exp(), tau, negatives, among, tile) for a, b in ((x, y), (y, x))]
    return own - (sums[0].log() + sums[1].log()) / 2


def _denominator(
    x: Tensor, y: Tensor, own: Tensor, tau: float, negatives: Negatives, among: Tensor, tile: int
) -> Tensor:
    """`D_i(x, y)`, a tile of nodes i at a time."""
    others = (y[among], x[among]) if negatives == "both views" else (y[among],)
    column = torch.full((len(x),), -1, device=x.device)  # of node i in `among`, -1 if it is not there
    column[among] = torch.arange(len(among), device=x.device)
    parts = []
    for start in range(0, len(x), tile):
        rows = x[start : start + tile]
        itself = column[start : start + tile]
        there = (itself >= 0).nonzero().squeeze(1)
        factor = (len(x) - 1) / (len(among) - (itself >= 0).to(x.dtype)).clamp(min=1)
        sums = own[start : start + tile].clone()
        for other in others:
            exp = (rows @ other.t() / tau).exp_()
            exp[there, itself[there]] = 0
            sums += factor * exp.sum(1)
        parts.append(sums)
    return torch.cat(parts)
