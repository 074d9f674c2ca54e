"""Predict nodes that join a large graph in a fraction of a second, without computing the graph again.

What the nodes of the graph send to their neighbors is kept for each draw (`bgcl.packed.states`). So a new node needs
its own attributes, its edges, and what is kept of the nodes at their other ends. Its predictions are those of a graph
that does not hear it: see `bgcl.packed.new_nodes` for the equations.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bgcl.arguments import check_model, seed_or, whole
from bgcl.augmentation.noise import CountedNoise
from bgcl.augmentation.views import VIEWS
from bgcl.data.memory import in_words
from bgcl.data.on_disk import check_room
from bgcl.downstream.blocks import LinearHeads, RowsOfDraws, fewer
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import default_training_draws
from bgcl.downstream.known_labels import gather_labels
from bgcl.downstream.node_predictions import NodePredictions
from bgcl.downstream.small_classes import with_pairs
from bgcl.errors import BGCLError
from bgcl.packed.new_nodes import NewRows
from bgcl.packed.states import OF_REFERENCES, DrawStates
from bgcl.progress import stage, with_progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]


class NewNodes:
    """Predicts nodes that join a packed graph.

    It draws embeddings of the graph once, fits a head to its labels, and keeps what new nodes need on the disk of the
    pack. Then each call of `predict` takes a time that does not depend on the size of the graph.

    Args:
        model: a fitted model.
        data: a packed graph with labels, as `bgcl.load` opens it.
        samples: how many embeddings to draw.
        training_draws: how many of them train the head. Default: 20, or 2 for embeddings in parts, and at most half
            of the samples. What new nodes need is kept of the others.
        seed: seed of the draws. Default: the seed of the model.
        progress: show a progress bar.

    Raises:
        BGCLError: the graph is not packed, or has no labels, or the disk has no room.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import bgcl
    >>> from bgcl.data.packing import pack_data
    >>> from bgcl.downstream import NewNodes
    >>> folder, data = tempfile.TemporaryDirectory(), bgcl.example_graph(nodes=120)
    >>> data.x = torch.randn(120, 5)
    >>> data = pack_data(data, Path(folder.name) / "pack").data()
    >>> model = bgcl.BGCL(widths=(16, 8), part_width=8, epochs=1).fit(data, progress=False)
    >>> arrivals = NewNodes(model, data, samples=4)
    >>> found = arrivals.predict(torch.randn(2, 5), [[0, 0, 1], [17, 4, 99]])
    >>> len(found.predicted)
    2
    """

    def __init__(
        self, model: "BGCL", data: "Data", *, samples: int = 10, training_draws: int | None = None,
        seed: int | None = None, progress: bool = False,
    ) -> None:  # fmt: skip
        check_model(model)
        count = whole("The number of samples", samples, 2)
        first = default_training_draws(count, model.parts_) if training_draws is None else training_draws
        if not 1 <= whole("'training_draws'", first) < count:
            raise BGCLError(f"Of {count} samples, {first} train the head: some of both are needed.")
        blocks = model.in_blocks(data)
        if blocks is None:
            raise BGCLError(
                "New nodes are predicted in a packed graph that is computed in blocks: pack it with 'bgcl data pack', "
                "or predict a graph that has the new nodes with bgcl.predict."
            )
        known = gather_labels(data)
        self.names = known.names
        self.embedder, self.attributes = blocks.embedder_of(model.network_), data.x.shape[1]
        self._check_room(blocks.folder, count - first)
        labels = known.of_nodes(data.num_nodes)
        train = with_pairs(fewer(known.node, labels), labels)
        start, scale = seed_or(seed, model.settings_.seed), model.settings_.draw_scale
        rows: list[Array] = []
        self.states: list[DrawStates] = []
        for i in with_progress(range(count), count, "draws", show=progress):
            noise, view = CountedNoise.of_draw(start, i), VIEWS[i % 2]
            if i < first:
                collected = RowsOfDraws(train, self.embedder.width)
                self.embedder.draw(collected, view, noise, scale=scale)
                rows.append(collected.rows.numpy())
            else:
                states = DrawStates(self.embedder, blocks.folder, f"new-{i}", view, noise, scale)
                self.embedder.draw(_ignore, view, noise, scale=scale, keep=states)
                self.states.append(states)
        with stage("fitting a head"):
            parts = model.parts_
            head = MixtureClassifier(parts=parts if len(parts) > 1 else None, kernel=False)
            self.head = head.fit(np.stack(rows), labels[train])

    def _check_room(self, folder: Any, draws: int) -> None:
        parts = self.embedder.network.parts
        wide = sum(
            width * (1 if part.hops is None else max(part.hops - 1, 0))
            for part, width in zip(parts.parts, parts.widths, strict=True)
            if part.among not in OF_REFERENCES
        )
        needed = 4 * draws * self.embedder.nodes * (wide + 2)
        check_room(folder, needed, f"What new nodes need of {draws} draws, {in_words(needed)},")

    def embed(self, x: object, edges: object) -> Tensor:
        """The embeddings of new nodes in each draw that is kept, `(S, n, d)`. For the arguments see `predict`."""
        rows = NewRows(self.embedder, *self._checked(x, edges))
        return torch.stack([rows.embedded(states) for states in self.states])

    def predict(self, x: object, edges: object) -> NodePredictions:
        """The class of each new node, with measures of uncertainty.

        Args:
            x: attributes of the new nodes, `(n, F)`, in the order of those of the graph.
            edges: pairs of a new node, 0 to n - 1, and a node of the graph by its row, `(2, m)`. `data.ids` has the
                ids of the rows. An edge between two new nodes cannot be given.

        Returns:
            The predictions, in the order of the new nodes.
        """
        rows = NewRows(self.embedder, *self._checked(x, edges))
        heads = LinearHeads([self.head], [np.arange(rows.count)])
        for states in self.states:
            heads.start()
            heads(0, rows.embedded(states))
            heads.end()
        label = np.full(rows.count, -1)
        return NodePredictions(label, self.head.classes_, heads.result()[0], None, None, self.names)

    def _checked(self, x: object, edges: object) -> tuple[Tensor, Tensor]:
        """Attributes and distinct edges as tensors."""
        try:
            attributes = torch.as_tensor(np.asarray(x, dtype=np.float32))
            pairs = torch.as_tensor(np.asarray(edges, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise BGCLError(f"Attributes and edges of new nodes must be arrays of numbers: {error}.") from None
        if attributes.ndim != 2 or attributes.shape[1] != self.attributes or not len(attributes):
            raise BGCLError(
                f"The attributes of new nodes must have the shape (n, {self.attributes}). "
                f"Got {tuple(attributes.shape)}."
            )
        if not math.isfinite(float(attributes.abs().max())):
            raise BGCLError("The attributes of new nodes must be finite numbers: fill in what is missing.")
        if pairs.numel() == 0:
            pairs = pairs.reshape(2, 0)
        if pairs.ndim != 2 or len(pairs) != 2 or not bool((pairs == pairs.round()).all()):
            raise BGCLError(
                f"The edges of new nodes must be whole numbers of the shape (2, m). Got {tuple(pairs.shape)}."
            )
        for row, most, what in ((0, len(attributes), "new nodes"), (1, self.embedder.nodes, "nodes in the graph")):
            if pairs.shape[1] and not 0 <= float(pairs[row].min()) <= float(pairs[row].max()) < most:
                raise BGCLError(
                    f"Row {row} of the edges must be between 0 and {most - 1:,}: there are {most:,} {what}."
                )
        return attributes, torch.unique(pairs.long(), dim=1)


def _ignore(first: int, slab: Tensor) -> None:
    """Do nothing with a slab."""
