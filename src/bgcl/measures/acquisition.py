"""Which nodes to review or to label next."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


def rank(uncertainty: Array, among: Array | None = None) -> Array:
    """Sort nodes from the most uncertain to the least. Ties keep their order.

    Args:
        uncertainty: a measure of uncertainty, `(N,)`.
        among: the nodes to sort, as numbers or as a boolean mask `(N,)`. Default: all nodes.

    Returns:
        Node numbers.

    >>> import numpy as np
    >>> rank(np.array([0.1, 0.9, 0.5])).tolist()
    [1, 2, 0]
    """
    nodes = _node_numbers(len(uncertainty), among)
    return np.asarray(nodes[np.argsort(-uncertainty[nodes], kind="stable")])


def acquire(uncertainty: Array, embeddings: Array, count: int, *, among: Array | None = None) -> Array:
    """Choose nodes to label: uncertain ones that differ from each other.

    The first is the most uncertain node. Each further node `v` has the greatest

        uncertainty_v * min_u (1 - cos(h_v, h_u))

    over the nodes `u` chosen so far. If several nodes are uncertain for the same reason, only one of them is chosen
    while others remain.

    Args:
        uncertainty: a measure of uncertainty, `(N,)`.
        embeddings: one embedding for each node, `(N, d)`.
        count: how many nodes to choose.
        among: the nodes to choose from, as numbers or as a boolean mask `(N,)`. Default: all nodes.

    Returns:
        Node numbers `(count,)` in the order in which they were chosen.

    Raises:
        BGCLError: `count` is below 1 or above the number of nodes, or the arrays differ in length.

    >>> import numpy as np
    >>> alike, different = [1.0, 0.0], [0.0, 1.0]
    >>> acquire(np.array([0.9, 0.8, 0.5]), np.array([alike, alike, different]), 2).tolist()
    [0, 2]
    """
    uncertainty, nodes = np.asarray(uncertainty, dtype=np.float64), _node_numbers(len(uncertainty), among)
    if not 1 <= count <= len(nodes):
        raise BGCLError(f"The number of nodes to choose must be between 1 and {len(nodes)}. Got {count} instead.")
    if len(embeddings) != len(uncertainty):
        raise BGCLError(
            f"There are {len(embeddings)} embeddings, but {len(uncertainty)} measures of uncertainty. Give one of each "
            "for every node."
        )
    x = np.asarray(embeddings, dtype=np.float64)[nodes]
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    chosen = [int(uncertainty[nodes].argmax())]
    distance = np.full(len(nodes), np.inf)
    while len(chosen) < count:
        # Half the squared distance of unit vectors is 1 - cosine. It is 0 between two embeddings of zeros.
        distance = np.minimum(distance, np.square(x - x[chosen[-1]]).sum(1) / 2)
        score = uncertainty[nodes] * distance
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
    return np.asarray(nodes[chosen])


def _node_numbers(count: int, among: Array | None) -> Array:
    if among is None:
        return np.arange(count)
    among = np.asarray(among)
    return np.flatnonzero(among) if among.dtype == bool else among
