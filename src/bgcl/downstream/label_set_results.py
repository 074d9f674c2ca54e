r"""Predicted sets of labels, and how good they are.

With `p_l` the probability that a node has label l, the set has the labels with `p_l >= 1/2`. Measures of a node's
uncertainty take its labels as independent: entropies are sums over labels, and the least confidence is the probability
that the set is wrong, `1 - prod_l max(p_l, 1 - p_l)`. With a single label these are the measures of two classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score

from bgcl.measures.metrics import error_auroc

Array = npt.NDArray[Any]

HALF = 0.5
BINS = 15
JOIN = ";"  # between the labels of a set in a table


@dataclass(frozen=True)
class SetUncertainty:
    """The probability of each label of n nodes, and measures of their uncertainty.

    Attributes:
        probability: the probability of each label, averaged over the draws, `(n, L)`.
        predictive_entropy: the sum over labels of the entropy of the mean, `(n,)`.
        expected_entropy: the sum over labels of the mean of the entropies, `(n,)`.
    """

    probability: Array
    predictive_entropy: Array
    expected_entropy: Array

    @property
    def least_confidence(self) -> Array:
        """The probability that the set is not exactly right, `(n,)`."""
        p = self.probability
        return np.asarray(1 - np.maximum(p, 1 - p).prod(1))

    def measures(self) -> dict[str, Array]:
        """All measures by name, `(n,)` each."""
        return {
            "predictive_entropy": self.predictive_entropy,
            "expected_entropy": self.expected_entropy,
            "mutual_information": np.maximum(self.predictive_entropy - self.expected_entropy, 0),
            "least_confidence": self.least_confidence,
        }


@dataclass(frozen=True)
class LabelSetResult:
    """The predicted labels of the n test nodes of one split.

    Attributes:
        test: numbers of the test nodes, `(n,)`.
        label: which labels they have, `(n, L)`.
        uncertainty: probabilities of labels, and measures of uncertainty.
    """

    test: Array
    label: Array
    uncertainty: SetUncertainty

    def each_label(self) -> dict[str, Array]:
        """F1, average precision, ECE and number of nodes of each label, `(L,)`; NaN where they are not defined."""
        p, y = self.uncertainty.probability, self.label
        return {
            "f1": f1(p >= HALF, y),
            "average_precision": np.array([_average_precision(p[:, i], y[:, i]) for i in range(y.shape[1])]),
            "ece": np.array([label_ece(p[:, i], y[:, i]) for i in range(y.shape[1])]),
            "support": y.sum(0).astype(float),
        }

    def scores(self) -> dict[str, float]:
        """All scores by name. Macro averages leave out labels that no test node has."""
        p, y, each = self.uncertainty.probability, self.label, self.each_label()
        there = each["support"] > 0
        exact = ((p >= HALF) == (y == 1)).all(1)
        return {
            "micro_f1": float(f1((p >= HALF).reshape(-1, 1), y.reshape(-1, 1))[0]),
            "macro_f1": _mean(each["f1"][there]),
            "average_precision": _mean(each["average_precision"][there]),
            "ece": float(each["ece"].mean()),
            "right_sets": float(exact.mean()),
            "auroc": error_auroc(exact, self.uncertainty.least_confidence),
        }


def f1(predicted: Array, label: Array) -> Array:
    """`2 TP / (2 TP + FP + FN)` of each column, `(L,)`; 0/0 is 1: nothing was there and nothing was predicted."""
    both = (predicted & (label == 1)).sum(0)
    total = predicted.sum(0) + (label == 1).sum(0)
    return np.asarray(np.where(total > 0, 2 * both / np.maximum(total, 1), 1.0))


def label_ece(probability: Array, label: Array) -> float:
    """`sum_b n_b / n |mean probability - share with the label|` over 15 bins of equal width, of one label, `(n,)`."""
    which = np.minimum((probability * BINS).astype(int), BINS - 1)
    off = np.bincount(which, weights=probability - label, minlength=BINS)
    return float(np.abs(off).sum() / len(label))


def _average_precision(probability: Array, label: Array) -> float:
    return float(average_precision_score(label, probability)) if label.any() else float("nan")


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


@dataclass(frozen=True)
class PredictedLabelSets:
    """The predicted labels of every node, and how uncertain they are.

    Attributes:
        label: which labels each node is known to have, `(N, L)`, -1 if they are not known.
        uncertainty: probabilities of labels, and measures of uncertainty.
        astd: average standard deviation of each node's embedding over the draws, `(N,)`.
        names: the name of each label, `(L,)`.
        ids: the ids of the nodes, if the graph has them.
    """

    label: Array
    uncertainty: SetUncertainty
    astd: Array
    names: Sequence[Any]
    ids: Array | None = None

    @property
    def predicted(self) -> Array:
        """The labels whose probability is at least one half, `(N, L)`."""
        return np.asarray((self.uncertainty.probability >= HALF).astype(np.int64))

    def columns(self) -> dict[str, Array]:
        """A table with one row for each node, as columns by name. The labels of a node have ; between them."""
        columns = {} if self.ids is None else {"id": np.asarray(self.ids)}
        columns |= {
            "node": np.arange(len(self.label)),
            "label": written(self.label, self.names),
            "predicted": written(self.predicted, self.names),
            **self.uncertainty.measures(),
            "astd": self.astd,
        }
        return columns | {f"p_{name}": self.uncertainty.probability[:, i] for i, name in enumerate(self.names)}


def written(sets: Array, names: Sequence[Any]) -> Array:
    """The labels of each node as one text; None if they are not known."""
    texts = [str(name) for name in names]
    found = np.empty(len(sets), dtype=object)
    for i, row in enumerate(sets):
        found[i] = None if row[0] < 0 else JOIN.join(text for text, has in zip(texts, row, strict=True) if has)
    return found
