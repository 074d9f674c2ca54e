"""How good prediction sets are: the share that has the true class, their size, and both for groups of nodes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SetQuality:
    """Coverage and size of n prediction sets.

    Attributes:
        nodes: how many sets there are, n.
        coverage: share of the sets that contain the true class.
        size: mean number of classes in a set.
        singletons: share of the sets with exactly one class.
        empty: share of the sets without a class.
        right_singletons: share of the sets with one class whose class is right; NaN if there are none.

    >>> sets = np.array([[True, False], [True, True], [False, False]])
    >>> found = SetQuality.of(sets, np.array([0, 1, 1]))
    >>> round(found.coverage, 3), found.size, round(found.singletons, 3)
    (0.667, 1.0, 0.333)
    """

    nodes: int
    coverage: float
    size: float
    singletons: float
    empty: float
    right_singletons: float

    @classmethod
    def of(cls, sets: Array, label: Array) -> "SetQuality":
        """Compare sets `(n, C)` with the true classes `(n,)`, positions among the C."""
        sizes, covered = sets.sum(1), sets[np.arange(len(label)), label]
        single = sizes == 1
        means = (_mean(values) for values in (covered, sizes, single, sizes == 0, covered[single]))
        return cls(len(label), *means)

    @classmethod
    def by_group(cls, sets: Array, label: Array, group: Array) -> "dict[int, SetQuality]":
        """The quality in each group of nodes; `group` is the number of a node's group, `(n,)`."""
        return {int(g): cls.of(sets[group == g], label[group == g]) for g in np.unique(group)}


def degree_groups(degree: Array, groups: int = 3) -> tuple[Array, list[str]]:
    """Groups of about equal size by the degree of nodes.

    Args:
        degree: the degree of each node, `(n,)`.
        groups: how many groups; fewer if many nodes have the same degree.

    Returns:
        The number of each node's group, `(n,)`, and the range of degrees of each group in words.

    >>> degree_groups(np.array([1, 1, 2, 5, 9, 9]))
    (array([0, 0, 1, 1, 2, 2]), ['degree 1', 'degree 2 to 5', 'degree 9'])
    """
    cuts = np.unique(np.quantile(degree, np.linspace(0, 1, groups + 1)[1:-1], method="lower"))
    _, found = np.unique(np.searchsorted(cuts, degree), return_inverse=True)
    names = []
    for number in range(int(found.max()) + 1):
        low, high = int(degree[found == number].min()), int(degree[found == number].max())
        names.append(f"degree {low}" if low == high else f"degree {low} to {high}")
    return found, names


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")
