"""Softmax regressions on the same draws, one for each fold of a cross-validation, fitted together.

All of them look at the rows at the same time, so that one product with the rows serves all folds. The minimization
begins with the diagonal of the Hessian in directions in which it is nearly diagonal, and with the steps that led to the
solution for another C: they show the same curvature, apart from that of the penalty.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.downstream.descent import Step, minimize_together

Array = npt.NDArray[Any]

BLOCK = 1 << 20  # numbers of the draws that are looked at together: as many as fit into a cache
LEAST = 1e-6  # variance of a class that is all but certain
WHOLE, DIRECTIONS = 256, 96  # columns up to which all directions are looked at one by one, and directions of others


class SoftmaxFits:
    """F problems: the f-th one is to find W and c for the nodes that fold f does not hold out.

    The loss is `- sum_n log 1/K sum_k softmax(h_k W + c)_y + |W|^2 / 2C`.

    Args:
        draws: embeddings, `(S, N, d)`, centered.
        y: classes, counted from 0, `(N,)`.
        classes: the number of classes.
        held_out: the nodes that each fold holds out.
    """

    def __init__(self, draws: Array, y: Array, classes: int, held_out: Sequence[Array]) -> None:
        self.draws, self.y, self.classes, self.held_out = draws, y, classes, held_out
        self.train = np.ones((len(held_out), len(y)), dtype=bool)
        for fold, nodes in enumerate(held_out):
            self.train[fold, nodes] = False
        samples, nodes, width = draws.shape
        self.block = max(BLOCK // (samples * max(width, classes)), 32)
        self._steps: list[Sequence[Step]] = [[] for _ in held_out]  # of the solution before, for the next C

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
        W = slice(0, self.draws.shape[2] * self.classes)
        for steps in self._steps:  # what is known of the loss without its penalty
            for step, change in steps:
                change[W] += step[W] / C
        found, count, enough = minimize_together(
            lambda which, points: self._values(which, points, 1 / C), self._by_class(start),
            self._inverse(start.mean(0), C), tolerance=tolerance, most=most, known=self._steps,
            dtype=self.draws.dtype,
        )  # fmt: skip
        for steps in self._steps:
            for step, change in steps:
                change[W] -= step[W] / C
        return self._by_column(found), count, enough

    def _inverse(self, parameters: Array, C: float) -> Callable[[Array], Array]:
        """Multiplies vectors `(A, D)`, in which each class has one row, with a rough inverse of the Hessian.

        The Hessian at parameters `(D,)` is `sum_n S_n (x) x_n x_n' + 1/C`, with `S_n = diag(p_n) - p_n p_n'`. Principal
        directions v are about uncorrelated, and so are the eigenvectors u of `sum_n S_n`. So only the diagonal in these
        directions is kept, `sum_n u' S_n u (v' x_n)^2 + 1/C`. In the other directions, the spread of x counts as equal.
        """
        rows, share, (axes, along, rest) = self.draws[0], float(self.train.mean()), self.principal
        W, c = self._split(parameters[None].astype(rows.dtype))
        p = rows @ W[0] + c[0]  # (N, C)
        p -= p.max(1, keepdims=True)
        np.exp(p, out=p)
        p = (p / p.sum(1, keepdims=True)).astype(np.float64)
        total, turn = np.linalg.eigh(np.diag(p.sum(0)) - p.T @ p)
        variance = np.maximum(p @ np.square(turn) - np.square(p @ turn), LEAST)  # u' S_n u, (N, C)
        inside = share * (variance.T.astype(along.dtype) @ along) + max(1 / C, LEAST)  # (C, k)
        outside = share * variance.sum(0)[:, None] * rest + max(1 / C, LEAST)  # (C, 1)
        difference, outside, turn_rows = (
            np.asarray(each, dtype=rows.dtype) for each in (1 / inside - 1 / outside, outside, turn.T)
        )
        # The same number added to all intercepts changes nothing.
        of_bias = np.where(total > LEAST * total[-1], share * variance.sum(0), np.inf)

        def inverse(vectors: Array) -> Array:
            W, c = self._rows(vectors)
            shape = (len(vectors), self.classes, -1)
            turned = turn_rows @ W.astype(rows.dtype).reshape(shape)
            inner = (turned.reshape(W.shape) @ axes).reshape(*shape[:2], axes.shape[1])
            inner *= difference
            turned /= outside
            turned += (inner.reshape(len(W), axes.shape[1]) @ axes.T).reshape(turned.shape)
            W = (turn_rows.T @ turned).reshape(len(vectors), -1).astype(np.float64)
            return np.concatenate([W, c @ turn / of_bias @ turn.T], 1)

        return inverse

    @cached_property
    def principal(self) -> tuple[Array, Array, float]:
        """How the rows of the first draw are spread.

        Returns:
            Principal directions, about, `(d, k)`; the squares of each row along them, `(N, k)`; and the mean square of
            the rows in each direction that is left out.
        """
        rows = self.draws[0]
        width = rows.shape[1]
        axes = rows[:0].T if not width else _principal(rows)
        along = np.square(rows @ axes)
        left = np.einsum("nd,nd->", rows, rows) - along.sum(dtype=np.float64)
        return axes, along, max(float(left), 0.0) / (len(rows) * max(width - axes.shape[1], 1))

    def take_over(self, other: "SoftmaxFits") -> None:
        """Begin with what is known of the first problem of another object, with the same first draw and classes."""
        self.principal = other.principal
        more = float(self.train.mean() / other.train.mean())  # nodes
        self._steps = [[(step, more * change) for step, change in other._steps[0]] for _ in self._steps]

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


def _principal(rows: Array) -> Array:
    """Principal directions of rows `(N, d)`: all of at most `WHOLE`, or about `DIRECTIONS` of great spread."""
    if rows.shape[1] <= WHOLE:
        return np.asarray(np.linalg.eigh(rows.T @ rows)[1])
    axes = np.random.default_rng(0).standard_normal((rows.shape[1], DIRECTIONS), dtype=np.float32).astype(rows.dtype)
    for _ in range(2):  # subspace iteration
        axes = np.linalg.qr(rows.T @ (rows @ axes))[0]
    within = rows @ axes
    return np.asarray(axes @ np.linalg.eigh(within.T @ within)[1])


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
