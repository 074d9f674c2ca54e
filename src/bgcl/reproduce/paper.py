"""What the paper reports and how it says that it was done, from one data file."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads((resources.files("bgcl.reproduce") / "paper.toml").read_text("utf-8"))


def numbers(table: str) -> dict[str, dict[str, list[float]]]:
    """Accuracy in % by method and data set: mean and, where it is given, spread."""
    found: dict[str, dict[str, list[float]]] = _file().get(table, {})
    return found


def number(table: str, method: str, dataset: str) -> list[float] | None:
    return numbers(table).get(method, {}).get(dataset)


def hyperparameters() -> dict[str, dict[str, Any]]:
    """The paper's table of hyperparameters, by data set."""
    found: dict[str, dict[str, Any]] = _file()["hyperparameters"]
    return found


def settings(dataset: str) -> dict[str, Any]:
    """The method as the paper's text has it, to the letter.

    Masks of connections alone, relaxed, at rates that are drawn from their posterior, which is learned without a
    ceiling; fixed clusters as batches; embeddings at the full rates.
    """
    table = dict(hyperparameters()[dataset])
    return {
        "drop": [f"connections in {table.pop('blocks')} blocks"], "mask_values": "relaxed", "rate_draw": "sample",
        "keep": 0.0, "draw_scale": 1.0, "row_norm": "sum", "clusters_per_batch": 1, **table,
    }  # fmt: skip
