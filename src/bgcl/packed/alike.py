"""Connections between alike nodes of a packed graph. They are found in blocks, and stay on disk until they are used."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from bgcl.data.on_disk import DiskArray
from bgcl.graph.alike import NEAREST, connected, nearest_among, references
from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.sparse import Pattern
from bgcl.model.network import Network
from bgcl.model.parts import DIFFUSED, Among
from bgcl.packed.products import LeanPropagation, narrow
from bgcl.packed.slabs import Slabs, row_blocks, rows_of


@dataclass(frozen=True)
class ConnectionsOnDisk:
    """The connections of a graph and their weights, in files."""

    pointer: DiskArray
    column: DiskArray
    weights: DiskArray

    @classmethod
    def write(cls, folder: Path, name: str, graph: PreparedGraph) -> "ConnectionsOnDisk":
        """Write the connections of a graph that has weights."""
        assert graph.weights is not None
        pattern = narrow(graph)
        arrays = []
        for what, tensor in (("pointer", pattern.pointer), ("column", pattern.column), ("weights", graph.weights)):
            array = DiskArray.create(folder / f"{name}-{what}.npy", tuple(tensor.shape), tensor.numpy().dtype)
            array.write(0, tensor.numpy())
            arrays.append(array)
        return cls(*arrays)

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
            both = connected(graph, *pairs, and_neighbors=kind == "alike and neighbors")
            found[kind] = ConnectionsOnDisk.write(folder, kind.replace(" ", "-"), both)
            vectors[kind] = theirs
        del pairs, both
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
    found["alike neighborhoods"] = ConnectionsOnDisk.write(folder, "neighborhoods", connected(graph, *pairs))
    return Alike(found, among, vectors, encoded, factors)


def _unit_rows(vectors: Slabs, rows: Tensor) -> Tensor:
    """Some rows of a matrix on disk with length one, `(R, w)`."""
    return F.normalize(vectors.gather(rows), dim=1)


def _nearest(vectors: Slabs, among: Tensor, theirs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The nearest nodes of each node among some nodes and their vectors, as `bgcl.graph.alike.nearest` finds them."""
    itself = torch.full((vectors.rows,), -1)
    itself[among] = torch.arange(len(among))
    few = min(NEAREST, len(among) - 1)
    places = [torch.empty(vectors.rows * few, dtype=torch.int64) for _ in range(2)]
    cosines = torch.empty(vectors.rows * few)
    for start, stop in row_blocks(vectors.rows, vectors.width):
        unit = F.normalize(vectors.read_rows(start, stop), dim=1)
        row, near, cosine = nearest_among(unit, theirs, itself[start:stop], few)
        some = slice(start * few, stop * few)
        places[0][some], places[1][some], cosines[some] = row + start, among[near], cosine
    return places[0], places[1], cosines
