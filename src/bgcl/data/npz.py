"""Graphs in `.npz` files of plain arrays, with the keys of the Amazon and Coauthor releases. Nothing is unpickled.

The keys are the adjacency matrix as CSR (`adj_data`, `adj_indices`, `adj_indptr`, `adj_shape`), the attributes as CSR
(`attr_*`), and optionally `labels`, `train_mask`, `val_mask`, `stopping_mask`, `test_mask`.
"""

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from bgcl.data.clean import MASKS, Array, CleanGraph, both_directions, clean
from bgcl.errors import BGCLError
from bgcl.files import atomic_write


def read(path: str | os.PathLike[str]) -> CleanGraph:
    """Read a graph. Every nonzero entry of the adjacency matrix is an edge; edge weights are not used."""
    path = Path(path)
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
    return clean(edges, attributes, arrays.get("labels"), masks, where=str(path))


def write(path: str | os.PathLike[str], graph: CleanGraph) -> None:
    """Write a graph, completely or not at all. The same graph gives the same bytes, because NumPy stores no time."""
    row, column = both_directions(graph.edges, graph.nodes)
    arrays: dict[str, Any] = {
        "adj_data": np.ones(row.size, dtype=np.float32),
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
    required = [f"{prefix}_{part}" for prefix in ("adj", "attr") for part in ("data", "indices", "indptr", "shape")]
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise BGCLError(f"{path} is one array, not a graph. A graph's .npz has the keys {', '.join(required)}.")
        with loaded as file:
            missing = [key for key in required if key not in file.files]
            if missing:
                raise BGCLError(f"{path} is not a graph: it lacks {', '.join(missing)}.")
            return {key: file[key] for key in [*required, "labels", *MASKS] if key in file.files}
    except FileNotFoundError as error:
        raise BGCLError(f"There is no file {path}.") from error
    except (IsADirectoryError, PermissionError) as error:
        raise BGCLError(f"Cannot read {path}: {error.strerror}.") from error
    except BGCLError:
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise _damaged(path, str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def _entries(arrays: dict[str, Array], prefix: str, path: Path) -> tuple[Array, Array, Array, tuple[int, int]]:
    """The row, column and value of each entry of a CSR matrix, and its shape."""
    values, columns, starts, shape = (arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr", "shape"))
    if shape.shape != (2,) or any(a.dtype.kind not in "iu" for a in (columns, starts, shape)):
        raise _damaged(path, f"{prefix}_shape, {prefix}_indices and {prefix}_indptr must hold whole numbers")
    height, width = int(shape[0]), int(shape[1])
    counts: Array = np.diff(starts.astype(np.int64))
    lengths_fit = starts.shape == (height + 1,) and values.shape == columns.shape == (int(starts[-1]),)
    if not lengths_fit or starts[0] != 0 or (counts < 0).any():
        raise _damaged(path, f"{prefix}_indptr does not fit {prefix}_shape, {prefix}_indices and {prefix}_data")
    return np.repeat(np.arange(height), counts), columns.astype(np.int64), values, (height, width)


def _damaged(path: Path, why: str) -> BGCLError:
    return BGCLError(f"{path} is damaged ({why}). Delete it and make or download it again.")
