"""Which nodes to review or to label next."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


def rank(uncertainty: Array, among: Array | None = None) -> Array:
    """Node numbers from the most uncertain to the least, `among` those given; equals in the order of their numbers."""
    nodes = np.arange(len(uncertainty)) if among is None else np.asarray(among)
    return np.asarray(nodes[np.argsort(-uncertainty[nodes], kind="stable")])


def acquire(uncertainty: Array, embeddings: Array, count: int, *, among: Array | None = None) -> Array:
    """`count` nodes that are uncertain and not all alike, the most uncertain first.

    Each next node has the greatest product of its uncertainty and its distance from the nearest one chosen so far,
    where distance is `1 - cosine` of the embeddings `(N, d)`. So of a group of nodes that are unsure for the same
    reason, one is taken.
    """
    nodes = np.arange(len(uncertainty)) if among is None else np.asarray(among)
    if not 1 <= count <= len(nodes):
        raise BGCLError(f"The number of nodes to choose must be between 1 and {len(nodes)}. Got {count} instead.")
    if len(embeddings) != len(uncertainty):
        raise BGCLError(f"There are {len(embeddings)} embeddings, but {len(uncertainty)} measures of uncertainty.")
    x = np.asarray(embeddings, dtype=np.float64)[nodes]
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    u = np.asarray(uncertainty, dtype=np.float64)[nodes]
    u = u - u.min() + 1e-12  # products need numbers of one sign
    distance = np.ones(len(nodes))
    chosen: list[int] = []
    for _ in range(count):
        score = u * distance
        score[chosen] = -1
        best = int(score.argmax())
        chosen.append(best)
        distance = np.minimum(distance, 1 - x @ x[best])
    return np.asarray(nodes[chosen])
