"""The tables of the experiment `trust`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bgcl.downstream.property_splits import PROPERTIES
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
    LABEL_FREE,
    NOVELTY,
    SINGLE,
    SPREAD_ENERGY,
)
from bgcl.reproduce.label_free import ANCHORED, CONTROLS, MEASURES, WHOLE
from bgcl.reproduce.results import Result
from bgcl.reproduce.trust import DATASETS, DETECTION, OURS, RIVALS, SETS, SHIFTED, WITHOUT_LABELS

Rows = list[list[str]]

# The variants of each method, with the scores by which they may detect. Where there are several, the best one counts in
# each cell of the table: this favors the others, of which a user would have to choose one.
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    SINGLE: ("GCN", (ENTROPY, CONFIDENCE, ENERGY)),
    DROPOUT: ("GCN with MC dropout", (ENTROPY, CONFIDENCE, INFORMATION)),
    ENSEMBLE: ("Ensemble of GCNs", (ENTROPY, CONFIDENCE, INFORMATION)),
    "gdc-gcn": ("Bayesian GCN with GDC", (ENTROPY, CONFIDENCE, INFORMATION)),
    "gnnsafe": ("GNNSafe", (SPREAD_ENERGY,)),
    "gpn": ("GPN", (EVIDENCE, ENTROPY, CONFIDENCE)),
    "propagated-features": ("Propagated features, the head of BGCL", (ENTROPY, CONFIDENCE)),
    OURS: ("BGCL, novelty", (NOVELTY,)),
}
FREE = (*MEASURES, ANCHORED, WHOLE)  # measures without labels
# What differs, by name: the task, and the shifts whose mean counts.
KINDS = {
    "left-out classes": (LEFT_OUT, ("left-out",)),
    "attributes": (ALL_CLASSES, ("bernoulli", "normal")),
    "structure": (ALL_CLASSES, ("structure",)),
}
# AUROC in %, as the paper of GNNSafe has it. Its tasks on Cora have the public split.
PAPER = {
    ("cora", "left-out classes"): 92.8, ("cora", "structure"): 87.5,
    ("amazon-photo", "left-out classes"): 97.4, ("amazon-photo", "structure"): 99.6,
    ("coauthor-cs", "left-out classes"): 97.2, ("coauthor-cs", "structure"): 99.6,
}  # fmt: skip
KNOWN = {
    "accuracy": "accuracy, %", "ece": "ECE", "auroc:least_confidence": "AUROC of errors",
    "pavpu:predictive_entropy": "area under PAvPU by entropy",
    "pavpu:mutual_information": "area under PAvPU by mutual information",
}  # fmt: skip

INTRODUCTION = """`bgcl reproduce trust` asks which method notices what it does not know. Nothing is fitted on unknown
nodes. All methods have the same splits: 10 % training, 10 % validation and 80 % test nodes, of which those outside the
development half are scored. The AUROC is the probability that an unknown node has the greater score.

There are three kinds of unknown nodes. *Left-out classes* are the first half of the classes, whose labels no method
sees. *Attributes* are 10 % of the nodes whose attributes are noise, Bernoulli(0.5) or N(0, 1); the table has the mean
of both. *Structure* is a graph whose edges are those of a stochastic block model.

