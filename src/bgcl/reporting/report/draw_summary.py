"""What the page needs from the draws: their moments, and the first few of them."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from bgcl.model.posterior import Moments, RunningMoments
from bgcl.reporting.report.node_map import CLOUD

Array = npt.NDArray[Any]


class DrawSummary:
    """Collects what the page needs while the draws pass by once."""

    def __init__(self) -> None:
        self._moments = RunningMoments()
        self._first: list[Array] = []

    def watch(self, draws: Iterable[Tensor]) -> Iterator[Tensor]:
        """Yield the same draws, each `(N, d)`, and add each of them to the summary."""
        for i, draw in enumerate(draws):
            self._moments.add(draw)
            if i < CLOUD:
                self._first.append(draw.cpu().numpy())
            yield draw

    def moments(self) -> Moments:
        """Mean and standard deviation of each node's draws."""
        return self._moments.moments()

    def first_draws(self) -> Array:
        """The draws that the map shows, `(CLOUD, N, d)`, or fewer if fewer were made."""
        return np.stack(self._first)
