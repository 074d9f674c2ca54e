"""The clusters of a graph, which are computed once and kept in the user's cache.

METIS cuts a graph into parts with few edges between them. It needs about 84 bytes of memory for an entry of the
adjacency matrix. If this does not fit, the nodes are taken in the order of a breadth-first search (reverse Cuthill and
McKee, 1969), which needs a tenth of it, and cut into runs. Such parts have more edges between them.
"""

import hashlib
import logging
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from bgcl.data.memory import free_memory, in_words
from bgcl.data.store import cache_folder
from bgcl.errors import CannotWriteError
from bgcl.files import atomic_write
from bgcl.graph.clusters import METIS_BYTES, membership
from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.sparse import Pattern, row_pointer
from bgcl.progress import stage

Array = npt.NDArray[Any]
log = logging.getLogger("bgcl")

WORTH_KEEPING = 100_000  # entries: a smaller graph is cut in less than a second


def clusters_of(edges: Array, nodes: int, parts: int) -> Array:
    """The part of each node, `(N,)`, of clean edges in both directions, `(2, 2E)`."""
    pattern = Pattern(row_pointer(torch.from_numpy(edges[0]), nodes), torch.from_numpy(edges[1]), nodes)
    return partition(PreparedGraph(pattern, torch.empty(nodes, 0)), parts).numpy()


def partition(graph: PreparedGraph, parts: int, known: Array | None = None) -> Tensor:
    """The part of each node of a graph, `(N,)`: from the cache, by METIS, or by a search if METIS does not fit.

    Args:
        graph: the graph.
        parts: number of parts.
        known: a partition that is there already, such as that of a pack, `(N,)`. If it has as many parts or more, runs
            of its parts are joined, and nothing is computed.
    """
    device = graph.connections.column.device
    if parts == 1:
        return torch.zeros(graph.nodes, dtype=torch.int64, device=device)
    if known is not None and known.max() + 1 >= parts:
        return torch.from_numpy(known * parts // (known.max() + 1)).to(device)
    entries = len(graph.connections)
    kept = _place(graph, parts) if entries >= WORTH_KEEPING else None
    if kept is not None and (found := _kept(kept, graph.nodes, parts)) is not None:
        return torch.from_numpy(found).to(device)
    needed, free = METIS_BYTES * entries, free_memory()
    if needed > free:
        log.warning(
            "METIS would need about %s of memory (%d bytes for each of %s connections), and %s are free. So clusters "
            "are runs of a breadth-first search, which have more edges between them.",
            in_words(needed), METIS_BYTES, f"{entries:,}", in_words(free),
        )  # fmt: skip
        return by_search(graph, parts)
    with stage(f"cutting the graph into {parts:,} clusters"):
        part = membership(graph, parts)
    if kept is not None:
        try:
            with atomic_write(kept) as path, path.open("wb") as file:
                np.save(file, part.cpu().numpy().astype(np.int32))
        except (CannotWriteError, OSError) as error:  # no room: what was found is as good without the cache
            log.warning("The clusters of this graph could not be kept, so the next run finds them again. %s", error)
    return part


def _kept(path: Path, nodes: int, parts: int) -> Array | None:
    """A partition from the cache; None if there is none, or if its file is damaged or of another graph."""
    try:
        found = np.load(path)
    except (OSError, ValueError, EOFError):
        return None
    if found.shape != (nodes,) or found.dtype != np.int32 or found.min() < 0 or found.max() >= parts:
        return None
    return np.asarray(found, dtype=np.int64)


def by_search(graph: PreparedGraph, parts: int) -> Tensor:
    """Runs of equal length in the order of a breadth-first search from a node of low degree, `(N,)`."""
    pattern = graph.connections
    pointer, column = pattern.pointer.cpu().numpy(), pattern.column.cpu().numpy()
    small = np.int32 if len(column) < 2**31 else np.int64
    matrix = csr_array(
        (np.ones(len(column), dtype=np.int8), column.astype(small), pointer.astype(small)),
        shape=(graph.nodes, graph.nodes),
    )
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    part = np.empty(graph.nodes, dtype=np.int64)
    part[order] = np.arange(graph.nodes) * parts // graph.nodes
    return torch.from_numpy(part).to(pattern.column.device)


def _place(graph: PreparedGraph, parts: int) -> Path:
    """Where a partition is kept: a file whose name is a hash of the connections, their weights and the parts."""
    sha = hashlib.sha256(f"metis {parts} {graph.nodes}".encode())
    for tensor in (graph.connections.pointer, graph.connections.column, graph.weights):
        if tensor is not None:
            sha.update(np.ascontiguousarray(tensor.cpu().numpy()).data)
    return cache_folder() / "partitions" / f"{sha.hexdigest()[:32]}.npy"
