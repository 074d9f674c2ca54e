"""The posterior over embeddings: draws from Q(H), their mean and standard deviation, and ASTD."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bgcl.augmentation.noise import CountedNoise
from bgcl.augmentation.views import VIEWS, View
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.network import Alike, Network

BLOCK = 1 << 16  # numbers of a draw that are looked at together: as many as fit into a cache


def draws(
    network: Network, graph: PreparedGraph, numbers: Iterable[int], seed: int, *, scale: float | None, hard: bool,
    alike: Alike | None = None,
) -> Iterator[Tensor]:  # fmt: skip
    """The draws of the embeddings with these numbers, each `(N, d)`, in turn from the posteriors of the two views.

    A draw depends on its number and the seed, not on the draws before it.
    """
    alike = network.alike(graph) if alike is None else alike
    for i in numbers:
        with torch.no_grad():
            noise = CountedNoise.of_draw(seed, i)
            draw = network.draw(VIEWS[i % 2], graph, noise, hard=hard, scale=scale, alike=alike)
        yield draw


def pairs_of_views(
    network: Network, graph: PreparedGraph, pairs: int, seed: int, *, scale: float | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Draws of the encoder's output in both views, `(N, w)` each, before the parts of the embedding are made.

    Pair i has the masks of the draws 2 i and 2 i + 1.
    """
    for pair in range(pairs):
        with torch.no_grad():
            o, t = (
                network.encode(view, graph, CountedNoise.of_draw(seed, 2 * pair + i), scale=scale)
                for i, view in enumerate(VIEWS)
            )
        yield o, t


def anchored_log_likelihoods(
    network: Network, graph: PreparedGraph, positives: int, seed: int, *, scale: float | None
) -> Iterator[Tensor]:
    """`log l` of each node, `(N,)`, for several positives of one anchor.

    The anchor is a draw of view o, the negatives are one draw of view t, and the positives are several of view t.
    """

    def encoded(view: View, number: int) -> Tensor:
        with torch.no_grad():
            return network.encode(view, graph, CountedNoise.of_draw(seed, number), scale=scale)

    others = encoded("t", 1)
    with torch.no_grad():
        yield from network.objective.log_likelihoods(
            encoded("o", 0), others, (encoded("t", 2 + number) for number in range(positives))
        )


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of each node's draws, both `(N, d)`.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(encoder="gcn", widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> found = model.moments(data, samples=10)
    >>> found.mean.shape, found.astd.shape
    (torch.Size([240, 8]), torch.Size([240]))
    """

    mean: Tensor
    std: Tensor
    samples: int

    @property
    def astd(self) -> Tensor:
        """Average standard deviation of each node, `(N,)`: over the draws, then averaged over the dimensions."""
        return self.std.mean(-1)


class RunningMoments:
    """Mean and standard deviation of a stream of draws that are not kept (Welford, 1962)."""

    def __init__(self) -> None:
        self.count, self._mean, self._squares = 0, torch.zeros(()), torch.zeros(())

    def add(self, draw: Tensor) -> Tensor:
        """Add one draw, and return it."""
        self.count += 1
        if self.count == 1:
            self._mean, self._squares = draw.clone(), torch.zeros_like(draw)
            return draw
        rows = max(BLOCK // max(draw[0].numel(), 1), 1) if len(draw) else 1
        for some, mean, squares in zip(
            *(torch.split(each, rows) for each in (draw, self._mean, self._squares)), strict=True
        ):
            difference = some - mean
            mean += difference / self.count
            squares += difference.mul_(some - mean)
        return draw

    def moments(self) -> Moments:
        return Moments(self._mean.clone(), (self._squares / max(self.count - 1, 1)).sqrt(), self.count)


def moments(stream: Iterable[Tensor]) -> Moments:
    """Mean and standard deviation of a stream of draws."""
    running = RunningMoments()
    for draw in stream:
        running.add(draw)
    return running.moments()


def astd(sampled: Tensor) -> Tensor:
    """ASTD of draws `(S, N, d)` in memory, `(N,)`; 0 for a single draw.

    >>> import torch
    >>> astd(torch.tensor([[[0.0, 3.0]], [[2.0, 3.0]]]))  # one node: standard deviations of sqrt(2) and 0
    tensor([0.7071])
    """
    return sampled.std(0, correction=min(1, len(sampled) - 1)).mean(-1)
