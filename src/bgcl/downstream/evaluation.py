"""Train mixture heads on the splits of a protocol and measure accuracy, calibration and the quality of uncertainty.

The first draws train the heads, the others predict, in sets of `set_size` that each make one prediction. The paper's
appendix is 500 draws, `training_draws=10, set_size=10` and the paper's head: a classifier on 10 draws, and 49
predictions from 49 sets of 10.
All heads see each draw as it comes, so that neither an `(S, N, C)` array nor all draws are ever held.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits
from torch import Tensor

from bgcl.downstream.classifier import HeadStack, MixtureClassifier
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
from bgcl.measures.uncertainty import Accumulator, Uncertainty

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

TRAINING_DRAWS = 20  # that train a head, or half of the draws where there are fewer than forty
APPENDIX = {"samples": 500, "training_draws": 10, "set_size": 10}


@dataclass(frozen=True)
class SplitResult:
    """What one split of one run showed, on its test nodes."""

    test: Array
    classes: Array
    label: Array  # positions in `classes`
    uncertainty: Uncertainty
    C: float | None = None  # of the head, where there is one

    @property
    def correct(self) -> Array:
        return np.asarray(self.uncertainty.probability.argmax(1) == self.label)

    def reliability(self) -> Reliability:
        return reliability(self.uncertainty.probability, self.label)

    def pavpu(self, measure: str) -> PAvPU:
        return pavpu(self.correct, getattr(self.uncertainty, measure))

    def scores(self) -> dict[str, float]:
        """Every figure of merit by name; those of a measure of uncertainty as `score:measure`."""
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


def evaluate(
    draws: Iterable[Tensor | Array],
    labels: Array,
    chosen: Sequence[Split],
    *,
    training_draws: int = TRAINING_DRAWS,
    set_size: int = 1,
    head: Callable[[], MixtureClassifier] = MixtureClassifier,
) -> list[SplitResult]:
    """A mixture head for each split, trained on the first draws and tested on the others; draws are `(N, d)` each.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> chosen = bgcl.splits(data, "bgrl", count=2)
    >>> results = bgcl.evaluate(model.draws(data, 8), data.y.numpy(), chosen, training_draws=4)
    >>> len(results), 0 <= results[0].scores()["accuracy"] <= 1
    (2, True)
    """
    stream = (draw.cpu().numpy() if isinstance(draw, Tensor) else np.asarray(draw) for draw in draws)
    first = np.array(list(islice(stream, training_draws)))
    if not len(first):
        raise BGCLError("There are no draws: an evaluation needs one or more.")
    if first.shape[1] != len(labels):
        raise BGCLError(f"There are draws of {first.shape[1]} nodes, but {len(labels)} labels.")
    # Heads are small problems: one thread for each of them, not several threads for one.
    with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
        heads = list(pool.map(lambda split: head().fit(first[:, split.train], labels[split.train]), chosen))
    found = predict_all(heads, _then(stream, first), [split.test for split in chosen], set_size)
    return [
        SplitResult(split.test, head_.classes_, _codes(head_, labels[split.test]), uncertainty, head_.C_)
        for split, head_, uncertainty in zip(chosen, heads, found, strict=True)
    ]


def evaluate_model(
    model: "BGCL", data: "Data", protocol: str = "grace", count: int | None = None, *, samples: int = 100,
    training_draws: int | None = None, set_size: int = 1, head: Callable[[], MixtureClassifier] = MixtureClassifier,
    seed: int | None = None, progress: bool = False,
) -> list[SplitResult]:  # fmt: skip
    """Draw embeddings of a model and `evaluate` them on the splits of a protocol, which do not depend on the model.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> len(bgcl.evaluate_model(model, data, "bgrl", count=2, samples=8, training_draws=4))
    2
    """
    training_draws = default_training_draws(samples) if training_draws is None else training_draws
    if samples < training_draws + set_size:
        raise BGCLError(f"Of {samples} samples {training_draws} train the heads: too few are left to predict with.")
    chosen, labels = splits(data, protocol, count), labels_of(data)
    stream: Iterable[Tensor] = model.draws(data, samples, seed=seed)
    if progress:
        from bgcl.reporting.progress import counted

        stream = counted(stream, samples, "draws")
    return evaluate(stream, labels, chosen, training_draws=training_draws, set_size=set_size, head=head)


def default_training_draws(samples: int) -> int:
    """How many of the draws train a head if nothing else is said."""
    return max(min(TRAINING_DRAWS, samples // 2), 1)


def _then(stream: Iterator[Array], first: Array) -> Iterator[Array]:
    """The rest of the draws; the first ones where there is no other, as with a fixed embedding."""
    rest = next(stream, None)
    if rest is None:
        yield from first
        return
    yield rest
    yield from stream


def _codes(head: MixtureClassifier, labels: Array) -> Array:
    return np.searchsorted(head.classes_, labels)


def predict_all(
    heads: Sequence[MixtureClassifier], draws: Iterator[Array], nodes: Sequence[Array], set_size: int = 1
) -> list[Uncertainty]:
    """What each of several heads with the same classes says of its nodes, in one pass over the draws, `(N, d)` each."""
    stack, classes = HeadStack(heads), len(heads[0].classes_)
    accumulator: Accumulator | None = None
    for group in _sets(draws, set_size):
        probability = stack.predict_proba(group)  # (C, heads, N)
        accumulator = accumulator or Accumulator(classes, probability[0].size)
        accumulator.add(probability.reshape(classes, -1))
    found = (accumulator or Accumulator(classes, 0)).result()
    count = len(found.margin) // len(heads)
    return [found.of(which + i * count) for i, which in enumerate(nodes)]


def _sets(draws: Iterator[Array], size: int) -> Iterator[Array]:
    """Whole sets of `size` draws, `(size, N, d)`; what is left over is not used."""
    while len(group := list(islice(draws, size))) == size:
        yield np.stack(group)


def summary(runs: Sequence[Sequence[SplitResult]]) -> dict[str, dict[str, float]]:
    """Each score's mean, and its spread over splits and over training seeds apart.

    `runs` are the results of one training seed each. The spread over splits is the deviation within a run, averaged
    over the runs; that over seeds is the deviation of the runs' means. Either is NaN where there is but one. A split in
    which a score is not defined, such as the AUROC of errors where there is none, is left out.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> results = bgcl.evaluate_model(model, data, "bgrl", count=2, samples=8, training_draws=4)
    >>> sorted(bgcl.summary([results])["accuracy"])
    ['mean', 'over_seeds', 'over_splits']
    """
    scores = [[result.scores() for result in run] for run in runs]
    table = {name: np.array([[split[name] for split in run] for run in scores]) for name in scores[0][0]}
    return {
        name: {
            "mean": _mean(values.ravel()),
            "over_splits": _mean(np.array([_deviation(run) for run in values])),
            "over_seeds": _deviation(np.array([_mean(run) for run in values])),
        }
        for name, values in table.items()
    }


def _mean(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _deviation(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.std(ddof=1)) if len(defined) > 1 else float("nan")
