"""The head of commands that predicts numbers: ridge regressions over draws of embeddings, with a calibrated noise.

Every part of an embedding has length one, so an embedding does not say how great an attribute is. The head therefore
looks at the attributes beside the embedding. It is linear, or linear in the features of two kernels, or both, whichever
makes held-out training nodes likelier. All fits are closed forms.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix
from sklearn.model_selection import KFold
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data

from bgcl.downstream.head import log_sum_exp
from bgcl.downstream.kernel import Kernels
from bgcl.errors import BGCLError
from bgcl.measures.levels import rank_of_level
from bgcl.measures.normal_mixtures import mixture_cdf, mixture_quantile

Array = npt.NDArray[Any]

DIRECTIONS = 128  # of the embeddings, in which the head looks at them
ATTRIBUTES = 256  # above this many, attributes are reduced to their principal directions
LANDMARKS = 256  # of each kernel
FOLDS = 5
PENALTIES = np.logspace(-6, 2, 17)  # times the number of rows; columns have a mean square length of one
LEAST = 8  # labeled nodes


@dataclass(frozen=True)
class NumberColumns:
    """What the head looks at: the attributes, and the embedding in its principal directions. No label takes part.

    Attributes:
        attributes: directions of the attributes `(F, a)`, their center and their scale.
        embedding: the same of the embeddings, `(d, r)`.
    """

    attributes: tuple[Array, Array, float]
    embedding: tuple[Array, Array, float]

    @classmethod
    def fit(cls, data: Data, draw: Array) -> "NumberColumns":
        """Find directions and scales for the nodes of a graph, from their attributes and one draw `(N, d)`."""
        return cls(_directions(_matrix(data), ATTRIBUTES), _directions(draw, DIRECTIONS))

    def of_attributes(self, data: Data) -> Array:
        """The columns that are the same in every draw, `(N, a)`."""
        return _seen(_matrix(data), self.attributes)

    def __call__(self, attributes: Array, draw: Array) -> Array:
        """The columns of a draw `(N, d)` with those of the attributes, `(N, a + r)`."""
        return np.hstack([attributes, _seen(draw, self.embedding)])


def attribute_columns(data: Data) -> Array:
    """The attributes as the head looks at them, `(N, a)`."""
    matrix = _matrix(data)
    return _seen(matrix, _directions(matrix, ATTRIBUTES))


def _matrix(data: Data) -> Any:
    x = data.x.detach().cpu()
    if x.layout == torch.strided:
        return x.numpy().astype(np.float64)
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return csr_matrix(parts, shape=tuple(x.shape), dtype=np.float64)


def _directions(matrix: Any, most: int) -> tuple[Array, Array, float]:
    """Directions, center and scale, so that rows have a mean square length of one around their center."""
    width = matrix.shape[1]
    if width <= most:
        deviation = np.asarray(matrix.toarray() if isinstance(matrix, csr_matrix) else matrix).std(0)
        axes = np.diag(1 / np.where(deviation > 1e-12, deviation, 1))
    else:
        axes = randomized_svd(matrix, min(most, *matrix.shape), n_iter=3, random_state=0)[2].T
    found = np.asarray(matrix @ axes)
    center = found.mean(0)
    return axes, center, float(np.sqrt(np.square(found - center).sum(1).mean())) or 1.0


def _seen(matrix: Any, how: tuple[Array, Array, float]) -> Array:
    axes, center, scale = how
    return (np.asarray(matrix @ axes) - center) / scale


@dataclass(frozen=True)
class NumberHead:
    """A fitted head: `p(y) = 1/K sum_k Normal(f(h_k), s^2)` over draws `h_k`.

    Attributes:
        kernels: the kernels; None if the head is linear.
        linear: whether the columns themselves are among the features.
        coefficients: of the features, `(q,)`; the last is the intercept.
        noise: s, under which held-out training nodes are likeliest.
        levels: `F(y)` of the held-out training nodes in ascending order, `(n,)`. They would be uniform if the mixture
            were right, and calibrate its quantiles (Kuleshov et al., 2018).
    """

    kernels: Kernels | None
    linear: bool
    coefficients: Array
    noise: float
    levels: Array

    @classmethod
    def fit(cls, rows: Array, y: Array, *, kernel: bool = True) -> "NumberHead":
        """Fit a head.

        Args:
            rows: columns of the labeled nodes in each draw, `(S, n, c)`.
            y: their numbers, `(n,)`.
            kernel: whether features of kernels are tried too.
        """
        if len(y) < LEAST:
            raise BGCLError(f"Only {len(y)} nodes train, and numbers need {LEAST} or more. Label more nodes.")
        with threadpool_limits(1):
            scale = float(y.std()) or 1.0
            target = (y - y.mean()) / scale
            kernels = Kernels.fit(rows[0], np.random.default_rng(0), most=LANDMARKS) if kernel else None
            ways = ((True, False), (False, True), (True, True)) if kernel else ((True, False),)
            best: tuple[float, Any] = (-np.inf, None)
            for linear, curved in ways:
                features = np.stack([_features(row, kernels if curved else None, linear) for row in rows])
                means = _held_out_means(features, target)  # (penalties, S, n)
                for penalty, held_out in zip(PENALTIES, means, strict=True):
                    noise, likelihood = _likeliest_noise(held_out, target)
                    if likelihood > best[0]:
                        best = likelihood, (kernels if curved else None, linear, penalty, noise, held_out)
            chosen, linear, penalty, noise, held_out = best[1]
            features = np.stack([_features(row, chosen, linear) for row in rows])
            coefficients = _ridge(features, target, np.array([penalty]))[:, 0] * scale
        coefficients[-1] += y.mean()
        return cls(chosen, linear, coefficients, noise * scale, np.sort(mixture_cdf(held_out, noise, target)))

    def mean(self, rows: Array) -> Array:
        """`f(h)` of rows `(N, c)`, `(N,)`."""
        features = _features(rows, self.kernels, self.linear)
        return np.asarray(features @ self.coefficients[:-1] + self.coefficients[-1])

    def quantile(self, means: Array, level: float) -> Array:
        """The number below which a share `level` of the nodes are, from the means of each draw `(S, N)`; calibrated."""
        return mixture_quantile(means, self.noise, calibrated_level(self.levels, level))


def calibrated_level(levels: Array, level: float) -> float:
    """The level of the mixture below which a share `level` of new numbers is.

    The rank among the held-out ones is that of split conformal prediction: a bound is a little too far out rather than
    too near.

    >>> round(calibrated_level(np.linspace(0.01, 0.99, 99), 0.95), 6)
    0.95
    """
    count = len(levels)
    rank = rank_of_level(count, level) if level >= 0.5 else count + 1 - rank_of_level(count, 1 - level)
    if not 1 <= rank <= count:  # more extreme than what so few nodes can tell
        return float(np.clip(level, 1e-9, 1 - 1e-9))
    return float(np.clip(levels[rank - 1], 1e-9, 1 - 1e-9))


def _features(rows: Array, kernels: Kernels | None, linear: bool) -> Array:
    parts = [rows] if linear else []
    parts += [] if kernels is None else [part.astype(np.float64) for part in kernels.features(rows)]
    return np.hstack(parts)


def _ridge(features: Array, y: Array, penalties: Array) -> Array:
    """The coefficients `(q + 1, L)` of ridge regressions on features of each draw `(S, n, q)`; last the intercept."""
    rows, target = features.reshape(-1, features.shape[2]), np.tile(y, len(features))
    center, middle = rows.mean(0), target.mean()
    values, axes = np.linalg.eigh((rows - center).T @ (rows - center))
    along = axes.T @ ((rows - center).T @ (target - middle))
    weights = axes @ (along[:, None] / (np.maximum(values, 0)[:, None] + len(rows) * penalties))
    return np.vstack([weights, middle - center @ weights])


def _held_out_means(features: Array, y: Array) -> Array:
    """What ridge regressions on the other folds predict for each node, `(L, S, n)`."""
    found = np.empty((len(PENALTIES), *features.shape[:2]))
    for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(y):
        weights = _ridge(features[:, train], y[train], PENALTIES)
        found[:, :, test] = np.moveaxis(features[:, test] @ weights[:-1] + weights[-1], 2, 0)
    return found


def _likeliest_noise(means: Array, y: Array) -> tuple[float, float]:
    """The s under which numbers `(n,)` are likeliest, given means `(S, n)`, and their log likelihood."""
    off = float(np.abs(y - means).mean()) + 1e-6

    def loss(log_s: float) -> float:
        return -float((log_sum_exp(-0.5 * np.square((y - means) / np.exp(log_s))) - log_s).sum())

    found = minimize_scalar(loss, bounds=(np.log(off) - 3, np.log(off) + 2), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(found.x)), -float(found.fun)
