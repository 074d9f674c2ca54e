"""Floors for several labels per node: simple predictions of labels that a trained model has to beat."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from bgcl.baselines.floors import NO_TRAINING
from bgcl.baselines.propagated import PropagatedFeatures
from bgcl.baselines.votes import NeighborVote
from bgcl.data.pyg import check_graph
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import summary
from bgcl.downstream.label_set_heads import Job, LabelSetHeads
from bgcl.downstream.label_set_results import LabelSetResult, SetUncertainty
from bgcl.downstream.parts import BestPartClassifier
from bgcl.downstream.splits import Split, label_sets_of
from bgcl.measures.uncertainty import entropy

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_geometric.data import Data

Array = npt.NDArray[Any]

SCORES = ("micro_f1", "macro_f1", "average_precision", "ece")
TIE = 0.0005  # a difference of average precision that is printed as 0.000


@dataclass(frozen=True)
class LabelSetFloor:
    """The mean scores of a simple prediction, or of the model next to it, over the same splits."""

    name: str
    micro_f1: float
    macro_f1: float
    average_precision: float
    ece: float

    @classmethod
    def of(cls, name: str, results: Sequence[LabelSetResult]) -> "LabelSetFloor":
        """The mean scores of some results."""
        scores = summary([results])  # type: ignore[list-item]
        return cls(name, *(scores[score]["mean"] for score in SCORES))


def label_set_floors(data: "Data", chosen: Sequence[Split]) -> list[LabelSetFloor]:
    """The floors of a graph whose nodes may have several labels, on some splits.

    Args:
        data: a graph with labels `(N, L)`.
        chosen: the splits.

    Returns:
        The frequency of each label, the vote of neighbors, the attributes alone, and the attributes propagated along
        the edges. All of them see the same training nodes as a model's heads do, and judge each label on its own.

    >>> import bgcl, torch
    >>> data = bgcl.example_graph()
    >>> data.y = torch.stack([data.y == 0, data.y < 2], 1).long()
    >>> [floor.name for floor in label_set_floors(data, bgcl.splits(data, "half", count=1))][:2]
    ['frequency of each label', 'vote of neighbors']
    """
    data = check_graph(data)
    y, features = label_sets_of(data), PropagatedFeatures().fit(data)
    attributes, *_ = np.split(features, PropagatedFeatures.parts, axis=1)
    best = partial(BestPartClassifier, parts=PropagatedFeatures.parts)
    return [
        LabelSetFloor.of("frequency of each label", [_result(y, each, _frequency(y, each)) for each in chosen]),
        LabelSetFloor.of("vote of neighbors", [_result(y, each, _votes(data, y, each)) for each in chosen]),
        LabelSetFloor.of("attributes alone", _heads(MixtureClassifier, attributes, y, chosen)),
        LabelSetFloor.of(NO_TRAINING, _heads(best, features, y, chosen)),
    ]


def _result(y: Array, split: Split, probability: Array) -> LabelSetResult:
    p = probability[split.test]
    entropies = entropy(np.stack([p, 1 - p]), 0).sum(1)
    return LabelSetResult(split.test, y[split.test], SetUncertainty(p, entropies, entropies))


def _frequency(y: Array, split: Split) -> Array:
    """The share of the training nodes that have each label, for every node, `(N, L)`."""
    return np.tile((y[split.train].sum(0) + 1) / (len(split.train) + 2), (len(y), 1))


def _votes(data: "Data", y: Array, split: Split) -> Array:
    """For each label the vote of neighbors whether a node has it, `(N, L)`."""
    found, one = _frequency(y, split), copy.copy(data)
    for label in range(y.shape[1]):
        if {0, 1} <= set(y[:, label].tolist()):
            one.y = torch.from_numpy(y[:, label])
            found[:, label] = NeighborVote().fit(one, split)[0, :, 1]
    return found


def _heads(
    make: "Callable[[], MixtureClassifier]", columns: Array, y: Array, chosen: Sequence[Split]
) -> list[LabelSetResult]:
    heads = LabelSetHeads(make, columns[None], y, np.arange(len(y)), [Job(each.train, each.test) for each in chosen])
    found = heads.predict([columns])
    return [LabelSetResult(each.test, y[each.test], p) for each, p in zip(chosen, found, strict=True)]


def label_set_verdict(model: LabelSetFloor, found: Sequence[LabelSetFloor]) -> str:
    """Whether a model pays, in a sentence: by the average precision, which no threshold decides."""
    best = max(found, key=lambda floor: floor.average_precision)
    gain = model.average_precision - best.average_precision
    if gain < -TIE:
        return (
            f"The model does not pay: its average precision is {-gain:.3f} below that of '{best.name}', which needs no "
            "training. Train longer, or use the simpler prediction."
        )
    if gain < TIE:
        return f"The average precision of the model is that of the best of them ({best.name}), which needs no training."
    return f"The average precision of the model is {gain:.3f} above that of the best of them ({best.name})."
