r"""Features under which a linear head is a head of a kernel: the Nyström approximation (Williams and Seeger, 2001).

The kernel of two embeddings x and z is Gaussian, `k(x, z) = exp(- g |x - z|^2 / 2 s^2)`, with `s^2` the mean square
length of the training nodes' embeddings. The features of x are `k(x, Z) K^(-1/2)`, with landmarks Z and their kernel
matrix K. A linear head on them may separate what no linear head on x can.

The landmarks are training nodes, at most `LANDMARKS` of them. Products `x'z` are computed in the `DIRECTIONS` principal
directions of the landmarks, which hold nearly all of them and are a small part of the columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SHARPNESSES = (0.7, 2.0)  # values of g, a kernel each
LANDMARKS, DIRECTIONS = 2048, 256
LEAST = 1e-5  # share of the greatest eigenvalue of K below which a direction is left out


@dataclass(frozen=True)
class Kernels:
    """Kernels of several sharpnesses with the same landmarks.

    Attributes:
        sharpnesses: the values of g.
        square: the mean square length of the training nodes' embeddings.
        directions: principal directions of the landmarks, `(d, r)`.
        landmarks: the landmarks in these directions, `(m, r)`.
        halves: half of the squares of the landmarks' lengths, `(m,)`.
        roots: `K^(-1/2)` of each kernel, `(m, q)`.
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
        roots = tuple(_inverse_root(np.exp(g * exponents)) for g in sharpnesses)
        return cls(tuple(sharpnesses), square, axes, landmarks, halves, roots)

    def features(self, rows: Array) -> list[Array]:
        """The features of rows `(N, d)` for each kernel, `(N, q)` each."""
        exponents = self._exponents(rows.astype(np.float32, copy=False))
        return [np.exp(g * exponents) @ root for g, root in zip(self.sharpnesses, self.roots, strict=True)]

    def products(self, rows: Array, columns: Sequence[Array]) -> Array:
        """The sum over kernels of `k(x, Z) V`, `(N, c)`, for a matrix V `(m, c)` of each kernel."""
        exponents = self._exponents(rows.astype(np.float32, copy=False))
        found = np.zeros((len(rows), columns[0].shape[1]), dtype=np.float32)
        for g, V in zip(self.sharpnesses, columns, strict=True):
            found += np.exp(g * exponents) @ V
        return found

    def _exponents(self, rows: Array) -> Array:
        """`- |x - z|^2 / 2 s^2` for each row and landmark, `(N, m)`."""
        found = (rows @ self.directions) @ self.landmarks.T
        found -= self.halves + np.square(rows).sum(1, keepdims=True) / 2
        found /= self.square
        return found


def principal_axes(rows: Array, most: int) -> Array:
    """The principal directions of rows `(N, d)` around 0, at most `most` of them, `(d, r)`."""
    if min(rows.shape) <= most and rows.shape[1] <= rows.shape[0]:
        return np.eye(rows.shape[1], dtype=np.float32)
    if rows.shape[0] < rows.shape[1]:
        values, left = np.linalg.eigh((rows @ rows.T).astype(np.float64))
        kept = np.flatnonzero(values > 1e-7 * max(values[-1], 1e-30))[-most:]
        return np.asarray(rows.T @ (left[:, kept] / np.sqrt(values[kept])).astype(np.float32))
    _, axes = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    return np.ascontiguousarray(axes[:, -most:], dtype=np.float32)


def _inverse_root(K: Array) -> Array:
    """`K^(-1/2)` in the directions of its greater eigenvalues, `(m, q)`."""
    values, left = np.linalg.eigh(K.astype(np.float64))
    kept = values > LEAST * values[-1]
    return np.asarray(left[:, kept] / np.sqrt(values[kept]), dtype=np.float32)
