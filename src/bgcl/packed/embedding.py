"""The embedding of a packed graph: layer by layer in blocks of rows, and propagated in slabs of columns.

The whole embedding is never in memory, only one part of it. A consumer gets it slab by slab:

1. For some rows at a time, the attributes are masked and go through the encoder, and through the directions of each
   part of attributes. The results are on disk, as slabs.
2. For each part, each slab is propagated. When the length of every row of the part is known, rows are scaled to
   length one, and the consumer gets the slabs of the part.

Masks come from `bgcl.augmentation.noise`, which does not depend on the order of computing. So a draw is the same as
that of the whole graph in memory, up to rounding.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from bgcl.augmentation.noise import Noise
from bgcl.augmentation.views import LayerMask, View
from bgcl.data.on_disk import DiskArray
from bgcl.errors import BGCLError
from bgcl.graph.keys import keys_of
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.encoders.base import masked_product
from bgcl.model.network import Network
from bgcl.model.parts import STEPS, Among
from bgcl.packed.alike import Alike, alone, find_alike
from bgcl.packed.products import LeanPropagation
from bgcl.packed.slabs import Slabs, row_blocks, rows_of

Consumer = Callable[[int, Tensor], None]  # the first column, and `(N, columns)` with rows scaled


class Keeper(Protocol):
    """Keeps what a node that joins the graph hears from its neighbors in a draw."""

    def factors(self, among: Among | None, of_columns: Tensor) -> None:
        """Keep the factor of each column of the normalized connections, `(N,)`."""

    def state(self, part: int, step: int, slab: int, heard: Tensor) -> None:
        """Keep a slab of a part after some steps of propagation, `(N, columns)`; of a diffused part, after the last."""


class PackedEmbedder:
    """Embeds the nodes of a packed graph.

    Args:
        network: the network.
        graph: the graph, with connections in numbers of 32 bits.
        scaled: the scaled attributes, `(N, F)`.
        folder: a folder for what does not stay in memory.
    """

    def __init__(self, network: Network, graph: PreparedGraph, scaled: DiskArray, folder: Path) -> None:
        check_parts(network)
        self.network, self.graph, self.scaled, self.folder = network, graph, scaled, folder
        self.nodes = graph.nodes
        self._alike: Alike | None = None
        self.sources: dict[str, Slabs] = {}
        parts, width = network.parts, network.encoder.width
        if any(part.source == "encoder" for part in parts.parts):
            self.sources["encoder"] = Slabs(folder, "encoder", self.nodes, width)
        for i, part in enumerate(parts.parts):
            if part.source == "attributes":
                self.sources[f"attributes {i}"] = Slabs(folder, f"attributes-{i}", self.nodes, parts.widths[i])
        if parts.structure is not None:
            self.sources["structure"] = self._positions()

    @property
    def width(self) -> int:
        """The width of the embedding."""
        return sum(self.network.parts.widths)

    @property
    def alike(self) -> Alike:
        """Which nodes are alike, which is found on first use."""
        if self._alike is None:
            self._alike = find_alike(self.network, self.graph, self.scaled, self.folder)
        return self._alike

    @torch.no_grad()
    def draw(
        self, consume: Consumer, view: View = "o", noise: Noise | None = None, *, hard: bool = False,
        scale: float | None = 1.0, keep: "Keeper | None" = None,
    ) -> None:  # fmt: skip
        """One draw of the embedding in a view, or the embedding without masks if there is no noise.

        Args:
            consume: gets the first column of a slab and the slab, `(N, columns)`, each column of the embedding once.
            view, noise, hard, scale: see `Network.draw`.
            keep: keeps what a node that joins the graph needs.
        """
        alike = self.alike.connections  # found before the sources are written, because it takes most memory
        self._write_sources(view, noise, hard=hard, scale=scale)
        groups: list[Among | None] = [None, *alike]
        for among in groups:
            wanted = [i for i, part in enumerate(self.network.parts.parts) if part.among == among]
            if not wanted:
                continue
            graph = self.graph if among is None else alike[among].read(self.graph)
            kept = None
            if noise is not None:
                name = noise.of("among", "neighbors" if among is None else among)
                kept = self.network.augmentation.kept_positives(view, graph, name, hard=hard, scale=scale)
            graph.connections.forget()
            connections = LeanPropagation(graph, kept)
            del kept
            if keep is not None:
                keep.factors(among, connections.of_columns)
            for i in wanted:
                self._part(i, connections, consume, keep)

    def source_of(self, number: int) -> str:
        """The name of what a part propagates."""
        source = self.network.parts.parts[number].source
        return source if source != "attributes" else f"attributes {number}"

    def _part(self, number: int, connections: LeanPropagation, consume: Consumer, keep: "Keeper | None") -> None:
        """Propagate one part, and hand on its slabs."""
        part = self.network.parts.parts[number]
        source = self.sources[self.source_of(number)]
        first = sum(self.network.parts.widths[:number])
        squares, made = torch.zeros(self.nodes), Slabs(self.folder, "made", self.nodes, source.width)
        for i in range(len(source)):
            slab = source.read(i)
            if keep is None or part.hops is None:
                slab = part.propagated(connections, slab)
            else:
                for step in range(part.hops):
                    if step:
                        keep.state(number, step, i, slab)
                    slab = connections(slab)
            if keep is not None and part.hops is None:
                keep.state(number, STEPS, i, slab)
            made.write(i, slab)
            squares += torch.linalg.vector_norm(slab, dim=1).square_()
        length = squares.sqrt_().clamp_(min=1e-12)[:, None]
        for i, (start, _) in enumerate(made.ranges):
            consume(first + start, made.read(i).div_(length))

    def _write_sources(self, view: View, noise: Noise | None, *, hard: bool, scale: float | None) -> None:
        """Write what the parts propagate: the encoder's output, and attributes in their directions."""
        for start, stop in row_blocks(*self.scaled.shape):
            block = alone(rows_of(self.scaled, start, stop), torch.arange(start, stop))
            for name, rows in self.of_nodes(block, view, noise, hard=hard, scale=scale).items():
                self.sources[name].write_rows(start, rows)

    def of_nodes(
        self, block: PreparedGraph, view: View, noise: Noise | None, *, hard: bool = False, scale: float | None = 1.0
    ) -> dict[str, Tensor]:
        """What the parts propagate, for some nodes with scaled attributes: rows by the name of the source."""
        network, parts = self.network, self.network.parts
        of_attributes = [i for i, part in enumerate(parts.parts) if part.source == "attributes"]
        directions = [getattr(parts, f"directions_{i}") for i in of_attributes]
        masks: list[LayerMask] | None = None
        if noise is not None:
            inputs = network.encoder.inputs(block)
            masks = network.augmentation.draw(view, block, inputs, noise, hard=hard, scale=scale)
        found: dict[str, Tensor] = {}
        if "encoder" in self.sources:
            found["encoder"] = network.parts.unit(network.encoder(block, masks))
        if directions:
            mask = LayerMask() if masks is None else masks[0]
            columns = masked_product(block.features, mask, torch.cat(directions, 1))
            each = torch.split(columns, [one.shape[1] for one in directions], 1)
            found |= {f"attributes {i}": one for i, one in zip(of_attributes, each, strict=True)}
        return found

    def _positions(self) -> Slabs:
        """The positions of the nodes, which masks do not change."""
        structure = self.network.parts.structure
        assert structure is not None
        found = Slabs(self.folder, "structure", self.nodes, structure.width)
        keys = keys_of(self.graph)
        for start, stop in row_blocks(self.nodes, structure.width):
            found.write_rows(start, structure.of_keys(keys[start:stop]))
        return found


def check_parts(network: Network) -> None:
    """Refuse what cannot be computed in blocks."""
    if network.encoder.propagates:
        raise BGCLError(
            "The encoder of this model looks at neighbors, so a packed graph has to fit into memory for it. Use the "
            "encoder 'mlp', the default."
        )
    masks = [str(mask) for mask in network.augmentation.masks if mask.on == "connections"]
    if masks:
        raise BGCLError(f"A packed graph cannot be masked by '{masks[0]}'. Use 'entries', 'features' or 'neighbors'.")


def collected(embedder: PackedEmbedder, draws: Iterator[tuple[View, Noise | None]], **how: object) -> Iterator[Tensor]:
    """Each draw as a matrix in memory, `(N, d)`."""
    for view, noise in draws:
        found = torch.empty(embedder.nodes, embedder.width)

        def consume(first: int, slab: Tensor, found: Tensor = found) -> None:
            found[:, first : first + slab.shape[1]] = slab

        embedder.draw(consume, view, noise, **how)  # type: ignore[arg-type]
        yield found
