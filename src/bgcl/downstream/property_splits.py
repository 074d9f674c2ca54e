r"""Splits in which test nodes differ from training nodes by their place in the graph (Bazhenov et al., 2023).

Nodes are sorted by a property, and the first half is of the known kind: training, validation and test nodes are drawn
from it at random. The other half is of the unknown kind.

- "popularity": PageRank. Known nodes are the popular ones.
- "locality": personalized PageRank from the most popular node. Known nodes are near to it.
- "density": the clustering coefficient. Known nodes have neighbors that know each other.

Ties are broken at random. `torch_geometric.transforms.NodePropertySplit` makes the same splits with networkx, which is
slow on graphs of more than some thousand nodes; here the properties are products with sparse matrices.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from bgcl.downstream.splits import Split, labels_of
from bgcl.errors import BGCLError, nearest

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

PROPERTIES = ("popularity", "locality", "density")
TRAIN, VALIDATION, TEST = 0.3, 0.1, 0.1  # shares of all nodes; the others are of the unknown kind
_DAMPING, _TOLERANCE, _MOST = 0.85, 1e-10, 500


@dataclass(frozen=True)
class PropertySplit:
    """A split of the nodes of the known kind, and the nodes of the unknown kind.

    Attributes:
        split: training, validation and test nodes of the known kind.
        unknown: nodes of the unknown kind with a label, from those that are most like known ones to the least.
    """

    split: Split
    unknown: Array


def property_splits(data: "Data", name: str, count: int = 10) -> list[PropertySplit]:
    """Split the labeled nodes by a property.

    Args:
        data: a graph with labels.
        name: one of `PROPERTIES`.
        count: the number of splits. The first ones are the same for every count.

    Returns:
        The splits.

    Raises:
        BGCLError: the property is unknown, or some class has too few nodes of the known kind.

    >>> import bgcl
    >>> found = property_splits(bgcl.load("cora"), "popularity", 1)[0]
    >>> len(found.split.train), len(found.split.test), len(found.unknown)
    (812, 270, 1356)
    """
    value, labels = node_property(data, name), labels_of(data)
    labeled = np.flatnonzero(labels >= 0)
    cut = np.cumsum([int(share * len(labeled)) for share in (TRAIN, VALIDATION, TEST)])
    found = []
    for number in range(count):
        random = np.random.default_rng((number, PROPERTIES.index(name)))
        nodes = random.permutation(labeled)
        nodes = nodes[np.argsort(-value[nodes], kind="stable")]
        known = random.permutation(nodes[: cut[2]])
        train, validation, test = known[: cut[0]], known[cut[0] : cut[1]], known[cut[1] :]
        counts = np.bincount(labels[train], minlength=2)
        if (counts > 1).sum() < 2 or not len(test):
            raise BGCLError(
                f"Of the nodes with the greatest {name}, too few are labeled to train on: two classes with two nodes "
                "each are needed. Label more nodes, or use another shift."
            )
        found.append(PropertySplit(Split(train, validation, test), nodes[cut[2] :]))
    return found


def node_property(data: "Data", name: str) -> Array:
    """A property of each node, `(N,)`; greater for nodes of the known kind.

    Args:
        data: a graph.
        name: one of `PROPERTIES`.

    Raises:
        BGCLError: the property is unknown.
    """
    if name not in PROPERTIES:
        raise BGCLError(f"Unknown property '{name}' of nodes. {nearest(name, PROPERTIES)}")
    adjacency = _adjacency(data)
    if name == "density":
        return clustering(adjacency)
    popularity = pagerank(adjacency, np.full(adjacency.shape[0], 1 / adjacency.shape[0]))
    if name == "popularity":
        return popularity
    return pagerank(adjacency, np.eye(1, adjacency.shape[0], int(popularity.argmax()))[0])


def pagerank(adjacency: csr_matrix, start: Array) -> Array:
    """`p = d P' p + (1 - d) s` with `P = D^-1 A`; a walk from a node without neighbors starts again, `(N,)`."""
    degree = np.asarray(adjacency.sum(1)).ravel()
    found = start
    for _ in range(_MOST):
        share = np.where(degree > 0, found / np.maximum(degree, 1), 0)
        lost = found[degree == 0].sum()
        following = _DAMPING * (adjacency.T @ share + lost * start) + (1 - _DAMPING) * start
        change = np.abs(following - found).sum()
        found = following
        if change < _TOLERANCE:
            break
    return found


def clustering(adjacency: csr_matrix) -> Array:
    """The share of the pairs of a node's neighbors that have an edge; 0 for fewer than two neighbors, `(N,)`."""
    degree = np.asarray(adjacency.sum(1)).ravel()
    closed = np.asarray((adjacency @ adjacency).multiply(adjacency).sum(1)).ravel()
    pairs = degree * (degree - 1)
    return np.where(pairs > 0, closed / np.maximum(pairs, 1), 0.0)


def _adjacency(data: "Data") -> csr_matrix:
    """Zeros and ones, in both directions of each edge, without self-connections, `(N, N)`."""
    row, column = data.edge_index.cpu().numpy()
    kept = row != column
    both = np.concatenate([row[kept], column[kept]]), np.concatenate([column[kept], row[kept]])
    found = csr_matrix((np.ones(2 * kept.sum()), both), shape=(data.num_nodes, data.num_nodes))
    found.data[:] = 1
    return found
