r"""CCA-SSG (Zhang et al., NeurIPS 2021): two views that agree, and columns that are not correlated.

With the embeddings of the two views standardized over the N nodes, `U` and `V` `(N, d)`, the loss is

    L = - tr(U'V) / N + lambda (|U'U / N - I|^2 + |V'V / N - I|^2).

It has no negatives, and its cost is linear in the number of nodes.
"""

from typing import Any, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch_geometric.data import Data

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.noise import NoiseStream
from bgcl.augmentation.views import VIEWS, Augmentation
from bgcl.baselines.convolutions import Convolutions
from bgcl.baselines.method import Array, Count, EmbeddingMethod, LearningRate, NotNegative, Widths
from bgcl.data.catalog import find
from bgcl.graph.prepared import RowNorm, prepare, width_of
from bgcl.model.encoders.base import Encoder
from bgcl.model.encoders.mlp import MLPEncoder
from bgcl.validation import Number

LEAST_VARIANCE = 1e-12  # a column that is the same for all nodes stays 0


class CCASSG(EmbeddingMethod):
    """Graph convolutions with ReLU between them, or an MLP with BatchNorm. Both views drop at the same rates."""

    encoder: Literal["gcn", "mlp"] = "gcn"
    widths: Widths = (512, 512)
    edges: Number = Field(default=0.2, ge=0, lt=1)  # drop rates
    features: Number = Field(default=0.2, ge=0, lt=1)
    decorrelation: NotNegative = 1e-3  # lambda
    row_norm: RowNorm = "sum"
    epochs: Count = 100
    lr: LearningRate = 1e-3

    @classmethod
    def published(cls, dataset: str) -> Self:
        """The settings in the authors' repository. Data sets that they did not use get the defaults of their program.

        Their program scales the attributes of the citation graphs to a sum of one, and leaves the others as they are.
        """
        return cls(**_PUBLISHED.get(find(dataset).name, {}))

    def _embed(self, data: Data) -> Array:
        graph = prepare(data, row_norm=self.row_norm)
        encoder = self._encoder((width_of(graph), *self.widths))
        sentences = [f"features at {self.features}"]
        if self.encoder == "gcn":
            sentences.append(f"edges at {self.edges}")
        augmentation = Augmentation([parse_mask(sentence) for sentence in sentences], len(self.widths))
        noise = NoiseStream(torch.Generator().manual_seed(self.seed))
        optimizer = torch.optim.Adam(encoder.parameters(), lr=self.lr)
        inputs = encoder.inputs(graph)
        for _ in range(self.epochs):
            optimizer.zero_grad()
            one, other = (encoder(graph, augmentation.draw(view, graph, inputs, noise, hard=True)) for view in VIEWS)
            cca_loss(one, other, self.decorrelation).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            return encoder(graph).numpy()  # type: ignore[no-any-return]

    def _encoder(self, widths: tuple[int, ...]) -> Encoder:
        if self.encoder == "gcn":
            return Convolutions(widths, [*(nn.ReLU() for _ in widths[2:]), nn.Identity()])
        encoder = MLPEncoder(widths, norm="batch")
        encoder.reset_parameters(torch.Generator().manual_seed(self.seed))
        return encoder


def cca_loss(one: Tensor, other: Tensor, decorrelation: float) -> Tensor:
    """`- tr(U'V) / N + lambda (|U'U / N - I|^2 + |V'V / N - I|^2)` of the embeddings `(N, d)` of two views."""
    u, v = standardized(one), standardized(other)
    unit = torch.eye(u.shape[1], dtype=u.dtype)
    apart = sum(((z.t() @ z / len(z) - unit).square().sum() for z in (u, v)), torch.zeros(()))
    return decorrelation * apart - (u * v).sum() / len(u)


def standardized(embeddings: Tensor) -> Tensor:
    """Columns with mean 0 and variance 1 over the nodes."""
    variance = embeddings.var(0).clamp(min=LEAST_VARIANCE)
    return (embeddings - embeddings.mean(0)) * variance.rsqrt()


_PUBLISHED: dict[str, dict[str, Any]] = {
    "cora": {"epochs": 50, "features": 0.1, "edges": 0.4},
    "citeseer": {"epochs": 20, "widths": (512,), "decorrelation": 5e-4, "features": 0.0, "edges": 0.4},
    "pubmed": {"features": 0.3, "edges": 0.5},
    "amazon-computers": {"epochs": 50, "decorrelation": 5e-4, "features": 0.1, "edges": 0.3, "row_norm": "none"},
    "amazon-photo": {"epochs": 50, "edges": 0.3, "row_norm": "none"},
    "coauthor-cs": {"epochs": 50, "encoder": "mlp", "row_norm": "none"},
    "coauthor-physics": {"features": 0.5, "edges": 0.5, "row_norm": "none"},
}
