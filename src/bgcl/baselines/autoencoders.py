"""The graph auto-encoders of Kipf and Welling (2016), which learn to distinguish edges from other pairs of nodes."""

from abc import abstractmethod
from itertools import pairwise
from typing import Any, Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import models
from torch_geometric.transforms import RandomLinkSplit

from bgcl.augmentation.views import LayerMask
from bgcl.baselines.convolutions import Convolutions
from bgcl.baselines.grace import widths_for
from bgcl.baselines.method import Array, Count, EmbeddingMethod, LearningRate, Widths
from bgcl.errors import BGCLError
from bgcl.graph.prepared import PreparedGraph, RowNorm, prepare, width_of
from bgcl.model.encoders.gcn import MaskedConvolution
from bgcl.validation import Number


class _AutoEncoder(EmbeddingMethod):
    """Settings and training of both auto-encoders.

    Epochs and learning rate are from Kipf and Welling. Their widths are 32 and 16, but the paper's table follows the
    set-up of GRACE, so the default widths are those of GRACE's encoder.
    """

    widths: Widths = (256, 128)
    row_norm: RowNorm = "sum"
    held_out: Number = Field(default=0.0, ge=0, le=0.9)  # share of edges not used for training; 0.15 in their code
    epochs: Count = 200
    lr: LearningRate = 0.01

    @classmethod
    def published(cls, dataset: str) -> Self:
        """The widths of GRACE's encoder for the data set. Attributes of the Amazon graphs are not scaled.

        Scaled to a sum of one, the dense attributes of the Amazon graphs are so small and similar that the encoder
        collapses.
        """
        return cls(widths=widths_for(dataset), row_norm="none" if dataset.startswith("amazon") else "sum")

    def _embed(self, data: Data) -> Array:
        if self.held_out:
            data = without_edges(data, self.held_out)
        graph = prepare(data, row_norm=self.row_norm)
        edges, negatives = data.edge_index, NonEdges(data.edge_index, data.num_nodes)
        model = self._model((width_of(graph), *self.widths))
        optimizer = torch.optim.Adam(model.parameters(), lr=self.lr)
        model.train()
        for _ in range(self.epochs):
            optimizer.zero_grad()
            z = model.encode(graph)
            loss = model.recon_loss(z, edges, negatives.draw(edges.shape[1])) + self._regularizer(model, graph)
            loss.backward()
            optimizer.step()
        model.eval()  # in this mode a VGAE returns the means
        with torch.no_grad():
            embeddings: Array = model.encode(graph).numpy()
        return embeddings

    @abstractmethod
    def _model(self, widths: tuple[int, ...]) -> Any:
        """PyTorch Geometric's model with an encoder of these widths."""

    def _regularizer(self, model: Any, graph: PreparedGraph) -> Tensor | float:
        """A term that is added to the reconstruction loss."""
        return 0.0


class GAE(_AutoEncoder):
    """The graph auto-encoder: graph convolutions, without activation after the last, and an inner-product decoder."""

    def _model(self, widths: tuple[int, ...]) -> Any:
        return models.GAE(Convolutions(widths, [*_relu(len(widths) - 2), nn.Identity()]))


class VGAE(_AutoEncoder):
    """The variational graph auto-encoder. Its loss is the mean reconstruction loss plus `KL / N`.

    The embeddings are the means.
    """

    def _model(self, widths: tuple[int, ...]) -> Any:
        return models.VGAE(_Gaussian(widths))

    def _regularizer(self, model: Any, graph: PreparedGraph) -> Tensor | float:
        loss: Tensor = model.kl_loss() / graph.nodes
        return loss


def without_edges(data: Data, share: float) -> Data:
    """Remove a share of the edges of a checked graph at random, always in both directions."""
    split = RandomLinkSplit(num_val=0.0, num_test=share, is_undirected=True, add_negative_train_samples=False)
    fewer: Data = split(data)[0]
    return fewer


def _relu(count: int) -> list[nn.Module]:
    return [nn.ReLU() for _ in range(count)]


class _Gaussian(nn.Module):
    """Mean and log standard deviation of each node, `(N, d)` each. All layers but the last are shared."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        *_, (width_in, width_out) = pairwise(widths)
        self.mean = Convolutions(widths, [*_relu(len(widths) - 2), nn.Identity()])
        self.log_std = MaskedConvolution(width_in, width_out)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.mean.reset_parameters()
        nn.init.xavier_uniform_(self.log_std.weight)
        nn.init.zeros_(self.log_std.bias)

    def forward(self, graph: PreparedGraph) -> tuple[Tensor, Tensor]:
        shared: Any = graph.features
        *first, last = zip(self.mean.layers, self.mean.after, strict=True)
        for layer, after in first:
            shared = after(layer(graph, shared, LayerMask()))
        return last[1](last[0](graph, shared, LayerMask())), self.log_std(graph, shared, LayerMask())


class NonEdges:
    """Random pairs of different nodes without an edge. All such pairs are equally probable."""

    def __init__(self, edges: Tensor, nodes: int) -> None:
        if edges.shape[1] == nodes * (nodes - 1):
            raise BGCLError("The graph is complete. An auto-encoder needs pairs of nodes without an edge.")
        self.nodes = nodes
        self._key, _ = torch.sort(edges[0] * nodes + edges[1])

    def draw(self, count: int) -> Tensor:
        """Draw pairs `(2, count)` with replacement."""
        found = torch.empty(0, dtype=torch.int64)
        while len(found) < count:
            key = torch.randint(self.nodes**2, (2 * (count - len(found)) + 8,))
            place = torch.searchsorted(self._key, key).clamp(max=len(self._key) - 1)
            key = key[(self._key[place] != key) & (key // self.nodes != key % self.nodes)]
            found = torch.cat([found, key])[:count]
        return torch.stack([found // self.nodes, found % self.nodes])
