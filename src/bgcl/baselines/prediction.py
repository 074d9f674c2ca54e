"""The figures of merit of methods that classify nodes by themselves, from the same code as those of embeddings."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

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
    """A frozen dataclass of settings, a seed among them, that is fitted to the labels of a split."""

    @property
    def seed(self) -> int: ...

    def fit(self, data: "Data", split: Split) -> Array:
        """Class probabilities of S draws for every node, `(S, N, C)`, classes in ascending order."""


def evaluate_classifier(
    method_factory: Callable[[], ClassifierMethod], data: "Data", splits: Sequence[Split]
) -> list[SplitResult]:
    """Fit the method that `method_factory()` makes to each split, with a seed of its own, and test it.

    The seed of a fit depends on the method's and on the split's number alone.
    """
    method, labels = method_factory(), labels_of(data)
    classes = np.unique(labels[labels >= 0])
    results = []
    for number, split in enumerate(splits):
        seeded: ClassifierMethod = replace(method, seed=derived_seed(method.seed, number))  # type: ignore[type-var]
        samples = seeded.fit(data, split)
        if samples.shape[1:] != (len(labels), len(classes)):
            raise BGCLError(
                f"{type(method).__name__} gave probabilities of shape {samples.shape}, not (draws, "
                f"{len(labels)} nodes, {len(classes)} classes)."
            )
        found = uncertainty(samples[:, split.test])
        results.append(SplitResult(split.test, classes, np.searchsorted(classes, labels[split.test]), found))
    return results
