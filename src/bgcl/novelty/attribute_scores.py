r"""How strange a node's own attributes are. All of it is known from the training graph, without labels.

With the attributes x of a node, mean `m_j` and variance `v_j` of column j over the known nodes:

- residual: the share of the scaled attributes that their principal directions U do not explain, `1 - |U'x|^2 / |x|^2`.
  The attributes of a known node are alike those of others, so few directions explain much of them;
- spread: `log(1/F sum_j (x_j - m_j)^2 / v_j)`. An attribute that few nodes have counts much;
- count: the number of attributes that are not zero. Too few and too many are strange.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from bgcl.graph.prepared import Features, SparseFeatures

Array = npt.NDArray[Any]
LEAST = 0.5  # nodes that are thought to have an attribute that no known node has
TINY = 1e-6  # a smaller residual is rounding


@dataclass(frozen=True)
class AttributeStatistics:
    """Mean and variance of each column over the known nodes, `(F,)`, and principal directions, `(F', q)`."""

    mean: Array
    variance: Array
    directions: Array

    @classmethod
    def of(cls, raw: Features, known: Array, directions: Array) -> "AttributeStatistics":
        """Statistics of the attributes of the known nodes, before they are scaled."""
        rows = rows_of(raw)[known]
        mean = np.asarray(rows.mean(0)).ravel()
        squares = np.asarray(rows.multiply(rows).mean(0)).ravel()
        typical = rows.data @ rows.data / max(rows.nnz, 1)  # square of an entry that is not zero
        least = max(LEAST / max(len(known), 1) * typical, np.finfo(float).tiny)
        return cls(mean, np.maximum(squares - mean**2, least), directions)

    def scores(self, raw: Features, scaled: Features) -> dict[str, Array]:
        """The scores of all nodes, `(N,)` each; NaN where a node has no attributes that could be explained."""
        rows = rows_of(raw)
        return {
            "residual": residual(rows_of(scaled), self.directions),
            "spread": self._spread(rows),
            "count": np.diff(rows.indptr).astype(float),
        }

    def _spread(self, rows: csr_matrix) -> Array:
        at_zero = np.square(self.mean) / self.variance  # what a column of zero adds
        column = rows.indices
        entries = rows.copy()
        entries.data = np.square(rows.data - self.mean[column]) / self.variance[column] - at_zero[column]
        total = np.asarray(entries.sum(1)).ravel() + at_zero.sum()
        return np.asarray(np.log(np.maximum(total / max(len(self.mean), 1), np.finfo(float).tiny)))


def residual(rows: csr_matrix, directions: Array) -> Array:
    """`1 - |U'x|^2 / |x|^2` of each row, `(N,)`; NaN for a row of zeros."""
    lengths = np.asarray(rows.multiply(rows).sum(1)).ravel()
    explained = np.square(rows @ directions).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 1 - explained / lengths
    return np.where(lengths > 0, np.where(found > TINY, found, 0), np.nan)


def rows_of(features: Features) -> csr_matrix:
    """Attributes as a sparse matrix in float64, without entries of 0."""
    if isinstance(features, SparseFeatures):
        pattern = features.pattern
        parts = features.values.cpu().double().numpy(), pattern.column.cpu().numpy(), pattern.pointer.cpu().numpy()
        found = csr_matrix(parts, shape=(pattern.rows, pattern.columns), copy=True)
    else:
        found = csr_matrix(features.cpu().double().numpy())
    found.eliminate_zeros()
    return found
