"""The paper's generalized augmentation: it draws the masks of each view and layer at the view's drop rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn

from bgcl.augmentation.drop_rates import DropRate, RatePosterior
from bgcl.augmentation.masks import LayerInput, Mask, concrete, straight_through
from bgcl.augmentation.noise import Noise
from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.relations import over_relations
from bgcl.graph.sparse import Pattern, row_sum, spmm

View = Literal["o", "t"]
VIEWS: tuple[View, View] = ("o", "t")


@dataclass
class LayerMask:
    """The product of a layer's masks. None: nothing is masked."""

    connections: Tensor | None = None  # (E, B)
    columns: Tensor | None = None  # (F,)
    entries: Tensor | None = None  # (N, F) for dense features, (nonzeros,) for sparse ones
    relations: Tensor | None = None  # (E, R), another factor for the connections of each relation

    def multiply(
        self, on: Literal["connections", "relations", "columns", "entries", "positives"], factor: Tensor
    ) -> None:
        before: Tensor | None = getattr(self, on)
        setattr(self, on, factor if before is None else before * factor)


@dataclass
class Positives:
    """Which nodes count as the same: a weight for each connection. The weights of a node sum to 1."""

    pattern: Pattern  # (N, N)
    weights: Tensor  # (E,)
    kept: Tensor | None = None  # (E, 1) or (E, R), the keep values that the weights come from; 1 for a node itself

    def average(self, vectors: Tensor) -> Tensor:
        """The mean vector of each node's positives, `(N, d)`."""
        return spmm(self.pattern, self.weights, vectors)


