"""Features that are propagated along the edges, and never trained: the floor that training has to beat."""

from typing import ClassVar

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.extmath import randomized_svd
from torch_geometric.data import Data

from bgcl.baselines.method import Array, Count, EmbeddingMethod
from bgcl.graph.prepared import SparseFeatures, prepare, relative_weights

HOPS = (0, 1, 2)


class PropagatedFeatures(EmbeddingMethod):
    r"""`X`, `A X` and `A^2 X`, each reduced by a truncated SVD, with rows of length one, side by side.

    `X` has rows of length one, and `A` is the normalized adjacency matrix with self-connections. The matrix `A^k X` is
    never made: the SVD needs only its products with thin matrices. `BestPartClassifier(parts=3)` chooses one of the
    parts or all of them by held-out training nodes.

    Shapes: `(N, 3 w)` with `w = min(width, F, N)`.
    """

    parts: ClassVar[int] = len(HOPS)
    width: Count = 256

    def _embed(self, data: Data) -> Array:
        adjacency, attributes = normalized_adjacency(data), unit_attributes(data)
        rank = min(self.width, *attributes.shape)
        return np.hstack([unit_rows(self._reduced(adjacency, attributes, hops, rank)) for hops in HOPS])

    def basis(self, data: Data) -> list[Array]:
        """The right singular vectors of `A^k X` for each k, `(F, w)`: embeddings are the products with them."""
        adjacency, attributes = normalized_adjacency(data), unit_attributes(data)
        rank = min(self.width, *attributes.shape)
        return [self._factors(PropagatedMatrix(adjacency, attributes, hops), rank)[2].T for hops in HOPS]

    @staticmethod
    def project(data: Data, basis: list[Array]) -> Array:
        """Embed the nodes of another graph with the same attributes, `(N, 3 w)`."""
        adjacency, attributes = normalized_adjacency(data), unit_attributes(data)
        parts = [PropagatedMatrix(adjacency, attributes, hops).times(b) for hops, b in zip(HOPS, basis, strict=True)]
        return np.hstack([unit_rows(part) for part in parts])

    def _reduced(self, adjacency: csr_matrix, attributes: csr_matrix, hops: int, rank: int) -> Array:
        """The left singular vectors of `A^k X` times its singular values, `(N, rank)`."""
        left, values, _ = self._factors(PropagatedMatrix(adjacency, attributes, hops), rank)
        return left * values

    def _factors(self, product: "PropagatedMatrix", rank: int) -> tuple[Array, Array, Array]:
        """The singular vectors and values, `(N, rank)`, `(rank,)` and `(rank, F)`."""
        basis = product.range_basis(rank, np.random.default_rng(self.seed))  # (N, rank + 10)
        small = product.transposed_times(basis).T  # (rank + 10, F)
        left, values, right = randomized_svd(small, rank, random_state=self.seed)
        return np.asarray(basis @ left), values, right


class PropagatedMatrix:
    """`A^k X` as products with thin matrices. `A` is symmetric."""

    def __init__(self, adjacency: csr_matrix, attributes: csr_matrix, hops: int) -> None:
        self.adjacency, self.attributes, self.hops = adjacency, attributes, hops

    def times(self, thin: Array) -> Array:
        """`A^k X Q`, `(N, q)`, for Q `(F, q)`."""
        found = self.attributes @ thin
        for _ in range(self.hops):
            found = self.adjacency @ found
        return np.asarray(found)

    def transposed_times(self, thin: Array) -> Array:
        """`X' A^k Y`, `(F, q)`, for Y `(N, q)`."""
        for _ in range(self.hops):
            thin = self.adjacency @ thin
        return np.asarray(self.attributes.T @ thin)

    def range_basis(self, rank: int, random: np.random.Generator, extra: int = 10, rounds: int = 4) -> Array:
        """An orthonormal basis of the columns that carry most of the matrix (Halko, Martinsson and Tropp, 2011)."""
        width = min(rank + extra, *self.attributes.shape)
        basis, _ = np.linalg.qr(self.times(random.standard_normal((self.attributes.shape[1], width))))
        for _ in range(rounds):
            other, _ = np.linalg.qr(self.transposed_times(basis))
            basis, _ = np.linalg.qr(self.times(other))
        return np.asarray(basis)


def normalized_adjacency(data: Data) -> csr_matrix:
    """`D^-1/2 (A + I) D^-1/2` of a checked graph, `(N, N)`. A has the weights of the edges, 1 on average."""
    row, column = data.edge_index.cpu().numpy()
    loops = np.arange(data.num_nodes)
    weights = relative_weights(data)
    values = np.concatenate([np.ones(len(row)) if weights is None else weights.numpy(), np.ones(len(loops))])
    row, column = np.concatenate([row, loops]), np.concatenate([column, loops])
    root = 1 / np.sqrt(np.bincount(row, values, minlength=data.num_nodes))
    return csr_matrix((values * (root[row] * root[column]), (row, column)), shape=(data.num_nodes, data.num_nodes))


def unit_attributes(data: Data) -> csr_matrix:
    """The attributes of a checked graph with rows of length one, `(N, F)`."""
    features = prepare(data, row_norm="length").features
    if isinstance(features, SparseFeatures):
        pattern = features.pattern
        parts = (features.values.numpy(), pattern.column.numpy(), pattern.pointer.numpy())
        return csr_matrix(parts, shape=(pattern.rows, pattern.columns), dtype=np.float64)
    return csr_matrix(features.numpy().astype(np.float64))


def unit_rows(matrix: Array) -> Array:
    """Rows divided by their length; rows of zeros stay as they are."""
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.where(length > 1e-12, length, 1))
