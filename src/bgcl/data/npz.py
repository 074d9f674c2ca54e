"""Graphs in `.npz` files of plain arrays, with the keys of the Amazon and Coauthor releases. Nothing is unpickled.

The keys are the adjacency matrix as CSR (`adj_data`, `adj_indices`, `adj_indptr`, `adj_shape`), the attributes as CSR
(`attr_*`), and optionally `labels`, `train_mask`, `val_mask`, `stopping_mask`, `test_mask`.
"""

import math
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from bgcl.data.border import readable
from bgcl.data.clean import MASKS, Array, CleanGraph, both_directions, clean
from bgcl.data.memory import check_unpacked
from bgcl.data.weights import checked_weights, is_constant, merged_weights
from bgcl.errors import BGCLError
from bgcl.files import atomic_write

REQUIRED = tuple(f"{prefix}_{part}" for prefix in ("adj", "attr") for part in ("data", "indices", "indptr", "shape"))
_ONE_ARRAY = b"\x93NUMPY"  # the beginning of a .npy
_BYTES_FOR_ENTRY = 32  # memory for an entry of an array while the graph is made
_WIDEST = 2**31 - 1  # SciPy counts rows and columns with 32 bits
_REMEDY = "Delete it and make or download it again."


def read(path: str | os.PathLike[str]) -> CleanGraph:
    """Read a graph. Every nonzero entry of the adjacency matrix is an edge, and its value is the weight."""
    path = Path(path)
    with readable(path, _REMEDY):
        return _read(path)


def _read(path: Path) -> CleanGraph:
    arrays = _needed_arrays(path)
    rows, columns, weights, (height, width) = _entries(arrays, "adj", path)
    if height != width:
        raise BGCLError(f"{path}: the adjacency matrix must be square. Its shape is {height} x {width}.")
    edges = np.stack([rows, columns])[:, weights != 0]
    rows, columns, values, shape = _entries(arrays, "attr", path)
    if shape[0] != height:
        raise BGCLError(f"{path}: there are {height} nodes, but {shape[0]} rows of attributes. Give each node one row.")
    if columns.size and (columns.min() < 0 or columns.max() >= shape[1]):
        raise _damaged(path, "a column of attr_indices is outside attr_shape")
    attributes = csr_matrix((values, columns, arrays["attr_indptr"]), shape=shape)
    masks = {name: arrays[name] for name in MASKS if name in arrays}
    graph = clean(edges, attributes, arrays.get("labels"), masks, where=str(path))
    weights = weights[weights != 0]
    if is_constant(weights):
        return graph
    weights = checked_weights(weights, edges.shape[1], f"{path}: adj_data")
    return replace(graph, weights=merged_weights(edges, weights, height)[1])


def write(path: str | os.PathLike[str], graph: CleanGraph) -> None:
    """Write a graph, completely or not at all. The same graph gives the same bytes, because NumPy stores no time."""
    row, column = both_directions(graph.edges, graph.nodes)
    arrays: dict[str, Any] = {
        "adj_data": np.ones(row.size, dtype=np.float32) if graph.weights is None else graph.weights,
        "adj_indices": column.astype(np.int32),
        "adj_indptr": np.searchsorted(row, np.arange(graph.nodes + 1)).astype(np.int32),
        "adj_shape": np.array([graph.nodes, graph.nodes], dtype=np.int64),
        "attr_data": graph.attributes.data,
        "attr_indices": graph.attributes.indices.astype(np.int32),
        "attr_indptr": graph.attributes.indptr.astype(np.int32),
        "attr_shape": np.array(graph.attributes.shape, dtype=np.int64),
        **graph.masks,
    }
    if graph.labels is not None:
        arrays["labels"] = graph.labels
    with atomic_write(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _needed_arrays(path: Path) -> dict[str, Array]:
    """Load the arrays of a graph, and no others: published files also hold names as pickled objects."""
    with path.open("rb") as file:
        if file.read(len(_ONE_ARRAY)) == _ONE_ARRAY:
            raise BGCLError(f"{path} is one array, not a graph. A graph's .npz has the keys {', '.join(REQUIRED)}.")
    if not zipfile.is_zipfile(path):
        raise _damaged(path, "it is not an archive of arrays, as numpy.savez writes them")
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        missing = [key for key in REQUIRED if key not in members]
        if missing:
            raise BGCLError(f"{path} is not a graph: it lacks {', '.join(missing)}.")
        keys = [key for key in (*REQUIRED, "labels", *MASKS) if key in members]
        entries = sum(_count(path, archive, key, members[key]) for key in keys)
        check_unpacked(path, _BYTES_FOR_ENTRY * entries, "If it is in order, write it with numpy.savez.")
        return {key: _array(archive, members[key]) for key in keys}


def _count(path: Path, archive: zipfile.ZipFile, key: str, member: zipfile.ZipInfo) -> int:
    """The number of entries of an array, from its header. The header must fit the length of the array."""
    if member.flag_bits & 1:
        raise _damaged(path, f"{key} is encrypted")
    with readable(f"{path}, array {key}", _REMEDY), archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read_header is None:
            raise _damaged(path, f"{key} has the unknown version {version[0]}.{version[1]}")
        shape, _, dtype = read_header(file)
        if dtype.kind not in "biuf":
            raise BGCLError(f"{path}: {key} must hold numbers. Got values of type {dtype} instead.")
        count = math.prod(shape)
        if min(shape, default=0) < 0 or count * dtype.itemsize != member.file_size - file.tell():
            raise _damaged(path, f"the shape {shape} of {key} does not fit its length")
    return count


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    with archive.open(member) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _entries(arrays: dict[str, Array], prefix: str, path: Path) -> tuple[Array, Array, Array, tuple[int, int]]:
    """The row, column and value of each entry of a CSR matrix, and its shape."""
    values, columns, starts, shape = (arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr", "shape"))
    if any(a.dtype.kind not in "iu" for a in (columns, starts, shape)):
        raise _damaged(path, f"{prefix}_shape, {prefix}_indices and {prefix}_indptr must hold whole numbers")
    if shape.shape != (2,) or not (0 <= shape.min() <= shape.max() <= _WIDEST):
        raise _damaged(path, f"{prefix}_shape must be two numbers from 0 to {_WIDEST:,}")
    height, width = int(shape[0]), int(shape[1])
    if starts.shape != (height + 1,) or starts.max() > len(values.ravel()):
        raise _damaged(path, f"{prefix}_indptr does not fit {prefix}_shape, {prefix}_indices and {prefix}_data")
    counts: Array = np.diff(starts.astype(np.int64))
    if values.shape != columns.shape or values.shape != (int(starts[-1]),) or starts[0] != 0 or (counts < 0).any():
        raise _damaged(path, f"{prefix}_indptr does not fit {prefix}_shape, {prefix}_indices and {prefix}_data")
    return np.repeat(np.arange(height), counts), columns.astype(np.int64), values, (height, width)


def _damaged(path: Path, why: str) -> BGCLError:
    return BGCLError(f"{path} is damaged ({why}). {_REMEDY}")
