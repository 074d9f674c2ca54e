"""Checks of the arguments of public functions: numbers, flags, paths and arrays. An error is one line."""

import operator
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.errors import BGCLError

Array = npt.NDArray[Any]
_LONGEST = 60  # letters of a value in an error


def shown(value: object) -> str:
    """A value in one short line of an error."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def whole(what: str, value: Any, least: int | None = None) -> int:
    """A whole number of Python or NumPy, not a bool, a text or 2.0.

    >>> whole("The number of samples", 2.5, 1)
    Traceback (most recent call last):
    bgcl.errors.BGCLError: The number of samples must be a whole number. Got 2.5 instead.
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise BGCLError(f"{what} must be a whole number. Got {shown(value)} instead.") from None
    if least is not None and number < least:
        raise BGCLError(f"{what} must be {least} or more. Got {number} instead.")
    return number


def seed_or(seed: Any, otherwise: int) -> int:
    """A seed that was given, or another one if it is None."""
    if seed is None:
        return otherwise
    number = whole("The seed", seed)
    if not 0 <= number < 2**63:
        raise BGCLError(f"The seed must be a whole number between 0 and 2^63. Got {number} instead.")
    return number


def flag(name: str, value: Any) -> bool:
    """True or False. A text such as "no" would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise BGCLError(f"'{name}' must be True or False. Got {shown(value)} instead.")
    return bool(value)


def path_of(what: str, value: Any) -> Path:
    """A path, from a text or a path."""
    if not isinstance(value, str) and not (isinstance(value, os.PathLike) and isinstance(os.fspath(value), str)):
        raise BGCLError(f"{what} must be a text or a path. Got {shown(value)} instead.")
    return Path(value)


def numbers(what: str, values: Any, axes: int | None = 1) -> Array:
    """Finite real numbers as an array of float64 with a given number of axes; None: any number of them."""
    try:
        array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    except (TypeError, ValueError):  # lists of several lengths
        array = np.empty((), dtype=object)
    if axes not in (None, array.ndim) or array.dtype.kind not in "fiub":
        shape = {None: "numbers", 1: "one number for each node"}.get(axes, f"an array of numbers with {axes} axes")
        raise BGCLError(f"{what} must be {shape}. Got {shown(values)} instead.")
    if not np.isfinite(array).all():
        raise BGCLError(f"{what} must not have NaN or infinity. Give finite numbers.")
    return array.astype(np.float64)


def node_numbers(name: str, nodes: Any, count: int) -> Array:
    """Numbers of some of the `count` nodes of a graph, each once, `(n,)`.

    >>> node_numbers("nodes", [3, 5], 4)
    Traceback (most recent call last):
    bgcl.errors.BGCLError: 'nodes' must be numbers between 0 and 3. Got 3 to 5.
    """
    chosen = np.asarray(nodes.detach().cpu() if hasattr(nodes, "detach") else nodes)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or len(np.unique(chosen)) < len(chosen):
        raise BGCLError(f"'{name}' must hold the number of each node once. Got {shown(nodes)} instead.")
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
        raise BGCLError(f"'{name}' must be numbers between 0 and {count - 1}. Got {chosen.min()} to {chosen.max()}.")
    return chosen


def check_model(model: Any) -> None:
    """Raise an error unless a model can draw embeddings, as a `BGCL` can."""
    if isinstance(model, type) or not callable(getattr(model, "draws", None)):
        raise BGCLError(f"The model must be a fitted bgcl.BGCL. Got {shown(model)} instead.")
