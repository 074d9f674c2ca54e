"""Connections between alike nodes of a packed graph. They are found in blocks, and stay on disk until they are used."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bgcl.data.on_disk import DiskArray
from bgcl.graph.alike import NEAREST, Nearest, connected_rows, nearest_among, references
from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.sparse import Pattern
from bgcl.model.network import Network
from bgcl.model.parts import DIFFUSED, Among
from bgcl.packed.products import NARROW, LeanPropagation
from bgcl.packed.slabs import Slabs, row_blocks, rows_of

WIDE = 1024  # bytes of a node while its connections are put together


@dataclass(frozen=True)
class ConnectionsOnDisk:
    """The connections of a graph and their weights, in files."""

    pointer: DiskArray
    column: DiskArray
    weights: DiskArray

    @classmethod
    def write(
        cls, folder: Path, name: str, graph: PreparedGraph, found: Nearest, *, and_neighbors: bool = False
    ) -> "ConnectionsOnDisk":
        """Write the connections between nodes and their nearest nodes, some rows at a time, see `connected_rows`."""
        most = 2 * found.near.numel() + (len(graph.connections) if and_neighbors else graph.nodes)
        small = np.int32 if max(most, graph.nodes) <= NARROW else np.int64
        pointer = DiskArray.create(folder / f"{name}-pointer.npy", (graph.nodes + 1,), small)
        column = DiskArray.create(folder / f"{name}-column.npy", (most,), small)
        weights = DiskArray.create(folder / f"{name}-weights.npy", (most,), np.float32)
        total = 0
        for start, stop in row_blocks(graph.nodes, 4 * WIDE):
            counts, columns, some = connected_rows(graph, found, start, stop, and_neighbors=and_neighbors)
            pointer.write(start + 1, (total + counts.cumsum(0)).numpy())
            column.write(total, columns.numpy())
            weights.write(total, some.numpy())
            total += len(some)
        return cls(pointer, replace(column, shape=(total,)), replace(weights, shape=(total,)))

    def read(self, like: PreparedGraph) -> PreparedGraph:
        """A graph with the nodes of another one and these connections."""
        pointer, column, weights = (
            torch.from_numpy(array.read(0, array.shape[0])) for array in (self.pointer, self.column, self.weights)
        )
        return replace(like, connections=Pattern(pointer, column, like.nodes), weights=weights, relations=None)


@dataclass(frozen=True)
class Alike:
    """Which nodes are alike, and what tells the same of a node that joins the graph.

    Attributes:
        connections: those between alike nodes, of each kind.
        references: the nodes among which alike ones are looked for, `(R,)`.
        vectors: their vectors of length one, `(R, w)`, by kind.
        diffused: the diffused output of the encoder without masks, `(N, w)`, if alike neighborhoods are needed.
        factors: the factors of the columns with which it was diffused, `(N,)`.
    """

    connections: dict[Among, ConnectionsOnDisk]
    references: Tensor
    vectors: dict[Among, Tensor]
    diffused: Slabs | None = None
    factors: Tensor | None = None


def encoded_rows(network: Network, scaled: DiskArray, start: int, stop: int) -> Tensor:
    """The encoder's output for some rows without masks, with rows of length one, `(n, w)`."""
    features = rows_of(scaled, start, stop)
    return network.parts.unit(network.encoder(alone(features, torch.arange(start, stop))))


def alone(features: Tensor, numbers: Tensor) -> PreparedGraph:
    """Some nodes as a graph in which every node is connected with itself alone.

    Args:
        features: their scaled attributes, `(n, F)`.
        numbers: their rows in the whole graph, `(n,)`.
    """
    count = len(features)
    pattern = Pattern(torch.arange(count + 1), torch.arange(count), count)
    return PreparedGraph(pattern, features, numbers=numbers)


@torch.no_grad()
def find_alike(network: Network, graph: PreparedGraph, scaled: DiskArray, folder: Path) -> Alike:
    """The connections between alike nodes that the parts of the embedding need, as `Parts.alike` finds them.

    Args:
        network: the network.
        graph: the graph, with numbers of 32 bits.
        scaled: the scaled attributes, `(N, F)`.
        folder: where connections are written.
    """
    among = references(graph)
    found: dict[Among, ConnectionsOnDisk] = {}
    vectors: dict[Among, Tensor] = {}
    kinds = list(dict.fromkeys(part.among for part in network.parts.parts if part.among))
    if not kinds:
        return Alike(found, among, vectors)
    encoded = Slabs(folder, "alike", graph.nodes, network.encoder.width)
    for start, stop in row_blocks(*scaled.shape):
        encoded.write_rows(start, encoded_rows(network, scaled, start, stop))
    plain = [kind for kind in kinds if kind != "alike neighborhoods"]
    if plain:
        theirs = _unit_rows(encoded, among)
        pairs = _nearest(encoded, among, theirs)
        for kind in plain:
            name, with_edges = kind.replace(" ", "-"), kind == "alike and neighbors"
            found[kind] = ConnectionsOnDisk.write(folder, name, graph, pairs, and_neighbors=with_edges)
            vectors[kind] = theirs
        del pairs
    if "alike neighborhoods" not in kinds:
        encoded.remove()
        return Alike(found, among, vectors)
    connections = LeanPropagation(graph)
    for number in range(len(encoded)):
        encoded.write(number, DIFFUSED.propagated(connections, encoded.read(number)))
    factors = connections.of_columns
    del connections
    vectors["alike neighborhoods"] = theirs = _unit_rows(encoded, among)
    pairs = _nearest(encoded, among, theirs)
    found["alike neighborhoods"] = ConnectionsOnDisk.write(folder, "neighborhoods", graph, pairs)
    return Alike(found, among, vectors, encoded, factors)


def _unit_rows(vectors: Slabs, rows: Tensor) -> Tensor:
    """Some rows of a matrix on disk with length one, `(R, w)`."""
    return F.normalize(vectors.gather(rows), dim=1)


def _nearest(vectors: Slabs, among: Tensor, theirs: Tensor) -> Nearest:
    """The nearest nodes of each node among some nodes and their vectors, as `bgcl.graph.alike.nearest` finds them."""
    itself = torch.full((vectors.rows,), -1)
    itself[among] = torch.arange(len(among))
    few = min(NEAREST, len(among) - 1)
    places = torch.empty(vectors.rows, few, dtype=torch.int32 if vectors.rows * few <= NARROW else torch.int64)
    cosines = torch.empty(vectors.rows, few)
    for start, stop in row_blocks(vectors.rows, vectors.width):
        unit = F.normalize(vectors.read_rows(start, stop), dim=1)
        _, near, cosine = nearest_among(unit, theirs, itself[start:stop], few)
        places[start:stop] = among[near].reshape(-1, few)
        cosines[start:stop] = cosine.reshape(-1, few)
    return Nearest(places, cosines)
