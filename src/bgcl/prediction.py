"""Predictions for every node of a graph, each by a head that has not seen the node's own label."""

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold

from bgcl.embeddings import RunningMoments
from bgcl.errors import BGCLError
from bgcl.evaluation import predict_all
from bgcl.measures import MEASURES, Uncertainty
from bgcl.mixture import MixtureClassifier
from bgcl.protocols import labels_of

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Prediction:
    """For every node: its label (-1: none), the predicted class, and how sure the model is."""

    label: Array
    classes: Array
    uncertainty: Uncertainty
    astd: Array

    @property
    def predicted(self) -> Array:
        return np.asarray(self.classes[self.uncertainty.probability.argmax(1)])

    def columns(self) -> dict[str, Array]:
        """As a table with a row for each node."""
        columns = {
            "node": np.arange(len(self.label)),
            "label": self.label,
            "predicted": self.predicted,
            "probability": self.uncertainty.probability.max(1),
            **self.uncertainty.measures(),
            "astd": self.astd,
        }
        return columns | {f"p_{c}": self.uncertainty.probability[:, i] for i, c in enumerate(self.classes)}


def predict_nodes(
    model: "BGCL",
    data: "Data",
    *,
    samples: int = 100,
    training_draws: int = 20,
    folds: int = 5,
    seed: int | None = None,
) -> Prediction:
    """Heads trained on the labelled nodes, in one pass over the draws.

    An unlabelled node is predicted by a head that learned from all labelled ones. A labelled node is predicted by a
    head that learned from the other folds: its own label must not make it look certain, and where the two differ the
    label may be wrong.
    """
    labels = labels_of(data)
    labelled = np.flatnonzero(labels >= 0)
    counts = np.bincount(labels[labelled])
    present = np.flatnonzero(counts)
    if counts[present].min() < 3:
        few = present[counts[present].argmin()]
        raise BGCLError(f"Class {few} has {counts[few]} labelled nodes: predictions need three or more of each class.")
    if samples <= training_draws:
        raise BGCLError(f"Of {samples} samples {training_draws} train the heads: none is left to predict with.")
    running = RunningMoments()
    stream = (running.add(draw).cpu().numpy() for draw in model.draws(data, samples, seed=seed))
    first = np.stack(list(islice(stream, training_draws)))
    # With no more folds than the smallest class has nodes, each part that trains has two of it or more.
    split = StratifiedKFold(int(min(folds, counts[present].min())), shuffle=True, random_state=0)
    parts = [(labelled[train], labelled[test]) for train, test in split.split(labelled, labels[labelled])]
    unlabelled = np.flatnonzero(labels < 0)
    if len(unlabelled):
        parts.append((labelled, unlabelled))
    heads = [MixtureClassifier().fit(first[:, train], labels[train]) for train, _ in parts]
    found = predict_all(heads, stream, [nodes for _, nodes in parts])
    merged = {name: np.empty(len(labels)) for name in MEASURES}
    probability = np.empty((len(labels), len(present)))
    for (_, nodes), part in zip(parts, found, strict=True):
        probability[nodes] = part.probability
        for name, measure in part.measures().items():
            merged[name][nodes] = measure
    return Prediction(
        labels, heads[0].classes_, Uncertainty(probability, **merged), running.moments().astd.cpu().numpy()
    )
