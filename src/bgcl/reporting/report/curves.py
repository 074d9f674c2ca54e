"""The curves that the page draws: loss, KL divergence, and the posteriors of the drop rates by epoch."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bgcl.augmentation.drop_rates import RatePosterior
from bgcl.model.training import Record

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
RATES = np.linspace(0.005, 0.995, 100)  # where densities are drawn


def thin(history: Sequence[Record], most: int) -> Sequence[Record]:
    """At most `most` records, evenly spread, always with the first and the last one."""
    if len(history) <= most:
        return history
    return [history[i] for i in np.unique(np.linspace(0, len(history) - 1, most).round().astype(int))]


def training_curves(history: Sequence[Record], most: int = 400) -> dict[str, list[float]]:
    """Epoch, loss, and how well nodes are recognized or else the KL divergence, as lists of at most `most` numbers."""
    records = thin(history, most)
    third = "kl" if records[-1].recognized is None else "recognized"
    return {name: [getattr(record, name) for record in records] for name in ("epoch", "loss", third)}


def rate_curves(
    history: Sequence[Record], most: int = 200, relations: Sequence[str] = ()
) -> list[dict[str, Any]]:  # fmt: skip
    """For each drop rate and view: quantiles of its posterior by epoch, and its density at the first and last epoch.

    A mask has several rates if its layers, blocks or relations do not share one. A fixed rate has only its value.

    Args:
        history: the records of the epochs.
        most: the greatest number of epochs in a curve.
        relations: the names of the relations of the graph, which name their curves.
    """
    records = thin(history, most)
    if not records:
        return []
    curves = []
    for m, mask in enumerate(records[-1].rates["o"]):
        for i, j, place in mask.places(relations):
            views = {view: _curve([record.rates[view][m] for record in records], i, j) for view in ("o", "t")}
            name = ", ".join(filter(None, [mask.mask, place]))
            curves.append({"name": name, "epoch": [record.epoch for record in records], "views": views})
    return curves


def _curve(posteriors: Sequence[RatePosterior], i: int, j: int) -> dict[str, Any]:
    mean = [posterior.mean[i][j] for posterior in posteriors]
    if not posteriors[-1].learned:
        return {"mean": mean}
    return {
        "mean": mean,
        "quantiles": [[float(posterior.quantile(q)[i, j]) for posterior in posteriors] for q in QUANTILES],
        "first": posteriors[0].density(RATES)[i, j].tolist(),
        "last": posteriors[-1].density(RATES)[i, j].tolist(),
    }
