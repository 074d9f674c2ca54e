"""The tables of the experiment `trust`: who notices unknown nodes. The others are in `trust_quality_page`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bgcl.downstream.property_splits import PROPERTIES
from bgcl.reproduce import results
from bgcl.reproduce.detectors import DROPOUT, ENSEMBLE, LABEL_FREE, NOVELTY, SINGLE, SPREAD_ENERGY
from bgcl.reproduce.results import Result
from bgcl.reproduce.trust import DETECTION, OURS, RIVALS, SHIFTED
from bgcl.reproduce.trust_numbers import (
    BY_HEAD,
    KINDS,
    VARIANTS,
    area,
    areas,
    best_area,
    count_of,
    place_area,
    shown,
)
from bgcl.reproduce.trust_quality_page import cost_rows, known_rows, pavpu_rows, recall_rows, rise_rows, set_rows
from bgcl.reproduce.trust_targets import target_rows

Rows = list[list[str]]

# AUROC in %, as the paper of GNNSafe has it. Its tasks on Cora have the public split. Its shift of attributes, mixtures
# of two nodes, is not one of those here.
PAPER = {
    ("cora", "left-out classes"): 92.8, ("cora", "structure"): 87.5,
    ("amazon-photo", "left-out classes"): 97.4, ("amazon-photo", "structure"): 99.6,
    ("coauthor-cs", "left-out classes"): 97.2, ("coauthor-cs", "structure"): 99.6,
}  # fmt: skip

INTRODUCTION = """`bgcl reproduce trust` asks which method notices what it does not know. Nothing is fitted on unknown
nodes. All methods have the same splits: 10 % training, 10 % validation and 80 % test nodes, of which those outside the
development half are scored. The AUROC is the probability that an unknown node has the greater score.

There are three kinds of unknown nodes. *Left-out classes* are the first half of the classes, whose labels no method
sees. *Attributes* are 10 % of the nodes whose attributes are noise, Bernoulli(0.5) or N(0, 1); the table has the mean
of both. *Structure* is a graph whose edges are those of a stochastic block model.

