"""What is found before training, on a packed graph: principal directions, positions, and drop rates by evidence.

The same as `Network.fit_graph` computes, up to rounding: sums over nodes are added up block by block.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from bgcl.augmentation.evidence import Numbers, Witnesses
from bgcl.augmentation.rate_evidence import learn_rates
from bgcl.data.on_disk import DiskArray
from bgcl.graph.keys import keys_of
from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.spectrum import EXTRA, ROUNDS, greatest_entry_positive
from bgcl.model.network import Network
from bgcl.model.parts import DIRECTIONS, Part, Parts
from bgcl.model.structure import ROUNDS as POSITION_ROUNDS
from bgcl.model.structure import Structure, orthonormal_turn, random_signs
from bgcl.packed.products import LeanPropagation
from bgcl.packed.slabs import SLAB, row_blocks, rows_of

HOP_0 = Part("attributes", 0)


@torch.no_grad()
def fit_parts(network: Network, graph: PreparedGraph, scaled: DiskArray, generator: torch.Generator) -> None:
    """Find principal directions, positions and drop rates.

    Args:
        network: the network, whose scaling is fitted.
        graph: the graph. Its attributes are `scaled`, mapped into memory.
        scaled: the scaled attributes, `(N, F)`.
        generator: source of random starts.
    """
    connections = LeanPropagation(graph)
    _fit_directions(network.parts, connections, scaled, generator)
    if network.parts.structure is not None:
        fit_positions(network.parts.structure, graph, connections)
    settings = network.settings
    if settings.rate_rule == "evidence" and network.augmentation.learned:
        directions = _directions_of_attributes(network.parts, connections, scaled, generator)
        numbers = network.scaling.numbers(graph)
        witnesses = PackedWitnesses(graph, directions, numbers, generator, scaled)
        learn_rates(network.augmentation, witnesses, settings.rate_start, settings.beta_prior())


def _fit_directions(parts: Parts, connections: LeanPropagation, scaled: DiskArray, generator: torch.Generator) -> None:
    """The directions of each part of attributes. A diffused part has those of the last hop, as in `Parts.fit`."""
    of_attributes = [i for i, part in enumerate(parts.parts) if part.source == "attributes"]
    hops = [i for i in of_attributes if parts.parts[i].hops is not None]
    for i in of_attributes:
        if parts.parts[i].hops is not None or not hops:
            directions: Tensor = getattr(parts, f"directions_{i}")
            rank = min(directions.shape[1], scaled.shape[0])
            found = directions_in_blocks(_square(parts.parts[i], connections, scaled), len(directions), rank, generator)
            directions.zero_()[:, : found.shape[1]] = found
    for i in of_attributes:
        if parts.parts[i].hops is None and hops:
            last = max(hops, key=lambda hop: parts.parts[hop].hops or 0)
            getattr(parts, f"directions_{i}").copy_(getattr(parts, f"directions_{last}"))


def _directions_of_attributes(
    parts: Parts, connections: LeanPropagation, scaled: DiskArray, generator: torch.Generator
) -> Tensor:
    """The first principal directions of the attributes as they are, `(F, q)`."""
    for i, part in enumerate(parts.parts):
        if part == HOP_0:
            directions: Tensor = getattr(parts, f"directions_{i}")
            return directions[:, :DIRECTIONS]
    rank = min(DIRECTIONS, scaled.shape[1], scaled.shape[0])
    return directions_in_blocks(_square(HOP_0, connections, scaled), scaled.shape[1], rank, generator)


def _square(part: Part, connections: LeanPropagation, scaled: DiskArray) -> Callable[[Tensor], Tensor]:
    """Multiplication with `M' M` for `M = A^k X`: a function of a thin matrix, `(F, q)` to `(F, q)`."""

    def times(thin: Tensor) -> Tensor:
        tall = torch.empty(scaled.shape[0], thin.shape[1])
        for start, stop in row_blocks(*scaled.shape):
            torch.mm(rows_of(scaled, start, stop), thin, out=tall[start:stop])
        if part.hops != 0:  # A is symmetric
            tall = part.propagated(connections, part.propagated(connections, tall))
        found = torch.zeros_like(thin)
        for start, stop in row_blocks(*scaled.shape):
            found.addmm_(rows_of(scaled, start, stop).T, tall[start:stop])
        return found

    return times


def directions_in_blocks(
    square: Callable[[Tensor], Tensor], columns: int, rank: int, generator: torch.Generator, slab: int = SLAB
) -> Tensor:
    """The first right singular vectors of M, `(F, rank)`, as `right_directions` finds them, from products with `M' M`.

    Args:
        square: `M' M Q` for a thin matrix Q.
        columns: F, the number of columns of M.
        rank: how many vectors.
        generator: source of the random start.
        slab: columns of Q that are multiplied at a time.
    """
    width = min(rank + EXTRA, columns)
    basis = torch.randn(columns, width, generator=generator, device=generator.device)

    def in_slabs(thin: Tensor) -> Tensor:
        return torch.cat([square(thin[:, start : start + slab].contiguous()) for start in range(0, width, slab)], 1)

    for _ in range(ROUNDS):
        basis, _ = torch.linalg.qr(in_slabs(basis))
    products = (basis.T @ in_slabs(basis)).double()
    _, vectors = torch.linalg.eigh((products + products.T) / 2)
    return greatest_entry_positive(basis @ vectors.flip(1)[:, :rank].to(basis))


def fit_positions(structure: Structure, graph: PreparedGraph, connections: LeanPropagation) -> None:
    """The positions of a graph's nodes, as `Structure.fit` finds them. They are in memory, `(N, width)`."""
    keys = keys_of(graph)
    found = torch.empty(graph.nodes, structure.width)
    for start, stop in row_blocks(graph.nodes, structure.width):
        found[start:stop] = random_signs(keys[start:stop], structure.width)
    for _ in range(POSITION_ROUNDS):
        connections.in_columns(Part("structure", 1), found)
        products = torch.zeros(structure.width, structure.width)
        for start, stop in row_blocks(graph.nodes, structure.width):
            products.addmm_(found[start:stop].T, found[start:stop])
        turn = orthonormal_turn(products)
        for start, stop in row_blocks(graph.nodes, structure.width):
            found[start:stop] = found[start:stop] @ turn
    structure.keys, order = torch.sort(keys)
    for first in range(0, structure.width, SLAB):  # in place, because a copy takes as much memory as all positions
        columns = slice(first, first + SLAB)
        found[:, columns] = found[order, columns]
    structure.known = found


