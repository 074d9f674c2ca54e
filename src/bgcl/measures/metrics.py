"""How good a measure of uncertainty is: does the model know when it is wrong?

In all functions, `correct` `(N,)` says which nodes were predicted correctly, and `uncertainty` `(N,)` is the measure;
greater values are more uncertain. A node is *certain* if its uncertainty is at most the threshold. Functions that use
many thresholds sort the nodes once.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score, roc_auc_score

from bgcl.arguments import numbers, shown, whole
from bgcl.errors import BGCLError
from bgcl.measures.uncertainty import check_probabilities

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PAvPU:
    """Patch Accuracy versus Patch Uncertainty (Mukhoti and Gal, 2018).

    With the number of nodes that are accurate and certain (`n_ac`), accurate and uncertain (`n_au`), inaccurate and
    certain (`n_ic`), inaccurate and uncertain (`n_iu`), each at T thresholds
    `t_i = u_min + i/(T-1) (u_max - u_min)`:

    - `pavpu = (n_ac + n_iu) / (n_ac + n_au + n_ic + n_iu)`;
    - `accurate_if_certain = n_ac / (n_ac + n_ic)`, which estimates p(accurate | certain);
    - `uncertain_if_inaccurate = n_iu / (n_ic + n_iu)`, which estimates p(uncertain | inaccurate).

    0/0 is 1: without certain nodes, no certain node is wrong; without wrong nodes, no wrong node is certain.

    Attributes:
        threshold: the thresholds, `(T,)`.
        pavpu: PAvPU at each threshold, `(T,)`.
        accurate_if_certain: `(T,)`.
        uncertain_if_inaccurate: `(T,)`.
    """

    threshold: Array
    pavpu: Array
    accurate_if_certain: Array
    uncertain_if_inaccurate: Array

    @property
    def area(self) -> float:
        """Area under the PAvPU curve over thresholds scaled to [0, 1], by the trapezoidal rule."""
        return float(np.trapezoid(self.pavpu, np.linspace(0, 1, len(self.pavpu))))


def pavpu(correct: Array, uncertainty: Array, thresholds: int = 11) -> PAvPU:
    """Compute PAvPU at several thresholds.

    Args:
        correct: whether each node was predicted correctly, `(N,)`.
        uncertainty: a measure of uncertainty, `(N,)`.
        thresholds: the number of thresholds.

    Returns:
        The curve.

    Raises:
        BGCLError: the arrays are empty, differ in shape, or `uncertainty` is not finite.

    >>> import numpy as np
    >>> pavpu(np.array([True, True, False]), np.array([0.1, 0.2, 0.9]), thresholds=3).pavpu
    array([0.66666667, 1.        , 0.66666667])
    """
    correct, uncertainty = _checked(correct, uncertainty)
    thresholds = whole("The number of thresholds", thresholds, 2)
    threshold = np.linspace(uncertainty.min(), uncertainty.max(), thresholds)
    order = np.argsort(uncertainty)
    # How many of the k most certain nodes are accurate, for every k from 0 to N.
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
    """Confidence and accuracy in bins of equal width, for a reliability diagram.

    Attributes:
        confidence: mean probability of the predicted class in each bin, `(bins,)`; NaN if the bin is empty.
        accuracy: share of correct predictions in each bin, `(bins,)`; NaN if the bin is empty.
        count: number of nodes in each bin, `(bins,)`.
    """

    confidence: Array
    accuracy: Array
    count: Array

    @property
    def ece(self) -> float:
        """Expected calibration error: `sum_b count_b / N |confidence_b - accuracy_b|`."""
        full = self.count > 0
        return float(np.average(np.abs(self.confidence - self.accuracy)[full], weights=self.count[full]))


def reliability(probability: Array, label: Array, bins: int = 15) -> Reliability:
    """Compare the probability of the predicted class with how often it is correct.

    Args:
        probability: class probabilities, `(N, C)`.
        label: the correct classes, as columns of `probability`, `(N,)`.
        bins: the number of bins. An edge belongs to the bin below it.

    Returns:
        Confidence and accuracy in each bin.

    Raises:
        BGCLError: `probability` does not hold class probabilities.

    >>> import numpy as np
    >>> probability = np.array([[0.9, 0.1], [0.8, 0.2]])
    >>> round(reliability(probability, np.array([0, 1]), bins=1).ece, 2)
    0.35
    """
    bins = whole("The number of bins", bins, 1)
    probability, label = _checked_labels(probability, label)
    confidence, correct = probability.max(1), probability.argmax(1) == label
    which = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    count = np.bincount(which, minlength=bins)
    with np.errstate(invalid="ignore"):
        return Reliability(
            confidence=np.bincount(which, confidence, bins) / count,
            accuracy=np.bincount(which, correct, bins) / count,
            count=count,
        )


def negative_log_likelihood(probability: Array, label: Array) -> float:
    """The mean of `-log p(label)`, in nats."""
    probability, label = _checked_labels(probability, label)
    of_label = probability[np.arange(len(label)), label]
    return float(-np.log(np.maximum(of_label, np.finfo(np.float64).tiny)).mean())


def brier(probability: Array, label: Array) -> float:
    """The mean of `|p - onehot(label)|^2`, from 0 to 2."""
    probability, label = _checked_labels(probability, label)
    return float((np.square(probability).sum(1) - 2 * probability[np.arange(len(label)), label] + 1).mean())


def error_auroc(correct: Array, uncertainty: Array) -> float:
    """Area under the ROC curve of finding errors by uncertainty; NaN if all nodes are correct, or none is.

    It is the probability that a wrong node is more uncertain than a correct one.
    """
    correct, uncertainty = _checked(correct, uncertainty)
    return float(roc_auc_score(~correct, uncertainty)) if 0 < correct.sum() < len(correct) else float("nan")


def error_aupr(correct: Array, uncertainty: Array) -> float:
    """Average precision of finding errors by uncertainty; NaN if all nodes are correct."""
    correct, uncertainty = _checked(correct, uncertainty)
    return float(average_precision_score(~correct, uncertainty)) if not correct.all() else float("nan")


@dataclass(frozen=True)
class RiskCoverage:
    """The share of errors among the k most certain nodes, for k from 1 to N.

    Attributes:
        coverage: `k / N`, `(N,)`.
        risk: the share of errors among the k most certain nodes, `(N,)`.
    """

    coverage: Array
    risk: Array

    @property
    def area(self) -> float:
        """Mean risk over all coverages (AURC). Lower is better."""
        return float(self.risk.mean())


def risk_coverage(correct: Array, uncertainty: Array) -> RiskCoverage:
    """Compute the share of errors among the most certain nodes.

    Nodes with the same uncertainty share their errors, so the order of the nodes does not matter.

    Args:
        correct: whether each node was predicted correctly, `(N,)`.
        uncertainty: a measure of uncertainty, `(N,)`.

    Returns:
        The risk for each number of nodes kept.

    Raises:
        BGCLError: the arrays are empty, differ in shape, or `uncertainty` is not finite.

    >>> import numpy as np
    >>> risk_coverage(np.array([True, False]), np.array([0.1, 0.9])).risk.tolist()
    [0.0, 0.5]
    """
    correct, uncertainty = _checked(correct, uncertainty)
    _, tie, size = np.unique(uncertainty, return_inverse=True, return_counts=True)
    errors = np.bincount(tie, ~correct) / size  # mean error of the nodes in each tie
    kept = np.arange(1, len(correct) + 1)
    return RiskCoverage(kept / len(correct), np.cumsum(np.repeat(errors, size)) / kept)


def _checked_labels(probability: Array, label: Array) -> tuple[Array, Array]:
    """Class probabilities `(N, C)` and the column of each node's class `(N,)`."""
    probability, label = numbers("The class probabilities", probability, axes=None), np.asarray(label)
    check_probabilities(probability)
    nodes, classes = probability.shape
    if label.shape != (nodes,) or label.dtype.kind not in "iu":
        raise BGCLError(f"There must be a whole number for the class of each of {nodes} nodes. Got {shown(label)}.")
    if nodes and not 0 <= label.min() <= label.max() < classes:
        raise BGCLError(f"Classes must be between 0 and {classes - 1}. Got {label.min()} to {label.max()}.")
    return probability, label


def _checked(correct: Array, uncertainty: Array) -> tuple[Array, Array]:
    correct, uncertainty = np.asarray(correct, dtype=bool), numbers("The uncertainty", uncertainty)
    if correct.shape != uncertainty.shape or correct.ndim != 1 or not len(correct):
        raise BGCLError(
            f"'correct' and 'uncertainty' must have one number for each node. Got the shapes {correct.shape} "
            f"and {uncertainty.shape}."
        )
    return correct, uncertainty
