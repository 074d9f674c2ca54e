"""The alternation: in each epoch a step on the encoder, then a step on the augmentation."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.augmentation.views import VIEWS
from bgcl.errors import BGCLError
from bgcl.graph.clusters import Batches
from bgcl.graph.prepared import Graph
from bgcl.model.network import Network
from bgcl.settings import Settings

log = logging.getLogger("bgcl")

COLLAPSED = 1e-3  # spread of the embeddings under which they are taken to be all alike


class TrainingError(BGCLError):
    """Training cannot go on."""


@dataclass(frozen=True)
class Record:
    """What happened in one epoch."""

    epoch: int
    loss: float  # L_CNT, as the encoder's step saw it
    objective: float | None  # L_CNT up to its ceiling, less w KL, as the augmentation's step saw it
    kl: float
    spread: float
    seconds: float
    rates: dict[str, list[dict[str, Any]]]  # the posterior of each mask's drop rates, for each view

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Training:
    """A run under way: everything that the next epoch depends on."""

    def __init__(self, network: Network, batches: Batches, settings: Settings) -> None:
        self.network, self.batches, self.settings = network, batches, settings
        self.generator = torch.Generator(settings.device).manual_seed(settings.seed)
        network.reset_parameters(self.generator)
        self.theta_w = [*network.encoder.parameters(), *network.head.parameters()]
        self.theta_a = list(network.augmentation.parameters())
        self.weights = torch.optim.Adam(self.theta_w, lr=settings.lr_weights)
        self.rates = torch.optim.Adam(self.theta_a, lr=settings.lr_rates) if self.theta_a else None
        self.epoch = 0
        self._warned = False

    def run(self) -> Iterator[Record]:
        """Train to the last epoch, yielding the record of each."""
        while self.epoch < self.settings.epochs:
            yield self.step()

    def step(self) -> Record:
        """One epoch."""
        start = time.perf_counter()
        losses, objectives, spreads = [], [], []
        for batch in self.batches.epoch(self.generator):
            loss, spread = self._encoder_step(batch)
            losses.append(loss)
            spreads.append(spread)
            if self.rates is not None:
                objectives.append(self._augmentation_step(batch, self.rates))
        self._check_parameters()
        self.epoch += 1
        with torch.no_grad():
            kl = float(self.network.augmentation.kl())
        record = Record(
            epoch=self.epoch,
            loss=_mean(losses),
            objective=_mean(objectives) if objectives else None,
            kl=kl,
            spread=_mean(spreads),
            seconds=time.perf_counter() - start,
            rates=rate_summary(self.network),
        )
        self._warn_of_collapse(record)
        return record

    def _encoder_step(self, graph: Graph) -> tuple[float, float]:
        with _only(self.theta_w, self.theta_a):
            self.weights.zero_grad()
            o, t = self.network.views(graph, self.generator)
            loss = self.network.loss(*self._some(o, t, self.settings.loss_nodes))
            self._check(loss, "lr_weights")
            (loss + self.network.weight_decay()).backward()  # type: ignore[no-untyped-call]
            self.weights.step()
        return float(loss.detach()), embedding_spread(o.detach())

    def _augmentation_step(self, graph: Graph, optimiser: torch.optim.Optimizer) -> float:
        with _only(self.theta_a, self.theta_w):
            optimiser.zero_grad()
            o, t = self._some(*self.network.views(graph, self.generator), self.settings.rate_nodes)
            objective = self.network.adversary(self.network.loss(o, t), len(o)) - self.network.kl()
            self._check(objective, "lr_rates")
            (-objective).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return float(objective.detach())

    def _some(self, o: Tensor, t: Tensor, most: int) -> tuple[Tensor, Tensor]:
        """Both views of at most so many nodes, picked at random: their loss among themselves tells nearly as much."""
        if len(o) <= most:
            return o, t
        some = torch.randperm(len(o), generator=self.generator, device=o.device)[:most]
        return o[some], t[some]

    def _check(self, value: Tensor, rate: str) -> None:
        if not math.isfinite(number := float(value.detach())):
            raise TrainingError(
                f"The loss is {number} in epoch {self.epoch + 1}, so training stopped before it. "
                f"Lower '{rate}' (now {getattr(self.settings, rate):g}) or raise 'tau' (now {self.settings.tau:g})."
            )

    def _check_parameters(self) -> None:
        """Before an epoch counts as done: a loss may be finite and its gradient not."""
        for rate, parameters in (("lr_weights", self.theta_w), ("lr_rates", self.theta_a)):
            if not all(torch.isfinite(parameter).all() for parameter in parameters):
                raise TrainingError(
                    f"A gradient was not finite in epoch {self.epoch + 1}, so training stopped before it. "
                    f"Lower '{rate}' (now {getattr(self.settings, rate):g}) or raise 'temperature'."
                )

    def _warn_of_collapse(self, record: Record) -> None:
        if record.spread < COLLAPSED and not self._warned:
            self._warned = True
            log.warning(
                "The embeddings have collapsed: in epoch %d all nodes point the same way (spread %.1e). "
                "Lower the drop rates or 'lr_weights', or raise 'kl_weight'.", record.epoch, record.spread,
            )  # fmt: skip

    def state(self) -> dict[str, Tensor]:
        """All that the next epoch depends on beside the network, as tensors."""
        state = {"generator": self.generator.get_state(), "epoch": torch.tensor(self.epoch)}
        for name, optimiser in self._optimisers():
            for i, values in optimiser.state_dict()["state"].items():
                state |= {f"{name}.{i}.{key}": value for key, value in values.items()}
        return state

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a `state`, bit for bit."""
        try:
            self.generator.set_state(state["generator"].cpu())
            self.epoch = int(state["epoch"])
            for name, optimiser in self._optimisers():
                moments: dict[int, dict[str, Tensor]] = {}
                for key, value in state.items():
                    if key.startswith(f"{name}."):
                        _, i, moment = key.split(".")
                        moments.setdefault(int(i), {})[moment] = value
                optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
        except (KeyError, ValueError, RuntimeError) as error:
            raise BGCLError(f"This run cannot be resumed: its training state is damaged ({error}).") from error

    def _optimisers(self) -> list[tuple[str, torch.optim.Optimizer]]:
        both = [("weights", self.weights), ("rates", self.rates)]
        return [(name, optimiser) for name, optimiser in both if optimiser is not None]