The novelty of BGCL is that of `bgcl.Novelty` with its defaults, where the validation nodes say what is usual. Rivals
are own implementations with published settings: supervised GCNs (one, one with dropout at prediction, an ensemble of
five, or three on the larger graphs), a Bayesian GCN with Graph DropConnect (citation graphs and Photo), GNNSafe, and
the Graph Posterior Network. GNNSafe counts by its own score. Other rivals count by whichever of their scores is best in
the cell, which favors them."""


def tables(found: Sequence[Result]) -> dict[str, Rows]:
    """All tables by title."""
    every = {
        "AUROC of unknown nodes": detection_rows(found),
        "AUROC of each score": score_rows(found),
        "GNNSafe here and in its paper, AUROC in %": paper_rows(found),
        "Known nodes": known_rows(found),
        "AUROC of nodes that differ by their place in the graph": place_rows(found),
        "Prediction sets": set_rows(found),
        "R-AUROC: does uncertainty without labels know where the nearest node misleads?": recall_rows(found),
        "Share of masked nodes whose uncertainty rises": rise_rows(found),
        "Seconds beyond the draws": cost_rows(found),
    }
    return {title: rows for title, rows in every.items() if len(rows) > 1}


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


def detection_rows(found: Sequence[Result]) -> Rows:
    """One row for each graph and kind of unknown nodes: the AUROC of each variant, and who is first."""
    rows = [["graph", "unknown nodes", "seeds, splits", *(title for title, _ in VARIANTS.values()), "first"]]
    first = cells = last = 0
    for dataset in DETECTION:
        for kind, (task, _) in KINDS.items():
            areas = {variant: best_area(found, variant, dataset, kind) for variant in VARIANTS}
            if all(value is None for value in areas.values()):
                continue
            there = {variant: value for variant, value in areas.items() if value is not None}
            winner = max(there, key=lambda variant: there[variant])
            if OURS in there:
                cells += 1
                first += winner == OURS
                last += min(there, key=lambda variant: there[variant]) == OURS
            count = _count(results.of(found, OURS, dataset, task) or _of_any(found, dataset, task))
            rows.append([dataset, kind, count, *map(_shown, areas.values()), VARIANTS[winner][0]])
    if cells:
        rows.append([f"BGCL is first in {first} of {cells}, last in {last}", *[""] * (len(rows[0]) - 1)])
    return rows


def _of_any(found: Sequence[Result], dataset: str, task: str) -> list[Result]:
    return next((cells for method in RIVALS if (cells := results.of(found, method, dataset, task))), [])


def _count(cells: list[Result]) -> str:
    """The seeds and splits of cells."""
    return f"{len(cells)}, {cells[0]['cell']['splits']}"


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def score_rows(found: Sequence[Result]) -> Rows:
    """One row for each variant and score, one column for each graph and kind."""
    columns = [(dataset, kind) for dataset in DETECTION for kind in KINDS]
    columns = [column for column in columns if any(best_area(found, v, *column) is not None for v in VARIANTS)]
    rows = [["method", "score", *(f"{dataset}, {kind}" for dataset, kind in columns)]]
    for variant, (title, _) in VARIANTS.items():
        for score in _scores_of(found, variant):
            areas = [area(found, variant, dataset, kind, score) for dataset, kind in columns]
            rows.append([title.removesuffix(", novelty"), score, *map(_shown, areas)])
    return rows


def _scores_of(found: Sequence[Result], variant: str) -> list[str]:
    """The names of the scores of a variant in the order of the results."""
    every: dict[str, Any] = {}
    for result in found:
        for scores in result.get("detection", {}).get(variant, {}).values():
            every |= dict.fromkeys(scores)
    order = (NOVELTY, LABEL_FREE)
    return sorted(every, key=lambda name: order.index(name) if name in order else len(order))


def paper_rows(found: Sequence[Result]) -> Rows:
    """GNNSafe next to the figures of its paper, where tasks are alike."""
    rows = [["graph", "unknown nodes", "here", "paper"]]
    for (dataset, kind), theirs in PAPER.items():
        ours = area(found, "gnnsafe", dataset, kind, SPREAD_ENERGY)
        if ours is not None:
            rows.append([dataset, kind, f"{100 * ours:.1f}", f"{theirs:.1f}"])
    return rows


def known_rows(found: Sequence[Result]) -> Rows:
    """Accuracy, calibration, detection of errors and PAvPU on test nodes of known classes, with all classes."""
    rows = [["graph", "method", "seeds, splits", *KNOWN.values()]]
    for dataset in DETECTION:
        for variant, (title, _) in VARIANTS.items():
            cells = results.of(found, method_of(variant), dataset, ALL_CLASSES)
            if cells:
                scores = [
                    np.nanmean([np.nanmean(cell["known"][variant][name]) for cell in cells])
                    if _has_draws(variant) or name != "pavpu:mutual_information" else None
                    for name in KNOWN
                ]  # fmt: skip
                shown = [
                    f"{100 * (scores[0] or 0):.2f}",
                    *(_shown(None if s is None else float(s)) for s in scores[1:]),
                ]
                rows.append([dataset, title.removesuffix(", novelty"), _count(cells), *shown])
    return rows


def place_rows(found: Sequence[Result]) -> Rows:
    """One row for each graph and property: the AUROC of each variant, and the accuracy for both kinds of nodes."""
    variants = {variant: VARIANTS[variant] for variant in (SINGLE, DROPOUT, ENSEMBLE)}
    variants[OURS] = ("BGCL, its head", (ENTROPY, CONFIDENCE, INFORMATION))
    rows = [["graph", "test nodes differ by", "seeds, splits", *(title for title, _ in variants.values()),
             "BGCL, novelty", "accuracy of the ensemble, known and unknown", "accuracy of BGCL"]]  # fmt: skip
    won = cells = 0
    for dataset in SHIFTED:
        for name in PROPERTIES:
            areas = [
                max((value for score in scores if (value := _area(found, variant, dataset, name, score)) is not None),
                    default=None)
                for variant, (_, scores) in variants.items()
            ]  # fmt: skip
            novelty = _area(found, OURS, dataset, name, NOVELTY)
            ensemble, ours = areas[-2], areas[-1]
            if ensemble is None and ours is None:
                continue
            if ensemble is not None and ours is not None:
                cells += 1
                won += ours > ensemble
            count = _count(results.of(found, OURS, dataset, name) or results.of(found, ENSEMBLE, dataset, name))
            accuracy = [_both(found, variant, dataset, name) for variant in (ENSEMBLE, OURS)]
            rows.append([dataset, name, count, *map(_shown, areas), _shown(novelty), *accuracy])
    if cells:
        rows.append([f"the head of BGCL is above the ensemble in {won} of {cells}", *[""] * (len(rows[0]) - 1)])
    return rows


def _area(found: Sequence[Result], variant: str, dataset: str, name: str, score: str) -> float | None:
    values = [
        np.mean(cell["detection"][variant][name][score])
        for cell in results.of(found, method_of(variant), dataset, name)
    ]
    return float(np.mean(values)) if values else None


def _both(found: Sequence[Result], variant: str, dataset: str, name: str) -> str:
    """The accuracy in % for known and for unknown test nodes."""
    cells = results.of(found, method_of(variant), dataset, name)
    if not cells:
        return "-"
    both = [np.mean([np.mean(cell["known"][variant][part]) for cell in cells])
            for part in ("accuracy", "accuracy of unknown")]  # fmt: skip
    return ", ".join(f"{100 * value:.1f}" for value in both)


# Mean sizes at 90 % with 20 % of the labels to train and 10 % to calibrate, as published.
PUBLISHED_SIZES = {"cora": 1.18, "citeseer": 0.97, "amazon-photo": 1.04, "amazon-computers": 1.20}


def set_rows(found: Sequence[Result]) -> Rows:
    """Mean coverage and mean size of the sets of each score and level."""
    rows = [["graph", "score", "calibrations", "coverage at 90 %", "size", "published size", "coverage at 95 %",
             "size at 95 %"]]  # fmt: skip
    for dataset in DATASETS:
        for cell in results.of(found, OURS, dataset, SETS):
            for score, levels in cell["sets"].items():
                low, high = levels["0.9"], levels["0.95"]
                theirs = PUBLISHED_SIZES.get(dataset)
                rows.append([
                    dataset, score, str(len(low["size"])), f"{100 * np.mean(low['coverage']):.2f} %",
                    f"{np.mean(low['size']):.3f}", "-" if theirs is None else f"{theirs:.2f}",
                    f"{100 * np.mean(high['coverage']):.2f} %", f"{np.mean(high['size']):.3f}",
                ])  # fmt: skip
    return rows


def recall_rows(found: Sequence[Result]) -> Rows:
    """One row for each graph: R-AUROC of each measure, and whether the best is above both controls."""
    rows = [["graph", "nearest has the same class", *FREE, *CONTROLS, "best above both controls"]]
    above = cells = 0
    for dataset in DATASETS:
        for cell in results.of(found, OURS, dataset, WITHOUT_LABELS):
            values = cell["r_auroc"]
            best = max(FREE, key=lambda name: values[name])
            wins = values[best] > max(values[name] for name in CONTROLS)
            above, cells = above + wins, cells + 1
            shown = [_shown(values[name]) for name in (*FREE, *CONTROLS)]
            rows.append([dataset, f"{100 * cell['recall']:.1f} %", *shown, f"{best}: {'yes' if wins else 'no'}"])
    if cells:
        rows.append([f"above both in {above} of {cells}", *[""] * (len(rows[0]) - 1)])
    return rows


def rise_rows(found: Sequence[Result]) -> Rows:
    """One row for each graph and what is masked."""
    rows = [["graph", "masked", *FREE]]
    for dataset in DATASETS:
        for cell in results.of(found, OURS, dataset, WITHOUT_LABELS):
            for what, shares in cell["rises"].items():
                rows.append([dataset, what, *(f"{100 * shares[name]:.0f} %" for name in FREE)])
    return rows


def cost_rows(found: Sequence[Result]) -> Rows:
    """The time of novelty for all nodes, and of one calibration with the sets of all nodes."""
    rows = [["graph", "novelty of all nodes, s", "sets of all nodes, s"]]
    for dataset in DATASETS:
        novelty = [c["novelty_seconds"] for c in results.of(found, OURS, dataset, WITHOUT_LABELS)]
        sets = [c["sets_seconds"] for c in results.of(found, OURS, dataset, SETS)]
        if novelty or sets:
            rows.append([dataset, *(f"{np.mean(part):.2f}" if part else "-" for part in (novelty, sets))])
    return rows


def _has_draws(variant: str) -> bool:
    return INFORMATION in VARIANTS[variant][1] or variant == OURS
