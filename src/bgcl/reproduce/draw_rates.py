"""The experiment `draws`: do rates depend on their start and on the seed, and are draws at good rates?

Rates are learned before training, so cells that ask for them alone train for one epoch. Scores are those of the
development half, with a linear head.
"""

from typing import Any

from bgcl.reproduce.cells import Cell
from bgcl.reproduce.rate_grid import DATASETS as DATASETS
from bgcl.reproduce.rate_grid import ONE

STARTS = {"0.1": (1.0, 6.58), "0.5": (1.0, 1.0), "0.9": (6.58, 1.0)}  # medians of the posterior, and its a and b
SEEDS = (0, 1, 2)
SHARES = (0.05, 0.1, 0.2, 0.4)  # of the rates of training, at which embeddings were drawn before rates were inferred
INFERRED, MEDIAN, WITHOUT = "inferred rates", "median of the posterior", "without masks"
SAMPLES, SPLITS = 8, 5
METHOD = "bgcl-default"


def draw_cells(dataset: str, *, splits: int | None, quick: dict[str, Any] | None) -> list[Cell]:
    """The cells of a data set."""
    short = ONE | ({"epochs": 1} if quick is None else quick)
    point = {"masks": False, "head": "mixture"}
    found = [
        Cell(METHOD, dataset, seed, "development", 1, {"rate_start": list(STARTS[start])} | short, point,
             label=f"start {start}")
        for start in STARTS
        for seed in (SEEDS if start == "0.5" else SEEDS[:1])
    ]  # fmt: skip
    drawn = {"samples": SAMPLES, "head": "mixture"}
    ways: dict[str, dict[str, Any]] = {INFERRED: {}, MEDIAN: {"rate_draw": "median"}}
    ways |= {f"{share:g} of the rates of training": {"draw_scale": share} for share in SHARES}
    many = splits or (SPLITS if quick is None else 3)
    found += [
        Cell(METHOD, dataset, 0, "development", many, change | ONE | (quick or {}), drawn, label=label)
        for label, change in ways.items()
    ]
    found.append(Cell(METHOD, dataset, 0, "development", many, ONE | (quick or {}), point, label=WITHOUT))
    return found if quick is None else [found[0], *found[-2:]]
