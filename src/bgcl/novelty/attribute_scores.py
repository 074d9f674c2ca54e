r"""How strange a node's own attributes are. All of it is known from the training graph, without labels.

With the attributes x of a node, mean `m_j` and variance `v_j` of column j over the known nodes:

- residual: the share of the scaled attributes that their principal directions U do not explain, `1 - |U'x|^2 / |x|^2`.
  The attributes of a known node are alike those of others, so few directions explain much of them;
- spread: `log(1/F sum_j (x_j - m_j)^2 / v_j)`. An attribute that few nodes have counts much. If a column is the same
  for all known nodes, `v_j` is what it would be if half a node had a typical value instead;
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
_ROWS = 2048
CONSTANT = 1e-14  # of the mean square of a column; a smaller variance is rounding of float32


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
        count = max(len(known), 1)
        entries = np.bincount(rows.indices, minlength=rows.shape[1])  # that are not zero, of each column
        mean = np.bincount(rows.indices, rows.data, rows.shape[1]) / count
        away = np.square(rows.data - mean[rows.indices])
        variance = (np.bincount(rows.indices, away, rows.shape[1]) + (count - entries) * mean**2) / count
        squares = np.bincount(rows.indices, rows.data**2, rows.shape[1])
        overall = squares.sum() / max(rows.nnz, 1) or 1.0
        typical = np.where(entries > 0, squares / np.maximum(entries, 1), overall)  # square of an entry that is not 0
        constant = variance <= CONSTANT * squares / count
        return cls(mean, np.where(constant, LEAST / count * typical, variance), directions)

    def scores(self, raw: Features, scaled: Features) -> dict[str, Array]:
        """The scores of all nodes, `(N,)` each; NaN where a node has no attributes that could be explained."""
        rows = rows_of(raw)
        return {
            "residual": residual(rows_of(scaled), self.directions),
            "spread": self._spread(rows),
            "count": np.diff(rows.indptr).astype(float),
        }

    def _spread(self, rows: csr_matrix) -> Array:
        at_zero = np.square(self.mean) / self.variance  # what an entry of zero adds
        # Where it is great, as in a column of dates, nothing may be subtracted from it: nothing would be left of it.
        dense = at_zero > 1
        total = np.zeros(rows.shape[0])
        for start in range(0, rows.shape[0], _ROWS):
            part = rows[start : start + _ROWS][:, dense].toarray() - self.mean[dense]
            total[start : start + _ROWS] = (np.square(part) / self.variance[dense]).sum(1)
        entries = csr_matrix(rows[:, ~dense])
        column, at_zero = entries.indices, at_zero[~dense]
        away = np.square(entries.data - self.mean[~dense][column]) / self.variance[~dense][column] - at_zero[column]
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(entries.indptr))
        total += np.bincount(owner, away, rows.shape[0]) + at_zero.sum()
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