The novelty of BGCL is that of `bgcl.Novelty` with its defaults, where the validation nodes say what is usual. Rivals
are own implementations with published settings: supervised GCNs (one, one with dropout at prediction, an ensemble of
five, or three on the larger graphs), a Bayesian GCN with Graph DropConnect (GDC; citation graphs and Photo), GNNSafe,
and the Graph Posterior Network (GPN). *No training* is propagated attributes with the head of BGCL. GNNSafe counts by
its own score. Other rivals count by whichever of their scores is best in the cell, which favors them. A dash means that
a cell was not computed. [Which number for which decision](trust.md) says how to use what is measured here."""


def tables(found: Sequence[Result]) -> dict[str, Rows]:
    """All tables by title."""
    every = {
        "What was aimed at": target_rows(found),
        "AUROC of unknown nodes": detection_rows(found),
        **{f"AUROC of each score: {kind}": score_rows(found, kind) for kind in KINDS},
        "GNNSafe here and in its paper, AUROC in %": paper_rows(found),
        "AUROC of nodes that differ by their place in the graph": place_rows(found),
        "Prediction sets": set_rows(found),
        "Known nodes": known_rows(found),
        "PAvPU of the calibrated head and of rivals with draws": pavpu_rows(found),
        "R-AUROC: does uncertainty without labels know where the nearest node misleads?": recall_rows(found),
        "Share of masked nodes whose uncertainty rises": rise_rows(found),
        "Seconds beyond the draws": cost_rows(found),
    }
    return {title: rows for title, rows in every.items() if len(rows) > 1}


def detection_rows(found: Sequence[Result]) -> Rows:
    """One row for each graph and kind of unknown nodes: the AUROC of each variant, who is first, and by how much."""
    titles = [title for title, _ in VARIANTS.values()]
    rows = [["graph", "unknown nodes", "seeds, splits", *titles, "first", "BGCL minus the best other"]]
    first = cells = last = 0
    for dataset in DETECTION:
        for kind, (task, _) in KINDS.items():
            there = areas(found, dataset, kind)
            if not there:
                continue
            winner, ahead = max(there, key=lambda variant: there[variant]), "-"
            if OURS in there and len(there) > 1:
                others = [value for variant, value in there.items() if variant != OURS]
                cells += 1
                first += there[OURS] > max(others)
                last += there[OURS] < min(others)
                ahead = f"{there[OURS] - max(others):+.3f}"
            count = count_of(results.of(found, OURS, dataset, task) or _of_any(found, dataset, task))
            values = [shown(there.get(variant)) for variant in VARIANTS]
            rows.append([dataset, kind, count, *values, VARIANTS[winner][0], ahead])
    if cells:
        rows.append([f"BGCL is first in {first} of {cells}, last in {last}", *[""] * (len(rows[0]) - 1)])
    return rows


def _of_any(found: Sequence[Result], dataset: str, task: str) -> list[Result]:
    return next((cells for method in RIVALS if (cells := results.of(found, method, dataset, task))), [])


def score_rows(found: Sequence[Result], kind: str) -> Rows:
    """One row for each variant and score, one column for each graph, for one kind of unknown nodes."""
    graphs = [graph for graph in DETECTION if any(best_area(found, v, graph, kind) is not None for v in VARIANTS)]
    rows = [["method", "score", *graphs]]
    for variant, (title, _) in VARIANTS.items():
        for score in _scores_of(found, variant):
            values = [area(found, variant, graph, kind, score) for graph in graphs]
            if any(value is not None for value in values):
                rows.append([title, score, *map(shown, values)])
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
    """GNNSafe next to the figures of its paper, where tasks are alike, and BGCL here."""
    rows = [["graph", "unknown nodes", "GNNSafe here", "GNNSafe, paper", "BGCL here"]]
    for (dataset, kind), theirs in PAPER.items():
        here = area(found, "gnnsafe", dataset, kind, SPREAD_ENERGY)
        ours = area(found, OURS, dataset, kind, NOVELTY)
        if here is not None or ours is not None:
            shares = [None if value is None else 100 * value for value in (here, ours)]
            rows.append([dataset, kind, shown(shares[0], 1), f"{theirs:.1f}", shown(shares[1], 1)])
    return rows


def place_rows(found: Sequence[Result]) -> Rows:
    """One row for each graph and property: the AUROC of each variant, and the accuracy for both kinds of nodes."""
    variants = (SINGLE, DROPOUT, ENSEMBLE)
    rows = [["graph", "test nodes differ by", "seeds, splits", *(VARIANTS[variant][0] for variant in variants),
             "BGCL, its head", "BGCL, novelty", "accuracy of the ensemble, known and unknown",
             "accuracy of BGCL"]]  # fmt: skip
    won = cells = 0
    for dataset in SHIFTED:
        for name in PROPERTIES:
            every = [place_area(found, variant, dataset, name, VARIANTS[variant][1]) for variant in variants]
            ensemble, ours = every[-1], place_area(found, OURS, dataset, name, BY_HEAD)
            novelty = place_area(found, OURS, dataset, name, (NOVELTY,))
            if ensemble is None and ours is None:
                continue
            if ensemble is not None and ours is not None:
                cells += 1
                won += ours > ensemble
            count = count_of(results.of(found, OURS, dataset, name) or results.of(found, ENSEMBLE, dataset, name))
            accuracy = [_both(found, variant, dataset, name) for variant in (ENSEMBLE, OURS)]
            rows.append([dataset, name, count, *map(shown, (*every, ours, novelty)), *accuracy])
    if cells:
        rows.append([f"the head of BGCL is above the ensemble in {won} of {cells}", *[""] * (len(rows[0]) - 1)])
    return rows


def _both(found: Sequence[Result], variant: str, dataset: str, name: str) -> str:
    """The accuracy in % for known and for unknown test nodes."""
    cells = results.of(found, variant, dataset, name)
    if not cells:
        return "-"
    both = [np.mean([np.mean(cell["known"][variant][part]) for cell in cells])
            for part in ("accuracy", "accuracy of unknown")]  # fmt: skip
    return ", ".join(f"{100 * value:.1f}" for value in both)
