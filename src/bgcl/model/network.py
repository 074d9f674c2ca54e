"""The whole model as one module: the encoder with its projection head, and the augmentation with its drop rates."""

import math

import torch
from torch import Tensor, nn

from bgcl.augmentation.views import Augmentation, View
from bgcl.graph.prepared import Graph
from bgcl.model.encoders.gcn import Encoder, ProjectionHead, reset_parameters
from bgcl.model.objectives.infonce import contrastive_loss, weight_decay
from bgcl.settings import Settings


class Network(nn.Module):
    """Two views of one encoder: `theta_w` are the parameters of encoder and head, `theta_a` those of the rates."""

    def __init__(self, width_in: int, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.encoder = Encoder(
            (width_in, *settings.widths),
            activation=settings.activation,
            normalise_after=settings.normalise == "after",
        )
        self.head = ProjectionHead(settings.widths[-1])
        self.augmentation = Augmentation(
            settings.masks(),
            len(settings.widths),
            hard=settings.mask_values == "hard",
            temperature=settings.temperature,
            draw=settings.rate_draw,
            start=settings.rate_start,
            prior=settings.beta_prior(),
        )

    def reset_parameters(self, generator: torch.Generator) -> None:
        reset_parameters(self.encoder, self.head, generator)

    def encode(
        self, view: View, graph: Graph, generator: torch.Generator, *, hard: bool = False, scale: float = 1.0
    ) -> Tensor:
        """One draw of the embeddings from a view's posterior, `(N, d)`, with masks at `scale` times its drop rates."""
        masks = self.augmentation.draw(view, graph, self.encoder.inputs(graph), generator, hard=hard, scale=scale)
        embeddings: Tensor = self.encoder(graph, masks)
        return embeddings

    def views(self, graph: Graph, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A draw of the embeddings from each view's posterior."""
        return self.encode("o", graph, generator), self.encode("t", graph, generator)

    def loss(self, o: Tensor, t: Tensor) -> Tensor:
        """`L_CNT` of the embeddings of two views."""
        budget = self.settings.memory_budget << 20
        return contrastive_loss(self.head(o), self.head(t), self.settings.tau, budget=budget)

    def adversary(self, loss: Tensor, nodes: int) -> Tensor:
        r"""What the augmentation maximises of `L_CNT`: the loss itself up to the ceiling, and its mirror image beyond.

        `log(2N - 1) - L_CNT` bounds the information that the views share from below, and is at most about `1 / tau`. At
        the ceiling `log(2N - 1) - keep / tau` the share `keep` of that is left, and there is no more to gain.
        """
        ceiling = math.log(2 * nodes - 1) - self.settings.keep / self.settings.tau
        return ceiling - (loss - ceiling).abs() if self.settings.keep else loss

    def weight_decay(self) -> Tensor:
        """`L_WD`."""
        return self.settings.weight_decay * weight_decay(self.encoder, self.augmentation)

    def kl(self) -> Tensor:
        """The KL of the drop rates, as it is weighed against `L_CNT`."""
        return self.settings.kl_weight * self.augmentation.kl()
