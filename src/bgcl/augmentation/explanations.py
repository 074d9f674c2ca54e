r"""Items of a graph with several explanations, and what follows for drop rates.

Item i has the background probability `b_i`, and `e_ik` by explanation k. Two shares are computed from them:

- the share that the best explanation leaves over: for each k, `pi_k` maximizes `sum_i log(pi b_i + (1 - pi) e_ik)`, and
  the best k has the greatest maximum;
- the share that all of them together leave over: weights `w_k` and `pi`, which sum to one, maximize
  `sum_i log(pi b_i + sum_k w_k e_ik)`. It is at most as great.

Both likelihoods are concave, so there is one maximum.

Which explanation is best is uncertain where several are about as good, and then the share can jump with the items that
were looked at. So the best one is chosen anew for each of `RESAMPLES` bootstrap samples of the items. The share is the
mean over these samples, and its variance is theirs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

DOUBT = 10.0  # items that count as noise before any is seen, so that what says no more than the background is noise
RESAMPLES = 32
_ROUNDS = 2000


@dataclass(frozen=True)
class Evidence:
    """For each item, its probability as noise and as explained, and how often it counts; all `(n,)`, in float64."""

    background: Tensor
    explained: Tensor
    weight: Tensor | None = None  # None: 1

    @classmethod
    def counted(cls, share: float, items: float) -> "Evidence":
        """As much evidence as of a number of items of which a share is noise, and nobody doubts which."""
        dropped = torch.tensor([1.0, 0.0], dtype=torch.float64)
        return cls(dropped, 1 - dropped, items * torch.tensor([share, 1 - share], dtype=torch.float64))

    def log_likelihood(self, rate: Tensor) -> Tensor:
        """`sum_i log(pi b_i + (1 - pi) e_i)` at each rate, `(r,)`. Items are divided by the greater of b and e."""
        greater, b, e = self._scaled()
        found = torch.log(rate[:, None] * b + (1 - rate[:, None]) * e) + greater.log()
        return (found if self.weight is None else found * self.weight).sum(1)

    def share(self) -> float:
        """The share of noise: the rate with the greatest likelihood."""
        return float(_shares(self.background, self.explained[:, None], self.weight)[0])

    def told(self) -> float:
        """How much the explanation tells: the mean of `log((pi b_i + (1 - pi) e_i) / b_i)` at the share of noise."""
        pi = self.share()
        found = torch.log(pi + (1 - pi) * self.explained / self.background)
        return float(found.mean() if self.weight is None else (found * self.weight).sum() / self.weight.sum())

    def _scaled(self) -> tuple[Tensor, Tensor, Tensor]:
        greater = torch.maximum(self.background, self.explained)
        return greater, self.background / greater, self.explained / greater


def _shares(background: Tensor, explained: Tensor, weight: Tensor | None) -> Tensor:
    """The share of noise by each of K explanations, `(K,)`, by bisection of the slope of its likelihood.

    Items have the background probability `(n,)`, the explained ones `(n, K)`, and weights `(n,)`.
    """
    greater = torch.maximum(background[:, None], explained)
    b, e = background[:, None] / greater, explained / greater
    times = 1.0 if weight is None else weight[:, None]
    low, high = torch.zeros_like(b[0]), torch.ones_like(b[0])
    for _ in range(50):
        middle = (low + high) / 2
        rises = (times * (b - e) / (middle * b + (1 - middle) * e)).sum(0) > 0
        low, high = torch.where(rises, middle, low), torch.where(rises, high, middle)
    return (low + high) / 2


@dataclass(frozen=True)
class Explanations:
    """Items with their probability as noise, `(n,)`, and by each explanation, `(n, K)`, in float64.

    The last explanation is that of the neighbors, the others are those of alike nodes.
    """

    background: Tensor
    explained: Tensor

    @classmethod
    def of(cls, background: np.ndarray, by_alike: np.ndarray, by_neighbors: np.ndarray) -> "Explanations":
        explained = np.column_stack([by_alike, by_neighbors])
        return cls(torch.from_numpy(np.asarray(background, float)), torch.from_numpy(np.asarray(explained, float)))

    @classmethod
    def joined(cls, some: Sequence["Explanations"]) -> "Explanations":
        return cls(torch.cat([one.background for one in some]), torch.cat([one.explained for one in some]))

    def by_alike(self, weight: Tensor | None = None) -> Evidence:
        """The evidence of as many alike nodes as explain the items best, which may count by a weight `(n,)`."""
        alike = self.explained[:, :-1]
        share = _shares(self.background, alike, weight)
        every = torch.log(share * self.background[:, None] + (1 - share) * alike)
        best = int((every if weight is None else every * weight[:, None]).nan_to_num(nan=0.0).sum(0).argmax())
        return Evidence(self.background, alike[:, best], weight)

    def over_resamples(self, share: Callable[[Evidence], float], random: np.random.Generator) -> Evidence:
        """The evidence for a share that follows from the alike nodes that explain the items best.

        Args:
            share: computes the share.
            random: draws the bootstrap samples.

        Returns:
            As many items, none of them in doubt, as give the mean share the variance over the samples; at most n.
        """
        n = len(self.background)
        found = []
        for _ in range(RESAMPLES):
            weight = np.bincount(random.integers(n, size=n), minlength=n).astype(float)
            found.append(share(self.by_alike(torch.from_numpy(weight))))
        mean, variance = float(np.mean(found)), float(np.var(found, ddof=1))
        of_one = mean * (1 - mean)  # the variance of a single item
        return Evidence.counted(mean, n if n * variance <= of_one else max(of_one / variance, 1.0))

    def by_all(self) -> Evidence:
        """The evidence of all explanations together, each with the weight that makes the items most likely (EM).

        Explanations by very many nodes are nearly the background. `DOUBT` items of noise decide between the two.
        """
        every = torch.cat([self.background[:, None], self.explained], 1)
        every = every / every.amax(1, keepdim=True)
        weight = torch.full((every.shape[1],), 1 / every.shape[1], dtype=torch.float64)
        for _ in range(_ROUNDS):
            part = every * weight
            found = (part / part.sum(1, keepdim=True)).sum(0)
            found[0] += DOUBT
            found = found / found.sum()
            done = bool((found - weight).abs().max() < 1e-7)
            weight = found
            if done:
                break
        explained = self.explained @ weight[1:] / weight[1:].sum().clamp(min=1e-12)
        doubt = torch.ones(1, dtype=torch.float64)
        weights = torch.cat([torch.ones_like(self.background), DOUBT * doubt])
        return Evidence(torch.cat([self.background, doubt]), torch.cat([explained, 0 * doubt]), weights)


def noise_and_repetition(evidence: Evidence) -> float:
    r"""The share of attributes that a view can do without: noise, and what the other attributes tell anyway.

    With the share of noise `pi`, and `R` the mean of `log((pi b_i + (1 - pi) e_i) / b_i)`, a view keeps the share
    `(1 - pi) exp(-R)`. `exp(-R)` is the perplexity of an attribute, given the others of its node, divided by its
    perplexity without them: the share that the others do not tell.
    """
    return min(max(1 - (1 - evidence.share()) * math.exp(-evidence.told()), 0.0), 1.0)
