"""Deep Graph Infomax (Velickovic et al., 2019): tell nodes of the graph from nodes with shuffled attributes."""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.models import DeepGraphInfomax

from bgcl.baselines.convolutions import Convolutions
from bgcl.baselines.method import Array, Count, EmbeddingMethod, LearningRate
from bgcl.graph.clusters import feature_rows
from bgcl.graph.prepared import PreparedGraph, prepare, width_of


class DGI(EmbeddingMethod):
    """One graph convolution with PReLU, as published for transductive data sets. The best epoch's encoder is kept."""

    width: Count = 512
    epochs: Count = 300  # the maximum
    patience: Count = 20  # training ends after this many epochs without a lower loss
    lr: LearningRate = 0.001

    def _embed(self, data: Data) -> Array:
        graph = prepare(data, row_norm="sum")
        encoder = Convolutions((width_of(graph), self.width), [nn.PReLU()])
        model = DeepGraphInfomax(self.width, encoder, _summary, corrupt)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.lr)
        lowest, best, waited = float("inf"), encoder.state_dict(), 0
        for _ in range(self.epochs):
            optimizer.zero_grad()
            loss = model.loss(*model(graph))
            if (now := float(loss.detach())) < lowest:
                lowest, best, waited = now, deepcopy(encoder.state_dict()), 0
            elif (waited := waited + 1) == self.patience:
                break
            loss.backward()
            optimizer.step()
        encoder.load_state_dict(best)
        with torch.no_grad():
            return encoder(graph).numpy()  # type: ignore[no-any-return]


def _summary(embeddings: Tensor, graph: PreparedGraph) -> Tensor:
    """The sigmoid of the mean embedding, `(d,)`."""
    return torch.sigmoid(embeddings.mean(0))


def corrupt(graph: PreparedGraph) -> PreparedGraph:
    """The same connections, with the attributes shuffled over the nodes."""
    return replace(graph, features=feature_rows(graph.features, torch.randperm(graph.nodes)))
