"""What is kept of a draw of a packed graph, so that nodes that join the graph later need nothing else of it.

A new node hears its neighbors, and the graph does not hear it. So all that it needs is what its neighbors send in each
step of propagation, and the factors by which the connections are normalized. Of connections between alike nodes, only
references have an end at a new node, so only their rows are kept.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bgcl.augmentation.noise import Noise
from bgcl.augmentation.views import View
from bgcl.data.on_disk import DiskArray
from bgcl.model.parts import Among
from bgcl.packed.embedding import PackedEmbedder
from bgcl.packed.slabs import Slabs

OF_REFERENCES: tuple[Among, ...] = ("alike", "alike neighborhoods")


class DrawStates:
    """The states of one draw, on disk.

    Args:
        embedder: embeds the nodes of the graph.
        folder: a folder for the files.
        name: beginning of the names of the files.
        view, noise: those of the draw.
        scale: see `Network.draw`.
    """

    def __init__(
        self, embedder: PackedEmbedder, folder: Path, name: str, view: View, noise: Noise, scale: float | None
    ) -> None:
        self.embedder, self.folder, self.name = embedder, folder, name
        self.view, self.noise, self.scale = view, noise, scale
        self._factors: dict[Among | None, DiskArray] = {}
        self._states: dict[tuple[int, int], Slabs] = {}  # by part and step

    def factors(self, among: Among | None, of_columns: Tensor) -> None:
        file = self.folder / f"{self.name}-factors-{among}.npy"
        self._factors[among] = DiskArray.create(file, tuple(of_columns.shape), np.float32)
        self._factors[among].write(0, of_columns.numpy())

    def state(self, part: int, step: int, slab: int, heard: Tensor) -> None:
        among = self.embedder.network.parts.parts[part].among
        rows = heard[self.embedder.alike.references] if among in OF_REFERENCES else heard
        if (part, step) not in self._states:
            width = self.embedder.network.parts.widths[part]
            name = f"{self.name}-state-{part}-{step}"
            self._states[part, step] = Slabs(self.folder, name, len(rows), width)
        self._states[part, step].write(slab, rows)

    def factors_of(self, among: Among | None, nodes: Tensor) -> Tensor:
        """The factors of some nodes, `(n,)`."""
        return torch.from_numpy(self._factors[among].gather(nodes.numpy()))

    def state_of(self, part: int, step: int, nodes: Tensor) -> Tensor:
        """What some nodes have after some steps, `(n, w)`. Of connections between alike nodes, they are references."""
        if self.embedder.network.parts.parts[part].among in OF_REFERENCES:
            nodes = torch.searchsorted(self.embedder.alike.references, nodes)
        return self._states[part, step].gather(nodes)