@contextmanager
def _only(learning: Sequence[nn.Parameter], frozen: Sequence[nn.Parameter]) -> Iterator[None]:
    """Gradients for `learning` alone, so that those of `frozen` are not even computed."""
    for parameter in frozen:
        parameter.requires_grad_(False)
    for parameter in learning:
        parameter.requires_grad_(True)
    try:
        yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(True)


def embedding_spread(embeddings: Tensor) -> float:
    """The variance of the unit vectors, `1 - |mean of h / |h||^2`: 0 when all nodes point the same way, at most 1."""
    unit = F.normalize(embeddings, dim=-1)
    return float((unit.square().sum(-1).mean() - unit.mean(0).square().sum()).clamp(min=0))


def rate_summary(network: Network) -> dict[str, list[dict[str, Any]]]:
    """The drop rates of each mask in each view: mean and deviation, and `a`, `b` of their posterior where learned."""
    summary: dict[str, list[dict[str, Any]]] = {}
    with torch.no_grad():
        for view in VIEWS:
            summary[view] = []
            for mask, rate in network.augmentation.of(view):
                values = {"mean": rate.mean(), "deviation": rate.deviation()}
                if rate.learned:
                    values |= {"a": rate.a, "b": rate.b}
                summary[view].append({"mask": str(mask)} | {key: value.tolist() for key, value in values.items()})
    return summary


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
