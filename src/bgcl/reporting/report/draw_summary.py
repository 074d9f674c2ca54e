"""What the page needs from the draws: their moments, the first few of them, and how much pairs of them disagree."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bgcl.measures.disagreement import disagreement
from bgcl.model.objectives.infonce import contrastive_log_likelihood
from bgcl.model.posterior import Moments, RunningMoments
from bgcl.reporting.report.node_map import CLOUD

if TYPE_CHECKING:
    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

DISAGREEMENT_WORK = 5e8  # pairs of nodes times pairs of draws: about half a minute on one processor


class DrawSummary:
    """Collects what the page needs while the draws pass by once.

    Args:
        model: the model that makes the draws.
        nodes: number of nodes N.
        samples: number of draws.
    """

    def __init__(self, model: "BGCL", nodes: int, samples: int) -> None:
        self._model = model
        self._moments = RunningMoments()
        self._first: list[Array] = []
        self._log_likelihoods: list[Tensor] = []
        self._projected: Tensor | None = None  # the first draw of a pair, until the second one comes
        pairs = min(samples // 2, int(DISAGREEMENT_WORK / nodes**2))
        self._paired = 2 * pairs if pairs >= 2 else 0  # number of draws that are compared in pairs

    def watch(self, draws: Iterable[Tensor]) -> Iterator[Tensor]:
        """Yield the same draws, each `(N, d)`, and add each of them to the summary."""
        for i, draw in enumerate(draws):
            self._moments.add(draw)
            if i < CLOUD:
                self._first.append(draw.cpu().numpy())
            if i < self._paired:
                self._compare(draw)
            yield draw

    def _compare(self, draw: Tensor) -> None:
        with torch.no_grad():
            projected = self._model.network_.head(draw)
            if self._projected is None:
                self._projected = projected
                return
            tau = self._model.settings_.tau
            self._log_likelihoods.append(contrastive_log_likelihood(self._projected, projected, tau))
            self._projected = None

    def moments(self) -> Moments:
        """Mean and standard deviation of each node's draws."""
        return self._moments.moments()

    def first_draws(self) -> Array:
        """The draws that the map shows, `(CLOUD, N, d)`, or fewer if fewer were made."""
        return np.stack(self._first)

    def disagreement(self) -> Array | None:
        """Contrastive model disagreement of each node, `(N,)`; None if the graph is too large for it."""
        return disagreement(iter(self._log_likelihoods)) if self._log_likelihoods else None
