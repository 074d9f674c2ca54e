r"""How badly a node fits its neighbors: edges that neither attributes nor positions explain.

With a vector `u_v` of length one for each node, and the mean over the neighbors of a node, `M = D^-1 A`:

    s_v = 1 - u_v' (M u)_v,

one minus the mean cosine between a node and its neighbors. The vectors are

- by encoder: the encoder's output. In the default it sees attributes alone, and has learned which nodes are neighbors;
- by position: where a node is in the training graph, see `bgcl.model.structure`. Only nodes that were in it count. Of a
  node that was not, or none of whose neighbors was, nothing can be said: its score is minus infinity.

A node without neighbors has no score (NaN).
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

Array = npt.NDArray[Any]


def misfit(mean: csr_matrix, vectors: Array) -> Array:
    """One minus the mean cosine between a node and its neighbors.

    Args:
        mean: `D^-1 A`, `(N, N)`; rows of nodes without neighbors are empty.
        vectors: a vector for each node, `(N, d)`; a node with a vector of zeros does not count as a neighbor.

    Returns:
        The scores, `(N,)`; NaN without neighbors, and `-inf` for a vector of zeros or if no neighbor counts.

    >>> pair = csr_matrix(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    >>> misfit(pair, np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 1.0]])).round(2).tolist()
    [0.4, 0.4, nan]
    """
    length = np.linalg.norm(vectors, axis=1)
    unit = vectors / np.where(length > 0, length, 1)[:, None]
    counted = mean @ (length > 0).astype(float)  # the share of the neighbors that have a vector
    cosine = np.einsum("nd,nd->n", unit, mean @ unit)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 1 - cosine / counted
    return np.where(np.diff(mean.indptr) == 0, np.nan, np.where((counted > 0) & (length > 0), found, -np.inf))
