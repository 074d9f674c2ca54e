"""This library's encoder with random weights: what the architecture alone is worth."""

import torch
from torch_geometric.data import Data

from bgcl.baselines.method import Array, EmbeddingMethod, Widths
from bgcl.graph.prepared import prepare, width_of
from bgcl.model.network import Network
from bgcl.settings import Settings


class RandomEncoder(EmbeddingMethod):
    """The paper's encoder as it is before the first epoch, without masks."""

    widths: Widths = Settings(encoder="gcn").widths

    def _embed(self, data: Data) -> Array:
        settings = Settings(encoder="gcn", widths=self.widths, seed=self.seed)
        graph = prepare(data, row_norm="length")
        network = Network(width_of(graph), settings)
        network.reset_parameters(torch.Generator().manual_seed(self.seed))
        with torch.no_grad():
            embeddings: Array = network.encoder(graph).numpy()
        return embeddings