class PackedWitnesses(Witnesses):
    """Witnesses whose dense numbers are on disk.

    Args:
        graph, directions, numbers, generator: see `Witnesses`.
        scaled: the scaled attributes, `(N, F)`.
    """

    def __init__(
        self, graph: PreparedGraph, directions: Tensor, numbers: int, generator: torch.Generator, scaled: DiskArray
    ) -> None:
        super().__init__(graph, directions, numbers, generator)
        self.scaled = scaled

    def _standard_numbers(self) -> Numbers:
        nodes = self.graph.nodes
        total, squares = np.zeros(self.numbers), np.zeros(self.numbers)
        for start, stop in row_blocks(*self.scaled.shape):
            total += self._block(start, stop).sum(0)
        mean = total / nodes
        for start, stop in row_blocks(*self.scaled.shape):
            squares += np.square(self._block(start, stop) - mean).sum(0)
        size = np.maximum(np.sqrt(squares / nodes), 1e-12)
        vary = np.flatnonzero(squares / np.square(size) / max(nodes - 1, 1) > 1e-6)

        def columns_of(columns: np.ndarray) -> np.ndarray:
            blocks = [self._block(*block)[:, columns] for block in row_blocks(*self.scaled.shape)]
            found: np.ndarray = (np.concatenate(blocks) - mean[columns]) / size[columns]
            return found

        def rows(chosen: np.ndarray) -> Tensor:
            found = self.scaled.gather(chosen)[:, : self.numbers].astype(np.float64)
            return torch.from_numpy((found - mean) / size)

        return vary, columns_of, rows

    def _attributes(self, nodes: np.ndarray) -> csr_matrix:
        return csr_matrix(self.scaled.gather(nodes).astype(np.float64))  # mapped rows would bring others into memory

    def _block(self, start: int, stop: int) -> np.ndarray:
        found: np.ndarray = self.scaled.read(start, stop)[:, : self.numbers].astype(np.float64)
        return found
