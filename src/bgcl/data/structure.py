"""Attributes for a graph without attributes: which nodes a node is connected to, and its degree.

Each node belongs to one of 8,192 columns, given by a hash of its id. The entry of a node in a column counts the nodes
of this column among its neighbors and itself, as a text counts its words. So nodes with common neighbors have similar
rows. The degree is one of 16 classes, each twice as wide as the one before.

Weights, types and directions of edges do not count here.

The column of a node depends only on its id. So nodes that are added later get attributes that fit the training graph.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_matrix, hstack, identity

from bgcl.data.ids import Lookup

Array = npt.NDArray[Any]

COLUMNS, DEGREES = 8192, 16


def structure_names() -> list[str]:
    """The names of the attributes."""
    bounds = ["0", "1", *(f"{2**i} to {2 ** (i + 1) - 1}" for i in range(1, DEGREES - 2)), f"{2 ** (DEGREES - 2)} on"]
    return [f"neighbors in column {i}" for i in range(COLUMNS)] + [f"degree {bound}" for bound in bounds]


def structure(edge_index: Array, lookup: Lookup) -> csr_matrix:
    """The attributes `(N, 8208)` of a graph with clean edges `(2, 2E)` in both directions."""
    nodes = len(lookup.values)
    row, column = edge_index
    degree = np.bincount(row, minlength=nodes)
    adjacency = csr_matrix((np.ones(len(row), np.float32), (row, column)), shape=(nodes, nodes))
    every = np.arange(nodes)
    where = (hashes(lookup.values) % np.uint64(COLUMNS)).astype(np.int64)
    columns = csr_matrix((np.ones(nodes, np.float32), (every, where)), shape=(nodes, COLUMNS))
    size = np.minimum(np.where(degree > 0, np.floor(np.log2(np.maximum(degree, 1))) + 1, 0), DEGREES - 1).astype(int)
    sizes = csr_matrix((np.ones(nodes, np.float32), (every, size)), shape=(nodes, DEGREES))
    neighbors = (adjacency + identity(nodes, dtype=np.float32)) @ columns
    return hstack([neighbors, sizes], format="csr", dtype=np.float32)


def hashes(ids: Any) -> Array:
    """A hash of 64 bits for each id, the same on every machine.

    A number, or a polynomial in the bytes of a text, is mixed by the finalizer of SplitMix64.
    """
    if pa.types.is_string(ids.type):
        length, offsets, data = (
            len(ids),
            *(np.frombuffer(ids.buffers()[i], d) for i, d in ((1, np.int32), (2, np.uint8))),
        )
        offsets = offsets[ids.offset : ids.offset + length + 1].astype(np.int64)
        position = np.arange(offsets[-1] - offsets[0]) - np.repeat(offsets[:-1] - offsets[0], np.diff(offsets))
        longest = int(np.diff(offsets).max())
        powers = np.cumprod(np.full(longest, 0x100000001B3, dtype=np.uint64), dtype=np.uint64)
        letters = (data[offsets[0] : offsets[-1]].astype(np.uint64) + np.uint64(1)) * powers[position]
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(letters, dtype=np.uint64)])  # a text may be empty
        values = np.diff(total[offsets - offsets[0]])
    else:
        values = np.asarray(ids.to_numpy(zero_copy_only=False)).astype(np.int64).view(np.uint64)
    # The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.ascontiguousarray(values ^ (values >> np.uint64(31)))
