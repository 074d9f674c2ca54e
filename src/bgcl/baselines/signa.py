r"""SIGNA's way (AAAI 2025): an encoder that sees each node alone, and neighbors as positives.

With `s_ij = (cos(p_i, p_j) + 1) / 2` of the projected embeddings, the loss of node i is

    L_i = - 1 / |P_i| sum_(j in P_i) log(s_ij + eps) - 1 / |Q_i| sum_(j in Q_i) log(1 - s_ij + eps).

`P_i` are the node itself and its neighbors that are kept. Each neighbor is masked at random, anew in each step. `Q_i`
are all other nodes. As in the authors' code, the node itself adds nothing to the first sum, but counts in its mean.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data

from bgcl.augmentation.views import LayerMask
from bgcl.baselines.method import Array, Count, EmbeddingMethod, LearningRate, Widths
from bgcl.data.catalog import find
from bgcl.graph.clusters import feature_rows
from bgcl.graph.prepared import Features, PreparedGraph, SparseFeatures, prepare, width_of
from bgcl.model.encoders.base import masked_product
from bgcl.validation import Number, Width

EPS = 1e-6
ROWS = 4096  # nodes that are embedded at a time after training


class SIGNA(EmbeddingMethod):
    """The encoder and the objective of SIGNA, in batches and with few steps. This is not the authors' run.

    The authors compare every node with every other node in each step, for 500 to 3,000 steps on a GPU. On a CPU that
    takes days. Here a step has a batch of random nodes. The negatives of a node are nodes of the batch. Its positives
    are `positives` of its kept neighbors, chosen at random, with the weight of all of them. With a batch of all nodes
    and all kept neighbors, the loss is the authors'.

    The defaults are the authors' for Amazon-Photo, apart from `batch`, `positives` and `steps`.
    """

    widths: Widths = (2048, 1024)
    projector: Width = 256
    neighbor_mask: Number = Field(default=0.4, ge=0, le=1)  # share of neighbors that are no positives in a step
    dropout: Number = Field(default=0.4, ge=0, lt=1)  # before each layer
    lr: LearningRate = 1e-3
    batch: Count = 1024
    positives: Count = 1
    steps: Count = 500

    @classmethod
    def published(cls, dataset: str) -> Self:
        """The authors' rates, learning rate and projector. Data sets that they did not use have those of Amazon-Photo.

        The steps are not the authors': they have 1,000 on Amazon-Photo, 3,000 on Amazon-Computers, 1,500 on WikiCS and
        Coauthor-CS, and 500 on Coauthor-Physics.
        """
        return cls(**_PUBLISHED.get(find(dataset).name, {}))

    def _embed(self, data: Data) -> Array:
        graph = prepare(data, row_norm="sum")
        encoder = SoloEncoder((width_of(graph), *self.widths), self.dropout)
        projector = nn.Sequential(
            nn.Linear(self.widths[-1], self.projector), nn.ELU(), nn.Linear(self.projector, self.widths[-1])
        )
        optimizer = torch.optim.AdamW([*encoder.parameters(), *projector.parameters()], lr=self.lr, weight_decay=0)
        for _ in range(self.steps):
            pairs = draw_pairs(graph, self.batch, self.neighbor_mask, self.positives)
            vectors = projector(encoder(feature_rows(graph.features, pairs.nodes)))
            optimizer.zero_grad()
            signa_loss(vectors, pairs).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        encoder.eval()
        with torch.no_grad():
            rows = torch.split(torch.arange(graph.nodes), ROWS)
            return torch.cat([encoder(feature_rows(graph.features, some)) for some in rows]).numpy()


_PUBLISHED: dict[str, dict[str, Any]] = {
    "amazon-photo": {},
    "amazon-computers": {"neighbor_mask": 0.8, "dropout": 0.3},
    "wikics": {"neighbor_mask": 0.3},
    "coauthor-cs": {"neighbor_mask": 0.95, "dropout": 0.7, "lr": 1e-4, "projector": 512},
    "coauthor-physics": {"neighbor_mask": 0.8, "dropout": 0.55, "lr": 5e-4, "projector": 1024},
}


class SoloEncoder(nn.Module):
    """Layers of dropout, a linear map, PReLU and LayerNorm. All layers share the slope of PReLU.

    Shapes: features `(n, F)`, sparse or dense, result `(n, d)`.
    """

    def __init__(self, widths: tuple[int, ...], dropout: float) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.empty(widths[0], widths[1]))
        bound = 1 / math.sqrt(widths[0])
        nn.init.uniform_(self.first, -bound, bound)
        self.bias = nn.Parameter(torch.empty(widths[1]).uniform_(-bound, bound))
        self.others = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths[1:])
        self.activation, self.dropout = nn.PReLU(), dropout

    def forward(self, features: Features) -> Tensor:
        hidden: Tensor = masked_product(self._dropped(features), LayerMask(), self.first) + self.bias
        hidden = self.norms[0](self.activation(hidden))
        for layer, norm in zip(self.others, list(self.norms)[1:], strict=True):
            hidden = norm(self.activation(layer(F.dropout(hidden, self.dropout, self.training))))
        return hidden

    def _dropped(self, features: Features) -> Features:
        if isinstance(features, SparseFeatures):
            return SparseFeatures(features.pattern, F.dropout(features.values, self.dropout, self.training))
        return F.dropout(features, self.dropout, self.training)


@dataclass(frozen=True)
class Pairs:
    """The pairs of nodes in the loss of one step, for B anchors.

    Attributes:
        nodes: the nodes that take part, each once, `(n,)`.
        anchor: places of the anchors in `nodes`, `(B,)`.
        positive_of: the anchor of each positive pair, as a number from 0 to B - 1, `(P,)`.
        positive: places of the positives in `nodes`, `(P,)`.
        weight: weight of each positive pair, `(P,)`. The weights of an anchor with k kept neighbors sum to k / (k + 1).
        negative: whether the second anchor is a negative of the first, `(B, B)`.
    """

    nodes: Tensor
    anchor: Tensor
    positive_of: Tensor
    positive: Tensor
    weight: Tensor
    negative: Tensor


def draw_pairs(graph: PreparedGraph, batch: int, neighbor_mask: float, positives: int) -> Pairs:
    """Draw anchors, mask their neighbors, and choose up to `positives` kept neighbors of each."""
    anchors = torch.randperm(graph.nodes)[:batch]
    row, neighbor = _neighbors(graph, anchors)
    kept = torch.rand(len(row)) >= neighbor_mask
    row, neighbor = row[kept], neighbor[kept]
    count = torch.bincount(row, minlength=len(anchors))  # (B,)
    place = torch.full((graph.nodes,), -1)
    place[anchors] = torch.arange(len(anchors))
    negative = ~torch.eye(len(anchors), dtype=torch.bool)
    inside = place[neighbor] >= 0
    negative[row[inside], place[neighbor[inside]]] = False
    order = torch.randperm(len(row))
    order = order[row[order].argsort(stable=True)]  # by anchor, and in random order within an anchor
    start = count.cumsum(0) - count
    chosen = order[torch.arange(len(row)) - start[row[order]] < positives]
    row, neighbor = row[chosen], neighbor[chosen]
    weight = (count / ((count + 1) * count.clamp(min=1, max=positives)))[row]
    nodes, places = torch.unique(torch.cat([anchors, neighbor]), return_inverse=True)
    return Pairs(nodes, places[: len(anchors)], row, places[len(anchors) :], weight, negative)


def _neighbors(graph: PreparedGraph, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """All neighbors of some nodes: the number of the node within `nodes`, and the neighbor."""
    pattern = graph.connections
    count = pattern.pointer.diff()[nodes]
    row = torch.repeat_interleave(torch.arange(len(nodes)), count)
    begin = pattern.pointer[:-1][nodes] - (count.cumsum(0) - count)
    neighbor = pattern.column[begin[row] + torch.arange(len(row))]
    others = neighbor != nodes[row]  # without self-connections
    return row[others], neighbor[others]


def signa_loss(vectors: Tensor, pairs: Pairs) -> Tensor:
    """The mean loss of the anchors, for vectors `(n, d)` of `pairs.nodes`."""
    unit = F.normalize(vectors)
    anchors = unit[pairs.anchor]  # (B, d)
    close = _share((anchors[pairs.positive_of] * unit[pairs.positive]).sum(1))  # (P,)
    pulled = (pairs.weight * torch.log(close + EPS)).sum()
    apart = torch.log(1 - _share(anchors @ anchors.t()) + EPS) * pairs.negative  # (B, B)
    pushed = (apart.sum(1) / pairs.negative.sum(1).clamp(min=1)).sum()
    return -(pulled + pushed) / len(anchors)


def _share(cosine: Tensor) -> Tensor:
    """`(cos + 1) / 2`, between 0 and 1."""
    return (cosine + 1) / 2
