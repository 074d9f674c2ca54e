"""The paper's generalized augmentation: it draws the masks of each view and layer at the view's drop rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn

from bgcl.augmentation.drop_rates import DropRate, RatePosterior
from bgcl.augmentation.masks import LayerInput, Mask, concrete, straight_through
from bgcl.graph.prepared import PreparedGraph

View = Literal["o", "t"]
VIEWS: tuple[View, View] = ("o", "t")


@dataclass
class LayerMask:
    """The product of a layer's masks. None: nothing is masked."""

    connections: Tensor | None = None  # (E, B)
    columns: Tensor | None = None  # (F,)
    entries: Tensor | None = None  # (N, F) for dense features, (nonzeros,) for sparse ones

    def multiply(self, on: Literal["connections", "columns", "entries"], factor: Tensor) -> None:
        before: Tensor | None = getattr(self, on)
        setattr(self, on, factor if before is None else before * factor)


class Augmentation(nn.Module):
    """The masks, and the drop rates of each mask in each view."""

    def __init__(
        self, masks: Sequence[Mask], layers: int, *, hard: bool = False, temperature: float = 0.3,
        draw: Literal["sample", "median"] = "sample", start: tuple[float, float] = (1.0, 1.0),
        prior: tuple[float, float] = (1.0, 1.0),
    ) -> None:  # fmt: skip
        super().__init__()
        self.masks, self.layers = tuple(masks), layers
        self.hard, self.temperature, self._draw = hard, temperature, draw
        self.rates = nn.ModuleDict({
            view: nn.ModuleList(
                DropRate(_rates_shape(mask, layers), rate=mask.rate and mask.rate[i], start=start, prior=prior)
                for mask in masks
            )
            for i, view in enumerate(VIEWS)
        })  # fmt: skip

    @property
    def learned(self) -> bool:
        return any(mask.rate is None for mask in self.masks)

    def of(self, view: View) -> list[tuple[Mask, DropRate]]:
        """Each mask of a view with its drop rates."""
        rates = cast("nn.ModuleList", self.rates[view])
        return list(zip(self.masks, cast("list[DropRate]", list(rates)), strict=True))

    def draw(
        self, view: View, graph: PreparedGraph, inputs: Sequence[LayerInput], generator: torch.Generator, *,
        hard: bool = False, scale: float = 1.0,
    ) -> list[LayerMask]:  # fmt: skip
        """Draw the masks of a view at `scale` times its drop rates: one `LayerMask` for each layer.

        The drop rates are a draw from their posterior, or its median.
        """
        keep_values = straight_through if hard or self.hard else concrete
        layers = [LayerMask() for _ in range(self.layers)]
        for mask, rate in self.of(view):
            logit = rate.draw(generator) if self._draw == "sample" else rate.median()  # (layers, blocks) or with 1
            logit = logit if scale == 1 else torch.logit(scale * torch.sigmoid(logit))
            noise: Tensor | None = None
            for i in range(self.layers) if mask.layer is None else (mask.layer - 1,):
                if noise is None or not mask.shared:
                    noise = mask.uniform(graph, inputs[i], generator)
                here = logit[i if len(logit) > 1 else 0]
                keep = keep_values(here, noise, self.temperature)
                layers[i].multiply(mask.on, mask.factor(keep, graph))
        return layers

    def posteriors(self) -> dict[str, list[RatePosterior]]:
        """For each view, the posterior of each mask's drop rates."""
        with torch.no_grad():
            return {view: [rate.posterior(str(mask)) for mask, rate in self.of(view)] for view in VIEWS}

    def kl(self) -> Tensor:
        """`KL(q(Z, Pi) || p(Z, Pi))`. It is the KL of the rates, because `q(Z | Pi) = p(Z | Pi)`."""
        return sum((rate.kl() for view in VIEWS for _, rate in self.of(view)), torch.zeros(()))

    def kept(self, layer: int) -> Tensor:
        """The expected share `1 - pi` of a layer's connections that are kept, averaged over the views."""
        shares = []
        for view in VIEWS:
            share = torch.ones(())
            for mask, rate in self.of(view):
                if mask.layer in (None, layer + 1):
                    mean = rate.mean()
                    share = share.to(mean) * (1 - mean[layer if len(mean) > 1 else 0].mean())
            shares.append(share)
        return torch.stack(shares).mean()


def _rates_shape(mask: Mask, layers: int) -> tuple[int, int]:
    return (1 if mask.per == "view" or mask.layer is not None else layers, mask.blocks if mask.per == "block" else 1)
