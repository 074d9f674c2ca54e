"""A map of the nodes in two dimensions, and the positions of each node's draws on it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

Array = npt.NDArray[Any]

CLOUD = 12  # number of draws of each node that the map shows
NEIGHBORS = 10  # number of nodes between which a draw is placed
LANDMARKS = 3000  # in a larger graph, draws are compared with this many nodes only
AFFINE = 15  # number of nearest nodes that t-SNE keeps close
SMALL = 3 * AFFINE  # with fewer nodes, most nodes are neighbors and t-SNE has nothing to show
FFT = 2_000  # with more nodes, interpolation on a grid is faster than a tree (Barnes-Hut), which has no fixed cost
LARGE = 20_000  # with more nodes, t-SNE takes fewer steps
_TILE = 4096  # rows of a matrix of similarities that are computed at a time


@dataclass(frozen=True)
class NodeMap:
    """The positions of the nodes and of their draws, and the method that placed them."""

    position: Array  # (N, 2)
    cloud: Array  # (D, N, 2)
    method: str  # "t-SNE" or "PCA"


def make_map(mean: Array, draws: Array, *, seed: int = 0, tsne: bool | None = None) -> NodeMap:
    """Place the nodes on a map, then their draws.

    Embeddings are compared by their cosines, as in the contrastive loss. The same embeddings and seed give the same
    map on any number of processors.

    Args:
        mean: mean embeddings, `(N, d)`.
        draws: some draws of the embeddings, `(D, N, d)`.
        seed: seed of the layout.
        tsne: use t-SNE, not PCA; None: if openTSNE is installed. A graph of fewer than `SMALL` nodes always has PCA.
    """
    unit = _unit(mean)
    if tsne is None:
        tsne = has_tsne()
    enough = tsne and len(unit) >= SMALL
    with threadpool_limits(1):  # threads add numbers in any order, and the map must not change from run to run
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
    if axes < 1 or not np.ptp(unit, axis=0).any():  # one node, or all nodes are equal
        return np.zeros((len(unit), 2))
    found = PCA(axes, random_state=seed).fit_transform(unit.astype(np.float64))
    return np.pad(found, ((0, 0), (0, 2 - axes)))


def _tsne(unit: Array, seed: int) -> Array:
    from openTSNE import TSNE
    from openTSNE.affinity import Uniform
    from openTSNE.nearest_neighbors import PrecomputedNeighbors

    nodes = len(unit)
    # If many rows are equal, PCA has no spread to scale by. A little noise keeps the start of t-SNE defined.
    start = _pca(unit, seed)
    start = start / max(float(start[:, 0].std()), 1e-12) * 1e-4
    start += np.random.default_rng(seed).normal(scale=1e-7, size=start.shape)
    # Affinities of 1/k to the k nearest nodes give a similar map to those from a perplexity, at a tenth of the cost.
    known = PrecomputedNeighbors(*nearest_nodes(unit, AFFINE))
    affinities = Uniform(knn_index=known, k_neighbors=AFFINE, n_jobs=1)
    early, late = (150, 350) if nodes <= LARGE else (100, 200)
    forces = "fft" if nodes > FFT else "bh"
    layout = TSNE(
        early_exaggeration_iter=early, n_iter=late, negative_gradient_method=forces, n_jobs=1, random_state=seed
    )
    return np.asarray(layout.fit(affinities=affinities, initialization=start))


def nearest_nodes(unit: Array, k: int) -> tuple[Array, Array]:
    """The k nearest other nodes of each unit embedding `(N, d)`, nearest first, and their distances, both `(N, k)`."""
    found, distance = np.empty((len(unit), k), dtype=np.int64), np.empty((len(unit), k))
    for start in range(0, len(unit), _TILE // 4):
        rows = np.arange(start, min(start + _TILE // 4, len(unit)))
        cosine = unit[rows] @ unit.T
        cosine[rows - start, rows] = -np.inf
        near = np.argpartition(cosine, -k, axis=1)[:, -k:]
        similarity = np.take_along_axis(cosine, near, 1)
        order = np.argsort(-similarity, axis=1, kind="stable")
        found[rows] = np.take_along_axis(near, order, 1)
        distance[rows] = np.sqrt(np.maximum(2 - 2 * np.take_along_axis(similarity, order, 1), 0))
    return found, distance


def place_draws(draws: Array, unit: Array, position: Array, *, seed: int = 0, landmarks: int = LANDMARKS) -> Array:
    """Place draws between the nodes whose mean embeddings are most similar to them.

    A draw is placed at `sum_j w_j y_j / sum_j w_j` with `w_j = exp(-3 (s_1 - s_j) / (s_1 - s_k))`, where j runs over
    the `NEIGHBORS` most similar nodes, `y_j` are their positions and `s_1 >= ... >= s_k` their cosines to the draw.

    Args:
        draws: draws of the embeddings, `(D, N, d)`.
        unit: mean embeddings of unit length, `(N, d)`.
        position: positions of the nodes, `(N, 2)`.
        seed: seed of the choice of landmarks.
        landmarks: in a graph with more nodes, a draw is compared with this many nodes, chosen at random, and with its
            own node.

    Returns:
        Positions of the draws, `(D, N, 2)`.
    """
    nodes = len(unit)
    chosen = np.arange(nodes)
    if nodes > landmarks:
        chosen = np.sort(np.random.default_rng(seed).choice(nodes, landmarks, replace=False))
    marks, k = unit[chosen].T, min(NEIGHBORS, len(chosen))
    found = np.empty((len(draws), nodes, 2))
    for d, draw in enumerate(draws):
        for start in range(0, nodes, _TILE):
            rows = np.arange(start, min(start + _TILE, nodes))
            x = _unit(draw[rows])
            cosine = x @ marks
            near = np.argpartition(-cosine, k - 1, axis=1)[:, :k]
            similarity = np.take_along_axis(cosine, near, 1).astype(np.float64)  # (rows, k)
            neighbor = chosen[near]
            if nodes > landmarks:  # add the draw's own node; if it is a landmark, it counts twice, which does no harm
                similarity = np.column_stack([similarity, (x * unit[rows]).sum(1)])
                neighbor = np.column_stack([neighbor, rows])
            best, least = similarity.max(1, keepdims=True), similarity.min(1, keepdims=True)
            weight = np.exp(-3 * (best - similarity) / np.maximum(best - least, 1e-12))
            found[d, rows] = (weight[:, :, None] * position[neighbor]).sum(1) / weight.sum(1, keepdims=True)
    return found
