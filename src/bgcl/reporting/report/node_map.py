"""A map of the nodes in two dimensions, and where on it the single draws of each node fall."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

Array = npt.NDArray[Any]

CLOUD = 12  # draws of each node that the map shows
NEIGHBOURS = 10  # nodes that say where a draw falls
LANDMARKS = 3000  # of a larger graph, only so many nodes may say so
AFFINE = 15  # nearest nodes that t-SNE keeps near
SMALL = 3 * AFFINE  # nodes; in a smaller graph most nodes are neighbours, and t-SNE has nothing to show
LARGE = 20_000  # nodes; beyond this t-SNE takes fewer steps
_TILE = 4096


@dataclass(frozen=True)
class NodeMap:
    """Where the nodes are, `(N, 2)`, where their draws fall, `(D, N, 2)`, and by which method."""

    position: Array
    cloud: Array
    method: str  # "t-SNE" or "PCA"


def make_map(mean: Array, draws: Array, *, seed: int = 0, tsne: bool | None = None) -> NodeMap:
    """Place nodes by their mean embeddings `(N, d)`, then their draws `(D, N, d)`.

    Embeddings are compared by their cosines, as the contrastive loss does. `tsne` is whether to use openTSNE; by itself
    where it is installed. The same embeddings and seed give the same map, whatever the number of processors.
    """
    unit = _unit(mean)
    if tsne is None:
        tsne = has_tsne()
    enough = tsne and len(unit) >= SMALL
    with threadpool_limits(1):  # sums over threads come in any order, and a map must not change from run to run
        position = _tsne(unit, seed) if enough else _pca(unit, seed)
        return NodeMap(position, place_draws(draws, unit, position, seed=seed), "t-SNE" if enough else "PCA")


def has_tsne() -> bool:
    """Whether openTSNE can be imported."""
    try:
        import openTSNE  # noqa: F401
    except ImportError:
        return False
    return True


def _unit(x: Array) -> Array:
    x = np.asarray(x, dtype=np.float32)
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12))


def _pca(unit: Array, seed: int) -> Array:
    axes = min(2, len(unit) - 1, unit.shape[1])
    if axes < 1 or not np.ptp(unit, axis=0).any():  # one node, or all alike: there is nothing to tell apart
        return np.zeros((len(unit), 2))
    found = PCA(axes, random_state=seed).fit_transform(unit.astype(np.float64))
    return np.pad(found, ((0, 0), (0, 2 - axes)))


def _tsne(unit: Array, seed: int) -> Array:
    from openTSNE import TSNE
    from openTSNE.affinity import Uniform
    from openTSNE.nearest_neighbors import PrecomputedNeighbors

    nodes = len(unit)
    # Many equal rows leave PCA no spread to scale by; a little noise keeps t-SNE's start defined.
    start = _pca(unit, seed)
    start = start / max(float(start[:, 0].std()), 1e-12) * 1e-4
    start += np.random.default_rng(seed).normal(scale=1e-7, size=start.shape)
    # Affinities 1/k to the k nearest nodes look like those of a perplexity, and cost a tenth.
    known = PrecomputedNeighbors(*nearest_nodes(unit, AFFINE))
    affinities = Uniform(knn_index=known, k_neighbors=AFFINE, n_jobs=1)
    early, late = (150, 350) if nodes <= LARGE else (100, 200)
    layout = TSNE(
        early_exaggeration_iter=early, n_iter=late, negative_gradient_method="fft", n_jobs=1, random_state=seed
    )
    return np.asarray(layout.fit(affinities=affinities, initialization=start))


def nearest_nodes(unit: Array, k: int) -> tuple[Array, Array]:
    """The k nearest other nodes of each unit embedding, nearest first, and their distances, both `(N, k)`."""
    found, far = np.empty((len(unit), k), dtype=np.int64), np.empty((len(unit), k))
    for start in range(0, len(unit), _TILE // 4):
        rows = np.arange(start, min(start + _TILE // 4, len(unit)))
        cosine = unit[rows] @ unit.T
        cosine[rows - start, rows] = -np.inf
        near = np.argpartition(cosine, -k, axis=1)[:, -k:]
        like = np.take_along_axis(cosine, near, 1)
        order = np.argsort(-like, axis=1, kind="stable")
        found[rows] = np.take_along_axis(near, order, 1)
        far[rows] = np.sqrt(np.maximum(2 - 2 * np.take_along_axis(like, order, 1), 0))
    return found, far


def place_draws(draws: Array, unit: Array, position: Array, *, seed: int = 0, landmarks: int = LANDMARKS) -> Array:
    """Where draws `(D, N, d)` fall on a map of unit embeddings `(N, d)` at positions `(N, 2)`: `(D, N, 2)`.

    A draw falls between the `NEIGHBOURS` nodes j whose mean embeddings are most like it, at `sum_j w_j y_j / sum_j w_j`
    with `w_j = exp(-3 (s_1 - s_j) / (s_1 - s_k))`, where `s_1 >= ... >= s_k` are the cosines. In a graph of more than
    `landmarks` nodes a draw is compared with that many, chosen at random, and with its own node.
    """
    nodes = len(unit)
    chosen = np.arange(nodes)
    if nodes > landmarks:
        chosen = np.sort(np.random.default_rng(seed).choice(nodes, landmarks, replace=False))
    marks, k = unit[chosen].T, min(NEIGHBOURS, len(chosen))
    found = np.empty((len(draws), nodes, 2))
    for d, draw in enumerate(draws):
        for start in range(0, nodes, _TILE):
            rows = np.arange(start, min(start + _TILE, nodes))
            x = _unit(draw[rows])
            cosine = x @ marks
            near = np.argpartition(-cosine, k - 1, axis=1)[:, :k]
            like = np.take_along_axis(cosine, near, 1).astype(np.float64)  # (rows, k)
            where = chosen[near]
            if nodes > landmarks:  # the own node takes part too; twice where it is a landmark, which does no harm
                like = np.column_stack([like, (x * unit[rows]).sum(1)])
                where = np.column_stack([where, rows])
            best, least = like.max(1, keepdims=True), like.min(1, keepdims=True)
            weight = np.exp(-3 * (best - like) / np.maximum(best - least, 1e-12))
            found[d, rows] = (weight[:, :, None] * position[where]).sum(1) / weight.sum(1, keepdims=True)
    return found
