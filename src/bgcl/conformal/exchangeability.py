r"""Are new nodes like those that calibrate? Otherwise no level holds.

Sets and thresholds promise something about new nodes that are exchangeable with the calibration nodes. Without labels
nobody can see that they are, but one can see that they are not: then some score that needs no label, such as the
uncertainty or how a node fits its neighbors, is distributed in another way. With the distribution functions F of n
calibration nodes and G of m new nodes, the distance is

    D = max_s |F(s) - G(s)|.

Coverage is off by at most D if the score is that of the true classes. If the true functions have a distance of d, D is
above `d + e_n + e_m` with a probability of at most a, by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart
with `e_n = sqrt(log(4 r / a) / 2n)` for r scores. So the true distance is `D - e_n - e_m` or more, for all scores
together. There is a warning if that is above `TOLERANCE`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

TOLERANCE = 0.05  # the distance that is not warned about
ERROR = 0.01  # a, the probability of a false warning at this distance


@dataclass(frozen=True)
class Drift:
    """How far new nodes are from calibration nodes.

    Attributes:
        distance: `max |F - G|` of each score.
        surely: the least true distance of each score, with a probability of 99 % for all scores together.
        calibration: the number of calibration nodes.
        new: the number of new nodes.
    """

    distance: dict[str, float]
    surely: dict[str, float]
    calibration: int
    new: int

    @classmethod
    def between(cls, calibration: Mapping[str, Array], new: Mapping[str, Array]) -> "Drift":
        """Compare scores of calibration nodes with those of new nodes.

        Args:
            calibration: scores by name, `(n,)` each.
            new: the same scores of the new nodes, `(m,)` each.

        Raises:
            BGCLError: there is no node to compare, the scores are not the same ones, or a score is NaN.

        >>> random = np.random.default_rng(0)
        >>> known, new = random.normal(size=500), random.normal(size=800)
        >>> Drift.between({"a": known}, {"a": new}).warns, Drift.between({"a": known}, {"a": new + 1}).warns
        (False, True)
        """
        counts = [len(next(iter(scores.values()), ())) for scores in (calibration, new)]
        if not min(counts):
            raise BGCLError("There is no calibration node, or no new node, so they cannot be compared.")
        if calibration.keys() != new.keys():
            raise BGCLError(f"Compare the same scores. Got {sorted(calibration)} and {sorted(new)}.")
        for name, values in (*calibration.items(), *new.items()):
            if np.isnan(values).any():
                raise BGCLError(f"The score '{name}' of a node is NaN, so it cannot be compared. Check head and draws.")
        distance = {name: largest_gap(calibration[name], new[name]) for name in calibration}
        margin = sum(math.sqrt(math.log(4 * len(distance) / ERROR) / (2 * count)) for count in counts)
        return cls(distance, {name: max(gap - margin, 0.0) for name, gap in distance.items()}, *counts)

    @property
    def worst(self) -> str:
        """The score by which the nodes differ most."""
        return max(self.distance, key=lambda name: self.distance[name])

    @property
    def warns(self) -> bool:
        """Whether the nodes surely differ by more than is tolerated."""
        return self.surely[self.worst] > TOLERANCE


def largest_gap(one: Array, other: Array) -> float:
    """The greatest distance of two empirical distribution functions.

    >>> largest_gap(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.5
    """
    every = np.unique(np.concatenate([one, other]))
    shares = (np.searchsorted(np.sort(each), every, "right") / len(each) for each in (one, other))
    return float(np.abs(np.subtract(*shares)).max())
