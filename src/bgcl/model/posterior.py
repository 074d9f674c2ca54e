"""The posterior over embeddings: draws from Q(H), their mean and deviation, and ASTD."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bgcl.augmentation.views import VIEWS
from bgcl.graph.prepared import Graph
from bgcl.model.network import Network


def draws(network: Network, graph: Graph, samples: int, generator: torch.Generator, *, hard: bool) -> Iterator[Tensor]:
    """`samples` draws of the embeddings, each `(N, d)`, from the two views' posteriors in turn."""
    scale = network.settings.draw_scale
    for i in range(samples):
        with torch.no_grad():
            draw = network.encode(VIEWS[i % 2], graph, generator, hard=hard, scale=scale)
        yield draw


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of each node's draws, both `(N, d)`.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> found = model.moments(data, samples=10)
    >>> found.mean.shape, found.astd.shape
    (torch.Size([240, 8]), torch.Size([240]))
    """

    mean: Tensor
    deviation: Tensor
    samples: int

    @property
    def astd(self) -> Tensor:
        """Average Standard Deviation of a node: over the draws, then averaged over the dimensions, `(N,)`."""
        return self.deviation.mean(-1)


class RunningMoments:
    """Mean and deviation of draws as they come, without holding them (Welford, 1962)."""

    def __init__(self) -> None:
        self.count, self._mean, self._squares = 0, torch.zeros(()), torch.zeros(())

    def add(self, draw: Tensor) -> Tensor:
        """Take one more draw, and hand it on."""
        self.count += 1
        difference = draw - self._mean
        self._mean = self._mean + difference / self.count
        self._squares = self._squares + difference * (draw - self._mean)
        return draw

    def moments(self) -> Moments:
        return Moments(self._mean, (self._squares / max(self.count - 1, 1)).sqrt(), self.count)


def moments(stream: Iterable[Tensor]) -> Moments:
    """Mean and deviation of a stream of draws."""
    running = RunningMoments()
    for draw in stream:
        running.add(draw)
    return running.moments()


def astd(sampled: Tensor) -> Tensor:
    """ASTD of draws `(S, N, d)` that are at hand, `(N,)`; 0 for a single one.

    >>> astd(torch.tensor([[[0.0, 3.0]], [[2.0, 3.0]]]))  # one node: deviations of sqrt(2) and 0
    tensor([0.7071])
    """
    return sampled.std(0, correction=min(1, len(sampled) - 1)).mean(-1)
