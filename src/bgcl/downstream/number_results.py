"""Predicted numbers: their distributions, and how good these are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.downstream.number_head import calibrated_level
from bgcl.measures.normal_mixtures import mixture_cdf, mixture_crps, mixture_quantile

Array = npt.NDArray[Any]

LEVEL = 0.9  # of the interval that is scored
QUANTILES = np.linspace(0.05, 0.95, 19)


@dataclass(frozen=True)
class NumberResult:
    """The predicted distributions of the n test nodes of one split.

    Attributes:
        test: numbers of the test nodes, `(n,)`.
        target: their labels, `(n,)`.
        means: the mean of each draw, `(S, n)`.
        noise: the standard deviation of each normal distribution.
        levels: what calibrates the quantiles, see `bgcl.downstream.number_head.NumberHead`.
    """

    test: Array
    target: Array
    means: Array
    noise: float
    levels: Array

    def quantile(self, level: float) -> Array:
        """The calibrated quantile of each node, `(n,)`."""
        return mixture_quantile(self.means, self.noise, calibrated_level(self.levels, level))

    def scores(self) -> dict[str, float]:
        """All scores by name. `calibration` is the mean distance of 19 quantiles' coverage from their level."""
        off = self.means.mean(0) - self.target
        low, high = self.quantile((1 - LEVEL) / 2), self.quantile((1 + LEVEL) / 2)
        # A number is below a quantile if its F is below the quantile's level.
        reached = mixture_cdf(self.means, self.noise, self.target)
        below = np.array([(reached <= calibrated_level(self.levels, level)).mean() for level in QUANTILES])
        spread = float(np.square(self.target - self.target.mean()).mean())
        return {
            "rmse": float(np.sqrt(np.square(off).mean())),
            "mae": float(np.abs(off).mean()),
            "r2": 1 - float(np.square(off).mean()) / spread if spread else float("nan"),
            "crps": float(mixture_crps(self.means, self.noise, self.target).mean()),
            "coverage": float(((low <= self.target) & (self.target <= high)).mean()),
            "width": float((high - low).mean()),
            "calibration": float(np.abs(below - QUANTILES).mean()),
        }


@dataclass(frozen=True)
class PredictedNumbers:
    """The predicted number of every node, and how uncertain it is.

    Attributes:
        label: the known number of each node, NaN if it has none, `(N,)`.
        predicted: the mean, `(N,)`.
        variance: the whole variance, `(N,)`.
        epistemic: the part of it on which the draws disagree, `(N,)`. Labels of other nodes may make it smaller.
        lower: the lower bound of the interval, `(N,)`.
        upper: the upper bound, `(N,)`.
        astd: average standard deviation of each node's embedding over the draws, `(N,)`.
        ids: the ids of the nodes, if the graph has them.
    """

    label: Array
    predicted: Array
    variance: Array
    epistemic: Array
    lower: Array
    upper: Array
    astd: Array
    ids: Array | None = None

    def columns(self) -> dict[str, Array]:
        """A table with one row for each node, as columns by name."""
        columns = {} if self.ids is None else {"id": np.asarray(self.ids)}
        return columns | {
            "node": np.arange(len(self.label)), "label": self.label, "predicted": self.predicted,
            "deviation": np.sqrt(self.variance), "lower": self.lower, "upper": self.upper, "variance": self.variance,
            "epistemic": self.epistemic, "astd": self.astd,
        }  # fmt: skip

    def scores(self) -> dict[str, float]:
        """RMSE, R2 and the share of labels in their intervals, over the labeled nodes."""
        known = ~np.isnan(self.label)
        label, off = self.label[known], (self.predicted - self.label)[known]
        spread = float(np.square(label - label.mean()).mean())
        inside = (self.lower[known] <= label) & (label <= self.upper[known])
        return {
            "rmse": float(np.sqrt(np.square(off).mean())),
            "r2": 1 - float(np.square(off).mean()) / spread if spread else float("nan"),
            "coverage": float(inside.mean()),
        }


def merged(parts: Sequence[tuple[Array, Array, Any]], nodes: int, level: float) -> dict[str, Array]:
    """The fields of `PredictedNumbers` from heads: the nodes that each predicts, their means `(S, n)`, and the head."""
    found = {name: np.empty(nodes) for name in ("predicted", "variance", "epistemic", "lower", "upper")}
    for chosen, means, head in parts:
        found["predicted"][chosen] = means.mean(0)
        found["epistemic"][chosen] = means.var(0)
        found["variance"][chosen] = means.var(0) + head.noise**2
        found["lower"][chosen] = head.quantile(means, (1 - level) / 2)
        found["upper"][chosen] = head.quantile(means, (1 + level) / 2)
    return found
