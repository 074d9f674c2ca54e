"""Evaluation of methods that classify nodes without a head, with the same scores as for embeddings."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from bgcl.baselines.supervised import derived_seed
from bgcl.downstream.evaluation import SplitResult
from bgcl.downstream.splits import Split, labels_of
from bgcl.errors import BGCLError
from bgcl.measures.uncertainty import uncertainty

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]


class ClassifierMethod(Protocol):
    """Checked settings with a seed, and a method `fit` that learns from the labels of a split."""

    @property
    def seed(self) -> int: ...

    def with_changes(self, **changes: Any) -> Self: ...

    def fit(self, data: "Data", split: Split) -> Array:
        """Class probabilities of S draws for every node, `(S, N, C)`, with classes in ascending order."""


def evaluate_classifier(
    method_factory: Callable[[], ClassifierMethod], data: "Data", splits: Sequence[Split]
) -> list[SplitResult]:
    """Fit a classifier to each split and test it.

    Each fit has its own seed, which depends on the seed of the method and the number of the split.

    Args:
        method_factory: a function that makes the classifier.
        data: a graph with labels.
        splits: the splits.

    Returns:
        A result for each split.

    Raises:
        BGCLError: the classifier returns probabilities of the wrong shape, or a fit fails.
    """
    method, labels = method_factory(), labels_of(data)
    classes = np.unique(labels[labels >= 0])
    results = []
    for number, split in enumerate(splits):
        seeded = method.with_changes(seed=derived_seed(method.seed, number))
        samples = seeded.fit(data, split)
        if samples.shape[1:] != (len(labels), len(classes)):
            raise BGCLError(
                f"{type(method).__name__} gave probabilities of shape {samples.shape}, not (draws, "
                f"{len(labels)} nodes, {len(classes)} classes)."
            )
        found = uncertainty(samples[:, split.test])
        results.append(SplitResult(split.test, classes, np.searchsorted(classes, labels[split.test]), found))
    return results
