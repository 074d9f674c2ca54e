"""Several labels per node: evaluate a model over splits, and predict the labels of every node."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold
from torch import Tensor

from bgcl.arguments import check_model, whole
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import default_training_draws
from bgcl.downstream.known_labels import KnownLabels, match_nodes, warn_without_ids
from bgcl.downstream.label_set_heads import Job, LabelSetHeads
from bgcl.downstream.label_set_results import LabelSetResult, PredictedLabelSets, SetUncertainty
from bgcl.downstream.label_spreading import LabelSpreading
from bgcl.downstream.splits import label_sets_of, splits
from bgcl.errors import BGCLError
from bgcl.model.posterior import RunningMoments
from bgcl.progress import with_progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.downstream.kept_results import KeptResults
    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

FOLDS = 5
SPLITS = 5  # of an evaluation, if the user does not say how many
LEAST = 10  # labeled nodes that predictions need


def evaluate_label_sets(
    model: "BGCL", data: "Data", protocol: str = "grace", count: int | None = None, *, samples: int = 100,
    seed: int | None = None, progress: bool = False, spread_labels: bool | None = None,
) -> list[LabelSetResult]:  # fmt: skip
    """Evaluate a model on nodes that may have several labels.

    Args:
        model: a fitted model.
        data: a graph whose labels `data.y` are `(N, L)`, see `bgcl.downstream.predict_label_sets`.
        protocol: the name of a protocol, see `bgcl.splits`.
        count: the number of splits. Default: 5, or fewer if the protocol has fewer.
        samples: how many embeddings to draw. Some train the heads, and the others predict.
        seed: seed of the draws. Default: the seed of the model.
        progress: show a progress bar.
        spread_labels: see `bgcl.downstream.predict_label_sets`.

    Returns:
        A result for each split. `bgcl.downstream.summary` averages them.

    >>> import bgcl, torch
    >>> data = bgcl.example_graph()
    >>> data.y = torch.stack([data.y == 0, data.y < 2], 1).long()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> sorted(evaluate_label_sets(model, data, "half", count=1, samples=6)[0].scores())[-3:]
    ['macro_f1', 'micro_f1', 'right_sets']
    """
    training, spreading = _prepared(model, data, samples, spread_labels, None)
    y, chosen = label_sets_of(data), splits(data, protocol, count)
    chosen = chosen if count is not None else chosen[:SPLITS]
    draws = with_progress(lambda: model.draws(data, samples, seed=seed), samples, "draws", show=progress)
    stream = _arrays(draws)
    first = np.stack(list(islice(stream, training)))
    jobs = [Job(split.train, split.test) for split in chosen]
    heads = LabelSetHeads(_head(model), first, y, np.arange(len(y)), jobs, spreading)
    return [
        LabelSetResult(split.test, y[split.test], found)
        for split, found in zip(chosen, heads.predict(stream), strict=True)
    ]


def predict_label_sets(
    model: "BGCL", data: "Data", *, samples: int = 100, seed: int | None = None, labels_from: "Data | None" = None,
    progress: bool = False, kept: "KeptResults | None" = None, spread_labels: bool | None = None,
) -> PredictedLabelSets:  # fmt: skip
    """Predict the labels of every node, each with its probability.

    A label has a head of its own, `MixtureClassifier` for nodes with and without it, on the same draws. A labeled node
    is predicted by heads that have not seen its labels.

    Args:
        model: a fitted model.
        data: the graph. Its labels `data.y` are `(N, L)`: 1 where a node has a label, 0 where it has not, and -1 or NaN
            in all columns of a node whose labels are not known.
        samples: how many embeddings to draw. Some train the heads, and the others predict.
        seed: seed of the draws. Default: the seed of the model.
        labels_from: a graph with more labels, such as the training graph. Nodes are matched as in `bgcl.predict`, and
            labels by their names.
        progress: show on a terminal how many draws were made.
        kept: what was kept in a run. Predictions that are there are not made again, and new ones are added.
        spread_labels: whether the heads also use the labels of nodes that are near in the graph, see
            `bgcl.downstream.LabelSpreading`. Default: if the embedding has several parts, and there is no
            `labels_from`.

    Returns:
        The predictions.

    Raises:
        BGCLError: there are too few samples or labeled nodes, or `data.y` has other values.

    >>> import bgcl, torch
    >>> data = bgcl.example_graph()
    >>> data.y = torch.stack([data.y == 0, data.y < 2], 1).long()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> found = predict_label_sets(model, data, samples=6)
    >>> found.predicted.shape, list(found.columns())[:3]
    ((240, 2), ['node', 'label', 'predicted'])
    """
    training, spreading = _prepared(model, data, samples, spread_labels, labels_from)
    known = gather_label_sets(data, labels_from)
    how = {"samples": samples, "seed": seed, "spread_labels": spreading is not None}
    arrays = None if kept is None else kept.find("label sets", _key(data, labels_from, how, kept))
    if arrays is None:
        warn_without_ids(data, labels_from)
        others = None if labels_from is None else _arrays(model.draws(labels_from, training, seed=seed))
        draws = with_progress(lambda: model.draws(data, samples, seed=seed), samples, "draws", show=progress)
        running = RunningMoments()
        stream = _arrays(running.add(draw) for draw in draws)
        first = np.stack(list(known.of_rows.rows(islice(stream, training), others)))
        jobs = _jobs(known.of_rows.node, data.num_nodes)
        heads = LabelSetHeads(_head(model), first, known.rows, known.of_rows.node, jobs, spreading)
        arrays = _merged(heads.predict(stream), jobs, data.num_nodes) | {"astd": running.moments().astd.cpu().numpy()}
        if kept is not None:
            kept.keep("label sets", _key(data, labels_from, how, kept), arrays)
    astd = arrays.pop("astd")
    return PredictedLabelSets(known.of_nodes, SetUncertainty(**arrays), astd, known.names, getattr(data, "ids", None))


@dataclass(frozen=True)
class KnownLabelSets:
    """The labels that train heads: those of a graph, and those of nodes that only another graph has labels for.

    Attributes:
        of_nodes: which labels each node of the graph has, `(N, L)`, -1 if they are not known.
        rows: which labels each training row has, `(R, L)`.
        of_rows: the nodes of the rows.
        names: the name of each label, `(L,)`.
    """

    of_nodes: Array
    rows: Array
    of_rows: KnownLabels
    names: list[Any]


def gather_label_sets(data: "Data", other: "Data | None" = None) -> KnownLabelSets:
    """The labels of a graph, and those that only another graph has. If both have some, those of `data` count."""
    has_own = data.y is not None
    own = label_sets_of(data, may_be_empty=other is not None) if has_own or other is None else None
    names = _names(data, own) if own is not None else []
    theirs = None if other is None else label_sets_of(other)
    if other is not None and theirs is not None:
        names = [*names, *(name for name in _names(other, theirs) if str(name) not in set(map(str, names)))]
        theirs = _with_columns(theirs, _names(other, theirs), names)
    own = np.full((data.num_nodes, len(names)), -1) if own is None else _with_columns(own, _names(data, own), names)
    here = np.flatnonzero(own[:, 0] >= 0)
    if other is None or theirs is None:
        return KnownLabelSets(own, own[here], KnownLabels(here, here, here, here[:0], None), names)
    match, there = match_nodes(data, other), np.flatnonzero(theirs[:, 0] >= 0)
    there = there[~((match[there] >= 0) & (own[match[there], 0] >= 0))]
    node, rows = np.concatenate([match[there], here]), np.concatenate([theirs[there], own[here]])
    of_nodes = own.copy()
    of_nodes[node[node >= 0]] = rows[node >= 0]
    return KnownLabelSets(of_nodes, rows, KnownLabels(node, node, here, there, None), names)


def _names(data: "Data", label: Array) -> list[Any]:
    names = getattr(data, "classes", None)
    return list(range(label.shape[1])) if names is None else list(names)


def _with_columns(label: Array, own: list[Any], names: list[Any]) -> Array:
    """Labels `(N, L)` with a column for each name. No node has a label that its graph does not know."""
    place = {str(name): i for i, name in enumerate(names)}
    found = np.where(label[:, :1] < 0, -1, np.zeros((len(label), len(names)), dtype=np.int64))
    found[:, [place[str(name)] for name in own]] = label
    return found


def _prepared(
    model: "BGCL", data: "Data", samples: int, spread_labels: bool | None, labels_from: "Data | None"
) -> tuple[int, LabelSpreading | None]:
    """How many draws train the heads, and what spreads the labels."""
    check_model(model)
    if whole("The number of samples", samples) < 2:
        raise BGCLError(f"Labels need two samples or more: some train the heads and others predict. Got {samples}.")
    if model.in_blocks(data) is not None:
        raise BGCLError("A packed graph is predicted with one label per node. Use the tables that it was made from.")
    spread = (labels_from is None and len(model.parts_) > 1) if spread_labels is None else spread_labels
    if spread and labels_from is not None:
        raise BGCLError("Only labels of the graph itself can be spread: leave out 'labels_from' or 'spread_labels'.")
    return default_training_draws(samples, model.parts_), LabelSpreading.of(model, data) if spread else None


def _head(model: "BGCL") -> Callable[[], MixtureClassifier]:
    """What makes a head. It has no kernels: they would take as long again for each label as all else together."""
    parts = model.parts_
    return partial(MixtureClassifier, parts=tuple(parts), kernel=False) if len(parts) > 1 else MixtureClassifier


def _arrays(draws: Iterable[Tensor]) -> Iterator[Array]:
    return (draw.cpu().numpy() for draw in draws)


def _jobs(node: Array, num_nodes: int) -> list[Job]:
    """For each head the rows that train it, and the nodes that it predicts."""
    if len(node) < LEAST:
        raise BGCLError(f"Only {len(node)} nodes have labels, and predictions need {LEAST} or more. Label more.")
    every = np.arange(len(node))
    parts = [(train, node[test]) for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(every)]
    parts = [(train, nodes[nodes >= 0]) for train, nodes in parts]
    others = np.setdiff1d(np.arange(num_nodes), np.concatenate([nodes for _, nodes in parts]))
    return [Job(train, nodes) for train, nodes in [*parts, (every, others)] if len(nodes)]


def _merged(found: Sequence[SetUncertainty], jobs: Sequence[Job], nodes: int) -> dict[str, Array]:
    """The predictions of all jobs as one, in the order of the nodes."""
    merged = {name: np.empty((nodes, *part.shape[1:])) for name, part in vars(found[0]).items()}
    for job, each in zip(jobs, found, strict=True):
        for name, part in vars(each).items():
            merged[name][job.predicted] = part
    return merged


def _key(data: "Data", labels_from: "Data | None", how: dict[str, Any], kept: "KeptResults") -> dict[str, Any]:
    """All that predictions depend on, besides the model."""
    from bgcl.downstream.kept_results import digest

    other = None if labels_from is None else digest(labels_from)
    return how | {"data": digest(data), "labels_from": other, "seed": kept.seed(how["seed"])}
