"""Minimize several functions together, so that one pass over the data serves all of them.

Each function is minimized by L-BFGS (Nocedal, 1980) with a rough inverse of its Hessian to begin with, which makes a
step of length 1 nearly always right. The search along a direction only halves steps that do not go down (Armijo, 1966).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Values = Callable[
    [Array, Array], tuple[Array, Array]
]  # functions (A,) and points (A, D): values (A,), gradients (A, D)

PAIRS = 10  # steps and changes of the gradient that are remembered
FLAT = 1e-6  # the greatest entry of a gradient at a minimum
SUFFICIENT = 1e-4  # share of the expected decrease that a step has to reach
TRIES = 30


def minimize_together(
    values: Values, start: Array, inverse: Callable[[Array], Array], *, tolerance: float, most: int
) -> tuple[Array, int, bool]:
    """The minimum of each of F functions.

    Args:
        values: the values and gradients of some of the functions.
        start: where each function begins, `(F, D)`.
        inverse: multiplies vectors `(A, D)` with a rough inverse of the Hessian.
        tolerance: a function ends when its value is about this share of it above the minimum.
        most: the greatest number of steps.

    Returns:
        The points `(F, D)`, the greatest number of steps of a function, and whether all functions ended.
    """
    searches = [_Search(point) for point in start]
    active = np.arange(len(searches))
    while len(active):
        found, gradients = values(active, np.stack([searches[i].trial for i in active]))
        moved = [
            searches[i] for i, value, gradient in zip(active, found, gradients, strict=True)
            if searches[i].moved(float(value), gradient)
        ]  # fmt: skip
        if moved:
            pulled = np.stack([search.pulled() for search in moved])
            changes = np.stack([search.pairs[-1][1] if search.pairs else search.gradient for search in moved])
            directions, scales = np.split(inverse(np.concatenate([pulled, changes])), 2)
            for search, direction, scale in zip(moved, directions, scales, strict=True):
                search.aim(direction, scale, tolerance, most)
        active = np.array([i for i in active if not searches[i].ended], dtype=np.int64)
    steps = max(search.steps for search in searches)
    return np.stack([search.point for search in searches]), steps, all(search.found for search in searches)


class _Search:
    """Where the minimization of one function is."""

    def __init__(self, start: Array) -> None:
        self.point = self.trial = np.asarray(start, dtype=np.float64)
        self.value, self.gradient, self.direction = np.inf, np.zeros_like(self.point), np.zeros_like(self.point)
        self.slope, self.length, self.tries, self.steps = 0.0, 1.0, 0, -1
        self.pairs: list[tuple[Array, Array, float]] = []  # step, change of the gradient, their product
        self.ended = self.found = False

    def moved(self, value: float, gradient: Array) -> bool:
        """Take over the trial point if it is low enough. Otherwise, try a shorter step."""
        if self.steps >= 0 and not value <= self.value + SUFFICIENT * self.length * self.slope:
            self.tries += 1
            if self.tries == TRIES:  # rounding leaves nothing to gain
                self.ended = self.found = True
            self.length /= 2
            self.trial = self.point + self.length * self.direction
            return False
        if self.steps >= 0:
            step, change = self.trial - self.point, gradient - self.gradient
            product = float(step @ change)
            if product > 1e-12 * float(change @ change):
                self.pairs = [*self.pairs[1 - PAIRS :], (step, change, product)]
        self.point, self.value, self.gradient, self.steps = self.trial, value, gradient, self.steps + 1
        return True

    def pulled(self) -> Array:
        """The first half of the two-loop recursion: the gradient without what the remembered steps say of it."""
        left, self._shares = self.gradient.copy(), []
        for step, change, product in reversed(self.pairs):
            share = float(step @ left) / product
            left -= share * change
            self._shares.append(share)
        return left

    def aim(self, direction: Array, scaled_change: Array, tolerance: float, most: int) -> None:
        """The second half, from `H pulled` and `H` times the last change of the gradient; then the next trial point."""
        if self.pairs:
            _, change, product = self.pairs[-1]
            direction = direction * (product / max(float(change @ scaled_change), 1e-300))
        for (step, change, product), share in zip(self.pairs, reversed(self._shares), strict=True):
            direction = direction + step * (share - float(change @ direction) / product)
        self.direction, self.slope = -direction, -float(self.gradient @ direction)
        low = -self.slope / 2 <= tolerance * abs(self.value)  # the decrease of a Newton step
        self.found = low or float(np.abs(self.gradient).max()) <= FLAT
        self.ended = self.found or self.steps >= most
        self.length, self.tries, self.trial = 1.0, 0, self.point + self.direction
