"""Minimize several functions together, so that one pass over the data serves all of them.

Each function is minimized by L-BFGS (Nocedal, 1980) with a rough inverse of its Hessian to begin with, which makes a
step of length 1 nearly always right. The search along a direction only halves steps that do not go down (Armijo, 1966).
Steps of an earlier minimization of nearly the same functions are as good as own ones, so they may be handed on.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

Array = npt.NDArray[Any]
Values = Callable[
    [Array, Array], tuple[Array, Array]
]  # functions (A,) and points (A, D): values (A,), gradients (A, D)

Step = tuple[Array, Array]  # a step, and the change of the gradient along it, (D,) each

PAIRS = 30  # steps and changes of the gradient that are remembered
FLAT = 1e-6  # the greatest entry of a gradient at a minimum
SUFFICIENT = 1e-4  # share of the expected decrease that a step has to reach
TRIES = 30
SMALL = 1e-12  # of a step and its change, whose product says nothing


def minimize_together(
    values: Values, start: Array, inverse: Callable[[Array], Array], *, tolerance: float, most: int,
    known: list[Sequence[Step]] | None = None, dtype: npt.DTypeLike = np.float64,
) -> tuple[Array, int, bool]:  # fmt: skip
    """The minimum of each of F functions.

    Args:
        values: the values and gradients of some of the functions.
        start: where each function begins, `(F, D)`.
        inverse: multiplies vectors `(A, D)` with a rough inverse of the Hessian.
        tolerance: a function ends when its value is about this share of it above the minimum.
        most: the greatest number of steps.
        known: steps of each function that are known already. At the end it has those that are known then.
        dtype: the type of numbers in which steps are remembered.

    Returns:
        The points `(F, D)`, the greatest number of steps of a function, and whether all functions ended.
    """
    searches = [_Search(point, dtype) for point in start]
    for search, steps_before in zip(searches, known or [], strict=False):
        search.remember(steps_before, inverse)
    active = np.arange(len(searches))
    while len(active):
        found, gradients = values(active, np.stack([searches[i].trial for i in active]))
        moved = [
            searches[i] for i, value, gradient in zip(active, found, gradients, strict=True)
            if searches[i].moved(float(value), gradient)
        ]  # fmt: skip
        if moved:
            for search, turned in zip(moved, inverse(np.stack([search.gradient for search in moved])), strict=True):
                search.aim(turned, tolerance, most)
        active = np.array([i for i in active if not searches[i].ended], dtype=np.int64)
    steps = max(search.steps for search in searches)
    if known is not None:
        known[:] = [list(zip(*search.pairs.rows[:2], strict=True)) for search in searches]
    return np.stack([search.point for search in searches]), steps, all(search.found for search in searches)


class _Pairs:
    """The last steps of a search, oldest first, and what they say of the Hessian.

    In rows: the steps S, the changes of the gradient Y along them, and `Y H` with the rough inverse H.
    """

    def __init__(self, width: int, dtype: npt.DTypeLike) -> None:
        self.room = np.zeros((3, 2 * PAIRS, width), dtype=dtype)  # so rows seldom have to be moved
        self.first = self.end = 0
        self.SY, self.YHY = np.empty((0, 0)), np.empty((0, 0))  # S Y', Y H Y'

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """S, Y and Y H, `(m, D)` each."""
        S, Y, turned = self.room[:, self.first : self.end]
        return S, Y, turned

    def add(self, step: Array, change: Array, turned: Array) -> None:
        """Add a step, and forget the oldest one if there are too many. Its length says nothing, and becomes 1."""
        length = float(np.sqrt(step @ step))
        if self.end == self.room.shape[1]:
            self.room[:, :PAIRS] = self.room[:, self.first :]
            self.first, self.end = 0, PAIRS
        for place, row in zip(self.room[:, self.end], (step, change, turned), strict=True):
            place[:] = row / length
        self.end += 1
        S, Y, turned_rows = self.rows
        if not S[-1] @ Y[-1] > 0:  # in the type of these rows, rounding leaves nothing of the growth
            self.end -= 1
            return
        if len(S) > PAIRS:
            self.first, S, Y, turned_rows = self.first + 1, S[1:], Y[1:], turned_rows[1:]
            self.SY, self.YHY = self.SY[1:, 1:], self.YHY[1:, 1:]
        self.SY = _bordered(self.SY, S @ Y[-1], Y[:-1] @ S[-1])
        right = Y @ turned_rows[-1]
        self.YHY = _bordered(self.YHY, right, right[:-1])

    def direction(self, gradient: Array, turned: Array) -> Array:
        """The inverse Hessian of L-BFGS times the gradient, from H times it (Byrd, Nocedal and Schnabel, 1994)."""
        S, _, turned_rows = self.rows
        if not len(S):
            return turned.copy()
        own = gradient.astype(S.dtype)
        scale = self.SY[-1, -1] / max(self.YHY[-1, -1], 1e-300)
        upper = np.triu(self.SY)
        left = solve_triangular(upper, (S @ own).astype(np.float64), check_finite=False)
        rest = scale * (turned_rows @ own - self.YHY @ left)
        right = solve_triangular(upper, np.diag(upper) * left - rest, trans=1, check_finite=False)
        shares = left.astype(own.dtype) @ turned_rows, right.astype(own.dtype) @ S
        return np.asarray(scale * (turned - shares[0]) + shares[1])


def _bordered(matrix: Array, column: Array, row: Array) -> Array:
    """A matrix with one more column, whose last number is in the corner, and one more row."""
    found = np.empty((len(column), len(column)))
    found[:-1, :-1], found[:, -1], found[-1, :-1] = matrix, column, row
    return found


class _Search:
    """Where the minimization of one function is."""

    def __init__(self, start: Array, dtype: npt.DTypeLike) -> None:
        self.point = self.trial = np.asarray(start, dtype=np.float64)
        self.value, self.gradient, self.direction = np.inf, np.zeros_like(self.point), np.zeros_like(self.point)
        self.step, self.change = self.direction, self.direction  # the last step, and the change of the gradient
        self.turned = np.zeros_like(self.point)  # H times the gradient, with the rough inverse H
        self.pairs = _Pairs(len(self.point), dtype)
        self.slope, self.length, self.tries, self.steps = 0.0, 1.0, 0, -1
        self.ended = self.found = False

    def remember(self, steps: Sequence[Step], inverse: Callable[[Array], Array]) -> None:
        """Take over steps along which the gradient is known to grow."""
        growing = [(step, change, float(step @ change)) for step, change in steps]
        growing = [each for each in growing if each[2] > SMALL * float(each[1] @ each[1])]
        if growing:
            turned = inverse(np.stack([change for _, change, _ in growing]))
            for (step, change, _), turn in zip(growing, turned, strict=True):
                self.pairs.add(step, change, turn)

    def moved(self, value: float, gradient: Array) -> bool:
        """Take over the trial point if it is low enough. Otherwise, try a shorter step."""
        if self.steps >= 0 and not value <= self.value + SUFFICIENT * self.length * self.slope:
            self.tries += 1
            if self.tries == TRIES:  # rounding leaves nothing to gain
                self.ended = self.found = True
            self.length /= 2
            self.trial = self.point + self.length * self.direction
            return False
        self.step, self.change = self.trial - self.point, gradient - self.gradient
        self.point, self.value, self.gradient, self.steps = self.trial, value, gradient, self.steps + 1
        return True

    def aim(self, turned: Array, tolerance: float, most: int) -> None:
        """The next trial point, from `H` times the gradient.

        H is linear, so what it makes of a change of the gradient is known without another product.
        """
        product = float(self.step @ self.change)
        if self.steps and product > SMALL * float(self.change @ self.change):
            self.pairs.add(self.step, self.change, turned - self.turned)
        self.turned, direction = turned, self.pairs.direction(self.gradient, turned)
        if not 0 < float(self.gradient @ direction) < np.inf:  # rounding has spoiled what is remembered
            self.pairs = _Pairs(len(self.point), self.pairs.room.dtype)
            direction = turned
        self.direction, self.slope = -direction, -float(self.gradient @ direction)
        low = -self.slope / 2 <= tolerance * abs(self.value)  # the decrease of a Newton step
        self.found = low or float(np.abs(self.gradient).max()) <= FLAT
        self.ended = self.found or self.steps >= most
        self.length, self.tries, self.trial = 1.0, 0, self.point + self.direction
