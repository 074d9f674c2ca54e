"""The whole model as one torch module: encoder, projection head, and augmentation with its drop rates."""

import math

import torch
from torch import Tensor, nn

from bgcl.augmentation.views import Augmentation, View
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.encoders.gcn import GCNEncoder
from bgcl.model.objectives.infonce import contrastive_loss
from bgcl.model.projection import ProjectionHead
from bgcl.model.weight_decay import weight_decay
from bgcl.settings import Settings


class Network(nn.Module):
    """Two views of one encoder. Encoder and head have the parameters `theta_w`, the drop rates have `theta_a`."""

    def __init__(self, width_in: int, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.encoder = GCNEncoder(
            (width_in, *settings.widths),
            activation=settings.activation,
            normalize_after=settings.normalize == "after",
        )
        self.head = ProjectionHead(settings.widths[-1])
        self.augmentation = Augmentation(
            settings.masks(),
            len(settings.widths),
            hard=settings.mask_values == "hard",
            temperature=settings.mask_temperature,
            draw=settings.rate_draw,
            start=settings.rate_start,
            prior=settings.beta_prior(),
        )

    def reset_parameters(self, generator: torch.Generator) -> None:
        self.encoder.reset_parameters(generator)
        self.head.reset_parameters(generator)

    def encode(
        self, view: View, graph: PreparedGraph, generator: torch.Generator, *, hard: bool = False, scale: float = 1.0
    ) -> Tensor:
        """One draw of the embeddings from a view's posterior, `(N, d)`, with masks at `scale` times the drop rates."""
        masks = self.augmentation.draw(view, graph, self.encoder.inputs(graph), generator, hard=hard, scale=scale)
        embeddings: Tensor = self.encoder(graph, masks)
        return embeddings

    def views(self, graph: PreparedGraph, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A draw of the embeddings from each view's posterior."""
        return self.encode("o", graph, generator), self.encode("t", graph, generator)

    def loss(self, o: Tensor, t: Tensor) -> Tensor:
        """`L_CNT` of the embeddings of two views."""
        budget = self.settings.memory_budget << 20
        return contrastive_loss(self.head(o), self.head(t), self.settings.tau, budget=budget)

    def adversary(self, loss: Tensor, nodes: int) -> Tensor:
        r"""The part of the augmentation's objective that depends on `L_CNT`: `ceiling - |L_CNT - ceiling|`.

        `log(2N - 1) - L_CNT` is a lower bound of the information that the views share, and at most about `1 / tau`. At
        `ceiling = log(2N - 1) - shared_information / tau` the views still share the fraction `shared_information` of
        it. A loss beyond the ceiling lowers the objective.
        """
        share = self.settings.shared_information
        ceiling = math.log(2 * nodes - 1) - share / self.settings.tau
        return ceiling - (loss - ceiling).abs() if share else loss

    def weight_decay(self) -> Tensor:
        """`L_WD`."""
        return self.settings.weight_decay * weight_decay(self.encoder, self.augmentation)

    def kl(self) -> Tensor:
        """The KL divergence of the drop rates, multiplied by `kl_weight`."""
        return self.settings.kl_weight * self.augmentation.kl()
