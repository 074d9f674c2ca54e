"""The tables of figures on the page: each class, the confusion matrix, and predictions that need no training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from bgcl.measures.confusion import Confusion

Array = npt.NDArray[Any]

MOST = 20  # classes whose confusion matrix is shown


@dataclass(frozen=True)
class Figures:
    """A table of texts with a title and an explanation; in a matrix, rows and columns are the same things."""

    title: str
    head: list[str]
    rows: list[list[str]]
    words: str
    matrix: bool = False


def class_figures(label: Array, predicted: Array, names: Sequence[str]) -> list[Figures]:
    """The figures of each class and the confusion matrix, over the labeled nodes; positions of classes, -1 for none."""
    known = label >= 0
    found = Confusion.of(label[known], predicted[known], len(names))
    columns = (found.precision, found.recall, found.f1)
    rows = [
        [name, *(f"{values[i]:.3f}" for values in columns), f"{found.support[i]:,.0f}"] for i, name in enumerate(names)
    ]
    tables = [
        Figures(
            "Classes", ["Class", "Precision", "Recall", "F1", "Labeled nodes"], rows,
            "Precision is the share of the nodes predicted as a class that are of this class, recall the share of the "
            "nodes of a class that are predicted as this class, and F1 their harmonic mean.",
        )
    ]  # fmt: skip
    if len(names) <= MOST:
        counts = [[name, *(f"{count:,.0f}" for count in row)] for name, row in zip(names, found.matrix, strict=True)]
        tables.append(
            Figures(
                "Which class is taken for which", ["Label / predicted", *names], counts,
                "The number of labeled nodes of each class (rows) that are predicted as each class (columns). Those on "
                "the diagonal are predicted correctly.", matrix=True,
            )
        )  # fmt: skip
    return tables


def floor_figures(rows: Sequence[dict[str, Any]], verdict: str, nodes: int) -> Figures:
    """Predictions that need no training, next to the model."""
    texts = [[value if isinstance(value, str) else f"{value:.3f}" for value in row.values()] for row in rows]
    words = f"{verdict} All are compared on {nodes:,} labeled nodes that none of them has learned from."
    return Figures("Does the model pay?", [name[0].upper() + name[1:] for name in rows[0]], texts, words)
