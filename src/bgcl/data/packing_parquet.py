"""Read the nodes and the edges of a graph from Parquet files in pieces."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from bgcl.data.border import readable
from bgcl.data.clean import undirected
from bgcl.data.labels import encode_labels
from bgcl.data.memory import check_fits
from bgcl.data.missing_labels import LabelRules
from bgcl.data.packing import BYTES_PER_EDGE, ROWS, Rows
from bgcl.data.parquet_files import ParquetFile
from bgcl.errors import BGCLError, nearest

Array = npt.NDArray[Any]

log = logging.getLogger("bgcl")

NODES, EDGES = "nodes.parquet", "edges.parquet"


def can_stream(graph: str) -> bool:
    """Whether a graph is a folder of Parquet files of nodes and edges."""
    return all((Path(graph) / name).is_file() for name in (NODES, EDGES))


def parquet_rows(
    folder: Path, *, id_: str | None = None, label: str | None = None, source: str | None = None,
    target: str | None = None, missing_label: tuple[str, ...] | None = None,
) -> Rows:  # fmt: skip
    """The graph in a folder with `nodes.parquet` and `edges.parquet`, whose ids are whole numbers.

    Args:
        folder: the folder.
        id_: column of the nodes with their ids. Default: `id`.
        label: column of the nodes with their classes. Default: `label`, if there is one.
        source, target: columns of the edges with their ends. Default: `source` and `target`.
        missing_label: labels that mean "no label". Default: inferred.

    Returns:
        The rows, whose attributes are read later, in pieces. Every other column of the nodes is an attribute.

    Raises:
        BGCLError: if a column is missing or is of another type, or an edge ends at a node that is not there.
    """
    nodes = ParquetFile(folder / NODES)
    with readable(folder / NODES):
        schema = pq.read_schema(folder / NODES)
    id_ = _column(nodes, id_, "id")
    label = _column(nodes, label, "label", may_lack=True)
    names = [field.name for field in schema if field.name not in (id_, label)]
    for name in names:
        kind = schema.field(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise BGCLError(
                f"{folder / NODES}, column '{name}': attributes of a pack must be numbers, and this column is {kind}. "
                "Leave it out, or load the graph with bgcl.load and pack it with bgcl.data.packing.pack_data."
            )
    if not names:
        raise BGCLError(f"{folder / NODES} has no column of attributes. Give each node at least one.")
    ids = _whole(nodes.read([id_]).columns[id_], folder / NODES, id_)
    labels, classes = (None, []) if label is None else _classes(nodes, label, missing_label)
    edges = _edges(folder / EDGES, ids, source, target)
    return Rows(ids, edges, labels, classes, names, _pieces(folder / NODES, names))


def _column(file: ParquetFile, given: str | None, usual: str, *, may_lack: bool = False) -> Any:
    name = given or usual
    if name in file.names:
        return name
    if given is None and may_lack:
        return None
    raise BGCLError(f"{file.path} has no column '{name}'. {nearest(name, file.names)} Name it with --{usual}.")


def _whole(column: Any, path: Path, name: str) -> Array:
    if not pa.types.is_integer(column.type):
        raise BGCLError(
            f"{path}, column '{name}': ids of a graph that is packed must be whole numbers, not {column.type}."
        )
    if column.null_count:
        raise BGCLError(f"{path}, column '{name}': an id is missing. Give every node one.")
    found = np.asarray(column.to_numpy())
    if found.dtype == np.uint64 and len(found) and found.max() >= 2**63:
        raise BGCLError(f"{path}, column '{name}': the id {found.max()} is too large. Give ids below 2^63.")
    return found.astype(np.int64, copy=False)


def _classes(nodes: ParquetFile, name: str, missing: tuple[str, ...] | None) -> tuple[Array | None, list[str]]:
    """The class number of each node, -1 where a label is missing, and the names, as a graph in memory has them."""
    notes, rules = list[str](), LabelRules(missing)
    with readable(f"{nodes.path}, column '{name}'"):
        table = nodes.read([name], texts=[name])
        labels, classes = encode_labels(table, name, None, notes, may_be_empty=True, rules=rules)
    if labels is not None and classes is None:
        raise BGCLError(
            f"{nodes.path}, column '{name}': the labels are numbers, and a pack has classes. Write them as text, or "
            "load the graph into memory with bgcl.load."
        )
    for note in (*rules.guesses, *notes):
        log.warning(note)
    return labels, [str(value) for value in classes or ()]


def _edges(path: Path, ids: Array, source: str | None, target: str | None) -> Array:
    """The clean edges in both directions by the rows of the nodes, `(2, 2E)`."""
    parquet = ParquetFile(path)
    ends = [_column(parquet, *pair) for pair in ((source, "source"), (target, "target"))]
    parquet.check_unpacked(ends)
    with readable(path):
        file = pq.ParquetFile(path)
        count = int(file.metadata.num_rows)
    check_fits(BYTES_PER_EDGE * count, f"{path}: sorting {count:,} edges", "Pack it on a machine with more memory.")
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if twice.size:
        raise BGCLError(f"The id {ordered[twice[0]]} is there twice. Give every node a different id.")
    pairs, done = np.empty((2, count), dtype=np.int64), 0
    with readable(path):
        for batch in file.iter_batches(1 << 20, columns=list(dict.fromkeys(ends))):
            for row, name in zip(pairs, ends, strict=True):
                found = _whole(batch.column(name), path, name)
                near = np.searchsorted(ordered, found).clip(max=len(ordered) - 1)
                unknown = np.flatnonzero(ordered[near] != found)
                if unknown.size:
                    raise BGCLError(
                        f"{path}, row {done + unknown[0]}, column '{name}': no node has the id {found[unknown[0]]}. "
                        f"Add it to {NODES}."
                    )
                row[done : done + len(found)] = order[near]
            done += batch.num_rows
    edges = undirected(pairs[0], pairs[1], len(ids))
    if not edges.shape[1]:
        raise BGCLError(f"{path}: the graph is empty, it has no edges between different nodes.")
    return edges


def _pieces(path: Path, names: list[str]) -> Iterator[Array]:
    """The attributes in pieces, `(n, F)` each."""
    with readable(path):
        batches = pq.ParquetFile(path).iter_batches(ROWS, columns=names)
    while True:
        with readable(path):
            batch = next(batches, None)
            if batch is None:
                return
            columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in names]
            exact = [column.astype(np.float64) if column.dtype != np.float32 else column for column in columns]
            piece = np.stack(exact, 1)
        yield piece
