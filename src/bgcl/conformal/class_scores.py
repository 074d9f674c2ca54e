r"""How badly each class fits a node: the scores from which prediction sets are made. Greater is worse.

From the class probabilities p of a node:

- "lac": `s(y) = 1 - p(y)` (Sadinle et al., 2019). It has the smallest sets on average.
- "aps": `s(y) = sum of all p(y') > p(y)`, the score of Romano et al. (2020) with u = 0. The most probable class has the
  score 0, so no set is empty. Coverage is above the level where the head is more accurate than the level.
- "aps-randomized": `s(y) = sum of all p(y') > p(y), plus u p(y)`, u uniform between 0 and 1 (Romano et al., 2020). Its
  sets are larger on average, and their coverage is more even between nodes that are easy and nodes that are hard.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.arguments import shown
from bgcl.errors import BGCLError, nearest

Array = npt.NDArray[Any]

SCORES = ("lac", "aps", "aps-randomized")


def check_score(score: Any) -> str:
    """The name of a score."""
    if not isinstance(score, str) or score not in SCORES:
        raise BGCLError(f"Unknown score {shown(score)} of a class. {nearest(str(score), SCORES)}")
    return score


def class_scores(probability: Array, score: str, random: np.random.Generator) -> Array:
    """The score of each class for each node.

    Args:
        probability: class probabilities, `(N, C)`.
        score: its name, see `SCORES`.
        random: draws u, one for each node; only "aps-randomized" uses it.

    Returns:
        The scores, `(N, C)`.

    >>> probability = np.array([[0.6, 0.1, 0.3]])
    >>> random = np.random.default_rng(0)
    >>> class_scores(probability, "lac", random).round(3).tolist()
    [[0.4, 0.9, 0.7]]
    >>> class_scores(probability, "aps", random).round(3).tolist()
    [[0.0, 0.9, 0.6]]
    """
    if score == "lac":
        return np.asarray(1 - probability)
    order = np.argsort(-probability, axis=1, kind="stable")
    sorted_ = np.take_along_axis(probability, order, 1)
    share = random.random((len(probability), 1)) if score == "aps-randomized" else 0.0
    found = np.empty_like(probability)
    np.put_along_axis(found, order, np.cumsum(sorted_, 1) - (1 - share) * sorted_, 1)
    return found


def check_probabilities(probability: Array) -> None:
    """Refuse class probabilities of which one is NaN."""
    bad = np.flatnonzero(~np.isfinite(probability).all(1))
    if len(bad):
        raise BGCLError(
            f"The class probabilities of node {bad[0]} hold NaN or infinity, so it has no set. Check head and draws."
        )
