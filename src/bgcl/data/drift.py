"""Numbers of a new graph that are far from those of the training graph, such as a column in another unit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

FEWEST = 10  # with fewer values, mean and deviation say little
FAR = 5.0  # root mean square of scaled values, which is 1 at training
NARROW = 0.05  # deviation of scaled values, which is 1 at training
SHOWN = 3  # attributes that a note names


def drift_note(
    where: str, names: Sequence[str], scaled: Array, group: Array | None = None, *, centered: bool = True
) -> list[str]:
    """A note if scaled values have another size than at training, where their root mean square is 1.

    Args:
        where: the table and the column.
        names: the attributes.
        scaled: values `(M,)` with the scale of the training graph, NaN where missing.
        group: the attribute of each value, `(M,)`; None: the first.
        centered: whether the scale has a mean too. If not, a value of 1 stays 1 for every node.

    >>> drift_note("nodes.csv, column 'age'", ["age"], 1000 * np.linspace(-2, 2, 20))[0][:42]
    "nodes.csv, column 'age': the values are fa"
    """
    known = ~np.isnan(scaled)
    values = scaled[known].astype(np.float64)
    place = np.zeros(len(values), dtype=np.int64) if group is None else group[known]
    count = np.bincount(place, minlength=len(names))
    rows = np.maximum(count, 1)
    mean = np.bincount(place, values, len(names)) / rows
    size = np.sqrt(np.bincount(place, values**2, len(names)) / rows)
    spread = np.sqrt(np.maximum(size**2 - mean**2, 0)) if centered else size
    off = (count >= FEWEST) & ((size > FAR) | ((spread < NARROW) & (spread > 1e-6)))
    if not off.any():
        return []
    found = np.flatnonzero(off)
    shown = ", ".join(
        f"{'' if len(names) == 1 else names[i] + ': '}mean {mean[i]:.3g}, deviation {spread[i]:.3g}"
        for i in found[:SHOWN]
    )
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    at_training = "0 and 1" if centered else "deviation 1"
    return [
        f"{where}: the values are far from those at training. In units of the training graph ({at_training} there): "
        f"{shown}{more}. Is it the same unit?"
    ]
