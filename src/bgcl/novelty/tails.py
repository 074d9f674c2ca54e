r"""From scores to shares of known nodes, and from several shares to one.

A score s says how strange a node is. Its share is the tail among the n known nodes,

    p(v) = (1 + #{i known, i != v : s_i >= s_v}) / (1 + #{i known, i != v}).

If v is a new node and exchangeable with the known ones, `P(p <= a) <= a` for every a, as for a p-value. If very small
scores are strange too, the tail has two sides: twice the smaller one, at most 1.

A node may have nothing to score, such as neighbors (NaN). Its share is that of the known nodes which are like that, and
other nodes are compared with those that have a score. Otherwise, known nodes without neighbors would hide nodes whose
neighbors are wrong. If a share q of the known nodes has no score, `P(p <= a)` is `(1 - q) a` for `a < q` and up to
`(1 - q) a + q` above, so such a share alone may be too small. What is made of it below is counted among the known
nodes again, and is not.

Scores of a group say similar things. They are joined by `s_g = -sum log p` (Fisher, 1925), and the share of the group
is the tail of `s_g`. It does not have to be right that the scores are independent, because the tail is counted.

Groups say different things, and a strange node is mostly strange in one of them. They are joined by the smallest
weighted share, `min_g p_g / w_g` (Genovese et al., 2006), and the novelty of a node is the tail of that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BEYOND = 1e-3  # of the sum that orders nodes of a group that are stranger than all known ones


@dataclass(frozen=True)
class Tail:
    """The scores of the known nodes.

    Args:
        known: the scores, ascending, `(n,)`.
        without: the number of known nodes without a score.
        two_sided: whether very small scores are strange too.
    """

    known: Array
    without: int = 0
    two_sided: bool = False

    @classmethod
    def of(cls, scores: Array, *, two_sided: bool = False) -> "Tail":
        return cls(np.sort(scores[~np.isnan(scores)]), int(np.isnan(scores).sum()), two_sided)

    def shares(self, scores: Array, among: Array | None = None) -> Array:
        """The share of the known nodes that are at least as strange as each node.

        Args:
            scores: the scores of the nodes, `(N,)`; NaN for none.
            among: whether a node is one of the known ones itself, `(N,)`; None: no node is.

        Returns:
            The shares, between `1 / (n + 1)` and 1, `(N,)`.

        >>> Tail.of(np.array([1.0, 2.0, 3.0])).shares(np.array([0.0, 2.5, 9.0])).tolist()
        [1.0, 0.5, 0.25]
        """
        itself = np.zeros(len(scores)) if among is None else among.astype(float)
        others = np.maximum(len(self.known) + 1 - itself, 1)  # 0 only for the one known node, if that has no score
        above = (len(self.known) - np.searchsorted(self.known, scores, "left") + 1 - itself) / others
        if not self.two_sided:
            found = above
        else:
            below = (np.searchsorted(self.known, scores, "right") + 1 - itself) / others
            found = np.minimum(1, 2 * np.minimum(above, below))
        missing = (self.without + 1 - itself) / np.maximum(len(self.known) + self.without + 1 - itself, 1)
        return np.asarray(np.where(np.isnan(scores), missing, found))


def summed(shares: Sequence[Array]) -> Array:
    """Fisher's sum `-sum log p` of the shares of a group, `(N,)`."""
    return np.asarray(-np.sum(np.log(shares), axis=0))


def strangeness(shares: Sequence[Array], sums: Sequence[Array], weights: Sequence[float]) -> Array:
    """`max_g (log w_g - log p_g)`, with a little of the group's sum, so that equal shares still have an order, `(N,)`.

    >>> strangeness([np.array([0.5, 0.01])], [np.zeros(2)], [1.0]).round(2).tolist()
    [0.69, 4.61]
    """
    every = [np.log(w) - np.log(p) + BEYOND * s for p, s, w in zip(shares, sums, weights, strict=True)]
    return np.asarray(np.max(every, axis=0))
