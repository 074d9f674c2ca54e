"""An adjacency matrix that was written as a table: a row and a column for each node."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.known_names import ENDS
from bgcl.data.memory import check_fits
from bgcl.data.tables import Frame, Source, Table, file_name
from bgcl.data.weights import is_constant
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

_LEAST = 3  # columns


def edges_of_matrix(source: Source) -> Source:
    """The table of edges of an adjacency matrix: `source`, `target` and `weight`. Any other table as it is.

    A table is an adjacency matrix if it has as many rows as columns, all of them numbers. There may be a column of ids
    before them, equal to the names of the other columns. A matrix without such ids must be symmetric, or hold only
    zeros and ones.
    """
    names = source.names
    lower = {name.lower() for name in names}
    if len(names) < _LEAST or any(a in lower and b in lower for a, b in ENDS[:-2]):
        return source
    first = source.read([names[0]], ids=[names[0]])
    if first.rows == len(names) - 1 and _texts(first, names[0]) == names[1:]:
        return _as_edges(source, names[1:], names[1:], True)
    if first.rows == len(names):
        ids = names if not names[0].startswith("column ") else [str(i) for i in range(len(names))]
        return _as_edges(source, names, ids, False)
    return source


def _texts(table: Table, name: str) -> list[str]:
    return [str(value).strip() for value in table.columns[name].cast(pa.string()).to_pylist()]


def _as_edges(source: Source, columns: list[str], ids: list[str], is_named: bool) -> Source:
    size = len(columns)
    check_fits(24 * size * size, f"{source.name}: an adjacency matrix of {size:,} nodes", "Write a row for each edge.")
    matrix = _numbers(source.read(columns), columns)
    if matrix is None:
        if is_named:
            raise BGCLError(
                f"{source.name} is an adjacency matrix with values that are not numbers. Write 0 where there is no "
                "edge."
            )
        return source
    if not is_named and not (np.array_equal(matrix, matrix.T) or np.isin(matrix, (0, 1)).all()):
        return source
    rows, places = np.nonzero(matrix)
    whole = all(each.isdigit() and str(int(each)) == each for each in ids)
    names = pa.array([int(each) for each in ids] if whole else ids)
    weights = matrix[rows, places]
    edges = {"source": names.take(rows), "target": names.take(places)}
    frame = Frame(source.name, pa.table(edges if is_constant(weights) else edges | {"weight": weights}))
    frame.inferred = [
        *source.inferred,
        f"{file_name(source)} is an adjacency matrix of {size:,} nodes, each value except 0 is an edge (--source and "
        "--target if it is a table of edges)",
    ]
    return frame


def _numbers(table: Table, columns: list[str]) -> Array | None:
    """The matrix `(N, N)`, 0 where a value is missing. None if a value is not a number."""
    found = []
    for name in columns:
        values = table.columns[name]
        if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_null(values.type)):
            return None
        found.append(pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy())
    return np.stack(found, axis=1)
