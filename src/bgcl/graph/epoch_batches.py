"""What all kinds of batches share: an epoch is planned first, and each batch is made when it is needed."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from bgcl.graph.prepared import PreparedGraph


class EpochBatches(ABC):
    """The batches of an epoch.

    A plan says what is in a batch, and costs little. So each of several processes plans the whole epoch, and makes only
    the batches that it takes.
    """

    graph: PreparedGraph
    count: int  # batches in an epoch
    apart = False  # whether batches are made ahead, so that they need random numbers apart from those of the steps

    @abstractmethod
    def plans(self, generator: torch.Generator) -> list[Any]:
        """A plan of each batch of an epoch."""

    @abstractmethod
    def make(self, plan: Any, generator: torch.Generator) -> PreparedGraph:
        """The batch of a plan."""

    def stream(self, wanted: Iterable[tuple[Any, torch.Generator]]) -> Iterator[PreparedGraph]:
        """The batches of some plans, in turn, each when it is needed.

        Args:
            wanted: plans, and the source of random numbers of each.
        """
        for plan, generator in wanted:
            yield self.make(plan, generator)

    def epoch(self, generator: torch.Generator) -> Iterator[PreparedGraph]:
        """The batches of one epoch. Every node is in exactly one of them, without counting its neighbors."""
        plans = self.plans(generator)
        if self.apart:
            seed = int(torch.randint(1 << 62, (), generator=generator, device=generator.device))
            generator = torch.Generator(generator.device).manual_seed(seed)
        yield from self.stream([(plan, generator) for plan in plans])
