"""Classify the nodes of a packed graph, while the embedding passes by in slabs of columns.

The head is `MixtureClassifier` without kernels. Its logits are sums over columns, `sum_j h_j W_j + c`, so each slab
adds its share, and no draw of all nodes is in memory. A head that is not linear, and labels of near nodes, would need
whole rows.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bgcl.augmentation.noise import CountedNoise
from bgcl.augmentation.views import VIEWS
from bgcl.downstream.classifier import MixtureClassifier, split_parameters
from bgcl.downstream.small_classes import with_pairs
from bgcl.downstream.splits import Split
from bgcl.errors import BGCLError
from bgcl.measures.uncertainty import Accumulator, Uncertainty
from bgcl.packed.embedding import PackedEmbedder
from bgcl.processes.team import Team
from bgcl.progress import counted, stage, with_progress

if TYPE_CHECKING:
    from bgcl.estimator import BGCL
    from bgcl.packed.ready import PackedReady

Array = npt.NDArray[Any]
log = logging.getLogger("bgcl")

MOST_TRAINING = 10_000  # nodes that a head is fitted to; more take long and change little
_CHUNK = 1 << 15  # nodes whose probabilities are computed at a time
Draw = Callable[[Callable[[int, Tensor], None]], None]  # hands on the slabs of one draw


class RowsOfDraws:
    """Collects the rows of some nodes from the slabs of a draw.

    Args:
        nodes: the nodes, `(n,)`.
        width: the width of the embedding.
    """

    def __init__(self, nodes: Array, width: int) -> None:
        self.nodes = torch.from_numpy(nodes)
        self.rows = torch.empty(len(nodes), width)

    def __call__(self, first: int, slab: Tensor) -> None:
        self.rows[:, first : first + slab.shape[1]] = slab.index_select(0, self.nodes)


class LinearHeads:
    """Predicts with fitted heads while slabs pass by.

    Args:
        heads: fitted heads with the same classes, without kernels.
        nodes: the nodes that each head predicts.
    """

    def __init__(self, heads: Sequence[MixtureClassifier], nodes: Sequence[Array]) -> None:
        self.heads, self.nodes = heads, [torch.from_numpy(own) for own in nodes]
        parameters = [split_parameters(head.coefficients_, head.n_features_in_, len(head.classes_)) for head in heads]
        self.W = [torch.from_numpy(np.asarray(W, np.float32)) for W, _ in parameters]
        self.c = [torch.from_numpy(np.asarray(c, np.float32)) for _, c in parameters]
        classes = len(heads[0].classes_)
        self.squares = torch.empty(0)  # (N,), the squared length of each row so far
        self.logits = [torch.empty(len(own), classes) for own in nodes]
        self.found = [[Accumulator(classes, len(part)) for part in _chunks(own)] for own in nodes]

    def start(self) -> None:
        """Begin a draw."""
        self.squares = torch.zeros(1)
        for logits in self.logits:
            logits.zero_()

    def __call__(self, first: int, slab: Tensor) -> None:
        self.squares = self.squares + torch.linalg.vector_norm(slab, dim=1).square_()
        for logits, W, own in zip(self.logits, self.W, self.nodes, strict=True):
            some = W[first : first + slab.shape[1]]
            for part, chunk in zip(_chunks(own), _chunks(logits), strict=True):
                chunk.addmm_(slab.index_select(0, part), some)

    def end(self) -> None:
        """End a draw: its probabilities count."""
        length = self.squares.sqrt_().clamp_(min=1e-12)  # a head scales rows of the whole embedding to length one
        for i, (head, logits, accumulators) in enumerate(zip(self.heads, self.logits, self.found, strict=True)):
            for own, chunk, accumulator in zip(_chunks(self.nodes[i]), _chunks(logits), accumulators, strict=True):
                chunk.div_(length[own, None]).add_(self.c[i])
                stretched = head.stretch_(chunk.numpy()) if hasattr(head, "stretch_") else chunk.numpy()
                accumulator.add(torch.softmax(torch.from_numpy(stretched), 1).double().numpy().T)

    def add_up(self, team: Team) -> None:
        """Add up what the draws of all processes predict."""
        for accumulator in (each for own in self.found for each in own):
            accumulator.count = int(team.sum(torch.tensor(accumulator.count)))
            for sums in (accumulator.total, accumulator.votes, accumulator.entropies):
                team.sum(torch.from_numpy(sums))  # in place

    def result(self) -> list[Uncertainty]:
        """Class probabilities and measures of uncertainty of each head for its nodes."""
        return [joined([accumulator.result() for accumulator in own]) for own in self.found]


def joined(some: Sequence[Uncertainty]) -> Uncertainty:
    """The predictions of several groups of nodes as those of one."""
    fields = vars(some[0]) if some else {}
    return Uncertainty(**{name: np.concatenate([getattr(one, name) for one in some]) for name in fields})


def _chunks(values: Any) -> list[Any]:
    return [values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK)]


def draws_of(model: "BGCL", blocks: "PackedReady", samples: int, seed: int | None) -> list[Draw]:
    """The draws of a model, as functions that hand on the slabs of one draw each."""
    embedder = blocks.embedder_of(model.network_)
    scale, start = model.settings_.draw_scale, model.settings_.seed if seed is None else seed

    def draw(number: int) -> Draw:
        noise = CountedNoise.of_draw(start, number)
        return lambda consume: embedder.draw(consume, VIEWS[number % 2], noise, scale=scale)

    return [draw(number) for number in range(samples)]


def fixed(embedder: PackedEmbedder) -> list[Draw]:
    """The embedding without masks, as the only draw."""
    return [embedder.draw]


def evaluate_in_blocks(
    model: "BGCL", blocks: "PackedReady", labels: Array, chosen: Sequence[Split], *, samples: int, training_draws: int,
    seed: int | None, progress: bool,
) -> list[tuple[MixtureClassifier, Uncertainty]]:  # fmt: skip
    """For each split, a head that the first draws have trained, and what it predicts for the test nodes."""
    draws = draws_of(model, blocks, samples, seed)
    heads, found = classify(
        draws, sum(model.parts_), labels, chosen, training_draws=training_draws, parts=model.parts_, progress=progress,
        team=model.team,
    )  # fmt: skip
    return list(zip(heads, found, strict=True))


def classify(
    draws: Sequence[Draw], width: int, labels: Array, chosen: Sequence[Split], *, training_draws: int,
    parts: Sequence[int], progress: bool = False, team: Team | None = None,
) -> tuple[list[MixtureClassifier], list[Uncertainty]]:  # fmt: skip
    """Fit a head on each split with the first draws, and predict its test nodes with the others.

    Args:
        draws: functions that hand on the slabs of a draw. If there are no others, the first draws predict too.
        width: the width of the embedding.
        labels: class numbers, `(N,)`.
        chosen: the splits.
        training_draws: how many draws train the heads.
        parts: the widths of the parts of the embedding.
        progress: show a progress bar.
        team: processes that share the draws, and have the same result. Default: this one alone.

    Returns:
        The fitted heads, and their predictions for the test nodes.
    """
    team = team or Team()
    training = [with_pairs(fewer(split.train, labels), labels) for split in chosen]
    wanted = np.unique(np.concatenate(training))
    training_draws = min(training_draws, len(draws))
    predicting = team.dealt(draws[training_draws:]) if len(draws) > training_draws else draws
    bar = with_progress(range(training_draws + len(predicting)), training_draws + len(predicting), "draws",
                        show=progress)  # fmt: skip

    def rows_of(numbers: Iterable[int]) -> Iterator[Tensor]:
        for number in numbers:
            rows = RowsOfDraws(wanted, width)
            draws[number](rows)
            yield rows.rows

    first = np.empty((training_draws, len(wanted), width), dtype=np.float32)
    for i, rows in enumerate(team.in_turn(training_draws, rows_of, first.shape[1:])):
        next(bar)
        first[i] = rows.numpy()
    heads = []
    with stage(f"fitting {counted(len(chosen), 'head')}"):
        for train in training:
            head = MixtureClassifier(parts=tuple(parts) if len(parts) > 1 else None, kernel=False)
            heads.append(head.fit(first[:, np.searchsorted(wanted, train)], labels[train]))
    prediction = LinearHeads(heads, [split.test for split in chosen])
    for draw in predicting:
        next(bar)
        prediction.start()
        draw(prediction)
        prediction.end()
    next(bar, None)  # it ends
    if len(draws) > training_draws:
        prediction.add_up(team)
    return heads, prediction.result()


def refuse_whole_rows(other: object, set_size: int, spread_labels: bool | None) -> None:
    """Refuse what needs all columns of a node at once."""
    given = {
        "a head or labels of another graph": other is not None,
        "'set_size'": set_size != 1,
        "'spread_labels'": bool(spread_labels),
    }
    for name, is_given in given.items():
        if is_given:
            raise BGCLError(f"A packed graph is classified in blocks, by a linear head of its own: leave out {name}.")


def fewer(train: Array, labels: Array, most: int = MOST_TRAINING) -> Array:
    """At most `most` training nodes, as many of each class in proportion, but two or more. The first ones are kept."""
    if len(train) <= most:
        return train
    log.warning(
        "A head is fitted to %s of %s training nodes, because the graph is computed in blocks.",
        f"{most:,}", f"{len(train):,}",
    )  # fmt: skip
    kept = []
    for number, count in zip(*np.unique(labels[train], return_counts=True), strict=True):
        kept.append(train[labels[train] == number][: max(round(most * count / len(train)), 2)])
    return np.sort(np.concatenate(kept))
