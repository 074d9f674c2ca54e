"""The numbers and hyperparameters that the paper reports, from the file `paper.toml`."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads((resources.files("bgcl.reproduce") / "paper.toml").read_text("utf-8"))


def numbers(table: str) -> dict[str, dict[str, list[float]]]:
    """Accuracy in % by method and data set: the mean, and the spread if the paper gives it."""
    found: dict[str, dict[str, list[float]]] = _file().get(table, {})
    return found


def number(table: str, method: str, dataset: str) -> list[float] | None:
    """Accuracy of a method on a data set, None if it is not in the table."""
    return numbers(table).get(method, {}).get(dataset)


def hyperparameters() -> dict[str, dict[str, Any]]:
    """The paper's table of hyperparameters, by data set."""
    found: dict[str, dict[str, Any]] = _file()["hyperparameters"]
    return found


def settings(dataset: str) -> dict[str, Any]:
    """The settings of the method exactly as the paper describes it.

    Only connections are masked. Masks are relaxed, and drawn at rates from their posterior. Nothing limits
    the drop rates. Batches are fixed clusters. Embeddings are drawn at the full rates.
    """
    table = dict(hyperparameters()[dataset])
    return {
        "encoder": "gcn", "drop": [f"connections in {table.pop('blocks')} blocks"], "mask_values": "relaxed",
        "rate_draw": "sample", "shared_information": 0.0, "draw_scale": 1.0, "row_norm": "sum", "clusters_per_batch": 1,
        **table,
    }  # fmt: skip
