"""The objective of several encoders side by side: each has an objective of its own, and none knows of the others."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import tee

import torch
from torch import Tensor, nn

from bgcl.model.encoders.base import Encoder
from bgcl.model.encoders.members import Members
from bgcl.model.objectives.base import Objective, Outcome, Step


class OfMembers(Objective):
    """The mean of the objectives of the members, `L = 1/M sum_m L_m`. So a member learns what it would learn alone.

    Args:
        objectives: the objective of each member.
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        super().__init__()
        self.objectives = nn.ModuleList(objectives)
        self.first = objectives[0]
        self.takes_positives = self.first.takes_positives

    def reset_parameters(self, generator: torch.Generator) -> None:
        for objective in self.objectives:
            objective.reset_parameters(generator)  # type: ignore[operator]

    def start(self, encoder: Encoder) -> None:
        for objective, member in self._pairs(encoder):
            objective.start(member)

    def forward(self, step: Step) -> Outcome:
        """The loss of one step. All members see the same masks."""
        found = [objective(replace(step, encoder=member)) for objective, member in self._pairs(step.encoder)]
        return Outcome(
            torch.stack([each.loss for each in found]).mean(),
            torch.stack([each.shared for each in found]).mean(),
            torch.cat([each.embeddings for each in found], 1),
            found[0].nodes,
        )

    def adversary(self, outcome: Outcome, least: float) -> Tensor:
        return self.first.adversary(outcome, least)

    def log_likelihood(self, o: Tensor, t: Tensor) -> Tensor:
        """The mean over the members, `(N,)`."""
        each = zip(self.objectives, self._split(o), self._split(t), strict=True)
        return torch.stack([objective.log_likelihood(x, y) for objective, x, y in each]).mean(0)  # type: ignore[operator]

    def log_likelihoods(self, anchor: Tensor, others: Tensor, positives: Iterable[Tensor]) -> Iterator[Tensor]:
        """The mean over the members of each of several positives, `(N,)` each."""

        def own(positives: Iterable[Tensor], member: int) -> Iterator[Tensor]:
            return (self._split(positive)[member] for positive in positives)

        copies = tee(positives, len(self.objectives))
        every = zip(self.objectives, self._split(anchor), self._split(others), strict=True)
        found = [
            objective.log_likelihoods(x, y, own(copies[i], i))  # type: ignore[operator]
            for i, (objective, x, y) in enumerate(every)
        ]
        for likelihoods in zip(*found, strict=True):
            yield torch.stack(likelihoods).mean(0)

    def after_step(self, encoder: Encoder) -> None:
        for objective, member in self._pairs(encoder):
            objective.after_step(member)

    def _split(self, vectors: Tensor) -> tuple[Tensor, ...]:
        """The part of each member, `(N, d)` each, of vectors `(N, M d)`."""
        return vectors.chunk(len(self.objectives), 1)

    def _pairs(self, encoder: nn.Module) -> Iterator[tuple[Objective, Encoder]]:
        assert isinstance(encoder, Members)
        return zip(self.objectives, encoder.encoders, strict=True)  # type: ignore[arg-type]
