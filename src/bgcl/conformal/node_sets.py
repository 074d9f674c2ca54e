"""The set of each node of a graph, from predictions in which labeled nodes were held out.

`bgcl.predict` predicts a labeled node by a head that has not seen its label, and the others by a head that has seen all
labels. So labeled nodes calibrate without a head of their own (cross-conformal prediction, Vovk, 2015). The head of the
other nodes has learned from more labels than those that calibrate, so their sets hold their level, and may hold a
little more. `bgcl.ConformalClassifier` makes no such approximation, but needs labeled nodes that train no head.

Scores are not diffused here: the head of an unlabeled node has seen the labels of the calibration nodes near to it, and
its scores would give these labels away.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.arguments import flag
from bgcl.conformal.class_scores import check_probabilities, check_score, class_scores
from bgcl.conformal.thresholds import sets_of, thresholds
from bgcl.downstream.node_predictions import NodePredictions, class_names
from bgcl.errors import BGCLError
from bgcl.measures.levels import check_level
from bgcl.measures.prediction_sets import SetQuality

Array = npt.NDArray[Any]
BETWEEN = "|"  # of the classes of a set as text


@dataclass(frozen=True)
class NodeSets:
    """The sets of all nodes.

    Attributes:
        sets: whether each class is in the set of each node, `(N, C)`.
        classes: the names of the classes, `(C,)`.
        level: the share of nodes whose set has the true class.
        thresholds: the greatest score of each class that is in a set, `(C,)`.
        n_calibration: how many nodes calibrate.
    """

    sets: Array
    classes: Array
    level: float
    thresholds: Array
    n_calibration: int

    @property
    def size(self) -> Array:
        """The number of classes in each set, `(N,)`."""
        return np.asarray(self.sets.sum(1))

    def columns(self) -> dict[str, Array]:
        """The sets as text, with `|` between the classes, and their sizes."""
        names = [str(name).replace("\\", "\\\\").replace(BETWEEN, "\\" + BETWEEN) for name in self.classes]
        texts = np.empty(len(self.sets), dtype=object)
        texts[:] = [BETWEEN.join(name for name, is_in in zip(names, row, strict=True) if is_in) for row in self.sets]
        return {"set": texts, "set_size": self.size}

    def quality(self, found: NodePredictions) -> SetQuality:
        """Coverage and size over the labeled nodes that were held out."""
        nodes = found.calibrates
        return SetQuality.of(self.sets[nodes], np.searchsorted(found.classes, found.label[nodes]))


def node_sets(
    found: NodePredictions, level: float = 0.9, *, score: str = "lac", by_class: bool = False,
    calibration: NodePredictions | None = None,
) -> NodeSets:  # fmt: skip
    """The set of each node of a graph.

    Args:
        found: predictions for the graph, from `bgcl.predict`.
        level: the share of nodes whose set has the true class, if nodes with a label and without are exchangeable.
        score: "lac" or "aps", see `bgcl.conformal.class_scores`.
        by_class: whether the level holds in each class, and not only over all nodes.
        calibration: predictions for another graph, whose labeled nodes calibrate. Default: those of `found`.

    Returns:
        The sets.

    Raises:
        BGCLError: an argument is not valid, or there are too few labeled nodes.

    >>> import bgcl
    >>> from bgcl.conformal import node_sets
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> sets = node_sets(bgcl.predict(model, data, samples=8), level=0.9)
    >>> list(sets.columns()), sets.n_calibration
    (['set', 'set_size'], 240)
    """
    check_level(level)
    flag("by_class", by_class)
    if check_score(score) == "aps-randomized":
        raise BGCLError("Sets of all nodes have no random scores: use the score 'lac' or 'aps'.")
    source = found if calibration is None else calibration
    nodes, random = source.calibrates, np.random.default_rng(0)  # not used: no score is random
    for each in (found, source):
        check_probabilities(each.uncertainty.probability)
    names = class_names(found.classes, found.names)
    own_names = class_names(source.classes, source.names)
    limits = thresholds(
        class_scores(source.uncertainty.probability[nodes], score, random),
        np.searchsorted(source.classes, source.label[nodes]), float(level), by_class=by_class, names=own_names.tolist(),
    )  # fmt: skip
    if source is not found:
        limits = _by_name(limits, own_names, names) if by_class else np.full(len(names), limits[0])
    scores = class_scores(found.uncertainty.probability, score, random)
    return NodeSets(sets_of(scores, limits), names, float(level), limits, len(nodes))


def _by_name(limits: Array, own: Array, names: Array) -> Array:
    """The thresholds of classes in another order."""
    place = {str(name): number for number, name in enumerate(own)}
    missing = [str(name) for name in names if str(name) not in place]
    if missing:
        raise BGCLError(
            f"No calibration node has the class {missing[0]}, so a level in each class does not exist. Label some, or "
            "leave out by_class."
        )
    return np.asarray(limits[[place[str(name)] for name in names]])
