r"""How far a node is from known nodes in the space of embeddings.

With the embedding h of a node, scaled to length one, and those of the known nodes:

- nearest: one minus the mean cosine with the k nearest known nodes, without itself;
- Mahalanobis: `(h - m)' S^-1 (h - m)` with their mean and their covariance, in `DIRECTIONS` principal directions
  (Lee et al., 2018, without classes);
- encoded: the same of the encoder's output in all directions, with a little added to the variance of each;
- mixture: the negative log density under a mixture of normal distributions in these directions, with as many components
  as the Bayesian information criterion prefers.

If there are very many known nodes, `REFERENCES` of them are used for the first of these, which were drawn at random.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.mixture import GaussianMixture

from bgcl.errors import BGCLError
from bgcl.graph.alike import nearest_among

Array = npt.NDArray[Any]
NEAREST, REFERENCES = 10, 2048
RIDGE = 1e-3  # of the mean variance, which is added to the variance of each direction
DIRECTIONS, COMPONENTS = 32, (1, 2, 4, 8, 16)
FEWEST = 2  # nodes that have a density
SAME = 1e-12  # a smaller variance of rows of length one is rounding


@dataclass(frozen=True)
class Neighborhood:
    """The embeddings of known nodes, to which distances are measured.

    Args:
        unit: embeddings of length one, `(R, d)`.
        nodes: the number of each in its graph, `(R,)`.
    """

    unit: Array
    nodes: Array

    @classmethod
    def of(cls, embedding: Array, nodes: Array, random: np.random.Generator) -> "Neighborhood":
        """At most `REFERENCES` of some nodes of a graph with the embedding `(N, d)`."""
        chosen = nodes if len(nodes) <= REFERENCES else np.sort(random.choice(nodes, REFERENCES, replace=False))
        return cls(_of_length_one(embedding[chosen]), chosen)

    def distance(self, embedding: Array, *, same: bool, most: int = NEAREST) -> Array:
        """One minus the mean cosine with the nearest references, `(N,)`.

        Args:
            embedding: embeddings of nodes, `(N, d)`.
            same: whether the nodes are those of the graph of the references, by their numbers. Then none is compared
                with itself.
            most: how many references to take.
        """
        _, cosine = self.nearest(embedding, same=same, most=most)
        return np.asarray(1 - cosine.mean(1))

    def nearest(self, embedding: Array, *, same: bool, most: int = NEAREST) -> tuple[Array, Array]:
        """The nearest references of each node, as numbers in their graph, and their cosines, both `(N, k)`."""
        itself = np.full(len(embedding), -1)
        if same:
            itself[self.nodes] = np.arange(len(self.nodes))
        unit = torch.from_numpy(_of_length_one(embedding))
        if len(self.nodes) == 1:
            only = (unit @ torch.from_numpy(self.unit.T.copy())).numpy().astype(float)
            only[itself >= 0] = np.nan  # the node itself has no other one to be near to
            return np.repeat(self.nodes[None], len(unit), 0), only
        row, found, cosine = nearest_among(unit, torch.from_numpy(self.unit), torch.from_numpy(itself), most)
        width = len(row) // len(unit)
        return self.nodes[found.numpy()].reshape(-1, width), cosine.double().numpy().reshape(-1, width)


def _of_length_one(embedding: Array) -> Array:
    rows = np.asarray(embedding, dtype=np.float32)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1))


@dataclass(frozen=True)
class Ellipsoid:
    """Mean and inverse covariance of the encoder's output of known nodes, `(w,)` and `(w, w)`."""

    center: Array
    precision: Array

    @classmethod
    def of(cls, rows: Array) -> "Ellipsoid":
        """Those of rows `(n, w)`, which are scaled to length one."""
        unit = _of_length_one(rows).astype(np.float64)
        center = unit.mean(0)
        covariance = (unit - center).T @ (unit - center) / len(unit)
        least = max(RIDGE * np.trace(covariance) / len(covariance), np.finfo(np.float32).tiny)
        return cls(center, np.linalg.inv(covariance + least * np.eye(len(covariance))))

    def distance(self, rows: Array) -> Array:
        """`(z - m)' S^-1 (z - m)` of each row, `(N,)`."""
        away = _of_length_one(rows) - self.center
        return np.asarray(np.einsum("nw,nw->n", away @ self.precision, away))


@dataclass(frozen=True)
class NormalDensity:
    """A normal distribution, and a mixture of some, of the embeddings of known nodes in their principal directions.

    Args:
        center: the mean, `(d,)`.
        directions: the principal directions, `(d, q)`, divided by the standard deviations along them.
        mixture: the mixture, of embeddings in these directions.
    """

    center: Array
    directions: Array
    mixture: GaussianMixture = field(repr=False)

    @classmethod
    def of(cls, embedding: Array, nodes: Array, seed: int) -> "NormalDensity":
        """The density of some nodes of a graph with the embedding `(N, d)`.

        Raises:
            BGCLError: there are fewer than `FEWEST` nodes, or all have the same embedding.
        """
        if len(nodes) < FEWEST:
            raise BGCLError(
                f"A density of embeddings needs {FEWEST} known nodes or more. Got {len(nodes)}: name more known nodes, "
                "or leave out the scores 'mahalanobis' and 'mixture'."
            )
        rows = _of_length_one(embedding[nodes]).astype(np.float64)
        center = rows.mean(0)
        values, vectors = np.linalg.eigh(np.cov((rows - center).T).reshape(rows.shape[1], -1))
        most = min(DIRECTIONS, max(len(rows) // 4, 1))
        kept = [i for i in np.argsort(-values)[:most] if values[i] > max(1e-10 * values.max(), SAME)]
        if not kept:
            raise BGCLError(
                "All known nodes have the same embedding, so it has no density. Leave out the scores 'mahalanobis' "
                "and 'mixture'."
            )
        directions = vectors[:, kept] / np.sqrt(values[kept])
        points = (rows - center) @ directions
        found = [
            GaussianMixture(count, covariance_type="diag", reg_covar=1e-3, random_state=seed).fit(points)
            for count in COMPONENTS
            if count == 1 or len(rows) >= 20 * count
        ]
        return cls(center, directions, min(found, key=lambda one: one.bic(points)))

    def mahalanobis(self, embedding: Array) -> Array:
        """`(h - m)' S^-1 (h - m)` in the directions, `(N,)`."""
        return np.asarray(np.square(self._points(embedding)).sum(1))

    def surprise(self, embedding: Array) -> Array:
        """The negative log density under the mixture, `(N,)`."""
        return np.asarray(-self.mixture.score_samples(self._points(embedding)))

    def _points(self, embedding: Array) -> Array:
        return np.asarray((_of_length_one(embedding) - self.center) @ self.directions)
