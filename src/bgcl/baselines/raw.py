"""The attributes themselves, with which every embedding has to compete."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from bgcl.baselines.method import Array, EmbeddingMethod
from bgcl.graph.prepared import Features, prepare


@dataclass(frozen=True, kw_only=True)
class RawFeatures(EmbeddingMethod):
    """Each node's attributes, scaled to sum to one in absolute value, as most baselines' encoders see them. There is no
    chance in it: the seed changes nothing.
    """

    def _embed(self, data: Data) -> Array:
        return dense(prepare(data, normalise_rows=True).features).numpy()


def dense(features: Features) -> Tensor:
    """Attributes as a plain matrix, `(N, F)`."""
    if isinstance(features, Tensor):
        return features
    pattern = features.pattern
    return torch.zeros(pattern.rows, pattern.columns).index_put((pattern.row, pattern.column), features.values)
