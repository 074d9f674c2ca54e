"""Labels that come later: `--labels FILE`, and the labels of the training graph beside those of another graph."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgcl.cli.opening import graph_of
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

    def check(self, graph: str | None) -> None:
        """Refuse options that would change nothing."""
        said = {
            "--label": self.label, "--id": self.id, "--missing-label": self.missing_label,
            "--skip-unknown": self.skip_unknown or None,
        }  # fmt: skip
        if self.file is None and (useless := [name for name, value in said.items() if value is not None]):
            raise BGCLError(f"{useless[0]} is about the table of --labels: name one, or leave the option out.")
        if self.forget and self.file is None and graph is None:
            raise BGCLError("--forget-labels needs other labels: name them with --labels, or leave the option out.")


def relabeled(data: "Data", choice: LabelChoice, quiet: bool) -> "tuple[Data, dict[str, Any]]":
    """The graph with the labels of the file, and facts for JSON. What was done is printed to stderr."""
    if choice.file is None:
        return data, {}
    from bgcl.data.later_labels import with_labels
    from bgcl.data.options import make_options

    missing = choice.missing_label
    said = make_options(
        id=choice.id, label=choice.label, skip_unknown=choice.skip_unknown,
        missing_label=None if missing is None else tuple(part.strip() for part in missing.split(",") if part.strip()),
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

    data, other, note = settle_classes(data, other, small=small)
    if note and not quiet:
        print(visible(f"Note: {note}"), file=sys.stderr)
    return data, other, {"small_classes": note} if note else {}


def training_labels(
    model: "BGCL", data: "Data", run: Path, graph: str | None, choice: LabelChoice, quiet: bool
) -> "Data | None":
    """The training graph, if another graph was named and the labels of both count. Otherwise None."""
    if graph is None or choice.forget:
        return None
    has_own = data.y is not None and bool((data.y >= 0).any())
    try:
        trained = graph_of(model, run, None, None, quiet=True)
    except BGCLError as error:
        if not has_own:
            raise
        raise BGCLError(
            f"{str(error).rstrip('.')}. To use the labels of {graph} without those of the training graph, add "
            "--forget-labels."
        ) from None
    if trained.y is None or not bool((trained.y >= 0).any()):
        return None
    if has_own and not quiet:
        count = int((data.y >= 0).sum())
        print(
            visible(
                f"Labels: {count:,} of {graph}, and those of the training graph for other nodes (--forget-labels to "
                "leave them out)."
            ),
            file=sys.stderr,
        )
    return trained
