"""One head for each label: whether a node has it or not, calibrated like every other head."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.head_stack import StackedPrediction
from bgcl.downstream.label_set_results import SetUncertainty
from bgcl.downstream.label_spreading import LabelSpreading, fit_head
from bgcl.measures.uncertainty import Uncertainty, entropy
from bgcl.progress import counted, stage

Array = npt.NDArray[Any]

FEWEST = 2  # training nodes with a label, and without it, that its head needs to be cross-validated


@dataclass(frozen=True)
class Job:
    """Which rows train the heads of all labels, and which nodes these predict.

    Attributes:
        train: numbers of rows, `(n,)`.
        predicted: numbers of nodes, `(m,)`.
    """

    train: Array
    predicted: Array


class LabelSetHeads:
    """The heads of all labels for some jobs.

    A label that fewer than two training nodes have, or lack, has the same probability everywhere: its frequency, with
    one more node that has it and one that has not.

    Args:
        make: a function that makes a head.
        draws: embeddings of the rows that train, `(S, R, d)`.
        label: which labels the rows have, `(R, L)`.
        node: the node of each row, `(R,)`; -1 if it is no node of the graph.
        jobs: the jobs.
        spreading: spreads the labels of training nodes, which the heads then use too.
    """

    def __init__(
        self, make: Callable[[], MixtureClassifier], draws: Array, label: Array, node: Array, jobs: Sequence[Job],
        spreading: LabelSpreading | None = None,
    ) -> None:  # fmt: skip
        self.jobs, self.labels = jobs, label.shape[1]
        self.constant = np.zeros((len(jobs), self.labels))
        self.places: list[tuple[int, int]] = []  # job and label of each head
        heads: list[MixtureClassifier] = []
        beside: list[Array] = []
        for number, job in enumerate(jobs):
            y = label[job.train]
            count = y.sum(0)
            self.constant[number] = (count + 1) / (len(y) + 2)
            learned = np.flatnonzero(np.minimum(count, len(y) - count) >= FEWEST).tolist()
            rows = draws[:, job.train]

            def fit(one: int, rows: Array = rows, y: Array = y, job: Job = job) -> tuple[MixtureClassifier, Array]:
                return fit_head(make(), rows, y[:, one], node[job.train], job.predicted, spreading)

            what = f"fitting {counted(len(learned), 'head')}, {number + 1} of {counted(len(jobs), 'time')}"
            with stage(what), threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
                for one, (head, logits) in zip(learned, pool.map(fit, learned), strict=True):
                    self.places.append((number, one))
                    heads.append(head)
                    beside.append(logits)
        predicted = [jobs[number].predicted for number, _ in self.places]
        self.stack = StackedPrediction(heads, predicted, beside) if heads else None

    def predict(self, draws: Iterable[Array]) -> list[SetUncertainty]:
        """The labels of the nodes of each job, from draws of all nodes, `(N, d)` each."""
        for draw in draws:
            if self.stack is not None:
                self.stack.add(draw[None])
        by_place = dict(zip(self.places, self.stack.result() if self.stack is not None else [], strict=True))
        return [
            self._joined(number, {one: found for (job, one), found in by_place.items() if job == number})
            for number in range(len(self.jobs))
        ]

    def _joined(self, number: int, heads: dict[int, Uncertainty]) -> SetUncertainty:
        nodes = len(self.jobs[number].predicted)
        probability = np.tile(self.constant[number], (nodes, 1))
        for one, found in heads.items():
            probability[:, one] = found.probability[:, 1]
        fixed = np.delete(self.constant[number], list(heads))
        same = float(entropy(np.stack([fixed, 1 - fixed]), 0).sum())  # of the labels without a head
        return SetUncertainty(
            probability,
            sum((found.predictive_entropy for found in heads.values()), np.full(nodes, same)),
            sum((found.expected_entropy for found in heads.values()), np.full(nodes, same)),
        )
