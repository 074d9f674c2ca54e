"""The graph auto-encoders of Kipf and Welling (2016), which learn to tell edges from pairs that are none."""

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import models
from torch_geometric.transforms import RandomLinkSplit

from bgcl.augmentation.views import LayerMask
from bgcl.baselines.convolutions import Convolutions, width_of
from bgcl.baselines.grace import widths_for
from bgcl.baselines.method import Array, EmbeddingMethod, number, whole
from bgcl.errors import BGCLError
from bgcl.graph.prepared import Graph, prepare
from bgcl.model.encoders.gcn import MaskedConvolution


@dataclass(frozen=True, kw_only=True)
class _AutoEncoder(EmbeddingMethod):
    """Kipf and Welling's epochs and learning rate. Their widths are 32 and 16; the paper's table follows GRACE's
    set-up, so the widths are those of GRACE's encoder. Amazon's dense attributes, if they sum to one, are so small and
    alike that the encoder collapses.
    """

    widths: tuple[int, ...] = (256, 128)
    normalise_rows: bool = True  # attributes that sum to one in absolute value
    held_out: float = number(0.0, most=0.9)  # share of the edges that is not seen; in their code 0.15
    epochs: int = whole(200)
    lr: float = number(0.01, above=True, most=1)

    @classmethod
    def published(cls, dataset: str) -> Self:
        """As wide as GRACE's encoder for that data set; attributes of the Amazon graphs as they are."""
        return cls(widths=widths_for(dataset), normalise_rows=not dataset.startswith("amazon"))

    def _embed(self, data: Data) -> Array:
        if self.held_out:
            data = without_edges(data, self.held_out)
        graph = prepare(data, normalise_rows=self.normalise_rows)
        edges, negatives = data.edge_index, NonEdges(data.edge_index, data.num_nodes)
        model = self._model((width_of(graph), *self.widths))
        optimiser = torch.optim.Adam(model.parameters(), lr=self.lr)
        model.train()
        for _ in range(self.epochs):
            optimiser.zero_grad()
            z = model.encode(graph)
            loss = model.recon_loss(z, edges, negatives.draw(edges.shape[1])) + self._regulariser(model, graph)
            loss.backward()
            optimiser.step()
        model.eval()  # a VGAE then gives the means
        with torch.no_grad():
            embeddings: Array = model.encode(graph).numpy()
        return embeddings

    @abstractmethod
    def _model(self, widths: tuple[int, ...]) -> Any:
        """PyTorch Geometric's model around an encoder of these widths."""

    def _regulariser(self, model: Any, graph: Graph) -> Tensor | float:
        """What the loss has beside the reconstruction."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class GAE(_AutoEncoder):
    """The graph auto-encoder: convolutions, the last without activation, and the inner product as decoder."""

    def _model(self, widths: tuple[int, ...]) -> Any:
        return models.GAE(Convolutions(widths, [*_relu(len(widths) - 2), nn.Identity()]))


@dataclass(frozen=True, kw_only=True)
class VGAE(_AutoEncoder):
    """The variational graph auto-encoder, with the KL over N against the mean reconstruction; embeddings are means."""

    def _model(self, widths: tuple[int, ...]) -> Any:
        return models.VGAE(_Gaussian(widths))

    def _regulariser(self, model: Any, graph: Graph) -> Tensor | float:
        loss: Tensor = model.kl_loss() / graph.nodes
        return loss


def without_edges(data: Data, share: float) -> Data:
    """A clean graph without a share of its edges, which are picked at random; both directions go together."""
    split = RandomLinkSplit(num_val=0.0, num_test=share, is_undirected=True, add_negative_train_samples=False)
    fewer: Data = split(data)[0]
    return fewer


def _relu(count: int) -> list[nn.Module]:
    return [nn.ReLU() for _ in range(count)]


class _Gaussian(nn.Module):
    """Mean and log deviation of each node, `(N, d)` each: the layers are shared but for the last."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        *_, (width_in, width_out) = pairwise(widths)
        self.mean = Convolutions(widths, [*_relu(len(widths) - 2), nn.Identity()])
        self.log_deviation = MaskedConvolution(width_in, width_out)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.mean.reset_parameters()
        nn.init.xavier_uniform_(self.log_deviation.weight)
        nn.init.zeros_(self.log_deviation.bias)

    def forward(self, graph: Graph) -> tuple[Tensor, Tensor]:
        shared: Any = graph.features
        *first, last = zip(self.mean.layers, self.mean.behind, strict=True)
        for layer, behind in first:
            shared = behind(layer(graph, shared, LayerMask()))
        return last[1](last[0](graph, shared, LayerMask())), self.log_deviation(graph, shared, LayerMask())


class NonEdges:
    """Pairs of two nodes without an edge, drawn anew for every epoch, each such pair with the same probability."""

    def __init__(self, edges: Tensor, nodes: int) -> None:
        if edges.shape[1] == nodes * (nodes - 1):
            raise BGCLError("The graph is complete: an auto-encoder has no other pairs to tell its edges from.")
        self.nodes = nodes
        self._key, _ = torch.sort(edges[0] * nodes + edges[1])

    def draw(self, count: int) -> Tensor:
        """`(2, count)`, with repetition."""
        found = torch.empty(0, dtype=torch.int64)
        while len(found) < count:
            key = torch.randint(self.nodes**2, (2 * (count - len(found)) + 8,))
            place = torch.searchsorted(self._key, key).clamp(max=len(self._key) - 1)
            key = key[(self._key[place] != key) & (key // self.nodes != key % self.nodes)]
            found = torch.cat([found, key])[:count]
        return torch.stack([found // self.nodes, found % self.nodes])
