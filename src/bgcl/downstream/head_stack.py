"""Several classifiers that predict together, in one pass over the draws."""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.downstream.classifier import MixtureClassifier, split_parameters
from bgcl.downstream.node_draws import as_draws
from bgcl.errors import BGCLError
from bgcl.measures.uncertainty import Accumulator, Uncertainty

Array = npt.NDArray[Any]


class HeadStack:
    """Several classifiers with the same classes. One matrix product predicts with all of them."""

    def __init__(self, heads: Sequence[MixtureClassifier]) -> None:
        if any(not np.array_equal(head.classes_, heads[0].classes_) for head in heads):
            raise BGCLError("The heads have different classes. Fit all of them to the same classes.")
        self.heads, self.classes = heads, len(heads[0].classes_)
        split = [split_parameters(head.coefficients_, head.n_features_in_, self.classes) for head in heads]
        self.W = np.stack([W for W, _ in split], axis=2).reshape(-1, self.classes * len(heads)).T  # (C heads, d)
        self.c = np.stack([c for _, c in split], axis=1).reshape(-1, 1)

    def predict_proba(self, draws: object, nodes: Sequence[Array], beside: Sequence[Array] | None = None) -> Array:
        """Class probabilities of each head's mixture for its own nodes.

        Args:
            draws: embeddings of all nodes, `(S, N, d)`.
            nodes: the nodes that each head predicts.
            beside: for each head, logits of these nodes beside the draws, `(B, n, C)`.

        Returns:
            The probabilities, classes first, the nodes of all heads side by side: `(C, n_1 + n_2 + ...)`.
        """
        X = as_draws(draws, self.heads[0].normalize, self.heads[0])
        W, c = np.ascontiguousarray(self.W, dtype=X.dtype), self.c.astype(X.dtype)
        ends = np.cumsum([0, *map(len, nodes)])
        mean = np.zeros((self.classes, ends[-1]), dtype=X.dtype)
        given = [np.empty((0, 0, self.classes))] * len(nodes) if beside is None else beside
        added = [head.beside_logits(own).T.astype(X.dtype) for head, own in zip(self.heads, given, strict=True)]
        for draw in X:
            of_all = (W @ draw.T + c).reshape(self.classes, len(self.heads), -1)
            p = np.empty_like(mean)
            for i, (head, own) in enumerate(zip(self.heads, nodes, strict=True)):
                logits = of_all[:, i, own] + added[i]
                if hasattr(head, "kernel_"):
                    logits += head.kernel_.logits_of(draw, own).T
                p[:, ends[i] : ends[i + 1]] = head.stretch_(logits, axis=0) if hasattr(head, "stretch_") else logits
            p -= p.max(0)
            np.exp(p, out=p)
            p /= p.sum(0) * len(X)
            mean += p
        return mean


class StackedPrediction:
    """Predict with several heads while draws pass by.

    Args:
        heads: fitted heads with the same classes.
        nodes: the nodes that each head predicts.
        beside: for each head, logits of these nodes beside the draws, `(B, n, C)`.
    """

    def __init__(
        self, heads: Sequence[MixtureClassifier], nodes: Sequence[Array], beside: Sequence[Array] | None = None
    ) -> None:
        self.stack, self.nodes, self.beside = HeadStack(heads), nodes, beside
        self.ends = np.cumsum([0, *map(len, nodes)]).tolist()
        self.accumulator = Accumulator(len(heads[0].classes_), self.ends[-1])

    def add(self, draws: Array) -> None:
        """Predict with the mixture over a set of draws of all nodes, `(S, N, d)`."""
        self.accumulator.add(self.stack.predict_proba(draws, self.nodes, self.beside))

    def result(self) -> list[Uncertainty]:
        """Class probabilities and measures of uncertainty of each head for its nodes."""
        found = self.accumulator.result()
        return [found.of(slice(start, stop)) for start, stop in pairwise(self.ends)]


def predict_all(
    heads: Sequence[MixtureClassifier], draws: Iterator[Array], nodes: Sequence[Array], set_size: int = 1,
    beside: Sequence[Array] | None = None,
) -> list[Uncertainty]:  # fmt: skip
    """Predict with several heads in one pass over the draws.

    Args:
        heads: fitted heads with the same classes.
        draws: embeddings of all nodes, `(N, d)` each.
        nodes: the nodes that each head predicts.
        set_size: how many draws make one prediction.
        beside: for each head, logits of its nodes beside the draws, `(B, n, C)`.

    Returns:
        Class probabilities and measures of uncertainty of each head for its nodes.
    """
    prediction = StackedPrediction(heads, nodes, beside)
    for group in _sets(draws, set_size):
        prediction.add(group)
    return prediction.result()


def _sets(draws: Iterator[Array], size: int) -> Iterator[Array]:
    """Complete sets of `size` draws, `(size, N, d)`. The last draws are dropped if they do not fill a set."""
    while len(group := list(islice(draws, size))) == size:
        yield group[0][None] if size == 1 else np.stack(group)
