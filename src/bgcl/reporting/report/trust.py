"""What the page says about trust: unknown nodes, sets of classes by level, and what a threshold costs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.conformal.abstention import CERTAINTY, Abstention, fewest_for
from bgcl.conformal.node_sets import node_sets
from bgcl.downstream.node_predictions import NodePredictions
from bgcl.measures.levels import fewest
from bgcl.novelty.detector import Novelty
from bgcl.reporting.report.figures import Figures

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

LISTED, NEAR = 100, 3  # strangest nodes on the page, and known nodes near to each
LEVELS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.98, 0.99)
RISKS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
FIRST = 0.9  # the level that the page shows first

# Why a node is strange, by the score that says so.
REASONS = {
    "residual": "its attributes do not occur together elsewhere",
    "spread": "it has attributes that few nodes have",
    "count": "it has unusually few or many attributes",
    "encoded": "the encoder has seen nothing like it",
    "edges by encoder": "it does not fit its neighbors",
    "edges by encoder propagated": "here, nodes do not fit their neighbors",
    "edges by position propagated": "here, edges lead to far parts of the graph",
    "predictive_entropy propagated": "here, classes are unclear",
    "nearest labeled propagated": "here, nothing is like a labeled node",
}


@dataclass(frozen=True)
class UnknownNodes:
    """The strangest nodes, the strangest first.

    Attributes:
        nodes: their numbers, `(K,)`.
        novelty: the share of known nodes that are at least as strange, `(K,)`.
        reasons: why they are strange.
        nearest: the known nodes with the most similar embeddings, without the node itself, `(K, NEAR)`.
    """

    nodes: Array
    novelty: Array
    reasons: list[str]
    nearest: Array


@dataclass(frozen=True)
class SetLevels:
    """The sets of all nodes at some levels.

    Attributes:
        levels: the levels, `(L,)`.
        size: the number of classes in the set of each node, `(L, N)`.
        needed: the probability that a class needs to be in a set, `(L,)`.
        calibration: how many labeled nodes calibrate.
    """

    levels: Array
    size: Array
    needed: Array
    calibration: int


def unknown_nodes(
    model: "BGCL", data: "Data", predictions: NodePredictions | None, seed: int | None
) -> tuple[Array, UnknownNodes]:
    """How strange every node is, between 0 and 1, and the strangest nodes.

    Nearest nodes are labeled ones, if the labels are classes, and any nodes otherwise.
    """
    predicted = None if predictions is None or not len(predictions.calibrates) else predictions
    found = Novelty(model, seed=seed).fit(data, predicted).score(data, predicted)
    chosen = np.argsort(-found.strangeness, kind="stable")[:LISTED]
    known = np.arange(data.num_nodes) if predicted is None else np.flatnonzero(predicted.label >= 0)
    reasons = [REASONS.get(name, name) for name in found.reason[chosen]]
    nearest = most_similar(model.embed(data).numpy(), chosen, known)
    return 1 - found.novelty, UnknownNodes(chosen, found.novelty[chosen], reasons, nearest)


def most_similar(embedding: Array, nodes: Array, known: Array, most: int = NEAR) -> Array:
    """The known nodes with the greatest cosine to each node, without the node itself, `(K, most)`; -1 for none.

    >>> most_similar(np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), np.array([0]), np.arange(3), most=1).tolist()
    [[1]]
    """
    unit = embedding / np.maximum(np.linalg.norm(embedding, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    cosine = unit[nodes] @ unit[known].T
    cosine[nodes[:, None] == known[None]] = -np.inf
    found = np.full((len(nodes), most), -1)
    order = np.argsort(-cosine, axis=1, kind="stable")[:, :most]
    is_there = np.take_along_axis(cosine, order, 1) > -np.inf
    found[:, : order.shape[1]] = np.where(is_there, known[order], -1)
    return found


def set_levels(predictions: NodePredictions) -> SetLevels | None:
    """The sets at all levels for which there are enough labeled nodes; None if there is no such level."""
    count = len(predictions.calibrates)
    levels = [level for level in LEVELS if fewest(level) <= count]
    if not levels:
        return None
    found = [node_sets(predictions, level) for level in levels]
    return SetLevels(
        np.array(levels), np.stack([sets.size for sets in found]), np.array([1 - s.thresholds[0] for s in found]), count
    )


def cost_figures(predictions: NodePredictions) -> Figures | None:
    """What a risk costs: the share of the nodes that still gets an answer. None if there are too few labels."""
    nodes = predictions.calibrates
    doubt, label = predictions.uncertainty.least_confidence, predictions.label
    wrong = (predictions.predicted != label)[nodes]
    rows = []
    for risk in (risk for risk in RISKS if fewest_for(risk) <= len(nodes)):
        found = Abstention.at_risk(doubt[nodes], wrong, risk)
        answers = int((~found.abstains(doubt)).sum())
        rows.append([
            f"{100 * risk:g} %", f"{100 * answers / len(doubt):.1f} %", f"{answers:,}",
            f"{found.threshold:.3g}" if answers else "-", f"{100 * found.wrong:.1f} %" if answers else "-",
        ])  # fmt: skip
    if not rows:
        return None
    return Figures(
        "What a threshold costs", ["Wrong answers allowed", "Answered", "Nodes", "Least confidence up to", "Wrong"],
        rows,
        "Only nodes up to a threshold of least confidence get an answer. The threshold is the greatest at which, with "
        f"{100 * CERTAINTY:.0f} % certainty, no more answers are wrong than allowed, by {len(nodes):,} labeled nodes "
        "whose labels were held out. It holds for nodes that are like these. bgcl predict --abstain RISK writes the "
        "answers.",
    )  # fmt: skip
