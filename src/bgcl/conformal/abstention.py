r"""When to give no answer: at most a share `risk` of the answers may be wrong.

A node gets an answer if its uncertainty is at most a threshold. The candidates answer 5 %, 10 %, ..., 100 % of n
labeled nodes that were held out. If k of the m answered ones are wrong, the true share is below the bound of Clopper
and Pearson (1934),

    u = Beta^-1(1 - d / 20; k + 1, m - k),

with probability `1 - d / 20`, so for all 20 candidates together with probability `1 - d`. The greatest candidate with a
bound of at most `risk` is taken. As for sets, nodes with a label and without must be exchangeable.
"""

import math
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from bgcl.arguments import shown
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

CANDIDATES = 20
CERTAINTY = 0.95  # that the risk holds, 1 - d


@dataclass(frozen=True)
class Abstention:
    """Which uncertainty is too great for an answer.

    Attributes:
        threshold: the greatest uncertainty with an answer; minus infinity if no node has one.
        risk: the share of wrong answers that is allowed.
        bound: what the share of wrong answers is below with a probability of `CERTAINTY`; NaN without answers.
        answered: the share of the labeled nodes that have an answer.
        wrong: the share of their answers that are wrong; NaN without answers.
    """

    threshold: float
    risk: float
    bound: float
    answered: float
    wrong: float

    @classmethod
    def at_risk(cls, uncertainty: Array, wrong: Array, risk: float) -> "Abstention":
        """The threshold that answers the most nodes at a risk.

        Args:
            uncertainty: of labeled nodes that were held out, `(n,)`.
            wrong: whether their predictions are wrong, `(n,)`.
            risk: the share of answers that may be wrong.

        Raises:
            BGCLError: the risk is not between 0 and 1, there are too few nodes to tell, or an uncertainty is NaN.

        >>> random = np.random.default_rng(0)
        >>> uncertainty = random.random(2000)
        >>> found = Abstention.at_risk(uncertainty, random.random(2000) < 0.2 * uncertainty, 0.05)
        >>> round(found.answered, 2), bool(found.bound <= 0.05)
        (0.15, True)
        """
        check_risk(risk)
        uncertainty, wrong = np.asarray(uncertainty, dtype=float), np.asarray(wrong, dtype=bool)
        if uncertainty.ndim != 1 or uncertainty.shape != wrong.shape:
            raise BGCLError(
                "Give one uncertainty for each labeled node, and whether its prediction is wrong. Got "
                f"{uncertainty.shape} and {wrong.shape} of them."
            )
        _refuse_nan(uncertainty)
        refuse_too_few_for(risk, len(wrong))
        order = np.argsort(uncertainty, kind="stable")
        ascending, errors = uncertainty[order], np.cumsum(wrong[order])
        best = cls(-math.inf, risk, math.nan, 0.0, math.nan)
        for candidate in range(1, CANDIDATES + 1):
            threshold = ascending[math.ceil(candidate * len(wrong) / CANDIDATES) - 1]
            answers = int(np.searchsorted(ascending, threshold, "right"))
            bound = upper_bound(int(errors[answers - 1]), answers)
            if bound <= risk:
                share = float(errors[answers - 1]) / answers
                best = cls(float(threshold), risk, bound, answers / len(wrong), share)
        return best

    def abstains(self, uncertainty: Array) -> Array:
        """Whether each node has no answer, `(N,)`.

        Raises:
            BGCLError: an uncertainty is NaN.
        """
        _refuse_nan(np.asarray(uncertainty, dtype=float))
        return np.asarray(uncertainty > self.threshold)


def _refuse_nan(uncertainty: Array) -> None:
    bad = np.flatnonzero(np.isnan(uncertainty))
    if len(bad):
        raise BGCLError(f"The uncertainty of node {bad[0]} is NaN, so it cannot be compared. Check head and draws.")


def upper_bound(wrong: int, answers: int) -> float:
    """The bound of the true share of wrong answers, if `wrong` of `answers` are."""
    if wrong >= answers:
        return 1.0
    return float(beta.ppf(1 - (1 - CERTAINTY) / CANDIDATES, wrong + 1, answers - wrong))


def fewest_for(risk: float) -> int:
    """The fewest labeled nodes for which a risk may hold: so many right answers and no wrong one.

    >>> fewest_for(0.05), upper_bound(0, 117) <= 0.05, upper_bound(0, 116) <= 0.05
    (117, True, False)
    """
    return math.ceil(math.log((1 - CERTAINTY) / CANDIDATES) / math.log1p(-risk))


def refuse_too_few_for(risk: float, count: int) -> None:
    """Refuse a risk that needs more labeled nodes, and say how many."""
    if count < fewest_for(risk):
        raise BGCLError(
            f"A risk of {risk:g} needs {fewest_for(risk):,} labeled nodes or more. Got {count:,} instead. "
            "Label more nodes, or allow a greater risk."
        )


def check_risk(risk: Any) -> float:
    """A risk between 0 and 1."""
    if isinstance(risk, bool | np.bool_ | str) or not isinstance(risk, SupportsFloat) or not 0 < float(risk) < 1:
        raise BGCLError(f"The risk must be a share between 0 and 1, such as 0.05. Got {shown(risk)} instead.")
    return float(risk)
