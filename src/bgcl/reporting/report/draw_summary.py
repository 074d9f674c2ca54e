"""What the page needs from the draws: the predictions, their moments, and the first few of them."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.downstream.evaluation import default_training_draws
from bgcl.downstream.label_spreading import LabelSpreading
from bgcl.downstream.node_predictions import NodePredictions
from bgcl.downstream.prediction import Prediction
from bgcl.model.posterior import Moments, RunningMoments
from bgcl.progress import with_progress
from bgcl.reporting.report.node_map import CLOUD

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.downstream.kept_results import KeptResults
    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class DrawSummary:
    """What is left of the draws after they have passed by once.

    Attributes:
        moments: mean and standard deviation of each node's draws.
        first: the draws that the map shows, `(CLOUD, N, d)`, or fewer if fewer were made.
        predictions: the predictions; None if no classifier can be trained.
    """

    moments: Moments
    first: Array
    predictions: NodePredictions | None

    @classmethod
    def of(
        cls, model: "BGCL", data: "Data", samples: int, *, seed: int | None, predict: bool,
        kept: "KeptResults | None" = None, progress: bool = False,
    ) -> "DrawSummary":  # fmt: skip
        """Make all draws once. If their moments and the predictions were kept, make only those that the map shows."""
        prediction: Prediction | None = None
        if predict:
            training_draws = default_training_draws(samples, model.parts_)
            spreading = partial(LabelSpreading.of, model, data) if len(model.parts_) > 1 else None
            prediction = Prediction(data, training_draws=training_draws, parts=model.parts_, spreading=spreading)
        if kept is not None:
            moments = kept.find_moments(data, samples, seed)
            predictions = None if prediction is None else prediction.find(kept, samples, seed)
            if moments is not None and (prediction is None or predictions is not None):
                few = min(CLOUD, samples)
                first = with_progress(lambda: model.draws(data, few, seed=seed), few, "draws", show=progress)
                return cls(moments, np.stack([draw.cpu().numpy() for draw in first]), predictions)
        running = RunningMoments() if prediction is None else prediction.running
        stream = with_progress(lambda: model.draws(data, samples, seed=seed), samples, "draws", show=progress)
        shown = []
        for i, draw in enumerate(map(running.add, stream) if prediction is None else prediction.watch(stream)):
            if i < CLOUD:
                shown.append(draw.cpu().numpy())
        if kept is not None and prediction is not None:
            prediction.keep(kept, samples, seed)
        elif kept is not None:
            kept.keep_moments(data, seed, running.moments())
        return cls(running.moments(), np.stack(shown), None if prediction is None else prediction.result())
