"""The posterior over embeddings: draws from Q(H), their mean and deviation, and ASTD."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bgcl.augmentation import VIEWS, View
from bgcl.graph import Graph
from bgcl.network import Network


def draws(network: Network, graph: Graph, samples: int, generator: torch.Generator, *, hard: bool) -> Iterator[Tensor]:
    """`samples` draws of the embeddings, each `(N, d)`, from the two views' posteriors in turn."""
    for i in range(samples):
        view: View = VIEWS[i % 2]
        with torch.no_grad():
            yield network.encode(view, graph, generator, hard=hard)


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of each node's draws, both `(N, d)`."""

    mean: Tensor
    deviation: Tensor
    samples: int

    @property
    def astd(self) -> Tensor:
        """Average Standard Deviation of a node: over the draws, then averaged over the dimensions, `(N,)`."""
        return self.deviation.mean(-1)


def moments(stream: Iterator[Tensor]) -> Moments:
    """Mean and deviation of a stream of draws, without holding them (Welford, 1962)."""
    count, mean, squares = 0, torch.zeros(()), torch.zeros(())
    for draw in stream:
        count += 1
        difference = draw - mean
        mean = mean + difference / count
        squares = squares + difference * (draw - mean)
    return Moments(mean, (squares / max(count - 1, 1)).sqrt(), count)


def astd(sampled: Tensor) -> Tensor:
    """ASTD of draws `(S, N, d)` that are at hand, `(N,)`."""
    return sampled.std(0).mean(-1)
