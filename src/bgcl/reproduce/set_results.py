"""Do prediction sets hold their level, and how large are they? Over many splits into calibration and test nodes.

The head is trained on 20 % of the nodes of a split. Of the others, 10 % of all nodes calibrate and the rest is tested;
this is done anew several times for each head, because it costs nothing.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.conformal.class_scores import class_scores
from bgcl.conformal.diffusion import ScoreDiffusion
from bgcl.conformal.thresholds import sets_of, thresholds
from bgcl.downstream.shift_evaluation import SplitHeads
from bgcl.downstream.splits import labels_of, splits
from bgcl.estimator import BGCL

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]
Found = dict[str, Any]

LEVELS = (0.9, 0.95)
CALIBRATION = 0.1  # share of the labeled nodes
AGAIN = 20  # calibrations for each head
PLAIN, DIFFUSED = "", ", diffused"


def set_results(model: BGCL, data: "Data", *, heads: int, samples: int, seed: int = 0) -> Found:
    """Coverage and mean size of sets.

    Args:
        model: a fitted model.
        data: its graph, with labels.
        heads: number of splits, each with a head; each head is calibrated `AGAIN` times.
        samples: number of draws, of which some train the heads and the others predict.
        seed: seed of the calibration nodes.

    Returns:
        A dictionary: "sets", for each score and level coverage and mean size in each calibration; "sets_seconds", the
        time of one calibration with the sets of all nodes.
    """
    labels = labels_of(data)
    chosen = splits(data, "bgrl-20", heads)
    every = np.arange(data.num_nodes)
    predicted = SplitHeads(model, data, chosen, samples).predict(data, [every] * heads)
    classes, codes = np.unique(labels[labels >= 0], return_inverse=True)
    place = np.full(len(labels), -1)
    place[labels >= 0] = codes
    diffusion = ScoreDiffusion.of(model, data)
    ways: dict[str, Callable[[Array], Array]] = {PLAIN: lambda scores: scores, DIFFUSED: diffusion}
    found: Found = {}
    seconds = []
    for number, (split, uncertainty) in enumerate(zip(chosen, predicted, strict=True)):
        left = np.setdiff1d(np.flatnonzero(labels >= 0), split.train)
        for name in ("lac", "aps"):
            for way, change in ways.items():
                scores = change(class_scores(uncertainty.probability, name, np.random.default_rng(seed)))
                random = np.random.default_rng((seed, number))
                for _ in range(AGAIN):
                    order = random.permutation(left)
                    cut = int(CALIBRATION * (labels >= 0).sum())
                    start = time.perf_counter()
                    for level in LEVELS:
                        covers, size = _once(scores, place, order[:cut], order[cut:], level)
                        values = found.setdefault(name + way, {}).setdefault(f"{level:g}", {"coverage": [], "size": []})
                        values["coverage"].append(round(covers, 5))
                        values["size"].append(round(size, 5))
                    seconds.append((time.perf_counter() - start) / len(LEVELS))
    return {"sets": found, "classes": len(classes), "sets_seconds": round(float(np.mean(seconds)), 4)}


def _once(scores: Array, codes: Array, calibration: Array, test: Array, level: float) -> tuple[float, float]:
    """Coverage and mean size of the sets of the test nodes."""
    limit = thresholds(scores[calibration], codes[calibration], level)
    sets = sets_of(scores[test], limit)
    return float(sets[np.arange(len(test)), codes[test]].mean()), float(sets.sum(1).mean())
