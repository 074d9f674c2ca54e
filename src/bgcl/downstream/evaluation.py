"""Evaluate embeddings: train a head on each split, then measure accuracy, calibration and quality of uncertainty.

The first draws train the heads. The others predict, in sets of `set_size`; each set makes one prediction. The procedure
in the paper's appendix is 500 draws with `training_draws=10`, `set_size=10` and the paper's head: a classifier trained
on 10 draws, and 49 predictions from 49 sets of 10.

Draws are a stream that all heads read together, so neither all draws nor an `(S, N, C)` array are held in memory.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits
from torch import Tensor

from bgcl.arguments import check_model, shown, whole
from bgcl.downstream.blocks import evaluate_in_blocks, refuse_whole_rows
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.head_stack import predict_all
from bgcl.downstream.label_spreading import LabelSpreading, fit_head
from bgcl.downstream.small_classes import with_pairs
from bgcl.downstream.splits import Split, labels_of, splits
from bgcl.errors import BGCLError
from bgcl.measures.metrics import (
    PAvPU,
    Reliability,
    brier,
    error_aupr,
    error_auroc,
    negative_log_likelihood,
    pavpu,
    reliability,
    risk_coverage,
)
from bgcl.measures.uncertainty import Uncertainty
from bgcl.processes.team import Team
from bgcl.progress import counted, stage, with_progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.downstream.kept_results import KeptResults
    from bgcl.downstream.prediction import Prediction
    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

TRAINING_DRAWS = 20  # draws that train a head; half of the draws if there are fewer than forty
PARTS_DRAWS = 2  # draws that train the heads of embeddings in parts, which are wide
APPENDIX = {"samples": 500, "training_draws": 10, "set_size": 10}


@dataclass(frozen=True)
class SplitResult:
    """The predictions of one model for the n test nodes of one split.

    Attributes:
        test: numbers of the test nodes, `(n,)`.
        classes: the classes in ascending order, `(C,)`.
        label: the correct classes, as positions in `classes`, `(n,)`.
        uncertainty: class probabilities and measures of uncertainty.
        C: inverse strength of the penalty of the head; None if there is no head.
    """

    test: Array
    classes: Array
    label: Array
    uncertainty: Uncertainty
    C: float | None = None

    @property
    def correct(self) -> Array:
        """Whether each test node was predicted correctly, `(n,)`."""
        return np.asarray(self.uncertainty.probability.argmax(1) == self.label)

    def reliability(self) -> Reliability:
        """Confidence and accuracy in bins, and the expected calibration error."""
        return reliability(self.uncertainty.probability, self.label)

    def pavpu(self, measure: str) -> PAvPU:
        """The PAvPU curve of a measure of uncertainty, such as "predictive_entropy"."""
        return pavpu(self.correct, getattr(self.uncertainty, measure))

    def scores(self) -> dict[str, float]:
        """All scores by name. Scores of a measure of uncertainty are named `score:measure`."""
        probability = self.uncertainty.probability
        scores = {
            "accuracy": float(self.correct.mean()),
            "ece": self.reliability().ece,
            "nll": negative_log_likelihood(probability, self.label),
            "brier": brier(probability, self.label),
        }
        for name, measure in self.uncertainty.measures().items():
            scores |= {
                f"auroc:{name}": error_auroc(self.correct, measure),
                f"aupr:{name}": error_aupr(self.correct, measure),
                f"aurc:{name}": risk_coverage(self.correct, measure).area,
                f"pavpu:{name}": self.pavpu(name).area,
            }
        return scores


def evaluate_draws(
    draws: Iterable[Tensor | Array],
    labels: Array,
    chosen: Sequence[Split],
    *,
    training_draws: int = TRAINING_DRAWS,
    set_size: int = 1,
    head: Callable[[], MixtureClassifier] = MixtureClassifier,
    spreading: LabelSpreading | None = None,
) -> list[SplitResult]:
    """Train a head on each split with the first draws, and test it with the others.

    Args:
        draws: embeddings, `(N, d)` each. If there are no others, the first draws predict too.
        labels: class numbers, `(N,)`.
        chosen: the splits.
        training_draws: how many draws train the heads.
        set_size: how many draws make one prediction.
        head: a function that makes a head.
        spreading: spreads the labels of training nodes, which the heads then use too.

    Returns:
        A result for each split.

    Raises:
        BGCLError: there are too few draws, or `labels` has another number of nodes.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> chosen = bgcl.splits(data, "bgrl", count=2)
    >>> results = evaluate_draws(model.draws(data, 8), data.y.numpy(), chosen, training_draws=4)
    >>> len(results), 0 <= results[0].scores()["accuracy"] <= 1
    (2, True)
    """
    stream = (draw.cpu().numpy() if isinstance(draw, Tensor) else np.asarray(draw) for draw in draws)
    first = np.array(list(islice(stream, training_draws)))
    if not len(first):
        raise BGCLError("There are no draws. An evaluation needs one or more.")
    if first.shape[1] != len(labels):
        raise BGCLError(f"There are draws of {first.shape[1]} nodes, but {len(labels)} labels.")
    training = [with_pairs(split.train, labels) for split in chosen]
    # Heads are small problems, so each is fitted by one thread, and several heads at the same time.
    tests = [split.test for split in chosen]
    fitting = stage(f"fitting {counted(len(chosen), 'head')}")
    with fitting, threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = pool.map(
            lambda train, test: fit_head(head(), first[:, train], labels[train], train, test, spreading),
            training, tests,
        )  # fmt: skip
        heads, beside = zip(*jobs, strict=True)
    found = predict_all(heads, _rest_or(first, stream), tests, set_size, beside)
    return [_result(split, head_, labels, each) for split, head_, each in zip(chosen, heads, found, strict=True)]


def _result(split: Split, head: MixtureClassifier, labels: Array, found: Uncertainty) -> SplitResult:
    return SplitResult(split.test, head.classes_, _codes(head, labels[split.test]), found, head.C_)


def evaluate(
    model: "BGCL", data: "Data", protocol: str = "grace", count: int | None = None, *, samples: int = 100,
    training_draws: int | None = None, set_size: int = 1, head: Callable[[], MixtureClassifier] | None = None,
    seed: int | None = None, progress: bool = False, kept: "KeptResults | None" = None,
    spread_labels: bool | None = None,
) -> list[SplitResult]:  # fmt: skip
    """Evaluate a model: draw embeddings, train a head on each split of a protocol, and test it.

    Args:
        model: a fitted model.
        data: a graph with labels `data.y`.
        protocol: the name of a protocol, see `bgcl.splits`. Splits do not depend on the model.
        count: the number of splits. Default: the number that the protocol has, and 1 for a graph that is computed in
            blocks.
        samples: how many embeddings to draw.
        training_draws: how many of them train the heads. Default: 20, or 2 for embeddings in parts, and at most half
            of the samples.
        set_size: how many of the others make one prediction.
        head: a function that makes a head. Default: a `MixtureClassifier` that knows the parts of the embedding.
        seed: seed of the draws. Default: the seed of the model.
        progress: show a progress bar.
        kept: where to keep, in a run, what `bgcl.predict` would find with the same draws. So that needs no draws.
        spread_labels: whether the head also uses the labels of training nodes that are near in the graph, see
            `bgcl.downstream.LabelSpreading`. Default: if the embedding has several parts, no head is given, and the
            graph is not computed in blocks.

    Returns:
        A result for each split. `bgcl.downstream.summary` averages them.

    Raises:
        BGCLError: there are too few samples or labels, or the protocol is unknown.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> len(bgcl.evaluate(model, data, "bgrl", count=2, samples=8, training_draws=4))
    2
    """
    check_model(model)
    samples, set_size = whole("The number of samples", samples), whole("'set_size'", set_size, 1)
    training_draws = default_training_draws(samples, model.parts_) if training_draws is None else training_draws
    if head is not None and not callable(head):
        raise BGCLError(f"'head' must be a function that makes a head, such as a class. Got {shown(head)} instead.")
    if samples < whole("'training_draws'", training_draws, 1) + set_size:
        raise BGCLError(
            f"Of {samples} samples, {training_draws} train the heads: too few are left to predict with. Draw more "
            "samples."
        )
    blocks, team = model.in_blocks(data), model.team
    chosen, labels = splits(data, protocol, 1 if blocks is not None and count is None else count), labels_of(data)
    if blocks is not None:
        refuse_whole_rows(head, set_size, spread_labels)
        fitted = evaluate_in_blocks(
            model, blocks, labels, chosen, samples=samples, training_draws=training_draws, seed=seed, progress=progress
        )
        return [_result(split, head_, labels, found) for split, (head_, found) in zip(chosen, fitted, strict=True)]
    stream = with_progress(lambda: model.draws(data, samples, seed=seed), samples, "draws", show=progress)
    spread_labels = (head is None and len(model.parts_) > 1) if spread_labels is None else spread_labels
    spreading = LabelSpreading.of(model, data) if spread_labels else None
    head = head or head_for(model.parts_)
    prediction = None if kept is None else _to_predict(model, data, samples, seed, kept, spreading)
    stream = stream if prediction is None else prediction.watch(stream)
    shared = team.size > 1 and len(chosen) >= team.size  # all processes have all draws, and each takes some splits
    found = evaluate_draws(
        stream, labels, team.share(chosen) if shared else chosen, training_draws=training_draws, set_size=set_size,
        head=head, spreading=spreading,
    )  # fmt: skip
    if kept is not None and prediction is not None:
        prediction.keep(kept, samples, seed)
    return _of_all_processes(found, team) if shared else found


def _of_all_processes(own: list[SplitResult], team: Team) -> list[SplitResult]:
    """The results of all processes, one process after the other."""
    names = [field.name for field in fields(Uncertainty)]
    arrays = []
    for each in own:
        rest = {"test": each.test, "classes": each.classes, "label": each.label}
        arrays.append(rest | vars(each.uncertainty) | {"C": np.array(np.nan if each.C is None else each.C)})
    found = []
    for theirs in team.arrays_of_all(arrays):
        measured, C = Uncertainty(**{name: theirs.pop(name) for name in names}), float(theirs.pop("C"))
        found.append(SplitResult(**theirs, uncertainty=measured, C=None if np.isnan(C) else C))
    return found


def _to_predict(
    model: "BGCL", data: "Data", samples: int, seed: int | None, kept: "KeptResults",
    spreading: LabelSpreading | None,
) -> "Prediction | None":  # fmt: skip
    """What `predict` does with the same draws, if it was not kept before."""
    from bgcl.downstream.prediction import Prediction

    training_draws = default_training_draws(samples, model.parts_)
    spread = None if spreading is None else (lambda: spreading)
    found = Prediction(data, training_draws=training_draws, parts=model.parts_, spreading=spread)
    return found if training_draws < samples and found.find(kept, samples, seed) is None else None


def head_for(parts: Sequence[int]) -> Callable[[], MixtureClassifier]:
    """A function that makes a head for embeddings with parts of these widths."""
    return partial(MixtureClassifier, parts=tuple(parts)) if len(parts) > 1 else MixtureClassifier


def versions() -> dict[str, str]:
    """The versions of the packages that results depend on."""
    packages = ("bgcl", "torch", "torch_geometric", "numpy", "scipy", "scikit-learn")
    return {name: version(name) for name in packages}


def default_training_draws(samples: int, parts: Sequence[int]) -> int:
    """How many draws train a head by default: 20, or 2 for embeddings in parts, and at most half of the samples."""
    return max(min(TRAINING_DRAWS if len(parts) == 1 else PARTS_DRAWS, samples // 2), 1)


def _rest_or(first: Array, stream: Iterator[Array]) -> Iterator[Array]:
    """The rest of the draws; the first ones if there is no rest, as for a fixed embedding."""
    rest = next(stream, None)
    if rest is None:
        yield from first
        return
    yield rest
    yield from stream


def _codes(head: MixtureClassifier, labels: Array) -> Array:
    return np.searchsorted(head.classes_, labels)


def summary(runs: Sequence[Sequence[SplitResult]]) -> dict[str, dict[str, float]]:
    """Compute the mean of each score, and its standard deviation over splits and over training seeds.

    Splits in which a score is not defined are left out. For example, the AUROC of errors is not defined without errors.

    Args:
        runs: for each training seed, the results of its splits.

    Returns:
        For each score a dictionary: "mean"; "over_splits", the standard deviation over splits, averaged over seeds; and
        "over_seeds", the standard deviation of the means of the seeds. A deviation of one value is NaN.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> results = bgcl.evaluate(model, data, "bgrl", count=2, samples=8, training_draws=4)
    >>> sorted(summary([results])["accuracy"])
    ['mean', 'over_seeds', 'over_splits']
    """
    scores = [[result.scores() for result in run] for run in runs]
    table = {name: np.array([[split[name] for split in run] for run in scores]) for name in scores[0][0]}
    return {
        name: {
            "mean": _mean(values.ravel()),
            "over_splits": _mean(np.array([_std(run) for run in values])),
            "over_seeds": _std(np.array([_mean(run) for run in values])),
        }
        for name, values in table.items()
    }


def _mean(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _std(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.std(ddof=1)) if len(defined) > 1 else float("nan")
