"""Attributes for a graph without attributes: the position of a node among the others, and its degree.

Each node has 64 random signs, the bits of a hash of its id. The signs are averaged over the neighbors one, two and
three times. The three averages are scaled to unit length and summed (FastRP, Chen et al., 2019). Nodes with many common
neighbors get similar sums. The degree is one of 16 classes, each twice as wide as the one before.

The signs depend only on the ids. So nodes that are added later get attributes that fit the training graph.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_matrix

from bgcl.data.ids import Lookup

Array = npt.NDArray[Any]

SIGNS, DEGREES, STEPS = 64, 16, 3


def structure_names() -> list[str]:
    """The names of the 80 attributes."""
    bounds = ["0", "1", *(f"{2**i} to {2 ** (i + 1) - 1}" for i in range(1, DEGREES - 2)), f"{2 ** (DEGREES - 2)} on"]
    return [f"neighborhood {i}" for i in range(SIGNS)] + [f"degree {bound}" for bound in bounds]


def structure(edge_index: Array, lookup: Lookup) -> Array:
    """The attributes `(N, 80)` of a graph with clean edges `(2, 2E)` in both directions."""
    nodes = len(lookup.values)
    row, column = edge_index
    degree = np.bincount(row, minlength=nodes)
    adjacency = csr_matrix((np.ones(len(row), np.float32), (row, column)), shape=(nodes, nodes))
    signs = np.unpackbits(hashes(lookup.values).view(np.uint8).reshape(nodes, 8), axis=1).astype(np.float32) * 2 - 1
    total = np.zeros((nodes, SIGNS), dtype=np.float32)
    for _ in range(STEPS):
        signs = (adjacency @ signs) / np.maximum(degree, 1)[:, None].astype(np.float32)
        total += signs / np.maximum(np.linalg.norm(signs, axis=1, keepdims=True), 1e-12)
    size = np.minimum(np.where(degree > 0, np.floor(np.log2(np.maximum(degree, 1))) + 1, 0), DEGREES - 1).astype(int)
    return np.concatenate([total, np.eye(DEGREES, dtype=np.float32)[size]], axis=1)


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
        values = np.add.reduceat(letters, offsets[:-1] - offsets[0])
    else:
        values = np.asarray(ids.to_numpy(zero_copy_only=False)).astype(np.int64).view(np.uint64)
    # The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.ascontiguousarray(values ^ (values >> np.uint64(31)))
