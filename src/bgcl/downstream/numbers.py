"""Numbers to predict: evaluate a model over splits, and predict the number of every node."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold
from torch import Tensor

from bgcl.arguments import check_model, whole
from bgcl.downstream.evaluation import default_training_draws
from bgcl.downstream.known_labels import match_nodes, warn_without_ids
from bgcl.downstream.number_head import LEAST, NumberColumns, NumberHead
from bgcl.downstream.number_results import LEVEL, NumberResult, PredictedNumbers, merged
from bgcl.downstream.splits import numbers_of, splits
from bgcl.errors import BGCLError
from bgcl.measures.levels import check_level
from bgcl.model.posterior import RunningMoments
from bgcl.progress import with_progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

FOLDS = 5
SPLITS = 10  # of an evaluation, if the user does not say how many


def evaluate_numbers(
    model: "BGCL", data: "Data", protocol: str = "grace", count: int | None = None, *, samples: int = 100,
    seed: int | None = None, progress: bool = False,
) -> list[NumberResult]:  # fmt: skip
    """Evaluate a model on labels that are numbers.

    Args:
        model: a fitted model.
        data: a graph whose labels `data.y` are real numbers, NaN for none.
        protocol: the name of a protocol, see `bgcl.splits`.
        count: the number of splits. Default: 10, or fewer if the protocol has fewer.
        samples: how many embeddings to draw. Some train the heads, and the others predict.
        seed: seed of the draws. Default: the seed of the model.
        progress: show a progress bar.

    Returns:
        A result for each split. `bgcl.downstream.summary` averages them.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> data.y = data.x.to_dense().sum(1)
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> sorted(evaluate_numbers(model, data, "half", count=2, samples=6)[0].scores())[:4]
    ['calibration', 'coverage', 'crps', 'mae']
    """
    training = _check(model, samples)
    y, chosen = numbers_of(data), splits(data, protocol, count)
    chosen = chosen if count is not None else chosen[:SPLITS]
    draws = with_progress(model.draws(data, samples, seed=seed), samples, "draws", show=progress)
    stream = (draw.cpu().numpy() for draw in draws)
    first = list(islice(stream, training))
    columns = NumberColumns.fit(data, first[0])
    fixed = columns.of_attributes(data)
    rows = np.stack([columns(fixed, draw) for draw in first])
    heads = fit_all([(rows[:, split.train], y[split.train]) for split in chosen])
    means: list[list[Array]] = [[] for _ in chosen]
    for draw in stream:
        seen = columns(fixed, draw)
        for split, head, found in zip(chosen, heads, means, strict=True):
            found.append(head.mean(seen[split.test]))
    return [
        NumberResult(split.test, y[split.test], np.stack(found), head.noise, head.levels)
        for split, head, found in zip(chosen, heads, means, strict=True)
    ]


def predict_numbers(
    model: "BGCL", data: "Data", *, samples: int = 100, level: float = LEVEL, seed: int | None = None,
    labels_from: "Data | None" = None, progress: bool = False,
) -> PredictedNumbers:  # fmt: skip
    """Predict the number of every node. A labeled node is predicted by a head that has not seen its label.

    Args:
        model: a fitted model.
        data: the graph to predict.
        samples: how many embeddings to draw. Some train the heads, and the others predict.
        level: the share of nodes whose number is in its interval.
        seed: seed of the draws. Default: the seed of the model.
        labels_from: a graph with more labels, such as the training graph. Nodes are matched by their ids,
            or without ids if both graphs have the same attributes, row by row.
        progress: show on a terminal how many draws were made.

    Returns:
        The predictions.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> data.y = data.x.to_dense().sum(1)
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> found = predict_numbers(model, data, samples=6)
    >>> bool((found.lower < found.upper).all())
    True
    """
    training = _check(model, samples)
    draws = with_progress(model.draws(data, samples, seed=seed), samples, "draws", show=progress)
    others = None if labels_from is None else model.draws(labels_from, training, seed=seed)
    warn_without_ids(data, labels_from)
    return predict_numbers_of_draws(draws, data, training, level=level, labels_from=labels_from, others=others)


def predict_numbers_of_draws(
    draws: Iterable[Tensor], data: "Data", training: int, *, level: float = LEVEL,
    labels_from: "Data | None" = None, others: Iterable[Tensor] | None = None,
) -> PredictedNumbers:  # fmt: skip
    """`predict_numbers` from a stream of draws, of which the first `training` train the heads."""
    check_level(level)
    running = RunningMoments()
    stream = (running.add(draw).cpu().numpy() for draw in draws)
    first = list(islice(stream, training))
    columns = NumberColumns.fit(data, first[0])
    fixed = columns.of_attributes(data)
    rows, y, node = _labeled_rows(data, columns, fixed, first, labels_from, others)
    folds = _folds(node, data.num_nodes)
    heads = fit_all([(rows[:, train], y[train]) for train, _ in folds])
    means: list[list[Array]] = [[] for _ in folds]
    for draw in stream:
        seen = columns(fixed, draw)
        for (_, nodes), head, found in zip(folds, heads, means, strict=True):
            found.append(head.mean(seen[nodes]))
    parts = [(nodes, np.stack(m), head) for (_, nodes), m, head in zip(folds, means, heads, strict=True)]
    label = np.full(data.num_nodes, np.nan)
    label[node[node >= 0]] = y[node >= 0]
    return PredictedNumbers(
        label=label, **merged(parts, data.num_nodes, level), astd=running.moments().astd.cpu().numpy(),
        ids=getattr(data, "ids", None),
    )  # fmt: skip


def fit_all(training: Sequence[tuple[Array, Array]]) -> list[NumberHead]:
    """A head for each set of training rows `(S, n, c)` and numbers `(n,)`, side by side."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda each: NumberHead.fit(*each), training))


