"""Tables from objects in memory: pandas, polars and Arrow frames, NetworkX graphs, SciPy and NumPy matrices."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_matrix, issparse

from bgcl.data.tables import Frame
from bgcl.data.weights import is_constant
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


def is_frame(value: object) -> bool:
    """Whether a value is a dict of columns, or a frame of any library that supports Arrow or `__dataframe__`."""
    return isinstance(value, dict | pa.Table) or any(
        hasattr(value, name) for name in ("__arrow_c_stream__", "__dataframe__")
    )


def is_matrix(value: object) -> bool:
    """Whether a value is a SciPy or NumPy matrix."""
    return issparse(value) or (isinstance(value, np.ndarray) and value.ndim == 2)


def is_networkx(value: object) -> bool:
    """Whether a value has the methods of a NetworkX graph."""
    return all(hasattr(value, name) for name in ("nodes", "edges", "adj", "is_directed"))


def frame(value: Any, name: str) -> Frame:
    """A table of any library. The index of a pandas frame becomes a column, unless it only counts the rows."""
    try:
        if isinstance(value, pa.Table):
            table = value
        elif isinstance(value, dict):
            table = pa.table({str(column): _array(values) for column, values in value.items()})
        elif hasattr(value, "index") and hasattr(value, "iloc"):  # pandas
            table = pa.Table.from_pandas(value)
            table = table.rename_columns(["index" if n == "__index_level_0__" else n for n in table.column_names])
        elif hasattr(value, "__arrow_c_stream__"):
            table = pa.table(value)
        else:
            import pyarrow.interchange

            table = pyarrow.interchange.from_dataframe(value)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BGCLError(f"{name}: a column mixes types, or has a type that is not supported ({reason}).") from error
    return Frame(name, table)


def _array(values: Any) -> Any:
    return values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)


def networkx_frames(graph: Any, name: str = "the NetworkX graph") -> tuple[Frame, Frame]:
    """The tables of edges and nodes of a NetworkX graph, with a column for each attribute of an edge or a node."""
    nodes = list(graph.nodes(data=True))
    if not nodes:
        raise BGCLError(f"{name} is empty: it has no nodes.")
    keys = list(dict.fromkeys(key for _, attributes in nodes for key in attributes))
    identity = next(name for name in ("id", "node_id", "(id)") if name not in keys)
    columns: dict[str, Any] = {identity: [node for node, _ in nodes]}
    if len({type(node) for node in columns[identity]}) > 1:
        first = type(columns[identity][0])
        other = next(node for node in columns[identity] if type(node) is not first)
        raise BGCLError(
            f"{name}: its nodes have several types, such as {columns[identity][0]!r} and {other!r}. Use one type."
        )
    if not isinstance(columns[identity][0], int | str | np.integer):
        raise BGCLError(f"{name}: nodes must be whole numbers or text. Got {columns[identity][0]!r} instead.")
    columns |= {str(key): [attributes.get(key) for _, attributes in nodes] for key in keys}
    is_text = type(columns[identity][0]) is str
    edges = _edge_columns(list(graph.edges(data=True)), pa.string() if is_text else pa.int64())
    return frame(edges, f"{name}'s edges"), frame(columns, f"{name}'s nodes")


def _edge_columns(edges: list[tuple[Any, Any, dict[Any, Any]]], ids: Any) -> dict[str, Any]:
    """The two ends of the edges of a NetworkX graph and their attributes. An edge without a weight has the weight 1."""
    columns = {end: pa.array([edge[i] for edge in edges], type=ids) for i, end in enumerate(("source", "target"))}
    for key in dict.fromkeys(key for _, _, attributes in edges for key in attributes):
        values = [attributes.get(key, 1 if key == "weight" else None) for _, _, attributes in edges]
        try:
            found = pa.array(values)
        except (pa.ArrowException, TypeError):
            found = pa.array([None if value is None else str(value) for value in values])
        columns.setdefault(str(key), found)
    return columns


def matrix_edges(matrix: Any, name: str = "the matrix") -> tuple[Array, Array, int]:
    """The row and column `(2, M)` of each nonzero entry of a square matrix, its value, and the number of nodes."""
    if matrix.shape[0] != matrix.shape[1]:
        raise BGCLError(f"{name} must be square, (nodes, nodes). Its shape is {matrix.shape[0]} x {matrix.shape[1]}.")
    entries = csr_matrix(matrix).tocoo()
    keep = entries.data != 0
    pairs = np.stack([entries.row[keep], entries.col[keep]]).astype(np.int64)
    return pairs, entries.data[keep], int(matrix.shape[0])


def matrix_frame(matrix: Any) -> Frame:
    """The table of edges of an adjacency matrix, whose values are weights. The ids are the row numbers."""
    pairs, values, _ = matrix_edges(matrix)
    columns = {"source": pairs[0], "target": pairs[1]}
    return Frame("the matrix", pa.table(columns if is_constant(values) else columns | {"weight": values}))


def with_row_numbers(table: Frame, rows: int) -> tuple[Frame, str]:
    """A table of nodes with a column of row numbers for their ids, and the name of that column."""
    if table.table.num_rows != rows:
        raise BGCLError(
            f"{table.name} has {table.table.num_rows} rows, but the matrix has {rows}. Give each node one row."
        )
    name = "(row)"
    return Frame(table.name, table.table.append_column(name, pa.array(np.arange(rows)))), name
