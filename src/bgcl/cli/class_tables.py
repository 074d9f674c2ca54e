"""The confusion matrix and the figures of each class, as `bgcl evaluate` prints them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bgcl.cli.printing import print_table, say

if TYPE_CHECKING:
    from bgcl.downstream.evaluation import SplitResult

MOST = 12  # classes whose matrix is printed; JSON has all of them


def class_facts(results: "Sequence[SplitResult]", names: Sequence[Any] | None) -> dict[str, Any]:
    """Figures of each class, over the test nodes of all splits, and the confusion matrix of a mean split."""
    import numpy as np

    from bgcl.measures.confusion import Confusion

    classes = results[0].classes
    parts = [Confusion.of(r.label, r.uncertainty.probability.argmax(1), len(classes)).matrix for r in results]
    found = Confusion(np.mean(parts, axis=0))
    shown = [str(number if names is None else names[number]) for number in classes.tolist()]
    rows = [
        {"class": name, "precision": float(p), "recall": float(r), "F1": float(f), "support": float(n)}
        for name, p, r, f, n in zip(shown, found.precision, found.recall, found.f1, found.support, strict=True)
    ]
    return {"classes": rows, "confusion": {"classes": shown, "matrix": found.matrix.tolist()}}


def print_classes(facts: dict[str, Any]) -> None:
    """Print the figures of each class and, if they are not too many, the confusion matrix."""
    say("")
    say("Each class; support is the number of test nodes in a split:")
    print_table([{**row, "support": f"{row['support']:.6g}"} for row in facts["classes"]])
    names, matrix = facts["confusion"]["classes"], facts["confusion"]["matrix"]
    if len(names) > MOST:
        say(f"The confusion matrix of {len(names)} classes is in the output of --json.")
        return
    say("")
    say("How many % of the test nodes of a class (rows) are predicted as each class (columns):")
    rows = []
    for name, row in zip(names, matrix, strict=True):
        total = sum(row) or 1
        rows.append(
            {"label": name} | {f"as {other}": f"{100 * n / total:.1f}" for other, n in zip(names, row, strict=True)}
        )
    print_table(rows)
