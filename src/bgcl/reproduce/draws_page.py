"""The tables of the experiment `draws`."""

from collections.abc import Sequence

import numpy as np

from bgcl.reproduce import results
from bgcl.reproduce.draw_rates import DATASETS, INFERRED, MEDIAN, METHOD, SHARES, STARTS, WITHOUT
from bgcl.reproduce.results import Result

Rows = list[list[str]]
WAYS = (INFERRED, MEDIAN, *(f"{share:g} of the rates of training" for share in SHARES), WITHOUT)
SCORES = {"Accuracy of draws, %": "accuracy", "ECE of draws": "ece", "AUROC of draws": "auroc:least_confidence"}
INTRODUCTION = """`bgcl reproduce draws` learns the drop rates of the default from three starts (medians of the
posterior of 0.1, 0.5 and 0.9) and with three seeds. Then, with one encoder, it draws embeddings at the inferred
rates, at the median of their posterior, and at shares of the rates of training. Scores are those of the development
half, with a linear head, one seed, eight draws and five splits."""


def tables(found: Sequence[Result]) -> dict[str, Rows]:
    """All tables by title."""
    every = {"Learned rates from other starts and seeds": _start_rows(found)}
    every |= {title: _way_rows(found, score) for title, score in SCORES.items()}
    return {title: rows for title, rows in every.items() if len(rows) > 1}


def learned(result: Result) -> list[float]:
    """The mean of the posterior of each mask's rate in view o."""
    return [float(np.mean(rate["mean"])) for rate in result["drop_rates"]["o"]]


def _start_rows(found: Sequence[Result]) -> Rows:
    rows = [["data set", "entries, neighbors", *(f"start {start}" for start in STARTS),
             "greatest difference between starts", "greatest difference between seeds",
             "standard deviation of the posterior"]]  # fmt: skip
    for dataset in DATASETS:
        by_start = [results.of(found, METHOD, dataset, f"start {start}") for start in STARTS]
        if not all(by_start):
            continue
        starts = np.array([learned(cells[0]) for cells in by_start])
        seeds = np.array([learned(cell) for cell in by_start[list(STARTS).index("0.5")]])
        deviation = max(float(np.max(rate["std"])) for rate in by_start[0][0]["drop_rates"]["o"])
        rows.append([
            dataset, _pair(seeds.mean(0)), *map(_pair, starts), f"{np.ptp(starts, axis=0).max():.4f}",
            f"{np.ptp(seeds, axis=0).max():.3f}", f"{deviation:.3f}",
        ])  # fmt: skip
    return rows


def _pair(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:.2f}" for rate in rates)


def _way_rows(found: Sequence[Result], score: str) -> Rows:
    rows = [["data set", *WAYS]]
    for dataset in DATASETS:
        cells = [results.of(found, METHOD, dataset, way) for way in WAYS]
        if any(cells):
            rows.append([dataset, *(_score(cell[0], score) if cell else "-" for cell in cells)])
    return rows


def _score(result: Result, score: str) -> str:
    value = result["scores"][score][0]
    return f"{100 * value:.2f}" if score == "accuracy" else f"{value:.3f}"
