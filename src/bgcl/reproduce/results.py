"""Files of results: what an experiment's cells showed, with settings, seeds, versions and time."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from bgcl.errors import BGCLError
from bgcl.files import alone, write_text
from bgcl.reproduce.cells import Cell

Result = dict[str, Any]


def path_of(folder: Path, experiment: str) -> Path:
    return folder / f"{experiment}.json"


def read(path: Path) -> list[Result]:
    """The results in a file; none where there is no file."""
    if not path.exists():
        return []
    try:
        found = json.loads(path.read_text("utf-8"))["results"]
        for result in found:
            Cell.from_dict(result["cell"])
    except (ValueError, KeyError, TypeError) as error:
        raise BGCLError(f"{path} is not a file of results ({error}). Move it away, and run again.") from None
    return list(found)


def write(path: Path, experiment: str, new: Iterable[Result]) -> None:
    """Put results into a file, each in the place of an earlier one of the same method, variant, data set and seed."""
    with alone(path):
        every = {Cell.from_dict(result["cell"]).place(): result for result in [*read(path), *new]}
        rows = ",\n".join(json.dumps(every[place]) for place in sorted(every))
        write_text(path, f'{{"experiment": "{experiment}", "results": [\n{rows}\n]}}\n')


def of(found: Iterable[Result], method: str, dataset: str, label: str = "") -> list[Result]:
    """The results of a method, or of a variant of it, on a data set, by seed."""
    place = {"method": method, "dataset": dataset, "label": label}
    chosen = [result for result in found if result["cell"].items() >= place.items()]
    return sorted(chosen, key=lambda result: int(result["cell"]["seed"]))


def accuracy(found: list[Result]) -> tuple[float, float, float]:
    """Mean over all seeds and splits, deviation over splits (averaged over seeds), deviation over seeds; in %."""
    table = 100 * _on_the_same_splits(found)
    over_splits = table.std(1, ddof=1).mean() if table.shape[1] > 1 else np.nan
    over_seeds = table.mean(1).std(ddof=1) if len(table) > 1 else np.nan
    return float(table.mean()), float(over_splits), float(over_seeds)


def _on_the_same_splits(found: list[Result]) -> Any:
    """Accuracy `(results, splits)`, of the splits that all have: the first are the same, however many there are."""
    return np.array([result["accuracy"][: min(len(r["accuracy"]) for r in found)] for result in found])


@dataclass(frozen=True)
class Comparison:
    """Two methods on the same splits, over the training seeds that both have."""

    seeds: int
    difference: float  # of the means, in points
    paired: float  # one-sided p-value of a t-test of seed by seed
    welch: float  # of one that takes the seeds of one method to have nothing to do with those of the other


def compare(ours: list[Result], theirs: list[Result]) -> Comparison | None:
    """Whether ours is more accurate; nothing where there are no two seeds that both have."""
    seeds = sorted({r["cell"]["seed"] for r in ours} & {r["cell"]["seed"] for r in theirs})
    if len(seeds) < 2:
        return None
    chosen = [r for side in (ours, theirs) for s in seeds for r in side if r["cell"]["seed"] == s]
    a, b = _on_the_same_splits(chosen).mean(1).reshape(2, -1)
    return Comparison(
        len(seeds),
        float(100 * (a.mean() - b.mean())),
        float(stats.ttest_rel(a, b, alternative="greater").pvalue),
        float(stats.ttest_ind(a, b, equal_var=False, alternative="greater").pvalue),
    )


def curve(found: list[Result], part: str) -> Any:
    """A curve over the thresholds of PAvPU, the mean over seeds."""
    return np.mean([result["curves"][part] for result in found], axis=0)
