"""What was predicted for every node of a graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.measures.uncertainty import Uncertainty

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class NodePredictions:
    """The predicted class of every node, and its uncertainty.

    Attributes:
        label: the known class of each node, -1 if it has none, `(N,)`.
        classes: the classes in ascending order, `(C,)`.
        uncertainty: class probabilities and measures of uncertainty.
        astd: average standard deviation of each node's embedding over the draws, `(N,)`; None if the graph is computed
            in blocks.
        ids: the ids of the nodes, if the graph has them.
        names: the name of each class, by class number, if the graph has them.
        held_out: whether each node has a label that the head which predicts it has not seen, `(N,)`; None: all labels.
    """

    label: Array
    classes: Array
    uncertainty: Uncertainty
    astd: Array | None
    ids: Array | None = None
    names: Sequence[Any] | None = None
    held_out: Array | None = None

    @property
    def calibrates(self) -> Array:
        """The numbers of the labeled nodes that a head predicts which has not seen their label, `(n,)`."""
        return np.flatnonzero(self.label >= 0 if self.held_out is None else self.held_out)

    @property
    def predicted(self) -> Array:
        """The most probable class of each node, `(N,)`."""
        return np.asarray(self.classes[self.uncertainty.probability.argmax(1)])

    def columns(self) -> dict[str, Array]:
        """A table with one row for each node, as columns by name. Ids and class names are used if there are any."""
        columns = {} if self.ids is None else {"id": np.asarray(self.ids)}
        columns |= {
            "node": np.arange(len(self.label)),
            "label": class_names(self.label, self.names),
            "predicted": class_names(self.predicted, self.names),
            "probability": self.uncertainty.probability.max(1),
            **self.uncertainty.measures(),
        } | ({} if self.astd is None else {"astd": self.astd})
        named = class_names(self.classes, self.names)
        return columns | {f"p_{c}": self.uncertainty.probability[:, i] for i, c in enumerate(named)}


def class_names(numbers: Array, names: Sequence[Any] | None) -> Array:
    """The names of classes, None for -1; the numbers themselves if the classes have no names."""
    if names is None:
        return numbers
    table = np.empty(len(names) + 1, dtype=object)
    table[:-1], table[-1] = names, None
    return np.asarray(table[numbers])
