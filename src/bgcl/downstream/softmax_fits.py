"""Softmax regressions on the same draws, one for each fold of a cross-validation, fitted together.

All of them look at the rows at the same time, so that one product with the rows serves all folds. The minimization
begins with the inverse of `q X'X + 1/C`, which is the Hessian if all probabilities have the same variance q.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from bgcl.downstream.descent import minimize_together

Array = npt.NDArray[Any]

BLOCK = 1 << 20  # numbers of the draws that are looked at together: as many as fit into a cache
ROWS = 2  # rows for each column, from which `X'X` is computed
PROBES = 1000  # nodes from which q is computed


class SoftmaxFits:
    """F problems: the f-th one is to find W and c for the nodes that fold f does not hold out.

    The loss is `- sum_n log 1/K sum_k softmax(h_k W + c)_y + |W|^2 / 2C`.

    Args:
        draws: embeddings, `(S, N, d)`, centered.
        y: classes, counted from 0, `(N,)`.
        classes: the number of classes.
        held_out: the nodes that each fold holds out.
        rotated: whether the columns are in principal directions, so that only the diagonal of `X'X` is needed.
    """

    def __init__(
        self, draws: Array, y: Array, classes: int, held_out: Sequence[Array], *, rotated: bool = False
    ) -> None:
        self.draws, self.y, self.classes, self.held_out, self.rotated = draws, y, classes, held_out, rotated
        self.train = np.ones((len(held_out), len(y)), dtype=bool)
        for fold, nodes in enumerate(held_out):
            self.train[fold, nodes] = False
        samples, nodes, width = draws.shape
        self.block = max(BLOCK // (samples * max(width, classes)), 32)

    @cached_property
    def squares(self) -> Array:
        """The diagonal of `X'X`, `(d,)`."""
        return np.asarray(np.square(self.draws[0], dtype=np.float64).sum(0) * float(self.train.mean()))

    @cached_property
    def gram(self) -> Array:
        """`X'X` of the training rows of a problem, about, `(d, d)`."""
        nodes, width = self.draws.shape[1:]
        some = self.draws[0, :: max(nodes // max(ROWS * width, 1), 1)]
        weight = float(self.train.mean()) * nodes / len(some)
        return np.asarray((some.T @ some).astype(np.float64) * weight)

    def one(self, number: int, C: float) -> Callable[[Array], tuple[float, Array]]:
        """The loss of one problem and its gradient, at parameters `(D,)`."""

        def loss(parameters: Array) -> tuple[float, Array]:
            losses, gradients = self.values(np.array([number]), parameters[None], 1 / C)
            return float(losses[0]), gradients[0]

        return loss

    def values(self, which: Array, parameters: Array, penalty: float) -> tuple[Array, Array]:
        """Losses `(A,)` and gradients `(A, D)` of some of the problems at parameters `(A, D)`."""
        losses, gradients = self._values(which, self._by_class(parameters), penalty)
        return losses, self._by_column(gradients)

    def _values(self, which: Array, parameters: Array, penalty: float) -> tuple[Array, Array]:
        """The same for parameters of which each class has one row: no product needs a copy in another order."""
        (samples, nodes, width), A, C = self.draws.shape, len(which), self.classes
        W, c = self._rows(parameters)  # (A C, d), (A, C)
        stacked = W.astype(self.draws.dtype)
        bias = c.astype(self.draws.dtype)[:, :, None, None]
        loss = penalty / 2 * np.square(W).reshape(A, -1).sum(1) + np.log(samples) * self.train[which].sum(1)
        slope, slope_c = np.zeros((A * C, width)), np.zeros((A, C))
        for start in range(0, nodes, self.block):
            rows = self.draws[:, start : start + self.block]  # (S, b, d)
            keep = self.train[which, start : start + self.block]  # (A, b)
            p = np.stack([stacked @ draw.T for draw in rows], 1).reshape(A, C, samples, -1) + bias
            p -= p.max(1, keepdims=True)
            at_label = (slice(None), slice(None), self.y[start : start + self.block], np.arange(rows.shape[1]))
            of_label = p.transpose(0, 2, 1, 3)[at_label]  # (A, S, b)
            np.exp(p, out=p)
            total = p.sum(1)
            of_label -= np.log(total)  # log p(y_n | h_k)
            greatest = of_label.max(1, keepdims=True)
            mixture = greatest + np.log(np.exp(of_label - greatest).sum(1, keepdims=True))  # (A, 1, b)
            loss -= (mixture[:, 0] * keep).sum(1, dtype=np.float64)
            # The weight of a draw in the gradient is its share of the node's likelihood.
            share = np.exp(of_label - mixture) * keep[:, None]
            p *= (share / total)[:, None]
            p.transpose(0, 2, 1, 3)[at_label] -= share
            for s, draw in enumerate(rows):
                slope += np.ascontiguousarray(p[:, :, s]).reshape(A * C, -1) @ draw
            slope_c += p.sum((2, 3), dtype=np.float64)
        slope += penalty * W
        return loss, np.concatenate([slope.reshape(A, -1), slope_c], 1)

    def solve(self, C: float, start: Array, tolerance: float, most: int) -> tuple[Array, int, bool]:
        """The solutions from `start`, both `(F, D)`; the number of steps, and whether they were enough."""
        q = max(self._variance(start), 1e-4)
        divided = self._division(q, C)
        of_bias = q * float(self.train.sum(1).mean())

        def inverse(vectors: Array) -> Array:
            W, c = self._rows(vectors)
            return np.concatenate([divided(W).reshape(len(vectors), -1), c / of_bias], 1)

        found, steps, enough = minimize_together(
            lambda which, points: self._values(which, points, 1 / C), self._by_class(start), inverse,
            tolerance=tolerance, most=most,
        )  # fmt: skip
        return self._by_column(found), steps, enough

    def _division(self, q: float, C: float) -> Callable[[Array], Array]:
        """Multiplies rows `(k, d)` with the inverse of `q X'X + 1/C`."""
        width = self.draws.shape[2]
        if self.rotated or not width:
            diagonal = q * self.squares + 1 / C
            return lambda rows: rows / diagonal
        factor = cho_factor(q * self.gram + np.eye(width) / C, overwrite_a=True, check_finite=False)
        return lambda rows: np.asarray(cho_solve(factor, rows.T, check_finite=False)).T

    def _variance(self, parameters: Array) -> float:
        """The mean of `p (1 - p)` over some nodes, classes and problems."""
        some = self.draws[0, :: max(self.draws.shape[1] // PROBES, 1)]
        W, c = self._split(parameters.astype(self.draws.dtype))
        logits = some @ W + c[:, None]  # (F, n, C)
        p = np.exp(logits - logits.max(2, keepdims=True))
        p /= p.sum(2, keepdims=True)
        return float((p * (1 - p)).mean())

    def _split(self, parameters: Array) -> tuple[Array, Array]:
        """W `(A, d, C)` and c `(A, C)`."""
        return split(parameters, self.draws.shape[2], self.classes)

    def _rows(self, parameters: Array) -> tuple[Array, Array]:
        """W `(A C, d)` and c `(A, C)` of parameters of which each class has one row."""
        width = self.draws.shape[2]  # 0 if no column differs
        cut, rows = width * self.classes, len(parameters) * self.classes
        return np.ascontiguousarray(parameters[:, :cut]).reshape(rows, width), parameters[:, cut:]

    def _by_class(self, parameters: Array) -> Array:
        """Parameters `(A, D)` with W in the order `(C, d)` instead of `(d, C)`."""
        W, c = self._split(parameters)
        return np.concatenate([W.transpose(0, 2, 1).reshape(len(W), -1), c], 1)

    def _by_column(self, parameters: Array) -> Array:
        """The opposite of `_by_class`."""
        W, c = self._rows(parameters)
        W = W.reshape(len(c), self.classes, self.draws.shape[2])
        return np.concatenate([W.transpose(0, 2, 1).reshape(len(c), -1), c], 1)


def split(parameters: Array, width: int, classes: int) -> tuple[Array, Array]:
    """W `(A, d, C)` and c `(A, C)` of several problems."""
    cut = width * classes
    return parameters[:, :cut].reshape(len(parameters), width, classes), parameters[:, cut:]


def held_out_logits(parameters: Array, draws: Array, classes: int, held_out: Sequence[Array]) -> Array:
    """The logits of each node in draws `(S, N, d)` from the fold that holds it out, `(S, N, C)`."""
    W, c = split(parameters.astype(draws.dtype), draws.shape[2], classes)
    side_by_side = np.ascontiguousarray(W.transpose(1, 0, 2)).reshape(draws.shape[2], len(W) * classes)
    found = np.empty((*draws.shape[:2], classes), dtype=draws.dtype)
    for own, draw in zip(found, draws, strict=True):
        logits = (draw @ side_by_side).reshape(len(draw), len(W), classes)  # to copy rows would take longer
        for fold, nodes in enumerate(held_out):
            own[nodes] = logits[nodes, fold] + c[fold]
    return found
