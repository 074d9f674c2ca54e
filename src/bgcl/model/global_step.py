r"""One step on several batches: the gradient is the mean of theirs, whoever computes them.

With the batches `G_1, ..., G_W` of a step, the gradient is

    1/W sum_b grad L(G_b).

One process takes one batch after the other. Of several processes, each takes some of the batches, and one vector with
the gradient of all parameters is summed over the processes after each backward pass. The random numbers of a batch come
from generators of its own, which depend on the seed, the step and the place of the batch in it. So it does not matter
who computes a batch. All batches of a step are masked at the same draw of the drop rates.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from bgcl.graph.epoch_batches import EpochBatches
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.seeding import generator_of
from bgcl.processes.team import PairwiseSum, Team

Mean = tuple[float, ...]


@dataclass
class Source:
    """A batch of a step, which is made when it is needed.

    Args:
        stream: where batches come from. Sources of one stream have to be asked in their order.
        common: the generator of the training, if a step has one batch. Then the numbers of masks come from it in turn.
        path: seed, step and place of the batch, if a step has several.
    """

    stream: Iterator[PreparedGraph]
    common: torch.Generator | None = None
    path: tuple[int, int, int] = (0, 0, 0)
    device: str = "cpu"

    @cached_property
    def graph(self) -> PreparedGraph:
        """The batch."""
        return next(self.stream)

    def generators(self, what: str) -> tuple[torch.Generator, torch.Generator | None]:
        """The source of random numbers of a pass, and that of drop rates if it is another one.

        Args:
            what: the name of the pass.
        """
        if self.common is not None:
            return self.common, None
        seed, step, _ = self.path
        own = generator_of(self.device, *self.path, what)
        torch.manual_seed(own.initial_seed())  # a module of the user may have random numbers of its own
        return own, generator_of(self.device, seed, step, what, "rates")


def steps_of(
    batches: EpochBatches, several: int, generator: torch.Generator, path: tuple[int, int], team: Team
) -> Iterator[list[Source]]:
    """The steps of an epoch, each with its batches. A process has to make those of its share.

    If an epoch has only one batch, such as the whole graph, a step has it several times, each with masks of its own.

    Args:
        batches: the batches.
        several: W, batches in a step.
        generator: the generator of the training.
        path: the seed, and the number of steps before this epoch.
        team: the processes that share a step.
    """
    plans, device = batches.plans(generator), str(generator.device)
    seed, before = path
    if several == 1:
        own = generator_of(device, seed, before, "batches") if batches.apart else generator
        stream = batches.stream((plan, own) for plan in plans)
        yield from ([Source(stream, generator)] for _ in plans)
        return
    plans = plans * several if len(plans) == 1 else plans
    firsts = range(0, len(plans), several)
    paths = [
        [(seed, before + i, place) for place in range(min(several, len(plans) - first))]
        for i, first in enumerate(firsts)
    ]
    stream = batches.stream(
        (plans[first + path[2]], generator_of(device, *path, "batch"))
        for first, step in zip(firsts, paths, strict=True)
        for path in team.share(step)
    )
    for step in paths:
        yield [Source(stream, None, path, device) for path in step]


def steps_in_epoch(count: int, several: int) -> int:
    """The number of steps in an epoch of `count` batches with `several` in a step."""
    return -(-count // several)


def mean_gradient(
    parameters: Sequence[nn.Parameter], sources: Sequence[Source], team: Team,
    compute: Callable[[Source], tuple[Tensor, Sequence[Tensor]]],
) -> Mean:  # fmt: skip
    """Leave the mean gradient over the batches of a step in the parameters, and return the mean of other numbers.

    Args:
        parameters: the parameters that learn.
        sources: the batches of the step, in all processes.
        team: the processes.
        compute: for a batch, the loss that gradients are of, and other scalars.
    """
    if sources[0].common is not None:
        loss, numbers = compute(sources[0])
        loss.backward()  # type: ignore[no-untyped-call]
        return tuple(map(float, numbers))
    total = PairwiseSum()
    for source in team.share(sources):
        for parameter in parameters:
            parameter.grad = None
        loss, numbers = compute(source)
        loss.backward()  # type: ignore[no-untyped-call]
        total.add(_flat(parameters, numbers))
    return _summed(parameters, total.total(), team, len(sources))


def _summed(parameters: Sequence[nn.Parameter], own: Tensor | None, team: Team, divisor: int) -> Mean:
    """Sum flat vectors over the processes, and put the gradients back in their places."""
    sizes = [parameter.numel() for parameter in parameters]
    if own is None:  # fewer batches than processes, at the end of an epoch
        own = parameters[0].new_zeros(sum(sizes) + NUMBERS)
    vector = team.sum(own) / divisor
    *pieces, numbers = torch.split(vector, [*sizes, len(vector) - sum(sizes)])
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter.grad = piece.view_as(parameter)
    return tuple(numbers.tolist())


NUMBERS = 2  # scalars that every pass returns beside its gradient


def _flat(parameters: Sequence[nn.Parameter], numbers: Sequence[Tensor]) -> Tensor:
    """The gradient of all parameters and other numbers in one vector."""
    grads = [
        torch.zeros_like(parameter).flatten() if parameter.grad is None else parameter.grad.flatten()
        for parameter in parameters
    ]
    return torch.cat([*grads, torch.stack([number.detach().to(grads[0]) for number in numbers])])
