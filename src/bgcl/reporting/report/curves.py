"""The curves of a training as the page draws them: loss, KL, and the drop rates' posteriors over the epochs."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
RATES = np.linspace(0.005, 0.995, 100)  # where densities are drawn


def kumaraswamy_quantile(a: Array, b: Array, q: float) -> Array:
    """`pi` with `1 - (1 - pi^a)^b = q`, that is `(1 - (1 - q)^(1/b))^(1/a)`."""
    return np.asarray((-np.expm1(np.log1p(-q) / b)) ** (1 / a))


def kumaraswamy_density(a: float, b: float, pi: Array) -> Array:
    """`a b pi^(a-1) (1 - pi^a)^(b-1)`."""
    return np.asarray(a * b * pi ** (a - 1) * (1 - pi**a) ** (b - 1))


def thin(history: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """At most `most` records, evenly spread, the first and the last among them."""
    if len(history) <= most:
        return history
    return [history[i] for i in np.unique(np.linspace(0, len(history) - 1, most).round().astype(int))]


def training_curves(history: list[dict[str, Any]], most: int = 400) -> dict[str, list[float]]:
    """Epoch, loss and KL."""
    records = thin(history, most)
    return {name: [record[name] for record in records] for name in ("epoch", "loss", "kl")}


def rate_curves(history: list[dict[str, Any]], most: int = 200) -> list[dict[str, Any]]:
    """For each drop rate its posterior's quantiles over the epochs, and its density at the first and the last.

    A rate is that of a mask, or of a layer or a block of it where these have their own; both views are together. Of a
    fixed rate there is but its value.
    """
    records = thin(history, most)
    if not records:
        return []
    curves = []
    for m, mask in enumerate(records[-1]["rates"]["o"]):
        layers, blocks = np.shape(mask["mean"])
        for i in range(layers):
            for j in range(blocks):
                parts = [mask["mask"]]
                parts += [f"layer {i + 1}"] * (layers > 1) + [f"block {j + 1}"] * (blocks > 1)
                views = {view: _rate([record["rates"][view][m] for record in records], i, j) for view in ("o", "t")}
                curves.append({"name": ", ".join(parts), "epoch": [r["epoch"] for r in records], "views": views})
    return curves


def _rate(masks: list[dict[str, Any]], i: int, j: int) -> dict[str, Any]:
    mean = [mask["mean"][i][j] for mask in masks]
    if "a" not in masks[-1]:
        return {"mean": mean}
    a, b = (np.array([mask[name][i][j] for mask in masks]) for name in ("a", "b"))
    return {
        "mean": mean,
        "quantiles": [kumaraswamy_quantile(a, b, q).tolist() for q in QUANTILES],
        "first": kumaraswamy_density(a[0], b[0], RATES).tolist(),
        "last": kumaraswamy_density(a[-1], b[-1], RATES).tolist(),
    }
