"""Result files: the results of an experiment's cells, with settings, seeds, versions and time."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from bgcl.errors import BGCLError
from bgcl.files import exclusive, write_text
from bgcl.reproduce.cells import Cell

Result = dict[str, Any]


def path_of(folder: Path, experiment: str) -> Path:
    """The result file of an experiment."""
    return folder / f"{experiment}.json"


def read(path: Path) -> list[Result]:
    """The results in a file; an empty list if the file does not exist."""
    if not path.exists():
        return []
    try:
        found = json.loads(path.read_text("utf-8"))["results"]
        for result in found:
            Cell.from_dict(result["cell"])
    except (ValueError, KeyError, TypeError) as error:
        raise BGCLError(f"{path} is not a result file ({error}). Move or delete it and run again.") from None
    return list(found)


def write(path: Path, experiment: str, new: Iterable[Result]) -> None:
    """Add results to a file. A new result replaces an earlier one with the same method, label, data set and seed."""
    with exclusive(path):
        every = {Cell.from_dict(result["cell"]).place(): result for result in [*read(path), *new]}
        rows = ",\n".join(json.dumps(every[place]) for place in sorted(every))
        write_text(path, f'{{"experiment": "{experiment}", "results": [\n{rows}\n]}}\n')


def of(found: Iterable[Result], method: str, dataset: str, label: str = "") -> list[Result]:
    """The results of a method, or of its variant `label`, on a data set, sorted by seed."""
    place = {"method": method, "dataset": dataset, "label": label}
    chosen = [result for result in found if result["cell"].items() >= place.items()]
    return sorted(chosen, key=lambda result: int(result["cell"]["seed"]))


def accuracy(found: list[Result]) -> tuple[float, float, float]:
    """Accuracy in %.

    Returns:
        The mean over seeds and splits; the standard deviation over splits, averaged over seeds; the standard deviation
        over seeds. A standard deviation of one value is NaN.
    """
    table = 100 * _on_common_splits(found)
    over_splits = table.std(1, ddof=1).mean() if table.shape[1] > 1 else np.nan
    over_seeds = table.mean(1).std(ddof=1) if len(table) > 1 else np.nan
    return float(table.mean()), float(over_splits), float(over_seeds)


def accuracy_text(found: list[Result]) -> str:
    """Accuracy in %, and in brackets the spread over splits and, with several seeds, over seeds; a dash for nothing."""
    if not found:
        return "-"
    mean, over_splits, over_seeds = accuracy(found)
    spreads = [f"{spread:.2f}" for spread in (over_splits, over_seeds) if not np.isnan(spread)]
    return f"{mean:.2f} ({' / '.join(spreads)})" if spreads else f"{mean:.2f}"


def _on_common_splits(found: list[Result]) -> Any:
    """Accuracy `(results, splits)` on the splits that all results have. The first splits are always the same."""
    return np.array([result["accuracy"][: min(len(r["accuracy"]) for r in found)] for result in found])


@dataclass(frozen=True)
class Comparison:
    """Two methods on the same splits, over the training seeds that both have.

    Attributes:
        seeds: number of seeds.
        difference: difference of the mean accuracies, in percentage points.
        paired: one-sided p-value of a t-test paired by seed.
        welch: one-sided p-value of Welch's t-test, which takes the seeds of the two methods as independent.
    """

    seeds: int
    difference: float
    paired: float
    welch: float


def compare(ours: list[Result], theirs: list[Result]) -> Comparison | None:
    """Test whether ours is more accurate; None if both have fewer than two seeds in common."""
    seeds = sorted({r["cell"]["seed"] for r in ours} & {r["cell"]["seed"] for r in theirs})
    if len(seeds) < 2:
        return None
    chosen = [r for side in (ours, theirs) for s in seeds for r in side if r["cell"]["seed"] == s]
    a, b = _on_common_splits(chosen).mean(1).reshape(2, -1)
    return Comparison(
        len(seeds),
        float(100 * (a.mean() - b.mean())),
        float(stats.ttest_rel(a, b, alternative="greater").pvalue),
        float(stats.ttest_ind(a, b, equal_var=False, alternative="greater").pvalue),
    )


def compare_by_split(ours: list[Result], theirs: list[Result]) -> tuple[float, float] | None:
    """The mean difference over the splits that all results have, and how surprising it is.

    Returns:
        The difference in percentage points, and the two-sided p-value of Wilcoxon's signed-rank test over splits, each
        averaged over the seeds; None without results on both sides.
    """
    if not (ours and theirs):
        return None
    table = _on_common_splits([*ours, *theirs])
    difference = 100 * (table[: len(ours)].mean(0) - table[len(ours) :].mean(0))
    changed = np.abs(difference) > 1e-9
    p = float(stats.wilcoxon(difference[changed]).pvalue) if changed.any() else 1.0
    return float(difference.mean()), p


def curve(found: list[Result], part: str) -> Any:
    """A curve over the thresholds of PAvPU, averaged over seeds."""
    return np.mean([result["curves"][part] for result in found], axis=0)
