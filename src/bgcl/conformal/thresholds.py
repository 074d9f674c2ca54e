r"""From scores of calibration nodes to sets: split conformal prediction (Vovk et al., 2005).

With the scores `s_i(y_i)` of n calibration nodes for their true classes, the threshold q is the k-th smallest of them,
`k = ceil((n + 1) level)`, and the set of a node is `{y : s(y) <= q}`. If the node and the calibration nodes are
exchangeable, the set has the true class with a probability between `level` and `level + 1 / (n + 1)` (the latter if no
scores are equal). With a threshold for each class, from the calibration nodes of this class alone, the same holds in
each class ("Mondrian").
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.errors import BGCLError
from bgcl.measures.levels import fewest, rank_of_level

Array = npt.NDArray[Any]


def thresholds(
    scores: Array, codes: Array, level: float, *, by_class: bool = False, names: Sequence[Any] | None = None
) -> Array:
    """The threshold of each class.

    Args:
        scores: scores of the calibration nodes, `(n, C)`.
        codes: their true classes, as numbers from 0 to C - 1, `(n,)`.
        level: the share of nodes whose set has the true class.
        by_class: whether the level holds in each class, and not only over all nodes.
        names: names of the classes for errors. Default: their numbers.

    Returns:
        The thresholds, `(C,)`; all are equal if not `by_class`.

    Raises:
        BGCLError: there are too few calibration nodes, or too few of a class if `by_class`.
    """
    classes = scores.shape[1]
    own = scores[np.arange(len(codes)), codes]
    if not by_class:
        return np.full(classes, _quantile(own, level, ""))
    shown = range(classes) if names is None else names
    return np.array([_quantile(own[codes == c], level, f" of class {shown[c]}") for c in range(classes)])


def _quantile(scores: Array, level: float, whose: str) -> float:
    refuse_too_few(len(scores), level, whose)
    rank = rank_of_level(len(scores), level)
    return float(np.partition(scores, rank - 1)[rank - 1])


def refuse_too_few(count: int, level: float, whose: str = "") -> None:
    """Refuse a level that needs more calibration nodes, and say how many.

    >>> refuse_too_few(9, 0.9)
    >>> refuse_too_few(8, 0.9, " of class a")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bgcl.errors.BGCLError: A level of 0.9 needs 9 calibration nodes of class a or more. Got 8 instead. ...
    """
    if rank_of_level(count, level) > count:
        raise BGCLError(
            f"A level of {level:g} needs {fewest(level)} calibration nodes{whose} or more. Got {count} instead. "
            f"Label more nodes{whose}, or lower the level{', or leave out by_class' if whose else ''}."
        )


def sets_of(scores: Array, threshold: Array) -> Array:
    """Which classes are in the set of each node, `(N, C)`, from scores `(N, C)` and thresholds `(C,)`."""
    return np.asarray(scores <= threshold)
