"""The cells of the experiment `trust`: is the confidence right, and does a method see what it does not know?

Each cell has a task in its evaluation: detection with left-out classes or with all classes, or one of those below.
"""

from typing import Any

from bgcl.reproduce.cells import Cell
from bgcl.reproduce.detection import ALL_CLASSES, LEFT_OUT

OURS = "bgcl-default"
RIVALS = ("ensemble-gcn", "gdc-gcn", "gnnsafe", "gpn", "propagated-features")
METHODS = (*RIVALS, OURS)
DETECTION = ("cora", "citeseer", "amazon-photo", "coauthor-cs", "amazon-computers", "pubmed")
DATASETS = DETECTION
TITLES = {
    "ensemble-gcn": "GCNs: one, with dropout, an ensemble", "gnnsafe": "GNNSafe", "gpn": "GPN", OURS: "BGCL, default",
    "propagated-features": "Propagated features, the head of BGCL",
}  # fmt: skip
SAMPLES = 8  # draws of the default
SEEDS, SPLITS = 3, 10
# Networks that are trained for 400 epochs with four wide layers: for PAvPU, not on larger graphs.
WITH_GDC = ("cora", "citeseer", "amazon-photo")
# Networks of an ensemble; fewer on larger graphs.
MEMBERS = {"cora": 5, "citeseer": 5, "amazon-photo": 3, "coauthor-cs": 3, "amazon-computers": 3, "pubmed": 3}


def trust_cells(
    method: str, dataset: str, *, seeds: int | None, splits: int | None, quick: dict[str, Any] | None
) -> list[Cell]:
    """The cells of a method on a data set.

    Args:
        method: name of the method.
        dataset: name of the data set.
        seeds: number of training seeds. Default: 3.
        splits: number of splits of detection. Default: 10.
        quick: settings for a test of the program; None for the experiment.
    """
    many = 1 if quick is not None else seeds or SEEDS
    count = splits or (SPLITS if quick is None else 1)
    settings: dict[str, Any] = {"members": MEMBERS[dataset]} if method == "ensemble-gcn" else {}
    return [
        Cell(method, dataset, seed, "bgrl", count, settings | (quick or {}), {"task": task}, label=task)
        for task in tasks(method, dataset)
        for seed in range(many)
    ]


def tasks(method: str, dataset: str) -> list[str]:
    """The tasks of a method on a data set."""
    if method == "gdc-gcn" and dataset not in WITH_GDC:
        return []
    return [LEFT_OUT, ALL_CLASSES]