def _check(model: "BGCL", samples: int) -> int:
    check_model(model)
    if whole("The number of samples", samples) < 2:
        raise BGCLError(f"Numbers need two samples or more: some train the heads and others predict. Got {samples}.")
    return default_training_draws(samples, model.parts_)


def _labeled_rows(
    data: "Data", columns: NumberColumns, fixed: Array, first: list[Array], labels_from: "Data | None",
    others: Iterable[Tensor] | None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Columns `(S, R, c)` and numbers `(R,)` of the labels, and the nodes of `data` that have them, -1 for none."""
    own = np.full(data.num_nodes, np.nan) if data.y is None else numbers_of(data, may_be_empty=labels_from is not None)
    here = np.flatnonzero(~np.isnan(own))
    rows = np.stack([columns(fixed, draw)[here] for draw in first])
    if labels_from is None or others is None:
        return rows, own[here], here
    theirs, match = numbers_of(labels_from), match_nodes(data, labels_from)
    there = np.flatnonzero(~np.isnan(theirs))
    there = there[~((match[there] >= 0) & ~np.isnan(own[match[there]]))]
    their_fixed = columns.of_attributes(labels_from)
    more = np.stack([columns(their_fixed, draw.cpu().numpy())[there] for draw in others])
    both = np.concatenate([more, rows], axis=1)
    return both, np.concatenate([theirs[there], own[here]]), np.concatenate([match[there], here])


def _folds(node: Array, num_nodes: int) -> list[tuple[Array, Array]]:
    """For each head the labels that train it, and the nodes that it predicts."""
    if len(node) < 2 * LEAST:
        raise BGCLError(f"Only {len(node)} nodes have a number, and predictions need {2 * LEAST} or more. Label more.")
    every = np.arange(len(node))
    parts = [(train, node[test]) for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(every)]
    parts = [(train, nodes[nodes >= 0]) for train, nodes in parts]
    others = np.setdiff1d(np.arange(num_nodes), np.concatenate([nodes for _, nodes in parts]))
    return [(train, nodes) for train, nodes in [*parts, (every, others)] if len(nodes)]
