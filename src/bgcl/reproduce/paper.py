"""What the paper reports, from one data file."""

import tomllib
from functools import cache
from importlib import resources


@cache
def numbers() -> dict[str, dict[str, dict[str, list[float]]]]:
    """Accuracy in % by table, method and data set: mean and, where it is given, spread."""
    return tomllib.loads((resources.files("bgcl.reproduce") / "paper.toml").read_text("utf-8"))


def number(table: str, method: str, dataset: str) -> list[float] | None:
    return numbers().get(table, {}).get(method, {}).get(dataset)
