"""Minimize several functions together, so that one pass over the data serves all of them.

Each function is minimized by L-BFGS (Nocedal, 1980) with a rough inverse of its Hessian to begin with, which makes a
step of length 1 nearly always right. The search along a direction only halves steps that do not go down (Armijo, 1966).
Steps of an earlier minimization of nearly the same functions are as good as own ones, so they may be handed on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Values = Callable[
    [Array, Array], tuple[Array, Array]
]  # functions (A,) and points (A, D): values (A,), gradients (A, D)

Step = tuple[Array, Array]  # a step, and the change of the gradient along it, (D,) each

PAIRS = 15  # steps and changes of the gradient that are remembered
FLAT = 1e-6  # the greatest entry of a gradient at a minimum
SUFFICIENT = 1e-4  # share of the expected decrease that a step has to reach
TRIES = 30
SMALL = 1e-12  # of a step and its change, whose product says nothing


def minimize_together(
    values: Values, start: Array, inverse: Callable[[Array], Array], *, tolerance: float, most: int,
    known: list[Sequence[Step]] | None = None,
) -> tuple[Array, int, bool]:  # fmt: skip
    """The minimum of each of F functions.

    Args:
        values: the values and gradients of some of the functions.
        start: where each function begins, `(F, D)`.
        inverse: multiplies vectors `(A, D)` with a rough inverse of the Hessian.
        tolerance: a function ends when its value is about this share of it above the minimum.
        most: the greatest number of steps.
        known: steps of each function that are known already. At the end it has those that are known then.

    Returns:
        The points `(F, D)`, the greatest number of steps of a function, and whether all functions ended.
    """
    searches = [_Search(point) for point in start]
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
        known[:] = [[(pair.step, pair.change) for pair in search.pairs] for search in searches]
    return np.stack([search.point for search in searches]), steps, all(search.found for search in searches)


@dataclass(frozen=True)
class _Pair:
    """A step that is remembered."""

    step: Array
    change: Array  # of the gradient
    turned: Array  # H times the change
    product: float  # of the step and the change


class _Search:
    """Where the minimization of one function is."""

    def __init__(self, start: Array) -> None:
        self.point = self.trial = np.asarray(start, dtype=np.float64)
        self.value, self.gradient, self.direction = np.inf, np.zeros_like(self.point), np.zeros_like(self.point)
        self.step, self.change = self.direction, self.direction  # the last step, and the change of the gradient
        self.turned = np.zeros_like(self.point)  # H times the gradient, with the rough inverse H
        self.slope, self.length, self.tries, self.steps = 0.0, 1.0, 0, -1
        self.pairs: list[_Pair] = []
        self.ended = self.found = False

    def remember(self, steps: Sequence[Step], inverse: Callable[[Array], Array]) -> None:
        """Take over steps along which the gradient is known to grow."""
        growing = [(step, change, float(step @ change)) for step, change in steps]
        growing = [each for each in growing if each[2] > SMALL * float(each[1] @ each[1])]
        if growing:
            turned = inverse(np.stack([change for _, change, _ in growing]))
            self.pairs = [_Pair(*each[:2], turn, each[2]) for each, turn in zip(growing, turned, strict=True)]

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
        """The next trial point, by the two-loop recursion, from `H` times the gradient.

        H is linear, so what it makes of a change of the gradient, and of the gradient without what the remembered
        steps say of it, is known without another product.
        """
        product = float(self.step @ self.change)
        if self.steps and product > SMALL * float(self.change @ self.change):
            pair = _Pair(self.step, self.change, turned - self.turned, product)
            self.pairs = [*self.pairs[1 - PAIRS :], pair]
        self.turned, left, direction, shares = turned, self.gradient.copy(), turned.copy(), []
        for pair in reversed(self.pairs):
            share = float(pair.step @ left) / pair.product
            left -= share * pair.change
            direction -= share * pair.turned
            shares.append(share)
        if self.pairs:
            last = self.pairs[-1]
            direction *= last.product / max(float(last.change @ last.turned), 1e-300)
        for pair, share in zip(self.pairs, reversed(shares), strict=True):
            direction += pair.step * (share - float(pair.change @ direction) / pair.product)
        self.direction, self.slope = -direction, -float(self.gradient @ direction)
        low = -self.slope / 2 <= tolerance * abs(self.value)  # the decrease of a Newton step
        self.found = low or float(np.abs(self.gradient).max()) <= FLAT
        self.ended = self.found or self.steps >= most
        self.length, self.tries, self.trial = 1.0, 0, self.point + self.direction
