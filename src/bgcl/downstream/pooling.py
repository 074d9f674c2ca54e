r"""Pool heads of several parts of the embedding into one head, and correct its confidence.

A part is a slice of the columns, such as what a node is by itself, or what its neighbors are. Each part has a linear
head with logits `l_p`, and one more head has all columns. Heads of kernels may come in addition, see
`bgcl.downstream.kernel`. The pooled head is `softmax(sum_p w_p l_p)`, a log-linear pool (Genest and Zidek, 1986). The
weights `w_p >= 0` maximize the likelihood of held-out training nodes, so a part that does not help has a weight near 0.

The likelihood of the nodes that chose the weights is too good. So the confidence is corrected on logits of nodes that
chose neither their heads nor their weights (`cross_pooled`), with two numbers and a bias of each class (`Stretch`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from bgcl.downstream.head import log_sum_exp
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]
LEAST, GREATEST = -8.0, 3.0  # bounds of the logarithm of a weight
PRIOR = 3.0  # half of the precision of the power's prior: its standard deviation is 0.41
BIAS_PRIOR = 1.0  # and of the prior of a bias: its standard deviation is 0.71
POWERS = (-0.9, 3.0)  # bounds of the power
TINY = 1e-6


def part_widths(parts: int | Sequence[int] | None, width: int) -> list[int]:
    """The width of each part of embeddings that have `width` columns."""
    if parts is None:
        return [width]
    if isinstance(parts, int | np.integer):
        if width % parts:
            raise BGCLError(f"The embeddings have {width} columns, which cannot be cut into {parts} equal parts.")
        return [width // parts] * parts
    if sum(parts) != width:
        raise BGCLError(f"The parts have {sum(parts)} columns together, but the embeddings have {width}.")
    return list(parts)


def part_slices(widths: Sequence[int]) -> list[slice]:
    """The columns of each part, and last of all parts together."""
    ends = np.cumsum([0, *widths]).tolist()
    return [*(slice(start, stop) for start, stop in pairwise(ends)), slice(0, ends[-1])]


def pool_weights(logits: Array, y: Array) -> Array:
    """The weights that maximize the likelihood of labels under the pool.

    Args:
        logits: logits of held-out nodes by each head, `(heads, S, N, C)`.
        y: their classes, as numbers from 0 on, `(N,)`.

    Returns:
        The weights, `(heads,)`.
    """
    node = np.arange(len(y))
    logits = np.ascontiguousarray(logits)  # otherwise, each product would copy them

    def objective(logs: Array) -> tuple[float, Array]:
        weights = np.exp(logs)
        pooled = np.tensordot(weights.astype(logits.dtype), logits, 1)  # (S, N, C)
        pooled -= pooled.max(2, keepdims=True)
        p = np.exp(pooled)
        total = p.sum(2)
        own = pooled[:, node, y] - np.log(total)  # log p(y_n | h_k), (S, N)
        mixture = log_sum_exp(own)
        share = np.exp(own - mixture)  # of a draw in its node's likelihood
        p *= (share / total)[:, :, None]
        p[:, node, y] -= share
        slope = logits.reshape(len(logits), -1) @ p.ravel()
        return float(-mixture.sum()), (weights * slope).astype(np.float64)

    start = np.full(len(logits), -np.log(len(logits)))
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=[(LEAST, GREATEST)] * len(start))
    return np.asarray(np.exp(found.x))


def cross_pooled(logits: Array, y: Array, folds: Sequence[tuple[Array, Array]]) -> Array:
    """Logits of the pool for held-out nodes, each with weights that the nodes of other folds chose, `(S, N, C)`."""
    found = np.empty(logits.shape[1:], dtype=logits.dtype)
    for others, held_out in folds:
        weights = pool_weights(logits[:, :, others], y[others]).astype(logits.dtype)
        found[:, held_out] = np.tensordot(weights, logits[:, :, held_out], 1)
    return found


@dataclass(frozen=True)
class Stretch:
    r"""Multiplies logits by a factor that depends on how far they are apart, and adds a bias to those of each class.

    With r the root mean square of the centered logits l of a node, the result is `factor r^power l + b`. A power of 0
    is temperature scaling (Guo et al., 2017). With a power above 0, weak evidence counts for less, and strong evidence
    for more. Adaptive temperatures have been found to calibrate better (Balanya et al., 2022).

    Every head knows how frequent the classes are, and a pool of several heads counts that several times. The biases
    correct it, and so they may change which class is the most probable one.

    Attributes:
        factor: the factor.
        power: the power.
        biases: b, `(C,)`; empty: none.
    """

    factor: float = 1.0
    power: float = 0.0
    biases: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def fit(cls, logits: Array, y: Array) -> "Stretch":
        """The likeliest stretch for logits `(S, N, C)` of nodes with classes y `(N,)`, if power and biases are near 0.

        Nodes whose logits are all equal say nothing of factor and power.
        """
        centered = _centered(logits)
        logs = np.log(np.maximum(_spread(centered), TINY))  # (S, N)
        middle = float(logs.mean())
        logs -= middle
        node, classes = np.arange(len(y)), logits.shape[2]

        def loss(parameters: Array) -> tuple[float, Array]:
            (log_factor, power), biases = parameters[:2], parameters[2:]
            stretched = centered * np.exp(log_factor + power * logs)[:, :, None]
            moved = stretched + biases
            moved -= moved.max(2, keepdims=True)
            p = np.exp(moved)
            total = p.sum(2)
            own = moved[:, node, y] - np.log(total)  # log p(y_n | h_k)
            mixture = log_sum_exp(own)
            share = np.exp(own - mixture)  # of a draw in its node's likelihood
            p *= (share / total)[:, :, None]
            p[:, node, y] -= share  # the slope of the loss by the moved logits
            by_factor = (p * stretched).sum(2)
            slope = [by_factor.sum(), (by_factor * logs).sum() + 2 * PRIOR * power]
            prior = PRIOR * power**2 + BIAS_PRIOR * (biases**2).sum()
            return float(prior - mixture.sum()), np.append(slope, p.sum((0, 1)) + 2 * BIAS_PRIOR * biases)

        bounds = [(LEAST, GREATEST), POWERS, *[(None, None)] * classes]
        found = minimize(loss, np.zeros(2 + classes), jac=True, method="L-BFGS-B", bounds=bounds).x
        return cls(float(np.exp(found[0] - found[1] * middle)), float(found[1]), found[2:])

    def __call__(self, logits: Array, axis: int = -1) -> Array:
        """Stretch logits, in place. `axis` is that of the classes."""
        logits -= logits.mean(axis, keepdims=True)
        spread = np.maximum(np.sqrt(np.square(logits).mean(axis, keepdims=True)), TINY)
        logits *= np.asarray(self.factor * spread**self.power, dtype=logits.dtype)
        if len(self.biases):
            np.moveaxis(logits, axis, -1)[...] += self.biases.astype(logits.dtype)
        return logits


def _centered(logits: Array) -> Array:
    found = logits.astype(np.float64)
    return np.asarray(found - found.mean(-1, keepdims=True))


def _spread(centered: Array) -> Array:
    return np.asarray(np.sqrt(np.square(centered).mean(-1)))
