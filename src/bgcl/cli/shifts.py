"""`bgcl evaluate --shift`: accuracy and confidence on nodes and graphs that differ from those that a model knows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgcl.cli.printing import print_json, print_table
from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

ABOUT = {
    "popularity": "with the greatest PageRank", "locality": "nearest to the node with the greatest PageRank",
    "density": "whose neighbors know each other most",
}  # fmt: skip
SCORES = {"accuracy": "accuracy", "ece": "ECE", "auroc:least_confidence": "AUROC of errors"}


def check_shift(shift: str, given: dict[str, bool], runs: list[Path]) -> None:
    """Refuse a shift that does not exist, and options that it has no use for, before anything is computed.

    Args:
        shift: name of the shift.
        given: whether each option was given, by name.
        runs: folders of runs.
    """
    from bgcl.downstream.property_splits import PROPERTIES
    from bgcl.downstream.shift_evaluation import SHIFTS
    from bgcl.errors import nearest

    if shift not in SHIFTS:
        raise BGCLError(f"Unknown shift '{shift}'. {nearest(shift, SHIFTS)}")
    if len(runs) > 1:
        raise BGCLError(f"--shift evaluates one run. Got {len(runs)}: name one of them.")
    useless = [name for name, was_given in given.items() if was_given]
    if shift not in PROPERTIES:
        useless = [name for name in useless if name != "--protocol"]
    if useless:
        raise BGCLError(f"--shift {shift} has no use for {useless[0]}: leave it out.")


def evaluate_shifts(
    model: "BGCL", data: "Data", shift: str, facts: dict[str, Any], *, protocol: str | None, splits: int | None,
    samples: int | None, seed: int | None, out: Path | None, json: bool,
) -> None:  # fmt: skip
    """Evaluate at each level of a shift, and print or write one row for each."""
    from bgcl.data.output import write_table
    from bgcl.downstream.evaluation import summary
    from bgcl.downstream.shift_evaluation import SAMPLES, SPLITS, evaluate_shift
    from bgcl.downstream.splits import has_label_sets, has_numbers

    if has_label_sets(data):
        raise BGCLError("--shift is for one label per node, and here a node may have several: leave it out.")
    if has_numbers(data):
        raise BGCLError("--shift is for classes, and the labels are numbers: leave it out.")
    count, drawn = SPLITS if splits is None else splits, SAMPLES if samples is None else samples
    found = evaluate_shift(model, data, shift, protocol=protocol, count=count, samples=drawn, seed=seed)
    rows = []
    for level, results in found.items():
        scores = summary([results])
        nodes = round(sum(len(result.test) for result in results) / len(results))
        rows.append({"level": level, "nodes": nodes} | {text: scores[name]["mean"] for name, text in SCORES.items()})
    if out is not None:
        write_table(out, {name: [row[name] for row in rows] for name in rows[0]})
    if json:
        print_json(facts | {"shift": shift, "splits": count, "samples": drawn, "levels": rows})
        return
    print(f"Shift: {shift}, {count} splits, {drawn} draws at each level")
    print_table(rows)
    if shift in ABOUT:
        print(f"The known kind: the half of the nodes {ABOUT[shift]}. Quarter 1 of the others is most like it.")
