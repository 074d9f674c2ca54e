"""The attributes as embeddings, the simplest baseline."""

from torch_geometric.data import Data

from bgcl.baselines.method import Array, EmbeddingMethod
from bgcl.graph.prepared import prepare, to_dense


class RawFeatures(EmbeddingMethod):
    """Each node's attributes, divided by the sum of their absolute values. The seed has no effect."""

    def _embed(self, data: Data) -> Array:
        return to_dense(prepare(data, row_norm="sum").features).numpy()
