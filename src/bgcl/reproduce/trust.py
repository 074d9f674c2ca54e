"""The cells of the experiment `trust`: is the confidence right, and does a method see what it does not know?

Each cell has a task in its evaluation: detection with left-out classes or with all classes, or one of those below.
"""

from typing import Any

from bgcl.downstream.property_splits import PROPERTIES
from bgcl.reproduce.cells import Cell
from bgcl.reproduce.detection import ALL_CLASSES, LEFT_OUT

OURS = "bgcl-default"
RIVALS = ("ensemble-gcn", "gdc-gcn", "gnnsafe", "gpn", "propagated-features")
METHODS = (OURS, *RIVALS)
DETECTION = ("cora", "citeseer", "amazon-photo", "coauthor-cs", "amazon-computers", "pubmed")
SHIFTED = ("cora", "amazon-photo", "coauthor-cs")  # where test nodes differ by their place in the graph
WITH_SETS = ("cora", "citeseer", "amazon-photo", "amazon-computers", "pubmed", "coauthor-cs")
DATASETS = (*DETECTION, "blogcatalog", "actor", "tolokers", "lastfm")  # without labels: all ten
SETS, WITHOUT_LABELS = "sets", "without labels"
TITLES = {
    "ensemble-gcn": "GCNs: one, with dropout, an ensemble", "gnnsafe": "GNNSafe", "gpn": "GPN", OURS: "BGCL, default",
    "propagated-features": "Propagated features, the head of BGCL",
}  # fmt: skip
SAMPLES, PAIRS = 8, 20  # draws of the default, and for measures without labels
SEEDS, SPLITS, HEADS = 3, 10, 5
# Networks that are trained for 400 epochs with four wide layers: for PAvPU, not on larger graphs.
WITH_GDC = ("cora", "citeseer", "amazon-photo")
MEMBERS = {"cora": 5, "citeseer": 5}  # networks of an ensemble; 3 on larger graphs


def trust_cells(
    method: str, dataset: str, *, seeds: int | None, splits: int | None, quick: dict[str, Any] | None
) -> list[Cell]:
    """The cells of a method on a data set.

    Args:
        method: name of the method.
        dataset: name of the data set.
        seeds: number of training seeds. Default: 3.
        splits: number of splits of detection. Default: 10; sets have 5 with 20 calibrations each.
        quick: settings for a test of the program; None for the experiment.
    """
    many = 1 if quick is not None else seeds or SEEDS
    count = splits or (SPLITS if quick is None else 1)
    settings: dict[str, Any] = {"members": MEMBERS.get(dataset, 3)} if method == "ensemble-gcn" else {}
    fixed = {SETS: HEADS if quick is None else 1, WITHOUT_LABELS: 1}
    changes = settings | (quick or {})
    return [
        Cell(method, dataset, seed, "bgrl", fixed.get(task, count), changes, {"task": task}, label=task)
        for task in tasks(method, dataset)
        for seed in range(1 if task in fixed else many)
    ]


def tasks(method: str, dataset: str) -> list[str]:
    """The tasks of a method on a data set."""
    if dataset not in DETECTION:
        return [WITHOUT_LABELS] if method == OURS else []
    found = [] if method == "gdc-gcn" and dataset not in WITH_GDC else [LEFT_OUT, ALL_CLASSES]
    if dataset in SHIFTED and method in ("ensemble-gcn", OURS):
        found += PROPERTIES
    if method == OURS:
        found += [*([SETS] if dataset in WITH_SETS else []), WITHOUT_LABELS]
    return found
