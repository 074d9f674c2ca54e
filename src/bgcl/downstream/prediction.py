"""Predictions for every node of a graph, each by a head that has not seen the node's own label."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold

from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import default_training_draws, predict_all
from bgcl.downstream.splits import labels_of
from bgcl.errors import BGCLError
from bgcl.measures.uncertainty import MEASURES, Uncertainty
from bgcl.model.posterior import RunningMoments

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
    ids: Array | None = None  # of a graph that has them
    names: Sequence[Any] | None = None  # of the classes, by number

    @property
    def predicted(self) -> Array:
        return np.asarray(self.classes[self.uncertainty.probability.argmax(1)])

    def columns(self) -> dict[str, Array]:
        """As a table with a row for each node, its id first if it has one, classes by name if they have names."""
        columns = {} if self.ids is None else {"id": np.asarray(self.ids)}
        columns |= {
            "node": np.arange(len(self.label)),
            "label": class_names(self.label, self.names),
            "predicted": class_names(self.predicted, self.names),
            "probability": self.uncertainty.probability.max(1),
            **self.uncertainty.measures(),
            "astd": self.astd,
        }
        named = class_names(self.classes, self.names)
        return columns | {f"p_{c}": self.uncertainty.probability[:, i] for i, c in enumerate(named)}


def class_names(numbers: Array, names: Sequence[Any] | None) -> Array:
    """Classes by name, None where a node has none; numbers as they are if classes have no names."""
    if names is None:
        return numbers
    table = np.empty(len(names) + 1, dtype=object)
    table[:-1], table[-1] = names, None
    return np.asarray(table[numbers])


def predict_nodes(
    model: "BGCL",
    data: "Data",
    *,
    samples: int = 100,
    training_draws: int | None = None,
    folds: int = 5,
    seed: int | None = None,
    labels_from: "Data | None" = None,
) -> Prediction:
    """Heads trained on the labelled nodes, in one pass over the draws.

    An unlabelled node is predicted by a head that learned from all labelled ones. A labelled node is predicted by a
    head that learned from the other folds: its own label must not make it look certain, and where the two differ the
    label may be wrong. With `labels_from`, another graph, such as the one of training, has the labelled nodes; those of
    its nodes that are in `data` too are known by their ids.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> found = bgcl.predict_nodes(model, data, samples=8, training_draws=4)
    >>> list(found.columns())[:4]
    ['node', 'label', 'predicted', 'probability']
    """
    teacher = data if labels_from is None else labels_from
    labels, names = labels_of(teacher), getattr(teacher, "classes", None)
    labelled = np.flatnonzero(labels >= 0)
    counts = np.bincount(labels[labelled])
    present = np.flatnonzero(counts)
    if counts[present].min() < 3:
        few = present[counts[present].argmin()]
        raise BGCLError(
            f"Class {few if names is None else names[few]} has {counts[few]} labelled nodes: predictions need three or "
            "more of each class."
        )
    training_draws = default_training_draws(samples) if training_draws is None else training_draws
    if samples <= training_draws:
        raise BGCLError(f"Of {samples} samples {training_draws} train the heads: none is left to predict with.")
    running = RunningMoments()
    stream = (running.add(draw).cpu().numpy() for draw in model.draws(data, samples, seed=seed))
    first = np.stack(list(islice(stream, training_draws)))
    if labels_from is not None:
        first = np.stack([draw.cpu().numpy() for draw in model.draws(labels_from, training_draws, seed=seed)])
    place = _places(data, teacher)
    # With no more folds than the smallest class has nodes, each part that trains has two of it or more.
    split = StratifiedKFold(int(min(folds, counts[present].min())), shuffle=True, random_state=0)
    parts = [(labelled[train], labelled[test]) for train, test in split.split(labelled, labels[labelled])]
    parts = [(train, place[test][place[test] >= 0]) for train, test in parts]
    others = np.setdiff1d(np.arange(data.num_nodes), np.concatenate([test for _, test in parts]))
    parts = [(train, test) for train, test in [*parts, (labelled, others)] if len(test)]
    heads = [MixtureClassifier().fit(first[:, train], labels[train]) for train, _ in parts]
    found = predict_all(heads, stream, [nodes for _, nodes in parts])
    merged = {name: np.empty(data.num_nodes) for name in MEASURES}
    probability = np.empty((data.num_nodes, len(present)))
    for (_, nodes), part in zip(parts, found, strict=True):
        probability[nodes] = part.probability
        for name, measure in part.measures().items():
            merged[name][nodes] = measure
    return Prediction(
        _shown_labels(data, labels, place), heads[0].classes_, Uncertainty(probability, **merged),
        running.moments().astd.cpu().numpy(), getattr(data, "ids", None), names,
    )  # fmt: skip


def _places(data: "Data", teacher: "Data") -> Array:
    """Which node of `data` each node of `teacher` is, -1 where it is none."""
    if teacher is data:
        return np.arange(data.num_nodes)
    if "ids" not in data or "ids" not in teacher:
        return np.full(teacher.num_nodes, -1)
    number = {key: i for i, key in enumerate(data.ids.tolist())}
    return np.array([number.get(key, -1) for key in teacher.ids.tolist()])


def _shown_labels(data: "Data", labels: Array, place: Array) -> Array:
    shown = np.full(data.num_nodes, -1)
    shown[place[place >= 0]] = labels[place >= 0]
    return shown
