"""Levels of coverage: the check of a level, and the rank among calibration scores that holds it.

If n calibration scores and a new one are exchangeable, the new one is at most the k-th smallest of the n with
probability `k / (n + 1)` or more. So the rank `k = ceil((n + 1) level)` holds the level (Vovk et al., 2005).
"""

import math
from typing import Any, SupportsFloat

import numpy as np

from bgcl.arguments import shown
from bgcl.errors import BGCLError

_ROUNDING = 1e-9  # (n + 1) level is a little above a whole number, or below it, by rounding


def check_level(level: Any) -> float:
    """A level of coverage between 0 and 1.

    >>> check_level(95)
    Traceback (most recent call last):
    bgcl.errors.BGCLError: The level must be a share between 0 and 1, such as 0.9. Got 95 instead.
    """
    if isinstance(level, bool | np.bool_ | str) or not isinstance(level, SupportsFloat) or not 0 < float(level) < 1:
        raise BGCLError(f"The level must be a share between 0 and 1, such as 0.9. Got {shown(level)} instead.")
    return float(level)


def rank_of_level(count: int, level: float) -> int:
    """The rank among `count` calibration scores below which a share `level` of new scores is, counted from 1.

    It is greater than `count` if there are too few scores to tell.

    >>> rank_of_level(99, 0.9), rank_of_level(8, 0.9)
    (90, 9)
    """
    return math.ceil((count + 1) * level - _ROUNDING)


def fewest(level: float) -> int:
    """The fewest calibration scores that hold a level, `ceil(level / (1 - level))`.

    >>> fewest(0.9), fewest(0.95), fewest(0.99)
    (9, 19, 99)
    """
    return max(math.ceil(level / (1 - level) - _ROUNDING), 1)
