"""Which nodes to review or to label next."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.arguments import numbers, shown, whole
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
    values = numbers("The uncertainty", uncertainty)
    nodes = _node_numbers(len(values), among)
    return np.asarray(nodes[np.argsort(-values[nodes], kind="stable")])


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
    uncertainty = numbers("The uncertainty", uncertainty)
    nodes = _node_numbers(len(uncertainty), among)
    if not 1 <= whole("The number of nodes to choose", count) <= len(nodes):
        raise BGCLError(f"The number of nodes to choose must be between 1 and {len(nodes)}. Got {count} instead.")
    embeddings = numbers("The embeddings", embeddings, axes=2)
    if len(embeddings) != len(uncertainty):
        raise BGCLError(
            f"There are {len(embeddings)} embeddings, but {len(uncertainty)} measures of uncertainty. Give one of each "
            "for every node."
        )
    x = embeddings[nodes]
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
    chosen = np.asarray(among)
    if chosen.dtype == bool and chosen.shape == (count,):
        return np.flatnonzero(chosen)
    if chosen.ndim != 1 or (len(chosen) and chosen.dtype.kind not in "iu"):
        raise BGCLError(
            f"'among' must be numbers of nodes, or a mask of all {count} nodes. Got {shown(among)} instead."
        )
    chosen = chosen.astype(np.int64)
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
        raise BGCLError(f"'among' must be numbers between 0 and {count - 1}. Got {chosen.min()} to {chosen.max()}.")
    if len(np.unique(chosen)) < len(chosen):
        raise BGCLError("'among' names a node more than once. Name each once.")
    return chosen
