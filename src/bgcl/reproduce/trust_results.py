"""Compute a cell of the experiment `trust`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bgcl.reproduce.cache import Cache
from bgcl.reproduce.cells import Cell
from bgcl.reproduce.detection import Fit, detect
from bgcl.reproduce.detectors import FITS, Judge, fit_bgcl
from bgcl.reproduce.fitting import trained
from bgcl.reproduce.label_free import label_free
from bgcl.reproduce.set_results import set_results
from bgcl.reproduce.trust import OURS, PAIRS, SAMPLES, SETS, WITHOUT_LABELS

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.downstream.splits import Split

Found = dict[str, Any]


def trust_result(cell: Cell, data: "Data", method: Any, cache: Cache) -> Found:
    """The result of a cell, by its task."""
    about, task = {"settings": method.to_json()}, cell.evaluation["task"]
    if task == SETS:
        found = set_results(trained(data, method, cache), data, heads=cell.splits, samples=SAMPLES, seed=cell.seed)
        sizes = found["sets"]["lac"]["0.9"]["size"]
        return about | {"headline": f"{np.mean(sizes):.2f} classes at 90 %"} | found
    if task == WITHOUT_LABELS:
        found = label_free(trained(data, method, cache), data, samples=PAIRS, seed=cell.seed)
        return about | {"headline": f"R-AUROC up to {max(found['r_auroc'].values()):.3f}"} | found
    found = detect(fit_of(cell, method, cache), data, task, cell.splits, seed=cell.seed)
    best = max(
        np.mean(values)
        for by_shift in found["detection"].values()
        for scores in by_shift.values()
        for values in scores.values()
    )
    return about | {"headline": f"AUROC up to {best:.3f}"} | found


def fit_of(cell: Cell, method: Any, cache: Cache) -> Fit:
    """A function of a graph, a split and a seed that fits the method of a cell."""

    def fit(data: "Data", split: "Split", seed: int) -> Judge:
        if cell.method == OURS:  # labels play no part in the training, and all splits share it
            return fit_bgcl(trained(data, method, cache), data, split, SAMPLES)
        return FITS[cell.method](data, split, cell.dataset, seed, **cell.settings)

    return fit
