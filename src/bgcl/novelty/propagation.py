r"""Scores propagated along edges: a node among strange nodes is stranger (Wu et al., 2023, "GNNSafe").

With the mean over the neighbors of a node, `M = D^-1 A` without self-connections, K times

    s <- a s + (1 - a) M s.

A node without neighbors keeps its score. If edges have weights, the mean is by weight. Neighbors that have no score do
not count, and a node that has none has the mean of its neighbors.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags

from bgcl.graph.prepared import PreparedGraph

Array = npt.NDArray[Any]

OWN, STEPS = 0.5, 2  # a and K, those of Wu et al.


def mean_of_neighbors(graph: PreparedGraph) -> csr_matrix:
    """`D^-1 A` without self-connections, `(N, N)`; the row of a node without neighbors is empty."""
    pattern = graph.connections
    row, column = pattern.row.cpu().numpy(), pattern.column.cpu().numpy()
    weight = np.ones(len(row)) if graph.weights is None else graph.weights.double().cpu().numpy()
    matrix = csr_matrix((np.where(row == column, 0, weight), (row, column)), shape=(graph.nodes, graph.nodes))
    matrix.eliminate_zeros()
    total = np.asarray(matrix.sum(1)).ravel()
    return csr_matrix(diags(1 / np.where(total > 0, total, 1)) @ matrix)


def propagated(mean: csr_matrix, scores: Array, own: float = OWN, steps: int = STEPS) -> Array:
    """Propagate scores `(N,)`.

    Args:
        mean: `D^-1 A`, `(N, N)`; rows of nodes without neighbors are empty.
        scores: the scores, `(N,)`; NaN or infinite for none.
        own: the share a of a node's own score.
        steps: the number of steps K.

    >>> pair = csr_matrix(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    >>> propagated(pair, np.array([0.0, 1.0, 7.0]), own=0.75, steps=1).tolist()
    [0.25, 0.75, 7.0]
    """
    found = np.asarray(scores, dtype=np.float64)
    for _ in range(steps):
        known = np.isfinite(found)
        share = mean @ known.astype(float)  # of the neighbors that have a score
        near = (mean @ np.where(known, found, 0)) / np.where(share > 0, share, 1)
        found = np.where(share > 0, np.where(known, own * np.where(known, found, 0) + (1 - own) * near, near), found)
    return found
