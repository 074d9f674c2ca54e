"""Several classifiers that predict together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.downstream.classifier import MixtureClassifier, split_parameters
from bgcl.downstream.node_draws import as_draws
from bgcl.errors import BGCLError

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

    def predict_proba(self, draws: object, nodes: Sequence[Array]) -> Array:
        """Class probabilities of each head's mixture for its own nodes.

        Args:
            draws: embeddings of all nodes, `(S, N, d)`.
            nodes: the nodes that each head predicts.

        Returns:
            The probabilities, classes first, the nodes of all heads side by side: `(C, n_1 + n_2 + ...)`.
        """
        X = as_draws(draws, self.heads[0].normalize, self.heads[0])
        W, c = np.ascontiguousarray(self.W, dtype=X.dtype), self.c.astype(X.dtype)
        ends = np.cumsum([0, *map(len, nodes)])
        mean = np.zeros((self.classes, ends[-1]), dtype=X.dtype)
        for draw in X:
            of_all = (W @ draw.T + c).reshape(self.classes, len(self.heads), -1)
            p = np.empty_like(mean)
            for i, (head, own) in enumerate(zip(self.heads, nodes, strict=True)):
                logits = of_all[:, i, own]
                if hasattr(head, "kernel_"):
                    logits += head.kernel_.logits_of(draw, own).T
                p[:, ends[i] : ends[i + 1]] = head.stretch_(logits, axis=0) if hasattr(head, "stretch_") else logits
            p -= p.max(0)
            np.exp(p, out=p)
            p /= p.sum(0) * len(X)
            mean += p
        return mean
