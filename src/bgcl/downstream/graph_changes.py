"""Changes of a graph of growing strength, to see how accuracy and confidence hold when a graph drifts.

- "bernoulli", "normal": the attributes of a share of the nodes are noise: each entry is 0 or 1 with equal probability,
  or normal with N(0, 1).
- "columns": a share of the columns of the attributes is missing, which means zero.
- "dropped": a share of the edges is missing.
- "rewired": a share of the edges joins two random nodes instead.
"""

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix, vstack
from torch import Tensor

from bgcl.errors import BGCLError, nearest
from bgcl.graph.csr import without_beta_warning

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]
Random = np.random.Generator

CHANGES = ("bernoulli", "normal", "columns", "dropped", "rewired")


def _bernoulli(shape: tuple[int, int], random: Random) -> Array:
    return (random.random(shape, dtype=np.float32) < 0.5).astype(np.float32)


def _normal(shape: tuple[int, int], random: Random) -> Array:
    return random.standard_normal(shape, dtype=np.float32)


NOISE: dict[str, Callable[[tuple[int, int], Random], Array]] = {"bernoulli": _bernoulli, "normal": _normal}


def changed(data: "Data", kind: str, share: float, random: Random) -> "Data":
    """Change a share of a graph.

    Args:
        data: the graph.
        kind: one of `CHANGES`.
        share: the share of nodes, columns or edges to change, from 0 to 1.
        random: source of random numbers.

    Returns:
        A graph with the same nodes and as many attributes.

    Raises:
        BGCLError: the kind is unknown, or the share is not between 0 and 1.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> fewer = changed(data, "dropped", 0.5, np.random.default_rng(0))
    >>> data.num_edges, fewer.num_edges  # each edge is there in both directions
    (1962, 982)
    """
    if kind not in CHANGES:
        raise BGCLError(f"Unknown change '{kind}' of a graph. {nearest(kind, CHANGES)}")
    if not 0 <= share <= 1:
        raise BGCLError(f"The share of a graph that changes must be between 0 and 1. Got {share} instead.")
    if kind in NOISE:
        nodes = random.choice(data.num_nodes, round(share * data.num_nodes), replace=False)
        return with_noise(data, nodes, kind, random)
    make = {"columns": _without_columns, "dropped": _with_fewer_edges, "rewired": _rewired}
    return make[kind](data, share, random)


def with_noise(data: "Data", nodes: Array, kind: str, random: Random) -> "Data":
    """Replace the attributes of some nodes by noise: each entry is Bernoulli(0.5), or normal with N(0, 1).

    Args:
        data: the graph.
        nodes: numbers of the nodes.
        kind: "bernoulli" or "normal".
        random: source of random numbers.

    Returns:
        A graph with the same edges.
    """
    rows = attribute_rows(data.x)
    noise = csr_matrix(NOISE[kind]((len(nodes), rows.shape[1]), random))
    place = np.arange(rows.shape[0])
    place[nodes] = rows.shape[0] + np.arange(len(nodes))
    return with_attributes(data, vstack([rows, noise], format="csr")[place])


def _without_columns(data: "Data", share: float, random: Random) -> "Data":
    rows = attribute_rows(data.x)
    kept = np.ones(rows.shape[1], dtype=np.float32)
    kept[random.choice(rows.shape[1], round(share * rows.shape[1]), replace=False)] = 0
    found = csr_matrix(rows.multiply(kept))
    found.eliminate_zeros()
    return with_attributes(data, found)


def _with_fewer_edges(data: "Data", share: float, random: Random) -> "Data":
    once, number = _edges(data)
    lost = random.choice(once, round(share * once), replace=False)
    return _with_connections(data, ~np.isin(number, lost), None)


def _rewired(data: "Data", share: float, random: Random) -> "Data":
    once, number = _edges(data)
    lost = random.choice(once, round(share * once), replace=False)
    first = random.integers(data.num_nodes, size=len(lost))
    second = (first + random.integers(1, max(data.num_nodes, 2), size=len(lost))) % data.num_nodes  # another node
    return _with_connections(data, ~np.isin(number, lost), np.stack([first, second]))


def _edges(data: "Data") -> tuple[int, Array]:
    """The number of undirected edges, and for each column of `edge_index` the number of its edge."""
    row, column = data.edge_index.cpu().numpy()
    key = np.minimum(row, column) * data.num_nodes + np.maximum(row, column)
    distinct, number = np.unique(key, return_inverse=True)
    return len(distinct), number


def _with_connections(data: "Data", kept: Array, new: Array | None) -> "Data":
    """The graph with some of its connections, and with new edges in both directions, `(2, n)`."""
    found = copy(data)
    mask = torch.as_tensor(kept, device=data.edge_index.device)
    found.edge_index = data.edge_index[:, mask]
    both = None if new is None else torch.as_tensor(np.concatenate([new, new[::-1]], axis=1)).to(data.edge_index)
    if both is not None:
        found.edge_index = torch.cat([found.edge_index, both], dim=1)
    for name in ("edge_weight", "edge_relations"):  # a new edge has the weight, or the relations, of a random other one
        if data.get(name) is not None:
            values = data[name][mask]
            if both is not None and len(values):
                lost = data[name][~mask][: both.shape[1] // 2]
                values = torch.cat([values, lost, lost])
            found[name] = values
    return found


def attribute_rows(x: Tensor) -> csr_matrix:
    """Attributes as a sparse matrix `(N, F)`."""
    if x.layout == torch.sparse_csr:
        parts = (x.values().cpu().numpy(), x.col_indices().cpu().numpy(), x.crow_indices().cpu().numpy())
        return csr_matrix(parts, shape=tuple(x.shape), dtype=np.float32)
    return csr_matrix(x.cpu().numpy(), dtype=np.float32)


def with_attributes(data: "Data", rows: csr_matrix) -> "Data":
    """The graph with other attributes, sparse or dense as they were."""
    found = copy(data)
    if data.x.layout != torch.sparse_csr:
        found.x = torch.as_tensor(rows.toarray())
        return found
    rows.sort_indices()
    parts = (torch.as_tensor(part) for part in (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data))
    found.x = without_beta_warning(torch.sparse_csr_tensor, *parts, size=rows.shape)
    return found
