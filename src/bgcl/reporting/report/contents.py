"""What the page shows: for each node where it is, what it is and how sure the model is; and how the model was trained.

All draws are made once. As they pass, the heads learn and predict, and what else the page needs is kept of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bgcl import __version__
from bgcl.downstream.evaluation import SplitResult
from bgcl.downstream.prediction import Prediction, predict_nodes
from bgcl.downstream.splits import labels_of
from bgcl.errors import BGCLError
from bgcl.measures.disagreement import contrastive_log_likelihood, disagreement
from bgcl.measures.metrics import Reliability
from bgcl.measures.uncertainty import RECOMMENDED
from bgcl.model.posterior import RunningMoments
from bgcl.reporting.report.node_map import CLOUD, NodeMap, make_map

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

LIKELIEST = 3  # classes whose probabilities the page has, of each node
DISAGREEMENT_WORK = 5e8  # pairs of nodes times pairs of draws: about half a minute of one processor

# In the order of the menus: title, and what more of it means.
MEANINGS = {
    "least_confidence": ("Least confidence", "one minus the probability of the predicted class"),
    "predictive_entropy": ("Predictive entropy", "all that is uncertain about the label"),
    "mutual_information": ("Mutual information", "what the draws disagree about"),
    "expected_entropy": ("Expected entropy", "what each draw by itself is unsure about"),
    "margin": ("Margin", "one minus the lead of the likeliest class over the next"),
    "variation_ratio": ("Variation ratio", "the share of draws that vote for another class"),
    "astd": ("ASTD", "how far the embedding itself moves from draw to draw; needs no labels"),
    "disagreement": ("Disagreement", "how much pairs of draws disagree about who the node is; needs no labels"),
}


@dataclass(frozen=True)
class Contents:
    """What a page shows. Arrays have a row for each node; classes are positions in `classes`, -1 being none."""

    title: str
    facts: dict[str, str]
    ids: list[str] | None  # None: nodes go by their numbers
    classes: list[str]
    label: Array
    map: NodeMap
    measures: dict[str, Array]  # by the names of MEANINGS
    likeliest: Array | None  # (N, T) classes from the likeliest on; None where there are no predictions
    probability: Array | None  # (N, T) of them
    scores: dict[str, float]
    reliability: Reliability | None
    history: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)  # what is not on the page, and why

    @property
    def first_measure(self) -> str:
        """The measure that the page begins with."""
        return next(name for name in (RECOMMENDED, "astd") if name in self.measures)


class Observer:
    """Stands in for a model while its draws are made, and keeps their moments, the first few, and how pairs agree."""

    def __init__(self, model: "BGCL", progress: bool) -> None:
        self.model, self.progress = model, progress
        self.running = RunningMoments()
        self.kept: list[Array] = []
        self.agreement: list[Tensor] = []

    def draws(
        self, data: "Data", samples: int = 100, *, hard: bool = False, seed: int | None = None
    ) -> Iterator[Tensor]:
        stream = self.model.draws(data, samples, hard=hard, seed=seed)
        if self.progress:
            from bgcl.reporting.progress import counted

            stream = counted(stream, samples, "draws")
        pairs = min(samples // 2, int(DISAGREEMENT_WORK / data.num_nodes**2))
        pairs = pairs if pairs >= 2 else 0
        before: Tensor | None = None
        for i, draw in enumerate(stream):
            self.running.add(draw)
            if i < CLOUD:
                self.kept.append(draw.cpu().numpy())
            if i < 2 * pairs:
                with torch.no_grad():
                    projected = self.model.network_.head(draw)
                    if before is not None:
                        self.agreement.append(contrastive_log_likelihood(before, projected, self.model.settings.tau))
                before = projected if before is None else None
            yield draw


def gather(
    model: "BGCL", data: "Data", *, samples: int = 100, seed: int | None = None, tsne: bool | None = None,
    progress: bool = False,
) -> Contents:  # fmt: skip
    """Draw from the posterior, predict every node by a head that has not seen its label, and place nodes on a map."""
    if samples < 2:
        raise BGCLError(f"A report needs two samples or more: some train its heads, others predict. Got {samples}.")
    model.check_trained_on(data)
    observer = Observer(model, progress)
    missing = _why_no_predictions(data)
    prediction: Prediction | None = None
    if missing is None:
        prediction = predict_nodes(cast("BGCL", observer), data, samples=samples, seed=seed)
    else:
        for _ in observer.draws(data, samples, seed=seed):
            pass
    moments = observer.running.moments()
    measures: dict[str, Array] = {}
    if prediction is not None:
        measures |= {name: values for name, values in prediction.uncertainty.measures().items()}
    measures["astd"] = moments.astd.cpu().numpy().astype(np.float64)
    if observer.agreement:
        measures["disagreement"] = disagreement(iter(observer.agreement))
    label, present = _labels(data)
    likeliest, probability, scores, bins = _predictions(prediction, label)
    notes = [] if missing is None else [f"There are no predictions: {missing}"]
    if not observer.agreement:
        notes.append("The graph is too large for the disagreement of draws, which compares every pair of nodes.")
    placed = make_map(
        moments.mean.cpu().numpy(), np.stack(observer.kept), seed=model.settings.seed if seed is None else seed,
        tsne=tsne,
    )  # fmt: skip
    return Contents(
        title=PurePath(model.graph_.name).stem or "graph",
        facts=_facts(model, label, len(present), samples),
        ids=_ids(data),
        classes=_class_names(data, present),
        label=label,
        map=placed,
        measures={name: measures[name] for name in MEANINGS if name in measures},
        likeliest=likeliest,
        probability=probability,
        scores=scores,
        reliability=bins,
        history=model.history_,
        notes=notes,
    )


def _why_no_predictions(data: "Data") -> str | None:
    """What stops a head from being trained, in a sentence; None where nothing does."""
    try:
        labels = labels_of(data)
    except BGCLError as error:
        return str(error)
    present, counts = np.unique(labels[labels >= 0], return_counts=True)
    if len(present) < 2:
        return "All labelled nodes are of one class."
    if counts.min() < 3:
        few = int(counts.argmin())
        name = _class_names(data, present)[few]
        return f"Class {name} has {counts[few]} labelled nodes, and predictions need three or more of each class."
    return None


def _labels(data: "Data") -> tuple[Array, Array]:
    """The label of each node as a position in the classes that are present, -1 for none; and those classes."""
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
    prediction: Prediction | None, label: Array
) -> tuple[Array | None, Array | None, dict[str, float], Reliability | None]:
    """The likeliest classes of each node with their probabilities, and the scores over the labelled ones."""
    if prediction is None:
        return None, None, {}, None
    whole = prediction.uncertainty.probability
    # Equals stay in order, as in argmax, so that the first of them is the prediction.
    order = np.argsort(-whole, axis=1, kind="stable")[:, :LIKELIEST]
    labelled = np.flatnonzero(label >= 0)
    result = SplitResult(
        labelled, prediction.classes, label[labelled], prediction.uncertainty.of(labelled), float("nan")
    )
    return order, np.take_along_axis(whole, order, 1), result.scores(), result.reliability()


def _facts(model: "BGCL", label: Array, classes: int, samples: int) -> dict[str, str]:
    facts, graph = {}, model.graph_
    facts["Nodes"], facts["Edges"], facts["Attributes"] = (
        f"{count:,}" for count in (graph.nodes, graph.edges, graph.attributes)
    )
    facts["Labelled"] = f"{int((label >= 0).sum()):,}" + (f", {classes} classes" if classes else "")
    facts["Epochs"] = f"{len(model.history_):,}"
    facts["Draws"] = f"{samples:,}"
    facts["Seed"] = str(model.settings.seed)
    facts["bgcl"] = __version__
    return facts
