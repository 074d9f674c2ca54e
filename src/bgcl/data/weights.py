"""Weights of edges: read from a column or given as a tensor, and added where an edge is repeated."""

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

NAMES = (*WEIGHTS[:3], "edge_weight")  # that say that a column holds weights


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


def is_constant(weights: Array) -> bool:
    """Whether all weights are the same, so that they say nothing."""
    return bool((weights == weights[:1]).all())


def merged_weights(pairs: Array, weights: Array, nodes: int) -> tuple[Array, Array]:
    """Clean edges `(2, 2E)` in both directions, sorted by row and column, and their weights `(2E,)`, all above 0.

    Weights of the same pair are added. If the sums are then the same in both directions, an edge has this weight.
    Otherwise the weights of both directions are added.
    """
    use = pairs[0] != pairs[1]
    there = csr_matrix((weights[use].astype(np.float64), (pairs[0][use], pairs[1][use])), shape=(nodes, nodes))
    there.sum_duplicates()
    back = there.T.tocsr()
    both = there if (there != back).nnz == 0 else csr_matrix(there + back)
    both.sort_indices()
    row = np.repeat(np.arange(nodes), np.diff(both.indptr))
    return np.stack([row, both.indices]).astype(np.int64), within_32_bits(both.data)


def checked_weights(weights: Any, edges: int, where: str) -> Array:
    """Weights `(M,)` of as many edges, as float64. A missing, negative or infinite weight is an error."""
    values = np.asarray(weights)
    if values.shape not in ((edges,), (edges, 1)) or values.dtype.kind not in "biuf":
        got = f"the shape {values.shape}" if values.dtype.kind in "biuf" else f"values of type {values.dtype}"
        raise BGCLError(f"{where} must hold one number for each of the {edges} edges. Got {got} instead.")
    values = values.reshape(-1).astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if wrong.size:
        what = "is negative" if values[wrong[0]] < 0 else "is not finite"
        raise BGCLError(
            f"{where}: the weight of edge {wrong[0]} is {values[wrong[0]]:g}, which {what}. Weights must be 0 or more; "
            "edges of weight 0 do not count."
        )
    return values


def within_32_bits(weights: Array) -> Array:
    """Weights above 0 as float32."""
    with np.errstate(over="ignore", under="ignore"):
        found = np.asarray(weights).astype(np.float32)
    if not np.isfinite(found).all() or not found.all():
        raise BGCLError("The weights of the edges are too great or too small for 32 bits. Multiply them by a constant.")
    return found


def are_weights(table: Table, name: str, guesses: list[str]) -> bool:
    """Whether a column that is called weight holds weights: numbers that are not all the same."""
    values = table.columns[name]
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return False
    _refuse_zeros(table, name)
    if pc.count_distinct(values).as_py() < 2:
        return False
    guesses.append(f"an edge's weight is '{name}' (--weight '' if not)")
    return True


def weight_like(names: list[str]) -> str | None:
    """The column that is called weight, if there is one."""
    return next((name for name in names if name.lower() in NAMES), None)


def _refuse_zeros(table: Table, name: str) -> None:
    """Raise an error if a column that is called weight has zeros, and the user does not say what it means."""
    zeros = pc.equal(table.columns[name], 0)
    count = pc.sum(zeros).as_py() or 0
    if count:
        raise BGCLError(
            f"{table.at(pc.index(zeros, True).as_py(), name)}: the weight of {count:,} edge(s) is 0. Use --weight "
            f"{name} to leave them out, or --weight '' to count them like the others."
        )
