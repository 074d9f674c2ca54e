"""The library's novelty on the tasks of `bgcl.reproduce.unknown_nodes`.

The head is trained on the training nodes of a task. Validation nodes are the known nodes that calibrate. Without them,
a third of the training nodes do, which then do not train the head. Nothing is fitted on the nodes that are scored.
"""

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.downstream.evaluation import default_training_draws, head_for
from bgcl.downstream.label_spreading import LabelSpreading, fit_head
from bgcl.downstream.node_draws import NodeDraws
from bgcl.measures.uncertainty import Uncertainty, uncertainty
from bgcl.novelty.detector import Novelty
from bgcl.reproduce.unknown_nodes import Trial

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.downstream.classifier import MixtureClassifier
    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]
THIRD = 3


def strangeness(
    model: "BGCL", trial: Trial, *, samples: int = 10, predictions: bool = True, seed: int | None = None
) -> tuple[Array, Array]:  # fmt: skip
    """How strange the known and the unknown nodes of a task are; greater is stranger.

    Args:
        model: a model that was fitted to `trial.trained`.
        trial: the task.
        samples: how many embeddings to draw; the first ones train the head.
        predictions: whether a head with the labels of the training nodes helps; if not, no label is used.
        seed: seed of the draws. Default: the seed of the model.

    Returns:
        The strangeness of `trial.known` and of `trial.unknown`.

    >>> import bgcl
    >>> from bgcl.reproduce.unknown_nodes import trials
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> trial = trials(data, "normal", 1)[0]
    >>> known, unknown = strangeness(model, trial, predictions=False)
    >>> len(known) == len(trial.known), len(unknown) == len(trial.unknown)
    (True, True)
    """
    if not predictions:
        free = Novelty(model, seed=seed).fit(trial.trained)
        of = {id(graph): free.score(graph).strangeness for graph in (trial.known_graph, trial.unknown_graph)}
        return of[id(trial.known_graph)][trial.known], of[id(trial.unknown_graph)][trial.unknown]
    head = _Head(model, trial, samples, seed)
    novelty = Novelty(model, seed=seed).fit(
        trial.trained, head.predicted(trial.trained), known=head.known, labeled=head.train
    )
    of = {}
    for graph in (trial.known_graph, trial.unknown_graph):
        if id(graph) not in of:
            of[id(graph)] = novelty.score(graph, head.predicted(graph)).strangeness
    return of[id(trial.known_graph)][trial.known], of[id(trial.unknown_graph)][trial.unknown]


class _Head:
    """The default head, trained on the training nodes of a task, and its predictions for graphs."""

    def __init__(self, model: "BGCL", trial: Trial, samples: int, seed: int | None) -> None:
        train, known = trial.split.train, trial.split.validation
        if not len(known):
            train, known = np.sort(train[len(train) // THIRD :]), np.sort(train[: len(train) // THIRD])
        labels = trial.trained.y.numpy()
        classes, self.codes = np.unique(labels[train], return_inverse=True)
        self.train, self.known = train, known[np.isin(labels[known], classes)]
        self.model, self.samples, self.seed = model, samples, seed
        self.first = default_training_draws(samples, model.parts_)
        every = islice(model.draws(trial.trained, samples, seed=seed), self.first)
        draws = np.stack([draw.cpu().numpy()[train] for draw in every])
        self.spreads = len(model.parts_) > 1
        spreading = LabelSpreading.of(model, trial.trained) if self.spreads else None
        self.head: MixtureClassifier
        self.head, _ = fit_head(head_for(model.parts_)(), draws, self.codes, train, train, spreading)
        self._made: dict[int, Uncertainty] = {}

    def predicted(self, graph: "Data") -> Uncertainty:
        """Measures of uncertainty of all nodes of a graph."""
        if id(graph) not in self._made:
            draws = islice(self.model.draws(graph, self.samples, seed=self.seed), self.first, None)
            beside = None
            if self.spreads:
                beside = LabelSpreading.of(self.model, graph).logits(self.train, self.codes)[0]
            self._made[id(graph)] = uncertainty(
                self.head.predict_samples(NodeDraws(draw.cpu().numpy()[None], beside))[0] for draw in draws
            )
        return self._made[id(graph)]
