"""Measures of uncertainty for each node, from class probabilities of draws, all at once or as a stream.

With `p_k` the class probabilities of draw k, `p = mean_k p_k` and `H(p) = -sum_c p_c log p_c`:

- predictive entropy `H(p)`: all that is uncertain about the label;
- expected entropy `mean_k H(p_k)`: what each draw by itself is unsure about;
- mutual information, their difference: what the draws disagree about, zero when they agree;
- variation ratio: the share of draws that do not vote for the most voted class;
- margin: `1 - (greatest - second greatest of p)`;
- least confidence: `1 - greatest of p`.

In each of them more is more uncertain.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

RECOMMENDED = "least_confidence"  # of these it found errors best on Cora


@dataclass(frozen=True)
class Uncertainty:
    """Mean class probabilities `(N, C)` and the measures of uncertainty, each `(N,)`."""

    probability: Array
    predictive_entropy: Array
    expected_entropy: Array
    mutual_information: Array
    variation_ratio: Array
    margin: Array
    least_confidence: Array

    def of(self, nodes: Array) -> "Uncertainty":
        """The same of some nodes."""
        return Uncertainty(**{field.name: getattr(self, field.name)[nodes] for field in fields(self)})

    def measures(self) -> dict[str, Array]:
        """The measures by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "probability"}


MEASURES = tuple(field.name for field in fields(Uncertainty) if field.name != "probability")


def entropy(probability: Array, axis: int = -1) -> Array:
    """`H(p)` in nats."""
    return np.asarray(-(probability * np.log(np.maximum(probability, 1e-30))).sum(axis))


class Accumulator:
    """Class probabilities of draws as they come: what the measures need of them, and no more.

    Classes come first here, `(C, N)`: NumPy is slow at sums over a short last axis, and this is where the time goes.
    """

    def __init__(self, classes: int, nodes: int) -> None:
        self.count = 0
        self.total, self.votes = np.zeros((classes, nodes)), np.zeros((classes, nodes))
        self.entropies, self._nodes = np.zeros(nodes), np.arange(nodes)

    def add(self, draw: Array) -> None:
        """Take one more draw, `(C, N)`."""
        self.count += 1
        self.total += draw
        self.entropies += entropy(draw, 0)
        self.votes[draw.argmax(0), self._nodes] += 1

    def result(self) -> Uncertainty:
        """The measures of all draws so far."""
        if self.count == 0:
            raise BGCLError("There are no draws: a measure of uncertainty needs one or more.")
        mean = self.total / self.count
        predictive, expected = entropy(mean, 0), self.entropies / self.count
        second, greatest = np.sort(mean, axis=0)[-2:]
        return Uncertainty(
            probability=np.ascontiguousarray(mean.T),
            predictive_entropy=predictive,
            expected_entropy=expected,
            # Jensen's inequality has it at 0 or more; rounding may not.
            mutual_information=np.maximum(predictive - expected, 0),
            variation_ratio=np.maximum(1 - self.votes.max(0) / self.count, 0),
            margin=1 - (greatest - second),
            least_confidence=1 - greatest,
        )


def uncertainty(samples: Iterable[Array] | Array) -> Uncertainty:
    """The measures of class probabilities `(S, N, C)`, or of a stream of `(N, C)` that need not be held together.

    >>> import numpy as np
    >>> agree = np.tile([[0.9, 0.1]], (5, 1, 1))
    >>> float(uncertainty(agree).mutual_information[0])
    0.0
    """
    found: Accumulator | None = None
    for draw in samples:
        draw = np.asarray(draw, dtype=np.float64)
        check_probabilities(draw)
        draw = draw.clip(min=0)  # a rounding error below 0 has no logarithm
        found = found or Accumulator(draw.shape[1], draw.shape[0])
        if draw.shape[::-1] != found.total.shape:
            raise BGCLError(f"The draws differ in shape: {draw.shape} after {found.total.shape[::-1]}.")
        found.add(np.ascontiguousarray(draw.T))
    return (found or Accumulator(2, 0)).result()


def check_probabilities(probability: Array) -> None:
    """Refuse what is not `(N, C)` class probabilities."""
    if probability.ndim != 2 or probability.shape[1] < 2:
        raise BGCLError(f"Class probabilities must be (nodes, 2 classes or more). Got the shape {probability.shape}.")
    if not np.isfinite(probability).all():
        raise BGCLError("The probabilities hold NaN or infinity.")
    if (probability < -1e-6).any():
        raise BGCLError(f"The probabilities must not be negative. The least is {probability.min():.3g}.")
    sums = probability.sum(1)
    worst = int(np.abs(sums - 1).argmax()) if len(sums) else 0
    if len(sums) and abs(sums[worst] - 1) > 1e-3:
        raise BGCLError(f"The probabilities of a node must sum to one. Those of node {worst} sum to {sums[worst]:.4g}.")
