"""Detection of unknown nodes: the AUROC of each score of each method, on the tasks of `unknown_nodes`.

A network that is trained on all classes serves the shifts of attributes and of structure, on the same splits. If
classes are left out, it is another network. If test nodes differ by their place in the graph, it is another one too.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from bgcl.baselines.supervised import derived_seed
from bgcl.downstream.property_splits import PROPERTIES, property_splits
from bgcl.downstream.splits import Split, labels_of
from bgcl.reproduce.detectors import Judge, Judgment, known_scores
from bgcl.reproduce.unknown_nodes import Trial, trials

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]
Found = dict[str, Any]
Fit = Callable[["Data", Split, int], Judge]

LEFT_OUT, ALL_CLASSES = "left-out classes", "all classes"
TASKS = {LEFT_OUT: ("left-out",), ALL_CLASSES: ("bernoulli", "normal", "structure")} | {
    name: (name,) for name in PROPERTIES
}


def detect(fit: Fit, data: "Data", task: str, count: int, *, seed: int = 0) -> Found:
    """Fit a method on each split of a task, and let it find the unknown nodes.

    Args:
        fit: a function of a graph, a split and a seed, which returns a function that judges the nodes of a graph.
        data: a graph with labels.
        task: a name from `TASKS`.
        count: number of splits.
        seed: training seed. Each split has a seed of its own.

    Returns:
        A dictionary: "detection", for each variant and shift the AUROC of each score in each split; "known", for each
        variant the scores of its predictions for known test nodes in each split.
    """
    by_shift = {shift: _trials(data, shift, count) for shift in TASKS[task]}
    detection: Found = {}
    known: Found = {}
    for number, same_split in enumerate(zip(*by_shift.values(), strict=True)):
        first = same_split[0]
        judge = fit(first.trained, first.split, derived_seed(seed, number))
        usual = judge(first.trained)
        for variant, scores in known_scores(usual, first.split, first.split.test, labels_of(first.trained)):
            for name, value in scores.items():
                known.setdefault(variant, {}).setdefault(name, []).append(_rounded(value))
        if task in PROPERTIES:
            for variant, scores in known_scores(usual, first.split, first.unknown, labels_of(data)):
                known[variant].setdefault("accuracy of unknown", []).append(_rounded(scores["accuracy"]))
        for trial in same_split:
            for variant, name, value in _areas(trial, judge, usual):
                place = detection.setdefault(variant, {}).setdefault(trial.shift, {})
                place.setdefault(name, []).append(_rounded(value))
    return {"detection": detection, "known": known}


def _trials(data: "Data", shift: str, count: int) -> list[Trial]:
    if shift not in PROPERTIES:
        return trials(data, shift, count)
    return [
        Trial(shift, data, one.split, data, data, one.split.test, one.unknown)
        for one in property_splits(data, shift, count)
    ]


def _areas(trial: Trial, judge: Judge, usual: dict[str, Judgment]) -> Iterable[tuple[str, str, float]]:
    """Variant, score and AUROC of one task."""
    of_known = usual if trial.known_graph is trial.trained else judge(trial.known_graph)
    same = trial.unknown_graph is trial.known_graph
    of_unknown = of_known if same else judge(trial.unknown_graph)
    for variant, judgment in of_known.items():
        for name, score in judgment.scores.items():
            unknown = of_unknown[variant].scores[name][trial.unknown]
            yield variant, name, separation(score[trial.known], unknown)


def separation(known: Array, unknown: Array) -> float:
    """The probability that an unknown node has the greater score; a half of the ties count."""
    which = np.concatenate([np.zeros(len(known)), np.ones(len(unknown))])
    return float(roc_auc_score(which, np.concatenate([known, unknown])))


def _rounded(value: float) -> float:
    return round(float(value), 5)
