r"""Pool heads of several parts of the embedding into one head.

A part is a slice of the columns, such as what a node is by itself, or what its neighbors are. Each part has a linear
head with logits `l_p`, and one more head has all columns. The pooled head is `softmax(sum_p w_p l_p)`, a log-linear
pool (Genest and Zidek, 1986). The weights `w_p >= 0` maximize the likelihood of held-out training nodes, so a part that
does not help gets a weight near 0. The pool of linear heads is a linear head.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from bgcl.downstream.head import log_sum_exp
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]
LEAST, GREATEST = -8.0, 3.0  # bounds of the logarithm of a weight


def part_widths(parts: int | Sequence[int] | None, width: int) -> list[int]:
    """The width of each part of embeddings that have `width` columns."""
    if parts is None:
        return [width]
    if isinstance(parts, int):
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
