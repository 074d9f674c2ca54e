"""Floors: simple predictions on a graph that a trained model has to beat."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bgcl.baselines.propagated import PropagatedFeatures
from bgcl.baselines.scoring import evaluate_classifier
from bgcl.baselines.votes import MajorityClass, NeighborVote
from bgcl.data.pyg import check_graph
from bgcl.downstream.evaluation import SplitResult, evaluate_draws, summary
from bgcl.downstream.parts import BestPartClassifier
from bgcl.downstream.splits import Split, labels_of

if TYPE_CHECKING:
    from torch_geometric.data import Data

SCORES = ("accuracy", "ece", "auroc:least_confidence")
NO_TRAINING = "propagated attributes, no training"
NAMES = ("most frequent class", "vote of neighbors", "attributes alone", NO_TRAINING)
MODEL = "this model"
TIE = 0.05  # a difference of accuracy in points that is printed as 0.0
LEVEL = 0.002  # a difference of ECE or AUROC that is not worth a word


@dataclass(frozen=True)
class Floor:
    """The mean scores of a simple prediction, or of the model next to it, over the same splits."""

    name: str
    accuracy: float
    ece: float
    auroc: float  # of errors, by the least confidence

    @classmethod
    def of(cls, name: str, results: Sequence[SplitResult]) -> "Floor":
        """The mean scores of some results."""
        scores = summary([results])
        return cls(name, *(scores[score]["mean"] for score in SCORES))


def floors(data: "Data", chosen: Sequence[Split]) -> list[Floor]:
    """The floors of a graph, on some splits.

    Args:
        data: a graph with labels.
        chosen: the splits.

    Returns:
        The most frequent class, the vote of neighbors, the attributes alone, and the attributes propagated along the
        edges. All of them see the same training nodes as a model's head does.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> [floor.name for floor in floors(data, bgcl.splits(data, "bgrl", count=2))][:2]
    ['most frequent class', 'vote of neighbors']
    """
    data = check_graph(data)
    labels, features = labels_of(data), PropagatedFeatures().fit(data)
    attributes, *_ = np.split(features, PropagatedFeatures.parts, axis=1)
    best = partial(BestPartClassifier, parts=PropagatedFeatures.parts)
    return [
        Floor.of(NAMES[0], evaluate_classifier(MajorityClass, data, chosen)),
        Floor.of(NAMES[1], evaluate_classifier(NeighborVote, data, chosen)),
        Floor.of(NAMES[2], evaluate_draws([attributes], labels, chosen, training_draws=1)),
        Floor.of(NAMES[3], evaluate_draws([features], labels, chosen, training_draws=1, head=best)),
    ]


def verdict(model: Floor, found: Sequence[Floor]) -> str:
    """Whether a model pays, in a sentence or two."""
    best = max(found, key=lambda floor: floor.accuracy)
    if model.accuracy < best.accuracy:
        loss = 100 * (best.accuracy - model.accuracy)
        return (
            f"The model does not pay: it is {loss:.1f} points below '{best.name}', which needs no training. Train "
            "longer, or use the simpler prediction."
        )
    gain = 100 * (model.accuracy - best.accuracy)
    sentence = f"The model is {gain:.1f} points above the best of them ({best.name})."
    if gain < TIE:
        sentence = f"The model is as accurate as the best of them ({best.name}), which needs no training."
    worse = [
        f"{name} ({own:.3f} against {other:.3f})"
        for name, own, other, loss in (
            ("ECE", model.ece, best.ece, model.ece - best.ece),
            ("AUROC of errors", model.auroc, best.auroc, best.auroc - model.auroc),
        )
        if loss > LEVEL
    ]
    return sentence + (f" But its {' and its '.join(worse)} is worse." if worse else "")
