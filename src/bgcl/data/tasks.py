"""Whether labels are classes or numbers to predict: inferred, said by the user, and changed later."""

import copy
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch_geometric.data import Data

from bgcl.data.missing_labels import LabelRules
from bgcl.errors import BGCLError

TASKS = ("classes", "numbers")
MOST_CODES = 64  # whole numbers with more different values are numbers, unless they count the classes
FEW_CODES = 20  # whole numbers with more different values are worth a word


def check_task(task: str | None) -> None:
    """Refuse a task that does not exist."""
    if task is not None and task not in TASKS:
        raise BGCLError(f"--task must be {' or '.join(TASKS)}. Got '{task}' instead.")


def task_of_labels(values: Any, labeled: int, name: str, rules: LabelRules) -> str:
    """Whether different labels, Arrow values, are classes or numbers.

    Numbers with a fraction are numbers. Whole numbers are classes if at most 64 of them differ, or if they are 0, 1, 2,
    ... or 1, 2, 3, ... without a gap and each is there three times or more on average. All else is classes.
    """
    if pa.types.is_floating(values.type):
        rules.guesses.append(f"the label '{name}' is a number to predict (--task classes if not)")
        return "numbers"
    if not pa.types.is_integer(values.type):
        return "classes"
    found = np.sort(values.to_numpy())
    counts = found[0] in (0, 1) and found[-1] - found[0] == len(found) - 1 and 3 * len(found) <= labeled
    numbers = len(found) > MOST_CODES and not counts
    if numbers or len(found) > FEW_CODES:
        is_, other = ("numbers to predict", "classes") if numbers else ("classes", "numbers")
        rules.guesses.append(
            f"the label '{name}' has {len(found):,} different whole numbers, taken for {is_} (--task {other} if not)"
        )
    return "numbers" if numbers else "classes"


def as_task(values: Any, task: str, where: str) -> Any:
    """Different labels as float64 for the task "numbers", or as what can be a class."""
    if task == "numbers":
        try:
            return values.cast(pa.float64())
        except pa.ArrowInvalid:
            texts = pc.cast(values, pa.string())
            wrong = next(text for text in texts.to_pylist() if not _is_float(text))
            raise BGCLError(f"{where}: the label {wrong!r} is not a number. Leave out --task numbers.") from None
    return pa.array([str(value) for value in values.to_pylist()]) if pa.types.is_floating(values.type) else values


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def with_task(data: Data, task: str | None) -> Data:
    """The graph with its labels as classes or as numbers. Classes become numbers by their names.

    >>> import bgcl
    >>> data = bgcl.graph_from({"a": [1, 2], "b": [2, 3]}, {"id": [1, 2, 3], "label": [10, 20, None]})
    >>> with_task(data, "numbers").y.tolist()
    [10.0, 20.0, nan]
    """
    check_task(task)
    if task is None or data.y is None or data.y.dim() != 1 or data.y.is_floating_point() == (task == "numbers"):
        return data
    found, y = copy.copy(data), data.y.cpu().numpy()
    if task == "numbers":
        names = getattr(data, "classes", None)
        names = list(range(int(y.max()) + 1)) if names is None else list(names)
        wrong = [name for name in names if not _is_float(str(name))]
        if wrong:
            raise BGCLError(f"The label {wrong[0]!r} is not a number. Leave out --task numbers.")
        values = np.array([*(float(name) for name in names), np.nan], dtype=np.float32)
        found.y = torch.from_numpy(values[np.where(y >= 0, y, -1)])
        found.classes = None
        return found
    known = ~np.isnan(y)
    values, codes = np.unique(y[known], return_inverse=True)
    every = np.full(len(y), -1, dtype=np.int64)
    every[known] = codes
    found.y = torch.from_numpy(every)
    found.classes = [int(value) if value == int(value) else float(value) for value in values.tolist()]
    return found
