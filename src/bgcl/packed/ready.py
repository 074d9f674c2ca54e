"""A packed graph in the form that a model needs, with a folder for what does not stay in memory."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from bgcl.augmentation.noise import CountedNoise
from bgcl.augmentation.views import VIEWS
from bgcl.data.facts import GraphFacts
from bgcl.data.memory import check_fits
from bgcl.data.on_disk import DiskArray, check_room
from bgcl.data.pack import Pack, pack_of
from bgcl.errors import BGCLError, CannotWriteError
from bgcl.folders import Scratch
from bgcl.graph.epoch_batches import EpochBatches
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.network import Network
from bgcl.model.scaling import MANY
from bgcl.packed.batches import BatchesAhead
from bgcl.packed.embedding import PackedEmbedder, check_parts, collected
from bgcl.packed.fitting import fit_parts
from bgcl.packed.products import narrow
from bgcl.packed.scaled import are_all_equal, are_dense_numbers, mapped, write_scaled
from bgcl.ready_graph import ReadyGraph, check_device
from bgcl.settings import Settings


class PackedReady(ReadyGraph):
    """A packed graph, prepared for the model.

    Args:
        data: the graph, as `Pack.data` returns it.
        trained: facts of the training graph; None: this is the training graph.
    """

    def __init__(self, data: Data, device: str, trained: GraphFacts | None = None) -> None:
        check_device(device)
        if trained is not None and trained.relations:
            raise BGCLError("The model was trained on edges of several relations, and a pack has one kind of edges.")
        super().__init__(data, device, trained)
        self.pack: Pack = data.pack  # `works_in_blocks` has checked it
        self.prepared = replace(self.prepared, connections=narrow(self.prepared))
        self.embedder: PackedEmbedder | None = None

    @cached_property
    def facts(self) -> GraphFacts:
        return self.pack.facts()

    @cached_property
    def folder(self) -> Path:
        """A folder in that of the pack, which is removed with this object."""
        try:
            self._scratch = Scratch(self.pack.folder)
        except OSError as error:
            raise CannotWriteError(
                f"Cannot write {self.pack.folder}: {error.strerror}. What does not stay in memory is written "
                "there: give yourself permission, or copy the pack."
            ) from error
        return self._scratch.path

    def fit(self, network: Network, generator: torch.Generator) -> PreparedGraph:
        """Learn what is not trained, as `Network.fit_graph` does. Returns the scaled graph."""
        check_parts(network)
        network.attributes_are_equal = are_all_equal(self.pack.attributes)
        graph = self._scale(network, fit=True)
        fit_parts(network, graph, self.scaled_attributes, generator)
        return graph

    def _scale(self, network: Network, *, fit: bool = False) -> PreparedGraph:
        """The scaled graph. Its attributes are mapped into memory."""
        nodes, width = self.pack.nodes, network.scaling.width
        on_disk = 4 * nodes * (2 * width + sum(network.parts.widths))
        check_room(self.folder, on_disk, f"Scaled attributes and parts of the embedding of {nodes:,} nodes")
        self.scaled_attributes: DiskArray = write_scaled(
            network.scaling, self.prepared, self.pack.attributes, self.folder, fit=fit
        )
        self.scaled = replace(self.prepared, features=mapped(self.scaled_attributes))
        return self.scaled

    def scale(self, network: Network) -> PreparedGraph:
        """The scaled graph, by a scale that was learned before."""
        return self._scale(network)

    def batches(self, settings: Settings) -> EpochBatches:
        """The batches of an epoch. The attributes of random nodes are read from disk, one batch ahead."""
        if settings.batch_nodes is None or settings.neighbors is not None:
            return super().batches(settings)
        assert self.scaled is not None
        return BatchesAhead(self.scaled, settings.batch_nodes, self.scaled_attributes)

    def embedder_of(self, network: Network) -> PackedEmbedder:
        """What embeds the nodes with a network."""
        if self.scaled is None:
            self.scale(network)
        assert self.scaled is not None
        if self.embedder is None or self.alike is None:  # the weights have changed
            self.embedder = PackedEmbedder(network, self.scaled, self.scaled_attributes, self.folder)
            self.alike = {}
        return self.embedder

    def draws(
        self, network: Network, numbers: Iterable[int], seed: int, *, scale: float | None, hard: bool
    ) -> Iterator[Tensor]:
        """The draws of the embeddings with these numbers in memory, each `(N, d)`."""
        self._check_memory(network)
        noises = ((VIEWS[i % 2], CountedNoise.of_draw(seed, i)) for i in numbers)
        return self._while_there(collected(self.embedder_of(network), noises, scale=scale, hard=hard))

    def _while_there(self, found: Iterator[Tensor]) -> Iterator[Tensor]:
        """The same draws. Until they end, this object stays, and so does its folder, also if nobody else needs it."""
        yield from found

    def embed(self, network: Network) -> Tensor:
        """The embeddings without masks in memory, `(N, d)`."""
        self._check_memory(network)
        return next(collected(self.embedder_of(network), iter([("o", None)])))

    def _check_memory(self, network: Network) -> None:
        width = sum(network.parts.widths)
        check_fits(
            4 * self.pack.nodes * width, f"The embeddings of {self.pack.nodes:,} nodes, {width:,} columns each,",
            "Write them in pieces with 'bgcl embed RUN --out FOLDER'.",
        )  # fmt: skip


def works_in_blocks(data: Data, settings: Settings) -> bool:
    """Whether a graph is packed and a model with these settings computes it in blocks, and not whole in memory."""
    pack = pack_of(data)
    return (
        pack is not None and settings.encoder == "mlp" and settings.row_norm == "auto"
        and settings.device == "cpu" and not any(mask.on == "connections" for mask in settings.masks())
        and not any(mask.per == "relation" for mask in settings.masks())
        and are_dense_numbers(pack.attributes, MANY)
    )  # fmt: skip
