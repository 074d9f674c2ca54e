"""Predictions for every node of a graph. No head predicts a node that it was trained on, unless the class is too small.

A class with fewer than three labeled nodes cannot be held out: if it is kept, the labels of its nodes predict them.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits
from torch import Tensor

from bgcl.arguments import check_model, whole
from bgcl.data.memory import check_fits, free_memory
from bgcl.downstream.blocks import Draw, classify, draws_of, refuse_whole_rows
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import default_training_draws, head_for
from bgcl.downstream.head_stack import StackedPrediction
from bgcl.downstream.known_labels import KnownLabels, gather_labels, warn_without_ids
from bgcl.downstream.label_spreading import LabelSpreading, fit_head
from bgcl.downstream.node_draws import same_shape
from bgcl.downstream.node_predictions import NodePredictions
from bgcl.downstream.small_classes import FEWEST, with_pairs
from bgcl.downstream.splits import Split
from bgcl.errors import BGCLError
from bgcl.measures.uncertainty import MEASURES, Uncertainty
from bgcl.model.posterior import RunningMoments
from bgcl.processes.team import Team
from bgcl.progress import counted, stage, with_progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.downstream.kept_results import KeptResults
    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]


def predict(
    model: "BGCL",
    data: "Data",
    *,
    samples: int = 100,
    training_draws: int | None = None,
    folds: int = 5,
    seed: int | None = None,
    labels_from: "Data | None" = None,
    progress: bool = False,
    kept: "KeptResults | None" = None,
    spread_labels: bool | None = None,
) -> NodePredictions:
    """Predict the class of every node, with measures of uncertainty.

    An unlabeled node is predicted by a head that was trained on all labeled nodes. A labeled node is predicted by a
    head that was trained on the other folds, so that its own label does not make it look certain. If the prediction
    differs from the label, the label may be wrong.

    Args:
        model: a fitted model.
        data: the graph to predict.
        samples: how many embeddings to draw.
        training_draws: how many of them train the heads. Default: 20, or 2 for embeddings in parts, and at most half
            of the samples.
        folds: the number of folds; fewer if a class has fewer labeled nodes. No fold holds out a class with fewer
            than three, whose nodes are then predicted with their own labels; see `bgcl.downstream.settle_classes` for
            other ways.
        seed: seed of the draws. Default: the seed of the model.
        labels_from: a graph with more labels, such as the training graph. A node that has a label in both graphs, by
            its id, has that of `data`. Classes are matched by their names.
        progress: show on a terminal how many draws were made.
        kept: what was kept in a run. Predictions that are there are not made again, and new ones are added.
        spread_labels: whether the heads also use the labels of nodes that are near in the graph, see
            `bgcl.downstream.LabelSpreading`. Default: if the embedding has several parts, and there is no
            `labels_from`.

    Returns:
        The predictions.

    Raises:
        BGCLError: there is only one class, or there are too few samples.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> found = bgcl.predict(model, data, samples=8, training_draws=4)
    >>> list(found.columns())[:4]
    ['node', 'label', 'predicted', 'probability']
    """
    check_model(model)
    samples = whole("The number of samples", samples)
    training_draws = default_training_draws(samples, model.parts_) if training_draws is None else training_draws
    if whole("'training_draws'", training_draws) < 1 or whole("'folds'", folds) < 2:
        raise BGCLError(f"Heads need one draw and two folds or more. Got {training_draws} and {folds} instead.")
    if samples <= training_draws:
        raise BGCLError(
            f"Of {samples} samples, {training_draws} train the heads: none is left to predict with. Draw more samples."
        )
    given = spread_labels is not None
    spread_labels = (labels_from is None and len(model.parts_) > 1) if spread_labels is None else spread_labels
    if (blocks := model.in_blocks(data)) is not None:
        refuse_whole_rows(labels_from, 1, spread_labels if given else None)
        draws_ = draws_of(model, blocks, samples, seed)
        return _in_blocks(draws_, data, model.parts_, training_draws, folds, progress=progress, team=model.team)
    prediction = Prediction(
        data, training_draws=training_draws, folds=folds, labels_from=labels_from, parts=model.parts_,
        spreading=partial(LabelSpreading.of, model, data) if spread_labels else None, team=model.team,
    )  # fmt: skip
    warn_without_ids(data, labels_from)
    found = None if kept is None else prediction.find(kept, samples, seed)
    if found is not None:
        return found
    if labels_from is not None:
        prediction.labeled_draws = model.draws(labels_from, training_draws, seed=seed)
    draws = with_progress(lambda: model.draws(data, samples, seed=seed), samples, "draws", show=progress)
    deque(prediction.watch(draws), maxlen=0)
    if kept is not None:
        prediction.keep(kept, samples, seed)
    return prediction.result()


def _in_blocks(
    draws: Sequence[Draw], data: "Data", parts: Sequence[int], training_draws: int, folds: int, *, progress: bool,
    team: Team,
) -> NodePredictions:  # fmt: skip
    """Predict the nodes of a packed graph, by linear heads and without ASTD."""
    known = gather_labels(data)
    folds_ = _fold_nodes(known.labels, known.node, data.num_nodes, folds)
    chosen = [Split(known.node[train], known.node[:0], nodes) for train, nodes in folds_]
    label = known.of_nodes(data.num_nodes)
    heads, found = classify(
        draws, sum(parts), label, chosen, training_draws=training_draws, parts=parts, progress=progress, team=team
    )
    merged = _merge(found, [split.test for split in chosen], data.num_nodes)
    held_out = _held_out(known, folds_, data.num_nodes)
    return NodePredictions(label, heads[0].classes_, merged, None, data.get("ids"), known.names, held_out)


class Prediction:
    """Predicts the class of every node while draws pass by, which may serve others too.

    Args:
        data: the graph to predict.
        training_draws: how many of the first draws train the heads. The others predict.
        folds: the number of folds; fewer if a class has fewer labeled nodes.
        labels_from: a graph with more labels.
        parts: widths of the parts of the embeddings, such as `model.parts_`; none: one part.
        spreading: a function that makes what spreads the labels of `data`, which the heads then use too.
        team: processes that have the same draws, and share the folds. Default: this one alone.

    Attributes:
        labeled_draws: embeddings of the nodes of `labels_from`, which then train the heads.
    """

    def __init__(
        self, data: "Data", *, training_draws: int, folds: int = 5, labels_from: "Data | None" = None,
        parts: Sequence[int] = (), spreading: Callable[[], LabelSpreading] | None = None, team: Team | None = None,
    ) -> None:  # fmt: skip
        self.data, self.training_draws, self.folds, self.parts = data, training_draws, folds, parts
        self.labels_from, self.spreading = labels_from, spreading
        if spreading is not None and labels_from is not None:
            raise BGCLError(
                "Only labels of the graph itself can be spread: leave out 'labels_from' or 'spread_labels'."
            )
        self.labeled_draws: Iterable[Tensor] | None = None
        self.known = gather_labels(data, labels_from)
        self.fold_nodes = _fold_nodes(self.known.labels, self.known.node, data.num_nodes, folds)
        self.team = team if team is not None and len(self.fold_nodes) >= team.size else Team()
        self.running = RunningMoments()
        self._stacked: StackedPrediction | None = None

    def watch(self, draws: Iterable[Tensor]) -> Iterator[Tensor]:
        """Yield the same draws, each `(N, d)`. The first ones train the heads, with which the others predict."""
        others = None if self.labeled_draws is None else iter(self.labeled_draws)
        first: list[Array] = []
        for draw in same_shape(draws, self.data.num_nodes):
            self.running.add(draw)
            array = draw.cpu().numpy()
            if self.running.count > self.training_draws:
                self._stacked = self._stacked or self._fitted(np.stack(first))
                self._stacked.add(array[None])
            else:
                self._check_fits(array)
                other = None if others is None else iter([next(others).cpu().numpy()])
                first.append(next(self.known.rows(iter([array]), other)))
            yield draw

    def _check_fits(self, draw: Array) -> None:
        labeled = len(self.known.labels)
        check_fits(
            3 * self.training_draws * labeled * draw.itemsize * draw.shape[1],
            f"{self.training_draws} draws of {labeled:,} labeled nodes, with which the heads are trained,",
            "Lower the number of samples, or the widths of the model.",
        )

    def _fitted(self, first: Array) -> StackedPrediction:
        own = self.team.share(self.fold_nodes)
        with stage(f"fitting {counted(len(own), 'head')}"):
            spreading = None if self.spreading is None else self.spreading()
            heads, beside = _fit_heads(head_for(self.parts), first, self.known, own, spreading)
        return StackedPrediction(heads, [nodes for _, nodes in own], beside)

    def result(self) -> NodePredictions:
        """The predictions, after all draws have passed by."""
        assert self._stacked is not None, "all draws train the heads: none predicts"
        nodes = [nodes for _, nodes in self.fold_nodes]
        found = self._stacked.result()
        if self.team.size > 1:
            found = [Uncertainty(**arrays) for arrays in self.team.arrays_of_all([vars(each) for each in found])]
        return self._named(
            self._stacked.stack.heads[0].classes_, _merge(found, nodes, self.data.num_nodes),
            self.running.moments().astd.cpu().numpy(),
        )  # fmt: skip

    def _named(self, classes: Array, uncertainty: Uncertainty, astd: Array) -> NodePredictions:
        return NodePredictions(
            label=self.known.of_nodes(self.data.num_nodes), classes=classes, uncertainty=uncertainty, astd=astd,
            ids=getattr(self.data, "ids", None), names=self.known.names,
            held_out=_held_out(self.known, self.fold_nodes, self.data.num_nodes),
        )  # fmt: skip

    def find(self, kept: "KeptResults", samples: int, seed: int | None) -> NodePredictions | None:
        """The predictions that were kept in a run; None if there are none."""
        found = kept.find("predictions", self._how(kept, samples, seed))
        if found is None:
            return None
        try:
            classes, astd = found.pop("classes"), found.pop("astd")
            return self._named(classes, Uncertainty(**found), astd)
        except (KeyError, TypeError):  # somebody else wrote it
            return None

    def keep(self, kept: "KeptResults", samples: int, seed: int | None) -> None:
        """Keep the predictions in a run, and the moments of the draws."""
        found = self.result()
        measured = {"probability": found.uncertainty.probability, **found.uncertainty.measures()}
        assert found.astd is not None
        arrays = {"classes": found.classes, "astd": found.astd, **measured}
        kept.keep("predictions", self._how(kept, samples, seed), arrays)
        kept.keep_moments(self.data, seed, self.running.moments())

    def _how(self, kept: "KeptResults", samples: int, seed: int | None) -> dict[str, Any]:
        """All that the predictions depend on, besides the model."""
        from bgcl.downstream.kept_results import digest

        labels_from = None if self.labels_from is None else digest(self.labels_from)
        return {
            "data": digest(self.data), "labels_from": labels_from, "samples": samples, "seed": kept.seed(seed),
            "training_draws": self.training_draws, "folds": self.folds, "spread_labels": self.spreading is not None,
        }  # fmt: skip


def _fit_heads(
    head: Callable[[], MixtureClassifier], draws: Array, known: KnownLabels, folds: Sequence[tuple[Array, Array]],
    spreading: LabelSpreading | None,
) -> tuple[list[MixtureClassifier], list[Array]]:  # fmt: skip
    """A head for each fold, and logits beside the draws of the nodes that it predicts.

    Each head is fitted by one thread, and as many at a time as fit into memory.
    """

    def fit(fold: tuple[Array, Array]) -> tuple[MixtureClassifier, Array]:
        train, predicted = fold
        return fit_head(head(), draws[:, train], known.labels[train], known.node[train], predicted, spreading)

    room = free_memory() // (3 * draws.nbytes)
    with threadpool_limits(1), ThreadPoolExecutor(max(min(room, os.cpu_count() or 1), 1)) as pool:
        heads, beside = zip(*pool.map(fit, folds), strict=True)
    return list(heads), list(beside)


def _fold_nodes(labels: Array, node: Array, num_nodes: int, folds: int) -> list[tuple[Array, Array]]:
    """For each head, the labels that train it, by their numbers, and the nodes of the graph that it predicts."""
    every = np.arange(len(labels))
    small = np.bincount(labels)[labels] < FEWEST  # the rest of such a class would be too few to learn from
    held, always = every[~small], every[small]
    parts = []
    if len(held):
        counts = np.bincount(labels[held])
        # With at most as many folds as the rarest class has nodes, each training part has at least two nodes of it.
        split = StratifiedKFold(int(min(folds, counts[counts > 0].min())), shuffle=True, random_state=0)
        parts = [(held[train], node[held[test]]) for train, test in split.split(held, labels[held])]
    parts = [(np.concatenate([train, always]), nodes[nodes >= 0]) for train, nodes in parts]
    others = np.setdiff1d(np.arange(num_nodes), np.concatenate([node[:0], *(nodes for _, nodes in parts)]))
    return [(with_pairs(train, labels), nodes) for train, nodes in [*parts, (every, others)] if len(nodes)]


def _held_out(known: KnownLabels, folds: Sequence[tuple[Array, Array]], num_nodes: int) -> Array:
    """Whether each node has a label that the head which predicts it has not seen, `(N,)`."""
    found = known.of_nodes(num_nodes) >= 0
    for train, nodes in folds:
        found[np.intersect1d(known.node[train], nodes)] = False
    return found


def first_fold(data: "Data", folds: int = 5) -> Split | None:
    """The first fold that `predict` holds out, as a split of the labeled nodes; None if nothing is held out."""
    known = gather_labels(data)
    train, nodes = _fold_nodes(known.labels, known.node, data.num_nodes, folds)[0]
    if not len(nodes) or len(train) >= len(known.labels):
        return None
    return Split(known.here[train], nodes[:0], nodes)


def _merge(found: Sequence[Uncertainty], nodes: Sequence[Array], num_nodes: int) -> Uncertainty:
    """The predictions of all heads as one, in the order of the nodes."""
    probability = np.empty((num_nodes, found[0].probability.shape[1]))
    measures = {name: np.empty(num_nodes) for name in MEASURES}
    for predicted, part in zip(nodes, found, strict=True):
        probability[predicted] = part.probability
        for name, measure in part.measures().items():
            measures[name][predicted] = measure
    return Uncertainty(probability, **measures)