class Augmentation(nn.Module):
    """The masks, and the drop rates of each mask in each view.

    With `own_draws`, there are other rates for draws of embeddings than for training. Without, draws are made at a
    fraction of the rates of training.
    """

    def __init__(
        self, masks: Sequence[Mask], layers: int, *, hard: bool = False, temperature: float = 0.3,
        draw: Literal["sample", "median"] = "sample", start: tuple[float, float] = (1.0, 1.0),
        prior: tuple[float, float] = (1.0, 1.0), own_draws: bool = False, relations: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.masks, self.layers = tuple(masks), layers
        self.hard, self.temperature, self._draw = hard, temperature, draw

        def make() -> nn.ModuleDict:
            return nn.ModuleDict({
                view: nn.ModuleList(
                    DropRate(
                        _rates_shape(mask, layers, relations), rate=mask.rate and mask.rate[i], start=start, prior=prior
                    )
                    for mask in masks
                )
                for i, view in enumerate(VIEWS)
            })  # fmt: skip

        self.rates = make()
        self.rates_of_draws = make() if own_draws else None

    @property
    def learned(self) -> bool:
        return any(mask.rate is None for mask in self.masks)

    def of(self, view: View, *, drawing: bool = False) -> list[tuple[Mask, DropRate]]:
        """Each mask of a view with its drop rates; with `drawing`, those of draws of embeddings."""
        every = self.rates_of_draws if drawing else self.rates
        assert every is not None
        rates = cast("nn.ModuleList", every[view])
        return list(zip(self.masks, cast("list[DropRate]", list(rates)), strict=True))

    def draw(
        self, view: View, graph: PreparedGraph, inputs: Sequence[LayerInput], noise: Noise, *,
        hard: bool = False, scale: float | None = 1.0,
    ) -> list[LayerMask]:  # fmt: skip
        """Draw the masks of a view at `scale` times its drop rates: one `LayerMask` for each layer.

        The drop rates are a draw from their posterior, or its median. If `scale` is None, they are the rates of draws.
        Rates and masks come from `noise`.
        """
        layers = [LayerMask() for _ in range(self.layers)]
        for place, (mask, rate) in enumerate(self.of(view, drawing=scale is None)):
            if mask.on == "positives":
                continue
            logit = self._logit(rate, noise.of("rate", place), scale)
            uniform: Tensor | None = None
            for i in range(self.layers) if mask.layer is None else (mask.layer - 1,):
                if uniform is None or not mask.shared:
                    uniform = mask.uniform(graph, inputs[i], noise.of("mask", place, i))
                keep = self._keep(logit[i if len(logit) > 1 else 0], uniform, hard)
                layers[i].multiply("relations" if mask.per == "relation" else mask.on, mask.factor(keep, graph))
        return layers

    def draw_positives(
        self, view: View, graph: PreparedGraph, noise: Noise, *, hard: bool = False, scale: float | None = 1.0,
    ) -> Positives | None:  # fmt: skip
        """Draw the positives of each node in a view; None if no mask acts on positives.

        Of each pair of neighbors that are kept, one is a positive of the other with the weight of their connection, and
        a node is one of itself with the weight 1.
        """
        kept = self.kept_positives(view, graph, noise, hard=hard, scale=scale)
        if kept is None:
            return None
        weight = over_relations(graph, kept)
        assert weight is not None
        weight = weight if graph.counts is None else weight * graph.counts[:, None]
        weight = weight if graph.weights is None else weight * graph.weights[:, None]
        total = row_sum(graph.connections, weight)
        weight = weight / total.index_select(0, graph.connections.row)
        return Positives(graph.connections, weight[:, 0], kept)

    def kept_positives(
        self, view: View, graph: PreparedGraph, noise: Noise, *, hard: bool = False, scale: float | None = 1.0,
    ) -> Tensor | None:  # fmt: skip
        """The keep values of each pair of neighbors, `(E, 1)` or `(E, R)`; None if no mask acts on positives."""
        every = enumerate(self.of(view, drawing=scale is None))
        masks = [(place, mask, rate) for place, (mask, rate) in every if mask.on == "positives"]
        if not masks:
            return None
        kept: Tensor = torch.ones(len(graph.connections), 1, device=graph.connections.column.device)
        for place, mask, rate in masks:
            uniform = mask.uniform(graph, _NO_FEATURES, noise.of("mask", place))
            logit = self._logit(rate, noise.of("rate", place), scale)[0]
            kept = kept * mask.factor(self._keep(logit, uniform, hard), graph)
        return kept

    def _logit(self, rate: DropRate, noise: Noise, scale: float | None) -> Tensor:
        """`logit(pi)` of the rates at which masks are drawn, `(layers, blocks)` or with 1."""
        logit = rate.draw(noise) if self._draw == "sample" else rate.median()
        return logit if scale in (None, 1) else torch.logit(scale * torch.sigmoid(logit))

    def _keep(self, logit: Tensor, uniform: Tensor, hard: bool) -> Tensor:
        return (straight_through if hard or self.hard else concrete)(logit, uniform, self.temperature)

    def posteriors(self, *, drawing: bool = False) -> dict[str, list[RatePosterior]]:
        """For each view, the posterior of each mask's drop rates; with `drawing`, those of draws of embeddings."""
        with torch.no_grad():
            return {
                view: [rate.posterior(str(mask)) for mask, rate in self.of(view, drawing=drawing)] for view in VIEWS
            }

    def kl(self) -> Tensor:
        """`KL(q(Z, Pi) || p(Z, Pi))`. It is the KL of the rates, because `q(Z | Pi) = p(Z | Pi)`."""
        return sum((rate.kl() for view in VIEWS for _, rate in self.of(view)), torch.zeros(()))

    def kept(self, layer: int) -> Tensor:
        """The expected share `1 - pi` of a layer's connections that are kept, averaged over the views."""
        shares = []
        for view in VIEWS:
            share = torch.ones(())
            for mask, rate in self.of(view):
                if mask.on != "positives" and mask.layer in (None, layer + 1):
                    mean = rate.mean()
                    share = share.to(mean) * (1 - mean[layer if len(mean) > 1 else 0].mean())
            shares.append(share)
        return torch.stack(shares).mean()


_NO_FEATURES = LayerInput(0, torch.Size((0,)))


def _rates_shape(mask: Mask, layers: int, relations: int) -> tuple[int, int]:
    if mask.per == "relation":
        return 1, relations
    return (1 if mask.per == "view" or mask.layer is not None else layers, mask.blocks if mask.per == "block" else 1)
