"""Clean raw arrays: undirected edges without self-loops and duplicates, and every value checked."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

TOO_SMALL = "has only numbers that are zero with 32 bits. Multiply the attribute by a constant."
MASKS = ("train_mask", "val_mask", "stopping_mask", "test_mask")


@dataclass(frozen=True, eq=False)
class CleanGraph:
    """A clean graph of N nodes, E undirected edges and F attributes, as plain arrays."""

    edges: Array  # (2, E) int64, u < v, sorted by (u, v)
    attributes: csr_matrix  # (N, F) float32, sorted indices, no stored zeros
    labels: Array | None = None  # (N,) int64, -1 = unlabeled
    masks: dict[str, Array] = field(default_factory=dict)  # each (N,) or (N, splits) bool
    weights: Array | None = None  # (2E,) float32, of the edges in both directions

    @property
    def nodes(self) -> int:
        return int(self.attributes.shape[0])


def clean(
    edges: Array, attributes: csr_matrix, labels: Array | None, masks: Mapping[str, Array], *, where: str
) -> CleanGraph:
    """Check raw arrays and make a `CleanGraph`.

    Args:
        edges: pairs of node numbers `(2, M)`, in any order and direction.
        attributes: attributes `(N, F)`.
        labels: class numbers `(N,)`, -1 for unlabeled nodes, or None.
        masks: boolean masks by name, each `(N,)` or `(N, splits)`.
        where: source of the arrays, for errors.

    Raises:
        BGCLError: if a shape or a value is wrong.
    """
    nodes = int(attributes.shape[0])
    return CleanGraph(
        edges=clean_edges(edges, nodes, where=where),
        attributes=_clean_attributes(attributes, where),
        labels=None if labels is None else _clean_labels(labels, nodes, where),
        masks={name: _clean_mask(name, mask, nodes, where) for name, mask in masks.items()},
    )


def clean_edges(edges: Array, nodes: int, *, where: str) -> Array:
    """Directed pairs `(2, M)` as undirected pairs `(2, E)`: u < v, sorted, without self-loops and duplicates."""
    if nodes == 0:
        raise BGCLError(f"{where}: the graph is empty, it has no nodes. Give it at least two nodes and an edge.")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise BGCLError(f"{where}: edges must have the shape (2, number of edges). Got {edges.shape} instead.")
    if edges.dtype.kind not in "iu":
        raise BGCLError(f"{where}: edges must be whole node numbers. Got values of type {edges.dtype} instead.")
    outside = (edges < 0) | (edges >= nodes)
    if outside.any():
        raise BGCLError(
            f"{where}: an edge ends at node {edges[outside][0]}, which does not exist: "
            f"there are {nodes} nodes, numbered 0 to {nodes - 1}."
        )
    low, high = edges.astype(np.int64).min(axis=0), edges.astype(np.int64).max(axis=0)
    no_loop = low != high
    keys = np.unique(low[no_loop] * nodes + high[no_loop])
    if keys.size == 0:
        raise BGCLError(f"{where}: the graph is empty, it has no edges between different nodes.")
    return np.stack([keys // nodes, keys % nodes])


def both_directions(edges: Array, nodes: int) -> Array:
    """Pairs `(2, E)` with u < v as pairs `(2, 2E)` in both directions, sorted by row and column."""
    keys = np.sort(np.concatenate([edges[0] * nodes + edges[1], edges[1] * nodes + edges[0]]))
    return np.stack([keys // nodes, keys % nodes])


def is_clean(pairs: Array, nodes: int) -> bool:
    """Whether pairs `(2, M)` are sorted, in both directions, and without self-loops and duplicates.

    Nothing is sorted: the adjacency matrix must be equal to its transpose, which takes one counting pass.
    """
    if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype != np.int64 or not pairs.size:
        return False
    row, column = pairs
    if pairs.min() < 0 or pairs.max() >= nodes or (row == column).any():
        return False
    if not (np.diff(row * nodes + column) > 0).all():
        return False
    pointer = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=nodes))])
    adjacency = csr_matrix((np.ones(len(row), dtype=np.int8), column, pointer), shape=(nodes, nodes))
    transposed = adjacency.T.tocsr()
    return bool((transposed.indptr == pointer).all() and (transposed.indices == column).all())


def undirected(source: Array, target: Array, nodes: int) -> Array:
    """Clean pairs `(2, 2E)` in both directions, as `clean_edges` and `both_directions` make them, but in one sort.

    A pair is packed into one integer by shifting bits.
    """
    bits, count = max(nodes - 1, 1).bit_length(), len(source)
    keys = np.empty(2 * count, dtype=np.int64)
    for half, row, column in ((keys[:count], source, target), (keys[count:], target, source)):
        np.left_shift(row, bits, out=half)
        half |= column
    loops = np.flatnonzero(source == target)
    if loops.size:  # they are sorted to the end and cut off
        keys[loops] = keys[loops + count] = np.iinfo(np.int64).max
    keys.sort()
    keys = keys[: len(keys) - 2 * loops.size]
    first = np.ones(len(keys), dtype=bool)  # not a duplicate
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    keys = keys[first]
    pairs = np.empty((2, len(keys)), dtype=np.int64)
    np.right_shift(keys, bits, out=pairs[0])
    np.bitwise_and(keys, (1 << bits) - 1, out=pairs[1])
    return pairs


def content_digest(graph: CleanGraph) -> str:
    """SHA-256 of the content. It does not depend on the file that the graph was read from."""
    attributes = graph.attributes
    parts: list[tuple[str, Array, str]] = [
        ("edges", graph.edges.T, "<i8"),
        ("attribute shape", np.array(attributes.shape), "<i8"),
        ("attribute indptr", attributes.indptr, "<i8"),
        ("attribute indices", attributes.indices, "<i8"),
        ("attribute data", attributes.data, "<f4"),
    ]
    if graph.labels is not None:
        parts.append(("labels", graph.labels, "<i8"))
    parts += [(name, graph.masks[name], "u1") for name in sorted(graph.masks)]
    sha = hashlib.sha256()
    for name, array, dtype in parts:
        sha.update(f"{name} {array.shape}\n".encode())
        sha.update(np.ascontiguousarray(array, dtype=dtype).tobytes())
    return sha.hexdigest()


def _clean_attributes(attributes: csr_matrix, where: str) -> csr_matrix:
    if attributes.shape[1] == 0:
        raise BGCLError(f"{where}: the nodes have no attributes. Give each node at least one attribute.")
    if attributes.dtype.kind not in "biuf":
        raise BGCLError(f"{where}: attributes must be numbers. Got values of type {attributes.dtype} instead.")
    values = attributes.data
    with np.errstate(over="ignore", under="ignore"):  # the next checks find what becomes infinity or zero
        attributes = attributes.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(attributes.data))
    if wrong.size:
        node = int(np.searchsorted(attributes.indptr, wrong[0], side="right")) - 1
        raise BGCLError(
            f"{where}: attribute {attributes.indices[wrong[0]]} of node {node} {too_great(values[wrong[0]])}"
        )
    lost = (attributes.data == 0) & (values != 0)
    if lost.any():
        gone = np.setdiff1d(attributes.indices[lost], attributes.indices[attributes.data != 0])
        if gone.size:
            raise BGCLError(f"{where}: attribute {gone[0]} {TOO_SMALL}")
    with np.errstate(over="ignore"):
        attributes.sum_duplicates()  # sorts the indices too
    if not np.isfinite(attributes.data).all():
        raise BGCLError(f"{where}: an attribute is given twice, and the sum is too great for 32 bits. Give it once.")
    attributes.eliminate_zeros()
    return attributes


def too_great(value: float) -> str:
    """What is wrong with a number that is not finite with 32 bits, and what to do."""
    if not np.isfinite(value):
        return f"is {value}. Replace NaN and infinity by finite numbers."
    return f"is {value:.3g}, which is too great for 32 bits. Divide the attribute by a constant."


def _clean_labels(labels: Array, nodes: int, where: str) -> Array:
    if labels.shape != (nodes,):
        raise BGCLError(
            f"{where}: labels must have the shape ({nodes},), one for each node. Got {labels.shape} instead."
        )
    if labels.dtype.kind not in "iu" or labels.min() < -1 or labels.max() > np.iinfo(np.int64).max:
        raise BGCLError(f"{where}: labels must be class numbers from 0, or -1 for an unlabeled node.")
    return labels.astype(np.int64)


def _clean_mask(name: str, mask: Array, nodes: int, where: str) -> Array:
    if mask.ndim not in (1, 2) or mask.shape[0] != nodes:
        raise BGCLError(f"{where}: {name} must have {nodes} rows, one for each node. Got the shape {mask.shape}.")
    if mask.dtype.kind not in "biu" or not np.isin(mask, (0, 1)).all():
        raise BGCLError(f"{where}: {name} must hold true and false (or 1 and 0), not node numbers.")
    return mask.astype(bool)
