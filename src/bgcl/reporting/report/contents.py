"""What the page shows: where each node is, its class, how sure the model is, and how the model was trained.

All draws are made once. While they pass by, the classifiers train and predict, and `DrawSummary` collects the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl import __version__
from bgcl.arguments import check_model, whole
from bgcl.downstream.evaluation import SplitResult
from bgcl.downstream.node_predictions import NodePredictions
from bgcl.downstream.numbers import predict_numbers
from bgcl.downstream.splits import has_numbers, labels_of
from bgcl.errors import BGCLError
from bgcl.measures.metrics import Reliability
from bgcl.measures.uncertainty import RECOMMENDED
from bgcl.model.objectives.infonce import MOST
from bgcl.model.training import Record, how_long
from bgcl.progress import status
from bgcl.reporting.report.draw_summary import DrawSummary
from bgcl.reporting.report.figures import Figures, class_figures
from bgcl.reporting.report.node_map import NodeMap, make_map
from bgcl.reporting.report.trust import SetLevels, UnknownNodes, cost_figures, set_levels, unknown_nodes

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.downstream.kept_results import KeptResults
    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]
DISAGREEMENT_WORK = 5e8  # pairs of nodes times pairs of draws: about half a minute on one processor

LIKELIEST = 3  # number of classes per node whose probabilities are on the page

# Title and explanation of each measure, in the order of the menus.
MEANINGS = {
    "least_confidence": ("Least confidence", "one minus the probability of the predicted class"),
    "predictive_entropy": ("Predictive entropy", "total uncertainty about the class"),
    "mutual_information": ("Mutual information", "the part of the uncertainty on which the draws disagree"),
    "expected_entropy": ("Expected entropy", "average uncertainty of a single draw about the class"),
    "margin": ("Margin", "one minus the difference between the two highest probabilities"),
    "variation_ratio": ("Variation ratio", "share of draws that do not predict the most frequent class"),
    "variance": ("Variance", "of the predicted number"),
    "epistemic": ("Epistemic part", "the part of the variance on which the draws disagree"),
    "strangeness": ("Strangeness", "the share of known nodes that are less strange, by attributes, edges and labels"),
    "astd": ("ASTD", "how much the embedding varies from draw to draw; needs no labels"),
    "disagreement": ("Disagreement", "how much pairs of draws disagree about which node this is; needs no labels"),
}


@dataclass(frozen=True)
class Contents:
    """What a page shows. Arrays have a row for each node. A class is a position in `classes`, -1 for none."""

    title: str
    facts: dict[str, str]
    ids: list[str] | None  # None: nodes are identified by their numbers
    classes: list[str]
    label: Array  # (N,)
    map: NodeMap
    measures: dict[str, Array]  # (N,) for each name in MEANINGS
    likeliest: Array | None  # (N, T), the T most probable classes; None if there are no predictions
    probability: Array | None  # (N, T), their probabilities
    scores: dict[str, float]
    reliability: Reliability | None
    history: list[Record]
    figures: list[Figures] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what is missing from the page, and why
    relations: tuple[str, ...] = ()  # names of the relations of the graph, if it has some
    unknown: UnknownNodes | None = None
    sets: SetLevels | None = None

    @property
    def first_measure(self) -> str:
        """The measure that the page shows first."""
        return next(name for name in (RECOMMENDED, "variance", "astd") if name in self.measures)


def gather(
    model: "BGCL", data: "Data", *, samples: int = 100, seed: int | None = None, tsne: bool | None = None,
    kept: "KeptResults | None" = None, progress: bool = False,
    compare: Callable[[NodePredictions], Figures | None] | None = None,
) -> Contents:  # fmt: skip
    """Draw embeddings, predict each node with a classifier that has not seen its label, and place nodes on a map.

    Args:
        model: a fitted model.
        data: the graph that it was trained on.
        samples: number of draws, 2 or more.
        seed: seed of the draws and the map; None: the model's.
        tsne: place nodes with t-SNE, not with PCA; None: if openTSNE is installed.
        kept: what was kept in the run, and is not made again.
        progress: show on a terminal how many draws were made.
        compare: a function that makes a table which compares the predictions with others.
    """
    check_model(model)
    if whole("The number of samples", samples) < 2:
        raise BGCLError(
            f"A report needs two samples or more, because some train its classifiers and others predict. Got {samples} "
            "instead."
        )
    model.check_trained_on(data)
    numbers, missing = None, _why_no_predictions(data)
    if has_numbers(data):
        try:
            numbers = predict_numbers(model, data, samples=samples, seed=seed)
        except BGCLError as error:  # too few numbers
            missing = str(error)
    summary = DrawSummary.of(model, data, samples, seed=seed, predict=missing is None, kept=kept, progress=progress)
    moments, predictions = summary.moments, summary.predictions
    pairs = min(samples // 2, int(DISAGREEMENT_WORK / (data.num_nodes * min(data.num_nodes, MOST))))
    disagreement = model.disagreement(data, 2 * pairs, seed=seed, progress=progress) if pairs >= 2 else None
    measures: dict[str, Array] = {} if predictions is None else dict(predictions.uncertainty.measures())
    measures["astd"] = moments.astd.cpu().numpy().astype(np.float64)
    notes = [] if missing is None else [f"There are no predictions: {missing}"]
    if numbers is not None:
        measures |= {"variance": numbers.variance, "epistemic": numbers.epistemic}
        found = numbers.scores()
        notes = [
            f"Labels are numbers: {found['coverage']:.1%} of them are in their 90 % interval, R2 {found['r2']:.3f}, "
            f"RMSE {found['rmse']:.4g}. bgcl predict writes the number and the interval of every node."
        ]
    if disagreement is None:
        notes.append(f"The graph is too large for the disagreement of draws, which compares each node with {MOST:,}.")
    else:
        measures["disagreement"] = disagreement
    with status("Comparing nodes with known ones", show=progress):
        measures["strangeness"], unknown = unknown_nodes(model, data, predictions, seed)
    label, present = _labels(data)
    likeliest, probability, scores, bins = _predictions(predictions, label)
    classes = _class_names(data, present)
    figures = [] if likeliest is None else class_figures(label, likeliest[:, 0], classes)
    cost = None if predictions is None else cost_figures(predictions)
    figures += [] if cost is None else [cost]
    beside = None if predictions is None or compare is None else compare(predictions)
    figures += [] if beside is None else [beside]
    map_seed = model.settings_.seed if seed is None else seed
    with status("Placing the nodes on the map", show=progress):
        node_map = make_map(moments.mean.cpu().numpy(), summary.first, seed=map_seed, tsne=tsne)
    return Contents(
        title=PurePath(model.graph_.name).stem or "graph",
        facts=_facts(model, _labeled(data, label), len(present), samples),
        ids=_ids(data),
        classes=classes,
        label=label,
        map=node_map,
        measures={name: measures[name] for name in MEANINGS if name in measures},
        likeliest=likeliest,
        probability=probability,
        scores=scores,
        reliability=bins,
        history=model.history_,
        figures=figures,
        notes=notes,
        relations=model.graph_.relations,
        unknown=unknown,
        sets=None if predictions is None else set_levels(predictions),
    )


def _why_no_predictions(data: "Data") -> str | None:
    """Why no classifier can be trained, in a sentence; None if one can."""
    try:
        labels = labels_of(data)
    except BGCLError as error:
        return str(error)
    return "All labeled nodes are of one class." if len(np.unique(labels[labels >= 0])) < 2 else None


def _labels(data: "Data") -> tuple[Array, Array]:
    """The label of each node as a position in the classes that are present, -1 for none; and these classes."""
    try:
        labels = labels_of(data)
    except BGCLError:
        return np.full(data.num_nodes, -1), np.empty(0, dtype=np.int64)
    present = np.unique(labels[labels >= 0])
    return np.where(labels >= 0, np.searchsorted(present, labels), -1), present


def _class_names(data: "Data", present: Array) -> list[str]:
    names = data.classes if "classes" in data and data.classes is not None else None
    return [str(number) if names is None else str(names[int(number)]) for number in present]


def _ids(data: "Data") -> list[str] | None:
    if "ids" not in data or data.ids is None:
        return None
    return [str(name) for name in (data.ids.tolist() if hasattr(data.ids, "tolist") else data.ids)]


def _predictions(
    predictions: NodePredictions | None, label: Array
) -> tuple[Array | None, Array | None, dict[str, float], Reliability | None]:
    """The most probable classes of each node with their probabilities, and the scores over the labeled nodes."""
    if predictions is None:
        return None, None, {}, None
    found = predictions.uncertainty
    # A stable sort breaks ties as argmax does, so that the first class is the predicted one.
    order = np.argsort(-found.probability, axis=1, kind="stable")[:, :LIKELIEST]
    labeled = np.flatnonzero(label >= 0)
    result = SplitResult(labeled, predictions.classes, label[labeled], found.of(labeled), float("nan"))
    return order, np.take_along_axis(found.probability, order, 1), result.scores(), result.reliability()


def _labeled(data: "Data", label: Array) -> int:
    """How many nodes have a label, a class or a number."""
    return int((~data.y.isnan()).sum()) if has_numbers(data) else int((label >= 0).sum())


def _facts(model: "BGCL", labeled: int, classes: int, samples: int) -> dict[str, str]:
    facts, graph = {}, model.graph_
    facts["Nodes"], facts["Edges"], facts["Attributes"] = (
        f"{count:,}" for count in (graph.nodes, graph.edges, graph.num_attributes)
    )
    facts["Labeled"] = f"{labeled:,}" + (f", {classes} classes" if classes else "")
    facts["Epochs"] = how_long(model.history_, model.settings_)
    facts["Draws"] = f"{samples:,}"
    facts["Seed"] = str(model.settings_.seed)
    facts["bgcl"] = __version__
    return facts
