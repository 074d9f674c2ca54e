"""Write a pack: from Parquet files in pieces, or from a graph in memory.

Of a graph in Parquet files, memory holds its edges and a few numbers for each node, and never all attributes.
"""

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.data.clean import TOO_SMALL, both_directions, too_great
from bgcl.data.folder import refuse_graph
from bgcl.data.on_disk import DiskArray, check_room
from bgcl.data.pack import Pack, write_about
from bgcl.data.packed_files import ABOUT, ATTRIBUTES, EDGES, IDS, LABELS, STARTS, PackedFile
from bgcl.data.partition import clusters_of
from bgcl.errors import BGCLError
from bgcl.folders import new_files
from bgcl.progress import stage

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]
log = logging.getLogger("bgcl")

CLUSTER = 200  # nodes of a cluster, so that a batch of twenty is a batch of 4,000 nodes
NAMES = (ATTRIBUTES, EDGES, STARTS, IDS, LABELS, ABOUT)  # in the order in which they appear
BYTES_PER_EDGE = 80  # of memory, while both directions of the edges are sorted
ROWS = 1 << 15  # rows that are read at a time


@dataclass(frozen=True)
class Rows:
    """Where the nodes of a graph come from, in some order.

    Attributes:
        ids: the id of each node, `(N,)`.
        edges: clean edges in both directions, by the numbers of nodes in this order, `(2, 2E)`.
        labels: class numbers, `(N,)`, or None.
        classes: names of the classes.
        names: names of the attributes.
        pieces: attributes in pieces of some rows, `(n, F)` each.
    """

    ids: Array
    edges: Array
    labels: Array | None
    classes: list[str]
    names: list[str]
    pieces: Iterator[Array]


def pack_rows(rows: Rows, folder: Path, parts: int | None = None) -> Pack:
    """Write a pack.

    Args:
        rows: the graph.
        folder: the folder of the pack, which is made.
        parts: number of clusters. Default: one for 200 nodes.

    Returns:
        The pack.

    Raises:
        BGCLError: if the folder holds a pack, there are more parts than nodes, the disk has no room, or an attribute
            is not finite.
    """
    nodes, width = len(rows.ids), len(rows.names)
    parts = max(nodes // CLUSTER, 1) if parts is None else parts
    if not 1 <= parts <= nodes:
        raise BGCLError(f"--parts must be between 1 and the number of nodes, {nodes:,}. Got {parts:,} instead.")
    check_room(
        folder, 4 * nodes * width + 8 * rows.edges.size + 24 * nodes, f"{nodes:,} nodes with {width:,} attributes"
    )
    with new_files(folder, NAMES) as begun:
        refuse_graph(folder)
        part = clusters_of(rows.edges, nodes, parts)
        order = np.argsort(part, kind="stable")  # (N,), the old number of each row
        place = np.empty_like(order)
        place[order] = np.arange(nodes)  # the row of each old number
        starts = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=1))])
        starts = np.unique(starts)  # without empty clusters
        arrays = {STARTS: starts, IDS: rows.ids[order]}
        if rows.labels is not None:
            arrays[LABELS] = rows.labels[order].astype(np.int64)
        for name, array in arrays.items():
            _write(begun / name, array)
        del part, order
        one_way = rows.edges[:, rows.edges[0] < rows.edges[1]]
        moved = both_directions(np.sort(place[one_way], axis=0), nodes)
        _write(begun / EDGES, moved)
        with stage("writing attributes"):
            _write_attributes(rows, begun, place)
        with stage("computing checksums"):
            files = {name: PackedFile.of(begun / name) for name in (ATTRIBUTES, EDGES, *arrays)}
            fingerprint = _fingerprint(moved, DiskArray.open(begun / ATTRIBUTES))
        found = Pack(
            folder, nodes, moved.shape[1] // 2, width, fingerprint, len(starts) - 1, rows.classes, rows.names, files
        )
        write_about(found, begun)
    return found


def _write(path: Path, array: Array) -> None:
    DiskArray.create(path, array.shape, array.dtype).write(0, array)


def _write_attributes(rows: Rows, folder: Path, place: Array) -> None:
    """Write attributes to their rows, piece by piece."""
    target, done = DiskArray.create(folder / ATTRIBUTES, (len(place), len(rows.names)), np.float32), 0
    lost, left = np.zeros((2, len(rows.names)), dtype=bool)  # columns of which a number became zero, or did not
    for given in rows.pieces:
        with np.errstate(over="ignore"):
            piece = given.astype(np.float32)
        wrong = ~np.isfinite(piece)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            value = too_great(float(given[row, column]))
            raise BGCLError(f"Attribute '{rows.names[column]}' of node {rows.ids[done + row]} {value}")
        lost |= ((given != 0) & (piece == 0)).any(0)
        left |= (piece != 0).any(0)
        target.scatter(place[done : done + len(piece)], piece)
        done += len(piece)
    if (lost & ~left).any():
        raise BGCLError(f"Attribute '{rows.names[int(np.argmax(lost & ~left))]}' {TOO_SMALL}")


def _fingerprint(edges: Array, attributes: DiskArray) -> str:
    """The fingerprint that `GraphFacts` computes, without having all attributes in memory."""
    sha = hashlib.sha256(np.ascontiguousarray(edges).data)
    for start in range(0, attributes.shape[0], ROWS):
        sha.update(attributes.read(start, start + ROWS).data)
    return sha.hexdigest()


def pack_data(data: "Data", folder: Path, parts: int | None = None) -> Pack:
    """Write a pack of a graph in memory, which must have one kind of edges, without weights."""
    import torch

    from bgcl.data.pyg import check_graph

    data = check_graph(data)
    for field in ("edge_weight", "edge_relations"):
        if data.get(field) is not None:
            raise BGCLError(
                "A pack has one kind of edges, without weights, and this graph has others. Use it as it is."
            )
    if data.get("y") is not None and (data.y.is_floating_point() or data.y.dim() > 1):
        what = "numbers" if data.y.is_floating_point() else "several for each node"
        raise BGCLError(f"A pack has classes as labels, and the labels of this graph are {what}. Use it as it is.")

    def pieces() -> Iterator[Array]:
        for start in range(0, data.num_nodes, ROWS):
            number = torch.arange(start, min(start + ROWS, data.num_nodes))
            yield data.x.index_select(0, number).to_dense().numpy() if dense else _dense_rows(data.x, number)

    dense = data.x.layout == torch.strided
    width = data.x.shape[1]
    names = [str(name) for name in data.get("attribute_names") or range(width)]
    ids = np.asarray(data.ids) if data.get("ids") is not None else np.arange(data.num_nodes)
    if ids.dtype == object:
        ids = ids.astype(str)
    labels = None if data.get("y") is None else data.y.numpy()
    classes = [str(name) for name in data.get("classes") or ()]
    return pack_rows(Rows(ids, data.edge_index.numpy(), labels, classes, names, pieces()), folder, parts)


def _dense_rows(x: Any, number: Any) -> Array:
    """Some rows of a sparse matrix."""
    from bgcl.graph.clusters import feature_rows
    from bgcl.graph.prepared import SparseFeatures, to_dense
    from bgcl.graph.sparse import Pattern

    sparse = SparseFeatures(Pattern(x.crow_indices(), x.col_indices(), x.shape[1]), x.values())
    return np.asarray(to_dense(feature_rows(sparse, number)).numpy())
