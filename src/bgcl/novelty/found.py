"""What was found about the novelty of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class NodeNovelty:
    """How unlike the known nodes each node is.

    Attributes:
        novelty: the share of known nodes that are at least as strange, `(N,)`. Between 0 and 1; small is strange.
        strangeness: a number with the same order, which also tells nodes apart that are stranger than all known ones,
            `(N,)`. Great is strange.
        shares: the same share by each score alone, `(N,)` each.
        scores: the scores, `(N,)` each. NaN where a node has nothing to score, such as neighbors, and minus infinity
            where nothing is known.
        ids: the ids of the nodes, if the graph has them.
    """

    novelty: Array
    strangeness: Array
    shares: Mapping[str, Array]
    scores: Mapping[str, Array]
    ids: Array | None = None

    @property
    def reason(self) -> Array:
        """The name of the score by which each node is strangest, `(N,)`."""
        names = np.array(list(self.shares), dtype=object)
        return np.asarray(names[np.argmin(list(self.shares.values()), axis=0)])

    def columns(self) -> dict[str, Array]:
        """A table with one row for each node, as columns by name."""
        columns = {} if self.ids is None else {"id": np.asarray(self.ids)}
        columns |= {"node": np.arange(len(self.novelty)), "novelty": self.novelty, "reason": self.reason}
        return columns | {f"share by {name}": share for name, share in self.shares.items()}
