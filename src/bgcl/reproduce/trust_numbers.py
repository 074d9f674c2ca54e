"""Means of the experiment `trust`: what a method reached on a graph, over seeds and splits."""

from collections.abc import Sequence

import numpy as np

from bgcl.reproduce import results
from bgcl.reproduce.detection import ALL_CLASSES, LEFT_OUT
from bgcl.reproduce.detectors import (
    CONFIDENCE,
    DROPOUT,
    ENERGY,
    ENSEMBLE,
    ENTROPY,
    EVIDENCE,
    INFORMATION,
    NOVELTY,
    SINGLE,
    SPREAD_ENERGY,
)
from bgcl.reproduce.results import Result
from bgcl.reproduce.trust import OURS

# The variants of each method, with the scores by which they may detect. Where there are several, the best one counts in
# each cell of the table: this favors the others, of which a user would have to choose one.
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    SINGLE: ("GCN", (ENTROPY, CONFIDENCE, ENERGY)),
    DROPOUT: ("MC dropout", (ENTROPY, CONFIDENCE, INFORMATION)),
    ENSEMBLE: ("ensemble", (ENTROPY, CONFIDENCE, INFORMATION)),
    "gdc-gcn": ("GDC", (ENTROPY, CONFIDENCE, INFORMATION)),
    "gnnsafe": ("GNNSafe", (SPREAD_ENERGY,)),
    "gpn": ("GPN", (EVIDENCE, ENTROPY, CONFIDENCE)),
    "propagated-features": ("no training", (ENTROPY, CONFIDENCE)),
    OURS: ("BGCL", (NOVELTY,)),
}
# What differs, by name: the task, and the shifts whose mean counts.
KINDS = {
    "left-out classes": (LEFT_OUT, ("left-out",)),
    "attributes": (ALL_CLASSES, ("bernoulli", "normal")),
    "structure": (ALL_CLASSES, ("structure",)),
}
# Scores of a head by which nodes that differ by their place in the graph may be found; the best one counts.
BY_HEAD = (ENTROPY, CONFIDENCE, INFORMATION)
BAYESIAN = ("gdc-gcn", DROPOUT, ENSEMBLE)  # rivals whose draws disagree, as ours do


def method_of(variant: str) -> str:
    """The method of the cell that has a variant."""
    return ENSEMBLE if variant in (SINGLE, DROPOUT) else variant


def area(found: Sequence[Result], variant: str, dataset: str, kind: str, score: str) -> float | None:
    """The mean AUROC over seeds, splits and the shifts of a kind; None if it was not computed."""
    task, shifts = KINDS[kind]
    cells = results.of(found, method_of(variant), dataset, task)
    values = [
        np.mean(cell["detection"][variant][shift][score])
        for cell in cells
        for shift in shifts
        if score in cell["detection"].get(variant, {}).get(shift, {})
    ]
    return float(np.mean(values)) if values else None


def best_area(found: Sequence[Result], variant: str, dataset: str, kind: str) -> float | None:
    """The AUROC of a variant by the best of its scores."""
    areas = [area(found, variant, dataset, kind, score) for score in VARIANTS[variant][1]]
    return max((value for value in areas if value is not None), default=None)


def areas(found: Sequence[Result], dataset: str, kind: str) -> dict[str, float]:
    """The AUROC of each variant that was computed, by the best of its scores."""
    every = {variant: best_area(found, variant, dataset, kind) for variant in VARIANTS}
    return {variant: value for variant, value in every.items() if value is not None}


def place_area(found: Sequence[Result], variant: str, dataset: str, name: str, scores: Sequence[str]) -> float | None:
    """The AUROC of nodes that differ by a property, by the best of some scores; None if it was not computed."""
    cells = results.of(found, method_of(variant), dataset, name)
    every = [[cell["detection"].get(variant, {}).get(name, {}).get(score) for cell in cells] for score in scores]
    there = [values for values in every if values and all(value is not None for value in values)]
    return max((float(np.mean([np.mean(v) for v in values])) for values in there), default=None)


def known_mean(found: Sequence[Result], variant: str, dataset: str, name: str) -> float | None:
    """The mean of a score of predictions for test nodes of known classes, with all classes; None if there is none."""
    cells = results.of(found, method_of(variant), dataset, ALL_CLASSES)
    values = [cell["known"].get(variant, {}).get(name) for cell in cells]
    there = [value for value in values if value is not None]
    return float(np.nanmean([np.nanmean(value) for value in there])) if there else None


def has_draws(variant: str) -> bool:
    """Whether a variant has several draws, which may disagree."""
    return INFORMATION in VARIANTS[variant][1] or variant == OURS


def count_of(cells: Sequence[Result]) -> str:
    """The seeds and splits of cells; a dash for none."""
    return f"{len(cells)}, {cells[0]['cell']['splits']}" if cells else "-"


def shown(value: float | None, digits: int = 3) -> str:
    """A number as text; a dash for none."""
    return "-" if value is None else f"{value:.{digits}f}"
