"""Weights of edges: read from a column, and added where an edge is repeated."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix

from bgcl.data.known_names import WEIGHTS
from bgcl.data.tables import Table
from bgcl.data.values import numbers
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


def read_weights(table: Table, name: str) -> Array:
    """The weights `(rows,)` of a table of edges. A missing, negative or infinite weight is an error."""
    values = numbers(table, name)
    wrong = np.flatnonzero(np.isnan(values) | (values < 0))
    if wrong.size:
        row = int(wrong[0])
        what = "missing" if np.isnan(values[row]) else f"{values[row]:g}, which is negative"
        raise BGCLError(
            f"{table.at(row, name)}: the weight is {what}. Weights must be 0 or more. Correct it, or use --weight '' "
            "to read the edges without weights."
        )
    return values


def added_weights(source: Array, target: Array, weights: Array, nodes: int) -> Array:
    """The weights `(2E,)` of clean edges in both directions: rows of the same two nodes are added.

    Rows must have a weight above 0. The order is the order of `bgcl.data.clean.undirected`.
    """
    use = source != target
    rows, columns = source[use], target[use]
    ends = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    both = csr_matrix((np.concatenate([weights[use]] * 2), ends), shape=(nodes, nodes))
    both.sum_duplicates()
    with np.errstate(over="ignore"):
        found = both.data.astype(np.float32)
    if not np.isfinite(found).all() or not found.all():
        raise BGCLError("The weights of the edges are too great or too small for 32 bits. Multiply them by a constant.")
    return np.asarray(found)


def weight_like(names: list[str]) -> str | None:
    """The column that is called weight, if there is one."""
    return next((name for name in names if name.lower() in WEIGHTS[:3]), None)


def refuse_zeros(table: Table, name: str) -> None:
    """Raise an error if a column that is called weight has zeros, and the user does not say what it means."""
    kind = table.columns[name].type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return  # it holds something else than weights
    zeros = pc.equal(table.columns[name], 0)
    count = pc.sum(zeros).as_py() or 0
    if count:
        raise BGCLError(
            f"{table.at(pc.index(zeros, True).as_py(), name)}: the weight of {count:,} edge(s) is 0. Use --weight "
            f"{name} to leave them out, or --weight '' to count them like the others."
        )
