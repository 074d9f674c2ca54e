"""Mixtures of normal distributions with one standard deviation: quantiles, and the score of a number (CRPS)."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

Array = npt.NDArray[Any]

TILE = 2_000_000  # pairs of components that are computed at a time


def mixture_cdf(means: Array, std: float, y: Array) -> Array:
    """`F(y) = 1/K sum_k Phi((y - mean_k) / std)` for each node, `(N,)`, with means `(K, N)`."""
    return np.asarray(ndtr((y - means) / std).mean(0))


def mixture_quantile(means: Array, std: float, level: float) -> Array:
    """The `level` quantile of `1/K sum_k Normal(mean_k, std^2)` for each node, by bisection.

    >>> mixture_quantile(np.zeros((3, 1)), 1.0, 0.975).round(2)
    array([1.96])
    """
    reach = 1.01 * std * abs(ndtri(level)) + 1e-12 * (1 + np.abs(means).max())
    low, high = means.min(0) - reach, means.max(0) + reach
    for _ in range(60):
        middle = (low + high) / 2
        below = mixture_cdf(means, std, middle) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def mixture_crps(means: Array, std: float, y: Array) -> Array:
    r"""The continuous ranked probability score of `1/K sum_k Normal(mean_k, std^2)` (Grimit et al., 2006).

    With `A(m, s) = 2 s phi(m / s) + m (2 Phi(m / s) - 1)`, the mean of `|m + s e|` for a standard normal e,

        CRPS = 1/K sum_k A(y - mean_k, std) - 1/(2 K^2) sum_kl A(mean_k - mean_l, sqrt(2) std).

    It is the integral of `(F(x) - [x >= y])^2` over x; smaller is better. It has the unit of y.

    Args:
        means: the means of the components, `(K, N)`.
        std: their standard deviation.
        y: what was observed, `(N,)`.

    Returns:
        The score of each node, `(N,)`.

    >>> mixture_crps(np.zeros((1, 1)), 1.0, np.zeros(1)).round(4)
    array([0.2337])
    """
    count, nodes = means.shape
    found = np.empty(nodes)
    step = max(TILE // count**2, 1)
    for start in range(0, nodes, step):
        part = means[:, start : start + step]
        pairs = _mean_distance(part[:, None] - part[None], np.sqrt(2) * std).mean((0, 1))
        found[start : start + step] = _mean_distance(y[start : start + step] - part, std).mean(0) - pairs / 2
    return found


def _mean_distance(mean: Array, std: float) -> Array:
    z = mean / std
    return np.asarray(2 * std * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) + mean * (2 * ndtr(z) - 1))
