"""Labels that come later: `--labels FILE`, and the labels of the training graph beside those of another graph."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgcl.cli.opening import graph_of, without_label
from bgcl.cli.options import SMALL
from bgcl.cli.printing import visible
from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL


@dataclass(frozen=True)
class LabelChoice:
    """What the user says about labels that come after training. See `bgcl.cli.options`."""

    file: str | None = None
    label: str | None = None
    id: str | None = None
    missing_label: str | None = None
    skip_unknown: bool = False
    forget: bool = False
    task: str | None = None
    many_labels: str | None = None

    def check(self, graph: str | None) -> None:
        """Refuse options that would change nothing."""
        from bgcl.data.tasks import check_task

        check_task(self.task)
        said = {
            "--label": self.label, "--id": self.id, "--missing-label": self.missing_label,
            "--skip-unknown": self.skip_unknown or None, "--many-labels": self.many_labels,
        }  # fmt: skip
        if self.file is None and (useless := [name for name, value in said.items() if value is not None]):
            raise BGCLError(f"{useless[0]} is about the table of --labels: name one, or leave the option out.")
        if self.forget and self.file is None and graph is None:
            raise BGCLError("--forget-labels needs other labels: name them with --labels, or leave the option out.")


def relabeled(data: "Data", choice: LabelChoice, quiet: bool) -> "tuple[Data, dict[str, Any]]":
    """The graph with the labels of the file, and facts for JSON. What was done is printed to stderr."""
    from bgcl.data.later_labels import with_labels
    from bgcl.data.options import make_options
    from bgcl.data.tasks import with_task

    if choice.file is None:
        return with_task(data, choice.task), {}

    missing = choice.missing_label
    said = make_options(
        id=choice.id, label=choice.label, skip_unknown=choice.skip_unknown, task=choice.task,
        many_labels=choice.many_labels,
        missing_label=None if missing is None else without_label(missing),
    )  # fmt: skip
    found = with_labels(data, choice.file, said, forget=choice.forget)
    if not quiet:
        if found.guesses:
            print(visible(f"Inferred: {'; '.join(found.guesses)}."), file=sys.stderr)
        for note in found.notes:
            print(visible(f"Note: {note}"), file=sys.stderr)
        print(visible(f"Labels: {found}"), file=sys.stderr)
    counts = {name: getattr(found, name) for name in ("used", "replaced", "empty", "unknown", "kept")}
    return found.data, {"labels": {"file": choice.file, **counts}}


def settled(data: "Data", other: "Data | None", small: str, quiet: bool) -> "tuple[Data, Data | None, dict[str, str]]":
    """The graphs with what `--small-classes` makes of their labels, and facts. What was done is printed to stderr."""
    from bgcl.downstream.small_classes import settle_classes
    from bgcl.downstream.splits import has_label_sets, has_numbers

    if has_label_sets(data):
        return data, other, {}
    if has_numbers(data) or (other is not None and has_numbers(other)):
        refuse_small_classes(small)
        return data, other, {}
    data, other, note = settle_classes(data, other, small=small)
    if note and not quiet:
        print(visible(f"Note: {note}"), file=sys.stderr)
    return data, other, {"small_classes": note} if note else {}


def refuse_small_classes(small: str) -> None:
    """Refuse `--small-classes` if the labels are numbers."""
    if small != SMALL:
        raise BGCLError("--small-classes is for classes, and the labels are numbers: leave it out.")


def training_labels(
    model: "BGCL", data: "Data", run: Path, graph: str | None, choice: LabelChoice, quiet: bool
) -> "Data | None":
    """The training graph, if another graph was named and the labels of both count. Otherwise None."""
    from bgcl.data.tasks import with_task
    from bgcl.downstream.splits import has_numbers

    if graph is None or choice.forget:
        return None
    has_own = _count(data) > 0
    try:
        trained = graph_of(model, run, None, None, quiet=True)
    except BGCLError as error:
        if not has_own:
            raise
        raise BGCLError(
            f"{str(error).rstrip('.')}. To use the labels of {graph} without those of the training graph, add "
            "--forget-labels."
        ) from None
    trained = with_task(trained, choice.task)
    if not _count(trained):
        return None
    if has_own and has_numbers(data) != has_numbers(trained):
        raise BGCLError(
            f"The labels of {graph} and of the training graph are numbers in one, classes in the other. Say what they "
            "are with --task, or leave out those of the training graph with --forget-labels."
        )
    if has_own and not quiet:
        count = _count(data)
        print(
            visible(
                f"Labels: {count:,} of {graph}, and those of the training graph for other nodes (--forget-labels to "
                "leave them out)."
            ),
            file=sys.stderr,
        )
    return trained


def _count(data: "Data") -> int:
    """The number of labeled nodes."""
    if data.y is None:
        return 0
    y = data.y if data.y.dim() == 1 else data.y[:, 0]
    return int((~y.isnan()).sum() if y.is_floating_point() else (y >= 0).sum())
