"""The aims of the experiment `trust`, and how far the cells that were computed are from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bgcl.downstream.property_splits import PROPERTIES
from bgcl.reproduce import results
from bgcl.reproduce.detectors import ENSEMBLE
from bgcl.reproduce.results import Result
from bgcl.reproduce.set_results import LEVELS
from bgcl.reproduce.trust import DATASETS, DETECTION, OURS, SETS, SHIFTED, WITH_GDC, WITH_SETS, WITHOUT_LABELS
from bgcl.reproduce.trust_numbers import BAYESIAN, BY_HEAD, KINDS, VARIANTS, areas, known_mean, place_area
from bgcl.reproduce.trust_quality_page import PUBLISHED_SIZES, above_controls

Rows = list[list[str]]

SCORE = "lac"  # the score of the sets that `bgcl predict` makes
POINT, ECE, AUROC, AUROC_OF_SOME, SECONDS = 0.01, 0.02, 0.87, 0.9, 5.0
SURE = ("amazon-photo", "coauthor-cs")  # where errors should be found best
LARGEST = "pubmed"  # 19,717 nodes


@dataclass(frozen=True)
class Target:
    """An aim: in how many cells something should hold, and in which of the computed ones it does."""

    what: str
    holds: list[bool]
    aim: int
    cells: int

    def row(self) -> list[str]:
        """What it is, the aim, what was found, and whether it is reached; open while cells are missing that decide."""
        held = sum(self.holds)
        missing = self.cells - len(self.holds)
        reached = "yes" if held >= self.aim else "no" if held + missing < self.aim else "open"
        return [self.what, f"{self.aim} of {self.cells}", f"{held} of {len(self.holds)}", reached]


def target_rows(found: Sequence[Result]) -> Rows:
    """One row for each aim of which a cell was computed."""
    rows = [target.row() for target in targets(found) if target.holds]
    return [["what", "aim", "found", "reached"], *rows]


def targets(found: Sequence[Result]) -> list[Target]:
    """All aims."""
    every, levels = len(DETECTION), len(WITH_SETS) * len(LEVELS)
    ece = [value <= ECE for value in _known(found, "ece", DETECTION)]
    errors = [value >= AUROC for value in _known(found, "auroc:least_confidence", DETECTION)]
    surely = [value >= AUROC_OF_SOME for value in _known(found, "auroc:least_confidence", SURE)]
    return [
        Target("novelty has a greater AUROC of unknown nodes than all rivals", _detection(found, first=True),
               14, len(KINDS) * every),
        Target("and is never the last", _detection(found, first=False), len(KINDS) * every, len(KINDS) * every),
        Target("the head has a greater AUROC than the ensemble, if nodes differ by their place", _place(found),
               6, len(SHIFTED) * len(PROPERTIES)),
        Target("sets cover within one point of 90 % and 95 %", _coverage(found), levels, levels),
        Target("sets at 90 % are at most as large as published", _sizes(found),
               len(PUBLISHED_SIZES), len(PUBLISHED_SIZES)),
        Target(f"ECE of known nodes of at most {ECE:g}", ece, every, every),
        Target(f"AUROC of errors of at least {AUROC:g}", errors, every, every),
        Target(f"AUROC of errors of at least {AUROC_OF_SOME:g} on Photo and CS", surely, len(SURE), len(SURE)),
        Target("area under PAvPU by entropy greater than that of GDC, MC dropout and ensembles", _pavpu(found),
               len(WITH_GDC), len(WITH_GDC)),
        Target("R-AUROC of the best measure without labels above degree and distance", above_controls(found),
               8, len(DATASETS)),
        Target(f"novelty without labels and sets of {LARGEST} in {SECONDS:g} s", _fast(found), 1, 1),
    ]  # fmt: skip


def _detection(found: Sequence[Result], *, first: bool) -> list[bool]:
    held = []
    for there in (areas(found, dataset, kind) for dataset in DETECTION for kind in KINDS):
        others = [value for variant, value in there.items() if variant != OURS]
        if OURS in there and others:
            held.append(there[OURS] > max(others) if first else there[OURS] >= min(others))
    return held


def _place(found: Sequence[Result]) -> list[bool]:
    both = [
        (place_area(found, OURS, dataset, name, BY_HEAD), place_area(found, ENSEMBLE, dataset, name,
                                                                     VARIANTS[ENSEMBLE][1]))
        for dataset in SHIFTED for name in PROPERTIES
    ]  # fmt: skip
    return [ours > theirs for ours, theirs in both if ours is not None and theirs is not None]


def _coverage(found: Sequence[Result]) -> list[bool]:
    cells = [cell["sets"][SCORE] for dataset in WITH_SETS for cell in results.of(found, OURS, dataset, SETS)]
    off = [abs(float(np.mean(levels[f"{level:g}"]["coverage"])) - level) for levels in cells for level in LEVELS]
    return [gap <= POINT for gap in off]


def _sizes(found: Sequence[Result]) -> list[bool]:
    return [
        float(np.mean(cell["sets"][SCORE]["0.9"]["size"])) <= theirs
        for dataset, theirs in PUBLISHED_SIZES.items()
        for cell in results.of(found, OURS, dataset, SETS)
    ]


def _known(found: Sequence[Result], name: str, datasets: Sequence[str]) -> list[float]:
    values = [known_mean(found, OURS, dataset, name) for dataset in datasets]
    return [value for value in values if value is not None]


def _pavpu(found: Sequence[Result]) -> list[bool]:
    held, name = [], "pavpu:predictive_entropy"
    for dataset in WITH_GDC:
        ours = known_mean(found, OURS, dataset, name)
        theirs = [known_mean(found, variant, dataset, name) for variant in BAYESIAN]
        there = [value for value in theirs if value is not None]
        if ours is not None and len(there) == len(BAYESIAN):
            held.append(ours > max(there))
    return held


def _fast(found: Sequence[Result]) -> list[bool]:
    novelty = [cell["novelty_seconds"] for cell in results.of(found, OURS, LARGEST, WITHOUT_LABELS)]
    sets = [cell["sets_seconds"] for cell in results.of(found, OURS, LARGEST, SETS)]
    return [max(novelty) + max(sets) < SECONDS] if novelty and sets else []
