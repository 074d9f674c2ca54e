"""The tables and the picture of the experiment `rates`: where good rates are, and which criterion would find them."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from bgcl.reporting.look import COLORS
from bgcl.reporting.plots import look
from bgcl.reproduce import results
from bgcl.reproduce.rate_grid import CRITERIA, DATASETS, GRID, LEARNED
from bgcl.reproduce.results import Result

Rows = list[list[str]]
METHOD = "bgcl-default"
CEILING = 0.2  # the share of information at which the augmentation's ceiling of the default was
NEAR = 0.2  # points of accuracy that count as equal
INTRODUCTION = """`bgcl reproduce rates` trains the default, with one encoder, at fixed rates of both masks, the same
in both views, on a grid of five by five, and with learned rates. It answers where good rates are, and whether a
criterion without labels would find them. Scores are those of the development half, with a linear head and without
masks, one seed, five splits. 5 % of the edges are held out while the encoder trains, for their likelihood. With fixed
rates training has 300 steps. The best point of the grid is chosen with the labels of the same nodes on which it is
scored, so it is a little too good. The rule that learns the rates was formed with these tables in view."""

Choice = Callable[[Result], float]


def _shared(result: Result) -> float:
    """The share of information that the views have in common, from the loss of batches of twice 512 nodes."""
    settings = result["settings"]
    return float((math.log(2 * settings["batch_nodes"]) - result["criteria"]["loss"]) * settings["tau"])


CHOICES: dict[str, Choice] = {
    "greatest rank": lambda result: result["criteria"]["rank"],
    "likeliest edges": lambda result: result["criteria"]["edges"],
    "most agreement": lambda result: result["criteria"]["agreement"],
    "the paper's objective (greatest loss)": lambda result: result["criteria"]["loss"],
    f"a ceiling ({CEILING:g} of the information shared)": lambda result: -abs(_shared(result) - CEILING),
    "rates of 0.5": lambda result: float(result["cell"]["label"] == "0.5 and 0.5"),
    "rates of 0.7 and 0.3": lambda result: float(result["cell"]["label"] == "0.7 and 0.3"),
}


def tables(found: Sequence[Result]) -> dict[str, Rows]:
    """All tables by title."""
    grids = {dataset: grid for dataset in DATASETS if (grid := _grid(found, dataset))}
    every = {
        "Learned rates and the grid": _learned_rows(grids, found),
        "What each criterion would choose": _choice_rows(grids),
    }
    every |= {f"Accuracy on the grid: {dataset}": _grid_rows(grid) for dataset, grid in grids.items()}
    return every


def _grid(found: Sequence[Result], dataset: str) -> list[Result]:
    """The results of all points of a complete grid, in order."""
    points = [
        results.of(found, METHOD, dataset, f"{entries} and {neighbors}") for entries in GRID for neighbors in GRID
    ]
    return [point[0] for point in points] if all(points) else []


def _accuracy(result: Result) -> float:
    return 100 * float(np.mean(result["accuracy"]))


def _learned_rows(grids: dict[str, list[Result]], found: Sequence[Result]) -> Rows:
    """Learned rates next to the best point of the grid."""
    rows = [["data set", "learned rates (entries, neighbors)", "accuracy, %", "best of the grid", "accuracy, %",
             "difference", f"points within {NEAR:g} of it", "worst, %", "training, s: learned", "grid"]]  # fmt: skip
    for dataset, grid in grids.items():
        accuracies = [_accuracy(result) for result in grid]
        best = grid[int(np.argmax(accuracies))]
        near = sum(accuracy >= max(accuracies) - NEAR for accuracy in accuracies)
        ours = results.of(found, METHOD, dataset, LEARNED)
        learned = ["-", "-"]
        if ours:
            learned = [", ".join(f"{rate['mean'][0][0]:.2f}" for rate in ours[0]["drop_rates"]["o"]),
                       f"{_accuracy(ours[0]):.2f}"]  # fmt: skip
        rows.append([
            dataset, *learned, best["cell"]["label"].replace(" and ", ", "), f"{max(accuracies):.2f}",
            f"{_accuracy(ours[0]) - max(accuracies):+.2f}" if ours else "-", f"{near} of {len(grid)}",
            f"{min(accuracies):.2f}", f"{ours[0]['training_seconds']:.0f}" if ours else "-",
            f"{sum(result['training_seconds'] for result in grid):.0f}",
        ])  # fmt: skip
    return rows


def _choice_rows(grids: dict[str, list[Result]]) -> Rows:
    """For each criterion the point that it would choose on each graph, and how far its accuracy is below the best."""
    rows = [["criterion", *grids, "mean of points below the best"]]
    for name, score in CHOICES.items():
        cells, below = [], []
        for grid in grids.values():
            chosen = max(grid, key=score)
            below.append(max(map(_accuracy, grid)) - _accuracy(chosen))
            cells.append(f"{chosen['cell']['label'].replace(' and ', ', ')}: -{below[-1]:.2f}")
        rows.append([name, *cells, f"{np.mean(below):.2f}"])
    return rows


def _grid_rows(grid: list[Result]) -> Rows:
    accuracy = np.array([_accuracy(result) for result in grid]).reshape(len(GRID), len(GRID))
    header = ["entries", *(f"neighbors {rate}" for rate in GRID)]
    return [
        header,
        *([f"{rate}", *(f"{value:.2f}" for value in row)] for rate, row in zip(GRID, accuracy, strict=True)),
    ]


def picture(found: Sequence[Result]) -> Figure:
    """One panel for each criterion: its rank correlation with accuracy over the grid of each graph."""
    grids = {dataset: grid for dataset in DATASETS if (grid := _grid(found, dataset))}
    with look():
        figure = Figure(figsize=(2.6 * len(CRITERIA), 0.3 * len(grids) + 1.2), layout="constrained")
        axes = figure.subplots(1, len(CRITERIA), sharey=True, squeeze=False)[0]
        for axis, (name, title) in zip(axes, CRITERIA.items(), strict=True):
            values = [correlation(grid, name) for grid in grids.values()]
            axis.barh(list(grids), values, color=[COLORS[0] if value >= 0 else COLORS[1] for value in values])
            axis.set(title=title, xlim=(-1, 1))
            axis.axvline(0, color="#555555", linewidth=0.8)
            axis.title.set_fontsize(8)
        axes[0].invert_yaxis()
        figure.supxlabel("rank correlation with accuracy over the grid", fontsize=9)
    return figure


def correlation(grid: Sequence[Result], criterion: str) -> float:
    """Spearman's rank correlation of a criterion with accuracy."""
    values = [result["criteria"][criterion] for result in grid]
    return float(stats.spearmanr(values, [_accuracy(result) for result in grid]).statistic)
