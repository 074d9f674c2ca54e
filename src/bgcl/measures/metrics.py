"""How good a measure of uncertainty is: whether the model knows when it is wrong.

`correct` is which nodes were predicted right, `uncertainty` the measure, more being more uncertain. A node is *certain*
where its uncertainty is at most the threshold. All thresholds are computed at once from one sort.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score, roc_auc_score

from bgcl.errors import BGCLError
from bgcl.measures.uncertainty import check_probabilities

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PAvPU:
    """Patch Accuracy versus Patch Uncertainty (Mukhoti and Gal, 2018).

    The thresholds go from the least uncertainty to the greatest, `t_i = u_min + i/(T-1) (u_max - u_min)`. A quotient of
    nothing by nothing is 1: where no node is certain no certain one is wrong, and where none is wrong none of the wrong
    ones is certain.
    """

    threshold: Array
    pavpu: Array  # (accurate and certain + inaccurate and uncertain) / all
    accurate_if_certain: Array  # p(accurate | certain)
    uncertain_if_inaccurate: Array  # p(uncertain | inaccurate)

    @property
    def area(self) -> float:
        """The mean height of the PAvPU curve, by the trapezoidal rule."""
        return float(np.trapezoid(self.pavpu, np.linspace(0, 1, len(self.pavpu))))


def pavpu(correct: Array, uncertainty: Array, thresholds: int = 11) -> PAvPU:
    """The PAvPU curve of all nodes."""
    correct, uncertainty = _checked(correct, uncertainty)
    threshold = np.linspace(uncertainty.min(), uncertainty.max(), thresholds)
    order = np.argsort(uncertainty)
    # Of the k most certain nodes, how many are accurate, for every k from 0 to N.
    accurate_among = np.concatenate([[0], np.cumsum(correct[order])])
    certain = np.searchsorted(uncertainty[order], threshold, side="right")
    certain[-1] = len(correct)  # linspace may round its last value down
    accurate_certain = accurate_among[certain]
    inaccurate = len(correct) - accurate_among[-1]
    inaccurate_uncertain = inaccurate - (certain - accurate_certain)
    return PAvPU(
        threshold,
        (accurate_certain + inaccurate_uncertain) / len(correct),
        _share(accurate_certain, certain),
        _share(inaccurate_uncertain, np.full(thresholds, inaccurate)),
    )


def _share(part: Array, whole: Array) -> Array:
    """`part / whole`, 1 where both are 0."""
    return np.where(whole > 0, part / np.maximum(whole, 1), 1.0)


@dataclass(frozen=True)
class Reliability:
    """Confidence and accuracy in bins of equal width, for a reliability diagram; empty bins are NaN."""

    confidence: Array
    accuracy: Array
    count: Array

    @property
    def ece(self) -> float:
        """Expected calibration error: the gap between the two, averaged over the nodes."""
        full = self.count > 0
        return float(np.average(np.abs(self.confidence - self.accuracy)[full], weights=self.count[full]))


def reliability(probability: Array, label: Array, bins: int = 15) -> Reliability:
    """How often the likeliest class is right, by its probability, for `(N, C)` probabilities and class numbers."""
    check_probabilities(probability)
    confidence, correct = probability.max(1), probability.argmax(1) == label
    which = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    count = np.bincount(which, minlength=bins)
    with np.errstate(invalid="ignore"):
        return Reliability(
            np.bincount(which, confidence, bins) / count, np.bincount(which, correct, bins) / count, count
        )


def negative_log_likelihood(probability: Array, label: Array) -> float:
    """The mean of `-log p(label)`, in nats."""
    of_label = probability[np.arange(len(label)), label]
    return float(-np.log(np.maximum(of_label, np.finfo(np.float64).tiny)).mean())


def brier(probability: Array, label: Array) -> float:
    """The mean of `|p - onehot(label)|^2`, from 0 to 2."""
    return float((np.square(probability).sum(1) - 2 * probability[np.arange(len(label)), label] + 1).mean())


def error_auroc(correct: Array, uncertainty: Array) -> float:
    """The probability that a wrong node is more uncertain than a right one; NaN if all are right or all are wrong."""
    correct, uncertainty = _checked(correct, uncertainty)
    return float(roc_auc_score(~correct, uncertainty)) if 0 < correct.sum() < len(correct) else float("nan")


def error_aupr(correct: Array, uncertainty: Array) -> float:
    """Average precision of finding the wrong nodes by their uncertainty; NaN if none is wrong."""
    correct, uncertainty = _checked(correct, uncertainty)
    return float(average_precision_score(~correct, uncertainty)) if not correct.all() else float("nan")


@dataclass(frozen=True)
class RiskCoverage:
    """The share of errors among the most certain nodes, for each number of nodes that are kept, both `(N,)`."""

    coverage: Array
    risk: Array

    @property
    def area(self) -> float:
        """The mean risk over all coverages (AURC); less is better."""
        return float(self.risk.mean())


def risk_coverage(correct: Array, uncertainty: Array) -> RiskCoverage:
    """Keep the most certain nodes first. Nodes of equal uncertainty share their risk, in whatever order they come."""
    correct, uncertainty = _checked(correct, uncertainty)
    _, tie, size = np.unique(uncertainty, return_inverse=True, return_counts=True)
    errors = np.bincount(tie, ~correct) / size  # of one node of each tie
    kept = np.arange(1, len(correct) + 1)
    return RiskCoverage(kept / len(correct), np.cumsum(np.repeat(errors, size)) / kept)


def _checked(correct: Array, uncertainty: Array) -> tuple[Array, Array]:
    correct, uncertainty = np.asarray(correct, dtype=bool), np.asarray(uncertainty, dtype=np.float64)
    if correct.shape != uncertainty.shape or correct.ndim != 1 or not len(correct):
        raise BGCLError(
            f"Correctness and uncertainty must be one number for each node. Got the shapes {correct.shape} "
            f"and {uncertainty.shape}."
        )
    if not np.isfinite(uncertainty).all():
        raise BGCLError("The uncertainty holds NaN or infinity.")
    return correct, uncertainty
