"""Which class is taken for which: the confusion matrix, and precision, recall and F1 of each class."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Confusion:
    """How many nodes of each class were predicted as each class.

    Attributes:
        matrix: a row for each label, a column for each prediction, `(C, C)`.

    >>> found = Confusion.of(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    >>> found.matrix.tolist(), found.precision.tolist(), found.recall.tolist()
    ([[1.0, 1.0], [0.0, 1.0]], [1.0, 0.5], [0.5, 1.0])
    """

    matrix: Array

    @classmethod
    def of(cls, label: Array, predicted: Array, classes: int) -> "Confusion":
        """Count labels and predictions `(n,)`, which are positions among the classes."""
        counts = np.bincount(label * classes + predicted, minlength=classes**2)
        return cls(counts.reshape(classes, classes).astype(np.float64))

    @property
    def support(self) -> Array:
        """The number of nodes of each class, `(C,)`."""
        return np.asarray(self.matrix.sum(1))

    @property
    def precision(self) -> Array:
        """The share of the nodes predicted as a class that are of this class; 0 if there are none, `(C,)`."""
        return _share(self.matrix.diagonal(), self.matrix.sum(0))

    @property
    def recall(self) -> Array:
        """The share of the nodes of a class that are predicted as this class; 0 if there are none, `(C,)`."""
        return _share(self.matrix.diagonal(), self.matrix.sum(1))

    @property
    def f1(self) -> Array:
        """The harmonic mean of precision and recall; 0 if both are 0, `(C,)`."""
        return _share(2 * self.matrix.diagonal(), self.matrix.sum(0) + self.matrix.sum(1))


def _share(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
