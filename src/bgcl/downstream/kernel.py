r"""Features under which a linear head is a head of a kernel: the Nyström approximation (Williams and Seeger, 2001).

The kernel of two embeddings x and z is Gaussian, `k(x, z) = exp(- g |x - z|^2 / 2 s^2)`, with `s^2` the mean square
length of the training nodes' embeddings. The features of x are `k(x, Z) L^-T`, with landmarks Z, their kernel matrix K
and its Cholesky factor, `K = L L^T`. Their products are the kernel, `k(x, Z) K^-1 k(Z, y)`. A linear head on them may
separate what no linear head on x can.

The landmarks are training nodes, at most `LANDMARKS` of them. Products `x'z` are computed in the `DIRECTIONS` principal
directions of the landmarks, which hold nearly all of them and are a small part of the columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky
from scipy.linalg.blas import strmm
from scipy.linalg.lapack import dtrtri
from sklearn.utils.extmath import randomized_svd

Array = npt.NDArray[Any]

SHARPNESSES = (0.7, 2.0)  # values of g, a kernel each
LANDMARKS, DIRECTIONS = 2048, 256
BLOCK = 1 << 18  # numbers of a block of rows: as many as fit into a cache
NOISE = 1e-4  # added to the diagonal of K, so that landmarks may be equal


@dataclass(frozen=True)
class Kernels:
    """Kernels of several sharpnesses with the same landmarks.

    Attributes:
        sharpnesses: the values of g.
        square: the mean square length of the training nodes' embeddings.
        directions: principal directions of the landmarks, `(d, r)`.
        landmarks: the landmarks in these directions, `(m, r)`.
        halves: half of the squares of the landmarks' lengths, `(m,)`.
        roots: `L^-T` of each kernel, `(m, m)`.
    """

    sharpnesses: tuple[float, ...]
    square: float
    directions: Array
    landmarks: Array
    halves: Array
    roots: tuple[Array, ...]

    @classmethod
    def fit(
        cls, rows: Array, random: np.random.Generator, *, sharpnesses: Sequence[float] = SHARPNESSES,
        most: int = LANDMARKS, directions: int = DIRECTIONS,
    ) -> "Kernels":  # fmt: skip
        """Choose landmarks among rows `(N, d)`, and prepare the features.

        Args:
            rows: embeddings of the training nodes.
            random: chooses the landmarks if there are more rows.
            sharpnesses: the values of g.
            most: the greatest number of landmarks.
            directions: the greatest number of directions.
        """
        rows = rows.astype(np.float32, copy=False)
        square = float(np.square(rows).sum(1).mean()) or 1.0
        chosen = rows if len(rows) <= most else rows[np.sort(random.choice(len(rows), most, replace=False))]
        axes = principal_axes(chosen, directions)
        landmarks, halves = chosen @ axes, np.square(chosen).sum(1) / 2
        found = cls(tuple(sharpnesses), square, axes, landmarks, halves, ())
        exponents = found._exponents(chosen)
        roots = tuple(_inverse_root(np.exp(g / sharpnesses[0] * exponents)) for g in sharpnesses)
        return cls(tuple(sharpnesses), square, axes, landmarks, halves, roots)

    def features(self, rows: Array) -> list[Array]:
        """The features of rows `(N, d)` for each kernel, `(N, q)` each."""
        exponents = self._exponents(rows)
        powers = [np.exp(g / self.sharpnesses[0] * exponents) for g in self.sharpnesses[1:]]
        powers.insert(0, np.exp(exponents, out=exponents))
        return [_times_upper(each, root) for each, root in zip(powers, self.roots, strict=True)]

    def products(self, rows: Array, columns: Sequence[Array], nodes: Array | None = None) -> Array:
        """The sum over kernels of `k(x, Z) V`, `(N, c)`, for a matrix V `(m, c)` of each kernel.

        With `nodes`, numbers of rows `(n,)`, it is the sum of these rows, `(n, c)`. Some rows at a time are looked at,
        so that what is made of them stays in the cache.
        """
        count = len(rows) if nodes is None else len(nodes)
        found = np.empty((count, columns[0].shape[1]), dtype=np.float32)
        size = max(BLOCK // len(self.landmarks), 32)
        for start in range(0, count, size):
            some = slice(start, start + size)
            exponents = self._exponents(rows[some if nodes is None else nodes[some]])
            powers = np.exp(exponents)
            found[some] = powers @ columns[0]
            for g, V in zip(self.sharpnesses[1:], columns[1:], strict=True):
                np.exp(np.multiply(exponents, g / self.sharpnesses[0], out=powers), out=powers)
                found[some] += powers @ V
        return found

    def _exponents(self, rows: Array) -> Array:
        """`- g |x - z|^2 / 2 s^2` for the first g, each row and landmark, `(N, m)`."""
        rows = rows.astype(np.float32, copy=False)
        longer = np.empty((len(rows), self.directions.shape[1] + 2), dtype=np.float32)
        np.matmul(rows, self.directions, out=longer[:, :-2])
        longer[:, -2] = np.einsum("nd,nd->n", rows, rows)
        longer[:, -1] = 1
        return np.asarray(longer @ self._landmark_columns)

    @cached_property
    def _landmark_columns(self) -> Array:
        """What one product with `[x, |x|^2, 1]` makes exponents of, `(r + 2, m)`."""
        columns = [self.landmarks.T, np.full((1, len(self.landmarks)), -0.5, dtype=np.float32), -self.halves[None]]
        return np.concatenate(columns) * np.float32(self.sharpnesses[0] / self.square)


def principal_axes(rows: Array, most: int) -> Array:
    """The principal directions of rows `(N, d)` around 0, at most `most` of them, `(d, r)`."""
    if rows.shape[1] <= most:
        return np.eye(rows.shape[1], dtype=np.float32)
    _, _, axes = randomized_svd(rows, min(most, len(rows)), n_iter=3, random_state=0)
    return np.ascontiguousarray(axes.T, dtype=np.float32)


def _times_upper(rows: Array, root: Array) -> Array:
    """`rows @ root` for an upper triangular root, in half of the time."""
    return np.asarray(strmm(1.0, root.T, rows.T, lower=1, overwrite_b=1)).T


def _inverse_root(K: Array) -> Array:
    """`L^-T` with `L L^T = K`, `(m, m)`."""
    lower = cholesky(K.astype(np.float64) + NOISE * np.eye(len(K)), lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = dtrtri(lower, lower=1, overwrite_c=1)
    return np.asarray(inverse.T, dtype=np.float32)
