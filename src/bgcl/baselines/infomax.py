"""Deep Graph Infomax (Velickovic et al., 2019): tell nodes of the graph from nodes with shuffled attributes."""

from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.models import DeepGraphInfomax

from bgcl.baselines.convolutions import Convolutions, width_of
from bgcl.baselines.method import Array, EmbeddingMethod, number, whole
from bgcl.graph.prepared import Features, Graph, SparseFeatures, prepare
from bgcl.graph.sparse import Pattern


@dataclass(frozen=True, kw_only=True)
class DGI(EmbeddingMethod):
    """One convolution and PReLU, as published for transductive data sets; the best epoch's encoder is kept."""

    width: int = whole(512)
    epochs: int = whole(300)  # at most
    patience: int = whole(20)  # epochs without a lower loss before training ends
    lr: float = number(0.001, above=True, most=1)

    def _embed(self, data: Data) -> Array:
        graph = prepare(data, normalise_rows=True)
        encoder = Convolutions((width_of(graph), self.width), [nn.PReLU()])
        model = DeepGraphInfomax(self.width, encoder, _summary, corrupt)
        optimiser = torch.optim.Adam(model.parameters(), lr=self.lr)
        lowest, best, waited = float("inf"), encoder.state_dict(), 0
        for _ in range(self.epochs):
            optimiser.zero_grad()
            loss = model.loss(*model(graph))
            if (now := float(loss.detach())) < lowest:
                lowest, best, waited = now, deepcopy(encoder.state_dict()), 0
            elif (waited := waited + 1) == self.patience:
                break
            loss.backward()
            optimiser.step()
        encoder.load_state_dict(best)
        with torch.no_grad():
            return encoder(graph).numpy()  # type: ignore[no-any-return]


def _summary(embeddings: Tensor, graph: Graph) -> Tensor:
    """The sigmoid of the mean embedding, `(d,)`."""
    return torch.sigmoid(embeddings.mean(0))


def corrupt(graph: Graph) -> Graph:
    """The same connections, and each node with the attributes of another."""
    return replace(graph, features=permute_rows(graph.features, torch.randperm(graph.nodes)))


def permute_rows(features: Features, order: Tensor) -> Features:
    """Row i of the result is row `order[i]`; sparse attributes stay sparse."""
    if isinstance(features, Tensor):
        return features[order]
    pointer = features.pattern.pointer
    count = pointer.diff()[order]
    ends = count.cumsum(0)
    begin = torch.repeat_interleave(pointer[:-1][order] - (ends - count), count)
    entry = begin + torch.arange(len(begin))
    pattern = Pattern(torch.cat([ends.new_zeros(1), ends]), features.pattern.column[entry], features.width)
    return SparseFeatures(pattern, features.values[entry])
