"""Measures of uncertainty for each node, computed from the class probabilities of draws.

With class probabilities `p_k` of draw k, their mean `p = 1/K sum_k p_k` and the entropy `H(p) = -sum_c p_c log p_c`:

- predictive entropy: `H(p)`, the total uncertainty about the label;
- expected entropy: `1/K sum_k H(p_k)`, the uncertainty within each draw;
- mutual information: the difference of the two, the disagreement between draws; 0 if all draws agree;
- variation ratio: the share of draws that do not vote for the class with most votes;
- margin: `1 - (p_(1) - p_(2))` with the two greatest probabilities `p_(1) >= p_(2)`;
- least confidence: `1 - p_(1)`.

For all of them, greater values are more uncertain.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.arguments import numbers, shown
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

RECOMMENDED = "least_confidence"  # it finds errors best on Cora


@dataclass(frozen=True)
class Uncertainty:
    """Mean class probabilities and measures of uncertainty for each node.

    Attributes:
        probability: class probabilities averaged over the draws, `(N, C)`.
        predictive_entropy: entropy of the mean, `(N,)`.
        expected_entropy: mean of the entropies, `(N,)`.
        mutual_information: predictive entropy minus expected entropy, `(N,)`.
        variation_ratio: share of draws that vote for another class than most, `(N,)`.
        margin: 1 minus the difference between the two greatest probabilities, `(N,)`.
        least_confidence: 1 minus the greatest probability, `(N,)`.
    """

    probability: Array
    predictive_entropy: Array
    expected_entropy: Array
    mutual_information: Array
    variation_ratio: Array
    margin: Array
    least_confidence: Array

    def of(self, nodes: Array | slice) -> "Uncertainty":
        """The same measures for some nodes only."""
        return Uncertainty(**{field.name: getattr(self, field.name)[nodes] for field in fields(self)})

    def measures(self) -> dict[str, Array]:
        """All measures by name, `(N,)` each."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "probability"}


MEASURES = tuple(field.name for field in fields(Uncertainty) if field.name != "probability")


def entropy(probability: Array, axis: int = -1) -> Array:
    """`H(p) = -sum_c p_c log p_c` in nats."""
    return np.asarray(-(probability * np.log(np.maximum(probability, 1e-30))).sum(axis))


class Accumulator:
    """Sums over draws from which the measures are computed, so that the draws need not be kept.

    Classes come first, `(C, N)`, because NumPy is slow at sums over a short last axis and most time is spent here.
    """

    def __init__(self, classes: int, nodes: int) -> None:
        self.count = 0
        self.total, self.votes = np.zeros((classes, nodes)), np.zeros((classes, nodes))
        self.entropies, self._nodes = np.zeros(nodes), np.arange(nodes)

    def add(self, draw: Array) -> None:
        """Add the class probabilities of one draw, `(C, N)`."""
        self.count += 1
        self.total += draw
        self.entropies += entropy(draw, 0)
        self.votes[draw.argmax(0), self._nodes] += 1

    def result(self) -> Uncertainty:
        """The measures over all draws added so far."""
        if self.count == 0:
            raise BGCLError("There are no draws. A measure of uncertainty needs one or more.")
        mean = self.total / self.count
        predictive, expected = entropy(mean, 0), self.entropies / self.count
        second, greatest = np.sort(mean, axis=0)[-2:]
        return Uncertainty(
            probability=np.ascontiguousarray(mean.T),
            predictive_entropy=predictive,
            expected_entropy=expected,
            # Never negative by Jensen's inequality, except for rounding.
            mutual_information=np.maximum(predictive - expected, 0),
            variation_ratio=np.maximum(1 - self.votes.max(0) / self.count, 0),
            margin=1 - (greatest - second),
            least_confidence=1 - greatest,
        )


def uncertainty(samples: Iterable[Array] | Array) -> Uncertainty:
    """Measure the uncertainty of each node from the class probabilities of draws.

    Args:
        samples: class probabilities `(S, N, C)`, such as from `MixtureClassifier.predict_samples`, or an iterable of
            `(N, C)`. Only one draw of an iterable is held in memory.

    Returns:
        Mean class probabilities and measures of uncertainty.

    Raises:
        BGCLError: there are no draws, they differ in shape, or they do not hold class probabilities.

    >>> import numpy as np
    >>> agree = np.tile([[0.9, 0.1]], (5, 1, 1))
    >>> float(uncertainty(agree).mutual_information[0])
    0.0
    """
    if isinstance(samples, str | bytes | Mapping) or not isinstance(samples, Iterable):
        raise BGCLError(f"The samples must be class probabilities of draws. Got {shown(samples)} instead.")
    found: Accumulator | None = None
    for probability in samples:
        draw = numbers("The class probabilities of a draw", probability, axes=None)
        check_probabilities(draw)
        draw = draw.clip(min=0)  # rounding may leave values slightly below 0
        found = found or Accumulator(draw.shape[1], draw.shape[0])
        if draw.shape[::-1] != found.total.shape:
            raise BGCLError(f"The draws differ in shape: {draw.shape} after {found.total.shape[::-1]}.")
        found.add(np.ascontiguousarray(draw.T))
    return (found or Accumulator(2, 0)).result()


def check_probabilities(probability: Array) -> None:
    """Raise an error unless `probability` holds class probabilities, `(N, C)`."""
    if probability.ndim != 2 or probability.shape[1] < 2:
        raise BGCLError(f"Class probabilities must have the shape (nodes, 2 classes or more). Got {probability.shape}.")
    if not np.isfinite(probability).all():
        raise BGCLError("The class probabilities hold NaN or infinity. Give finite numbers.")
    if (probability < -1e-6).any():
        raise BGCLError(f"Class probabilities must not be negative. The smallest is {probability.min():.3g}.")
    sums = probability.sum(1)
    worst = int(np.abs(sums - 1).argmax()) if len(sums) else 0
    if len(sums) and abs(sums[worst] - 1) > 1e-3:
        raise BGCLError(f"Class probabilities must sum to 1. For node {worst} they sum to {sums[worst]:.4g}.")
