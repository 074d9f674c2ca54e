"""The tables of the experiment `trust` about known nodes: calibration, PAvPU, sets, and uncertainty without labels."""

from collections.abc import Sequence

import numpy as np

from bgcl.reproduce import results
from bgcl.reproduce.detection import ALL_CLASSES
from bgcl.reproduce.label_free import ANCHORED, CONTROLS, MEASURES, WHOLE
from bgcl.reproduce.results import Result
from bgcl.reproduce.trust import DATASETS, DETECTION, OURS, SETS, WITH_GDC, WITHOUT_LABELS
from bgcl.reproduce.trust_numbers import BAYESIAN, VARIANTS, count_of, has_draws, known_mean, method_of, shown

Rows = list[list[str]]

FREE = (*MEASURES, ANCHORED, WHOLE)  # measures without labels
INFORMATION_AREA = "pavpu:mutual_information"
KNOWN = {
    "accuracy": "accuracy, %", "ece": "ECE", "auroc:least_confidence": "AUROC of errors",
    "pavpu:predictive_entropy": "PAvPU by entropy", INFORMATION_AREA: "PAvPU by mutual information",
}  # fmt: skip
# Mean sizes at 90 % with 20 % of the labels to train and 10 % to calibrate, as published.
PUBLISHED_SIZES = {"cora": 1.18, "citeseer": 0.97, "amazon-photo": 1.04, "amazon-computers": 1.20}


def known_rows(found: Sequence[Result]) -> Rows:
    """Accuracy, calibration, detection of errors and PAvPU on test nodes of known classes, with all classes."""
    rows = [["graph", "method", "seeds, splits", *KNOWN.values()]]
    for dataset in DETECTION:
        for variant, (title, _) in VARIANTS.items():
            cells = results.of(found, method_of(variant), dataset, ALL_CLASSES)
            accuracy = known_mean(found, variant, dataset, "accuracy")
            if accuracy is None:
                continue
            others = [
                known_mean(found, variant, dataset, name) if has_draws(variant) or name != INFORMATION_AREA else None
                for name in list(KNOWN)[1:]
            ]
            rows.append([dataset, title, count_of(cells), f"{100 * accuracy:.2f}", *map(shown, others)])
    return rows


def pavpu_rows(found: Sequence[Result]) -> Rows:
    """The area under PAvPU of the calibrated head and of each rival that has draws, and whose is the greatest."""
    names = {name: title for name, title in KNOWN.items() if name.startswith("pavpu")}
    variants = (*BAYESIAN, OURS)
    titles = [f"{VARIANTS[variant][0]} (seeds, splits)" for variant in variants]
    rows = [["graph", "area under", *titles, "greatest"]]
    for dataset in WITH_GDC:
        for name, title in names.items():
            every = {variant: known_mean(found, variant, dataset, name) for variant in variants}
            there = {variant: value for variant, value in every.items() if value is not None}
            if OURS not in there or len(there) < 2:
                continue
            cells = {v: results.of(found, method_of(v), dataset, ALL_CLASSES) for v in variants}
            texts = [
                f"{value:.3f} ({count_of(cells[v])})" if (value := every[v]) is not None else "-" for v in variants
            ]
            rows.append([dataset, title, *texts, VARIANTS[max(there, key=lambda v: there[v])][0]])
    return rows


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
    above = above_controls(found)
    for dataset in DATASETS:
        for cell in results.of(found, OURS, dataset, WITHOUT_LABELS):
            values = cell["r_auroc"]
            best = max(FREE, key=lambda name: values[name])
            texts = [shown(values[name]) for name in (*FREE, *CONTROLS)]
            rows.append(
                [dataset, f"{100 * cell['recall']:.1f} %", *texts, f"{best}: {'yes' if above[len(rows) - 1] else 'no'}"]
            )
    if above:
        rows.append(
            [f"the best of each graph is above both in {sum(above)} of {len(above)}", *[""] * (len(rows[0]) - 1)]
        )
    return rows


def above_controls(found: Sequence[Result]) -> list[bool]:
    """Whether the best measure without labels has a greater R-AUROC than both controls, for each cell."""
    cells = [cell["r_auroc"] for dataset in DATASETS for cell in results.of(found, OURS, dataset, WITHOUT_LABELS)]
    return [max(values[name] for name in FREE) > max(values[name] for name in CONTROLS) for values in cells]


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
    rows = [["graph", "novelty of all nodes, without labels, s", "sets of all nodes, s"]]
    for dataset in DATASETS:
        novelty = [c["novelty_seconds"] for c in results.of(found, OURS, dataset, WITHOUT_LABELS)]
        sets = [c["sets_seconds"] for c in results.of(found, OURS, dataset, SETS)]
        if novelty or sets:
            rows.append([dataset, *(f"{np.mean(part):.2f}" if part else "-" for part in (novelty, sets))])
    return rows
