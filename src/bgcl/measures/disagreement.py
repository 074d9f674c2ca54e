"""Contrastive model disagreement, a measure of uncertainty that needs no labels (after Möllers et al., 2023).

A pair of draws, one from each view, gives a node's contrastive likelihood, the probability that its embedding in one
picks its own embedding in the other out of all nodes:

    l = exp s(x_i, y_i) / (exp s(x_i, y_i) + sum of the negatives).

Pairs agree about a node that they know. As for Bayesian generative models (Daxberger and Hernández-Lobato, 2019), the
disagreement is told by how many of the K pairs carry the likelihood, `1 / sum_k w_k^2` with `w_k = l_k / sum l`; here
it is `1 - 1 / (K sum_k w_k^2)`: 0 where all pairs agree, and at most `1 - 1/K`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

Array = npt.NDArray[Any]


def contrastive_log_likelihood(o: Tensor, t: Tensor, tau: float, *, tile: int = 1024) -> Tensor:
    """`log l` of each node, averaged over the two directions, `(N,)`, for projections `(N, d)` of both views."""
    x, y = F.normalize(o, dim=-1), F.normalize(t, dim=-1)
    own = (x * y).sum(-1) / tau
    sums = [_denominator(a, b, tau, tile) for a, b in ((x, y), (y, x))]
    return own - (sums[0].log() + sums[1].log()) / 2


def _denominator(x: Tensor, y: Tensor, tau: float, tile: int) -> Tensor:
    """`sum_k exp s(x_i, y_k) + sum_{k != i} exp s(x_i, x_k)`, a tile of nodes i at a time."""
    parts = []
    for start in range(0, len(x), tile):
        rows = x[start : start + tile]
        within = (rows @ x.t() / tau).exp_()
        itself = torch.arange(len(rows), device=x.device)
        within[itself, itself + start] = 0
        parts.append((rows @ y.t() / tau).exp_().sum(1) + within.sum(1))
    return torch.cat(parts)


def disagreement(log_likelihoods: Iterator[Tensor]) -> Array:
    """`1 - 1 / (K sum_k w_k^2)` of each node, `(N,)`, for a stream of `log l`, `(N,)` each."""
    total: Tensor | None = None
    squares = torch.zeros(())
    count = 0
    for log_l in log_likelihoods:
        count += 1
        likelihood = log_l.double()
        total = likelihood if total is None else torch.logaddexp(total, likelihood)
        squares = 2 * likelihood if count == 1 else torch.logaddexp(squares, 2 * likelihood)
    assert total is not None
    effective = torch.exp(2 * total - squares)  # (sum l)^2 / sum l^2, from 1 to K
    return np.asarray((1 - effective / count).clamp(min=0).cpu())
