"""Training: in each epoch a step of the encoder, then a step of the augmentation."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.augmentation.drop_rates import RatePosterior
from bgcl.errors import BGCLError
from bgcl.graph.epoch_batches import EpochBatches
from bgcl.graph.node_batches import NodeBatches
from bgcl.model.global_step import Source, mean_gradient, steps_in_epoch, steps_of
from bgcl.model.network import Network
from bgcl.model.seeding import seeded_from
from bgcl.model.stopping import Watch, is_settled
from bgcl.processes.team import Team
from bgcl.settings import Settings

log = logging.getLogger("bgcl")

COLLAPSED = 1e-3  # embeddings with less spread than this are considered equal


class TrainingError(BGCLError):
    """Training cannot go on."""


@dataclass(frozen=True)
class Record:
    """What happened in one epoch."""

    epoch: int
    loss: float  # L_CNT in the encoder's step
    objective: float | None  # what the augmentation's steps maximized; None if the epoch had none
    kl: float
    spread: float
    seconds: float
    rates: dict[str, list[RatePosterior]]  # for each view, the posterior of each mask's drop rates
    recognized: float | None = None  # how well nodes are recognized, which decides when training ends

    def to_dict(self) -> dict[str, Any]:
        """The fields as values that JSON can store."""
        rates = {view: [rate.to_dict() for rate in masks] for view, masks in self.rates.items()}
        return vars(self) | {"rates": rates}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Record":
        """The inverse of `to_dict`."""
        rates = {view: [RatePosterior.from_dict(rate) for rate in masks] for view, masks in values["rates"].items()}
        return cls(**values | {"rates": rates})


class Training:
    """A training in progress: everything that the next epoch depends on.

    Args:
        network: the network.
        batches: the batches of an epoch.
        settings: the settings.
        team: the processes that train together. Default: this one alone.
    """

    def __init__(self, network: Network, batches: EpochBatches, settings: Settings, team: Team | None = None) -> None:
        self.network, self.batches, self.settings, self.team = network, batches, settings, team or Team()
        self.several = settings.batches_per_step or 1
        self.steps = steps_in_epoch(batches.count, self.several)
        self.generator = torch.Generator(settings.device).manual_seed(settings.seed)
        network.reset_parameters(self.generator)
        self.theta_w = [*network.encoder.parameters(), *network.objective.parameters()]
        self.theta_a = list(network.augmentation.parameters())
        fused = settings.batch_nodes is not None  # in short steps, the update of all weights takes a good part
        self.weights = torch.optim.Adam(self.theta_w, lr=settings.lr_weights, fused=fused or None)
        by_adversary = bool(self.theta_a) and settings.lr_rates is not None
        self.rates = torch.optim.Adam(self.theta_a, lr=settings.lr_rates or 0.0) if by_adversary else None
        self.epoch = 0
        self._warned = False
        self.watch: Watch | None = None
        if settings.until_settled and isinstance(batches, NodeBatches):
            self.watch = Watch(network, batches, settings.seed)
        self.recognized: list[float] = [] if self.watch is None else [self._how_well_recognized(self.watch)]

    def run(self) -> Iterator[Record]:
        """Train until it settles or to the last epoch, and yield the record of each epoch."""
        while self.epoch < (self.settings.epochs or 0) and not self.settled:
            yield self.step()

    @property
    def settled(self) -> bool:
        """Whether training may end before its last epoch, because more of it would gain little."""
        return self.watch is not None and is_settled(self.recognized, self.steps)

    def _how_well_recognized(self, watch: Watch) -> float:
        """What the main process measures, so that all processes end at the same epoch."""
        return self.team.number_from_main(watch.recognized() if self.team.is_main else 0.0)

    def step(self) -> Record:
        """One epoch."""
        start = time.perf_counter()
        losses, objectives, spreads = [], [], []
        self.network.train()
        # A module of the user may have random numbers of its own, such as dropout. They come from torch's generator.
        with seeded_from(self.settings.seed + self.epoch):
            before = self.epoch * self.steps
            steps = steps_of(self.batches, self.several, self.generator, (self.settings.seed, before), self.team)
            for number, sources in enumerate(steps, start=before + 1):
                loss, spread = self._encoder_step(sources)
                losses.append(loss)
                spreads.append(spread)
                if self.rates is not None and number % (self.settings.rate_every or 1) == 0:
                    objectives.append(self._augmentation_step(sources, self.rates))
        self._check_parameters()
        self.epoch += 1
        with torch.no_grad():
            kl = float(self.network.augmentation.kl())
        if self.watch is not None:
            self.recognized.append(self._how_well_recognized(self.watch))
        record = Record(
            epoch=self.epoch,
            loss=_mean(losses),
            objective=_mean(objectives) if objectives else None,
            kl=kl,
            spread=_mean(spreads),
            seconds=time.perf_counter() - start,
            rates=self.network.augmentation.posteriors(),
            recognized=self.recognized[-1] if self.recognized else None,
        )
        self._warn_of_collapse(record)
        return record

    def _encoder_step(self, sources: Sequence[Source]) -> tuple[float, float]:
        def compute(source: Source) -> tuple[Tensor, tuple[Tensor, Tensor]]:
            generator, of_rates = source.generators("weights")
            found = self.network.outcome(source.graph, generator, self.settings.loss_nodes, of_rates)
            loss = found.loss + self.network.weight_decay() if self.settings.weight_decay else found.loss
            return loss, (found.loss.detach(), embedding_spread(found.embeddings.detach()))

        with _only(self.theta_w, self.theta_a):
            self.weights.zero_grad()
            loss, spread = mean_gradient(self.theta_w, sources, self.team, compute)
            self._check(loss, "lr_weights")
            self.weights.step()
            self.network.objective.after_step(self.network.encoder)
        return loss, spread

    def _augmentation_step(self, sources: Sequence[Source], optimizer: torch.optim.Optimizer) -> float:
        def compute(source: Source) -> tuple[Tensor, tuple[Tensor, Tensor]]:
            generator, of_rates = source.generators("rates")
            found = self.network.outcome(source.graph, generator, self.settings.rate_nodes, of_rates)
            objective = self.network.objective.adversary(found, self.settings.shared_information or 0.0)
            objective = objective - self.network.kl()
            return -objective, (objective.detach(), found.loss.detach())

        with _only(self.theta_a, self.theta_w):
            optimizer.zero_grad()
            objective, _ = mean_gradient(self.theta_a, sources, self.team, compute)
            self._check(objective, "lr_rates")
            optimizer.step()
        return objective

    def _check(self, number: float, rate: str) -> None:
        if not math.isfinite(number):
            tau = "" if self.settings.tau is None else f" or raise 'tau' (now {self.settings.tau:g})"
            raise TrainingError(
                f"The loss is {number} in epoch {self.epoch + 1}, so training stopped before it. "
                f"Lower '{rate}' (now {getattr(self.settings, rate):g}){tau}."
            )

    def _check_parameters(self) -> None:
        """Check before the epoch counts as done, because a finite loss can have a gradient that is not finite."""
        for rate, parameters in (("lr_weights", self.theta_w), ("lr_rates", self.theta_a)):
            if not all(torch.isfinite(parameter).all() for parameter in parameters):
                raise TrainingError(
                    f"A gradient was not finite in epoch {self.epoch + 1}, so training stopped before it. "
                    f"Lower '{rate}' (now {getattr(self.settings, rate):g}) or raise 'mask_temperature'."
                )

    def _warn_of_collapse(self, record: Record) -> None:
        if record.spread < COLLAPSED and not self._warned:
            self._warned = True
            advice = "Lower the drop rates or 'lr_weights'"
            advice += "." if self.settings.kl_weight is None else ", or raise 'kl_weight'."
            if self.network.attributes_are_equal:
                advice = "All nodes have the same attributes, so these tell no node from another. Give them others."
            log.warning(
                "The embeddings have collapsed: in epoch %d all of them point the same way (spread %.1e). %s",
                record.epoch, record.spread, advice,
            )  # fmt: skip

    def state(self) -> dict[str, Tensor]:
        """Everything except the network that the next epoch depends on, as tensors."""
        state = {"generator": self.generator.get_state(), "epoch": torch.tensor(self.epoch)}
        for name, optimizer in self._optimizers():
            for i, values in optimizer.state_dict()["state"].items():
                state |= {f"{name}.{i}.{key}": value for key, value in values.items()}
        return state

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a `state`, bit for bit."""
        try:
            self.generator.set_state(state["generator"].cpu())
            self.epoch = int(state["epoch"])
            for name, optimizer in self._optimizers():
                moments: dict[int, dict[str, Tensor]] = {}
                for key, value in state.items():
                    if key.startswith(f"{name}."):
                        _, i, moment = key.split(".")
                        moments.setdefault(int(i), {})[moment] = value
                optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
        except (KeyError, ValueError, RuntimeError) as error:
            raise BGCLError(f"This run cannot resume: the state of its training is damaged ({error}).") from error

    def _optimizers(self) -> list[tuple[str, torch.optim.Optimizer]]:
        both = [("weights", self.weights), ("rates", self.rates)]
        return [(name, optimizer) for name, optimizer in both if optimizer is not None]


@contextmanager
def _only(learning: Sequence[nn.Parameter], frozen: Sequence[nn.Parameter]) -> Iterator[None]:
    """Compute gradients only for `learning`, not for `frozen`."""
    for parameter in frozen:
        parameter.requires_grad_(False)
    for parameter in learning:
        parameter.requires_grad_(True)
    try:
        yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(True)


def embedding_spread(embeddings: Tensor) -> Tensor:
    """The variance of the unit vectors, `1 - |mean of h / |h||^2`: 0 when all nodes point the same way, at most 1."""
    unit = F.normalize(embeddings, dim=-1)
    return (unit.square().sum(-1).mean() - unit.mean(0).square().sum()).clamp(min=0)


def how_long(history: Sequence[Record], settings: Settings) -> str:
    """How many epochs a training had, and why not more, such as `18 of at most 50 (settled)`."""
    done, most = len(history), settings.epochs or 0
    if not settings.until_settled or not history or history[-1].recognized is None:
        return f"{done:,}"
    return f"{done:,} of at most {most:,}" + (" (settled)" if done < most else "")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
