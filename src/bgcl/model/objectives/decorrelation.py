r"""CCA-SSG (Zhang et al., 2021): columns that agree between the views and are uncorrelated within each.

With the columns of both views standardized over the N nodes, to a mean of 0 and a mean square of 1 (U and V),

    L = |U - V|^2 / N + weight (|U'U / N - I|^2 + |V'V / N - I|^2).

This is the loss of the paper, whose columns are divided by `sqrt(N)` beforehand. The authors' code has `-tr(U'V) / N`
in place of the first term, which is `|U - V|^2 / 2N - d`, and divides by `N - 1` in the variance. So its loss with the
weight `lambda` is half of this one with `weight = 2 lambda`, apart from a constant and from terms of order `1 / N`.

The time is `O(N d^2)` and the memory `O(N d + d^2)`. There are no pairs of nodes.

In batches, or with a part of the nodes, means and covariances are those of the nodes at hand. This is not exact: the
second term is quadratic in them, so it is too large on average. Uncorrelated columns have `d (d - 1) / (n - 1)` in
place of 0 for each view in n random nodes. So n should be much greater than d.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from bgcl.model.objectives.base import Objective, Outcome, Step

TILE = 4096  # nodes


class Decorrelation(Objective):
    """The views agree in every column, and no two columns say the same. It has no parameters.

    Args:
        width: width of the encoder's output.
        weight: weight of the covariances.
    """

    def __init__(self, width: int, *, weight: float = 1e-3) -> None:
        super().__init__()
        self.width, self.weight = width, weight

    def forward(self, step: Step) -> Outcome:
        """The loss of one step; `shared` is the mean over the columns of the correlation between the views."""
        o, t = step.encode("o"), step.encode("t")
        x, y = step.some(o, t)
        loss, shared = decorrelation_loss(x, y, self.weight)
        return Outcome(loss, shared, o, len(x))

    def log_likelihood(self, o: Tensor, t: Tensor) -> Tensor:
        """`-|u_n - v_n|^2 / 2` of each node, `(N,)`: a normal density of variance 1, apart from its constant."""
        return -(standardize(o) - standardize(t)).square().sum(-1) / 2


def decorrelation_loss(o: Tensor, t: Tensor, weight: float, *, tile: int = TILE) -> tuple[Tensor, Tensor]:
    """The loss of two views, each `(N, d)`, and the mean correlation of their columns: two scalars.

    Both are functions of the covariances alone, which are summed over tiles of nodes. So no standardized view is made,
    which for many nodes would take longer than the products.
    """
    centers = o.detach().mean(0), t.detach().mean(0)
    of_x, of_y, between = _Covariances.apply(o, t, *centers, tile)  # type: ignore[no-untyped-call]
    scale_x, scale_y = (_inverse_deviation(of.diagonal(), c) for of, c in zip((of_x, of_y), centers, strict=True))
    correlation = between * scale_x * scale_y  # between the views, (d,)
    within = [of_x * scale_x[:, None] * scale_x, of_y * scale_y[:, None] * scale_y]  # U'U / N and V'V / N
    own = torch.eye(len(correlation), dtype=o.dtype, device=o.device)
    invariance = within[0].diagonal() + within[1].diagonal() - 2 * correlation
    penalty = sum(((matrix - own).square().sum() for matrix in within), torch.zeros_like(invariance[0]))
    return invariance.sum() + weight * penalty, correlation.mean()


class _Covariances(torch.autograd.Function):
    """Covariances of the columns of each view, `(d, d)`, and of equal columns of both views, `(d,)`.

    With centered views X and Y they are `X'X / N`, `Y'Y / N` and `diag(X'Y) / N`. The gradient of a function with the
    gradients G, H and g in these is `(X (G + G') + Y diag(g)) / N` in o, and alike in t. Centering does not change it,
    because the columns of X and Y sum to zero.
    """

    @staticmethod
    def forward(
        ctx: Any, o: Tensor, t: Tensor, center_o: Tensor, center_t: Tensor, tile: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        width = o.shape[1]
        of_x, of_y, between = o.new_zeros(width, width), o.new_zeros(width, width), o.new_zeros(width)
        for rows in _tiles(len(o), tile):
            x, y = o[rows] - center_o, t[rows] - center_t
            of_x.addmm_(x.t(), x)
            of_y.addmm_(y.t(), y)
            between += (x * y).sum(0)
        ctx.save_for_backward(o, t, center_o, center_t)
        ctx.tile = tile
        return of_x / len(o), of_y / len(o), between / len(o)

    @staticmethod
    def backward(ctx: Any, of_x: Tensor, of_y: Tensor, between: Tensor) -> tuple[Tensor | None, ...]:
        o, t, center_o, center_t = ctx.saved_tensors
        grads = torch.empty_like(o), torch.empty_like(t)
        of_x, of_y, between = ((of_x + of_x.t()) / len(o), (of_y + of_y.t()) / len(o), between / len(o))
        for rows in _tiles(len(o), ctx.tile):
            x, y = o[rows] - center_o, t[rows] - center_t
            torch.addmm(y * between, x, of_x, out=grads[0][rows])
            torch.addmm(x * between, y, of_y, out=grads[1][rows])
        return *grads, None, None, None


def _tiles(nodes: int, tile: int) -> Iterator[slice]:
    return (slice(start, start + tile) for start in range(0, nodes, tile))


def _inverse_deviation(variance: Tensor, mean: Tensor) -> Tensor:
    """One over the standard deviation of each column, `(d,)`; 0 for a column without spread.

    What is left of a column without spread is rounding, which must not be scaled up.
    """
    rounding = (10 * torch.finfo(mean.dtype).eps) ** 2 * (variance + mean.square())  # of the mean square
    flat = variance.detach() <= rounding.detach()
    return torch.where(flat, 0.0, torch.where(flat, 1.0, variance).rsqrt())


def standardize(vectors: Tensor) -> Tensor:
    """Each column with a mean of 0 and a mean square of 1, `(N, d)`. A column without spread becomes zero."""
    center = vectors.mean(0)
    centered = vectors - center
    return centered * _inverse_deviation(centered.square().mean(0), center)
