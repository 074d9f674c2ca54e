"""Which nodes to review or to label next."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


def rank(uncertainty: Array, among: Array | None = None) -> Array:
    """Node numbers from the most uncertain to the least, `among` those given; equals in the order of their numbers.

    >>> rank(np.array([0.1, 0.9, 0.5])).tolist()
    [1, 2, 0]
    """
    nodes = _nodes(len(uncertainty), among)
    return np.asarray(nodes[np.argsort(-uncertainty[nodes], kind="stable")])


def acquire(uncertainty: Array, embeddings: Array, count: int, *, among: Array | None = None) -> Array:
    """`count` nodes that are uncertain and not all alike, the most uncertain first; `among` are node numbers or a mask.

    Each next node has the greatest product of its uncertainty and its distance from the nearest one chosen so far,
    where distance is `1 - cosine` of the embeddings `(N, d)`. So of a group of nodes that are unsure for the same
    reason, one is taken.

    >>> alike, another = [1.0, 0.0], [0.0, 1.0]
    >>> acquire(np.array([0.9, 0.8, 0.5]), np.array([alike, alike, another]), 2).tolist()
    [0, 2]
    """
    uncertainty, nodes = np.asarray(uncertainty, dtype=np.float64), _nodes(len(uncertainty), among)
    if not 1 <= count <= len(nodes):
        raise BGCLError(f"The number of nodes to choose must be between 1 and {len(nodes)}. Got {count} instead.")
    if len(embeddings) != len(uncertainty):
        raise BGCLError(f"There are {len(embeddings)} embeddings, but {len(uncertainty)} measures of uncertainty.")
    x = np.asarray(embeddings, dtype=np.float64)[nodes]
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    chosen = [int(uncertainty[nodes].argmax())]
    distance = np.full(len(nodes), np.inf)
    while len(chosen) < count:
        # Half the squared distance of unit vectors is 1 - cosine, and 0 between two embeddings of zeros.
        distance = np.minimum(distance, np.square(x - x[chosen[-1]]).sum(1) / 2)
        score = uncertainty[nodes] * distance
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
    return np.asarray(nodes[chosen])


def _nodes(count: int, among: Array | None) -> Array:
    if among is None:
        return np.arange(count)
    among = np.asarray(among)
    return np.flatnonzero(among) if among.dtype == bool else among
