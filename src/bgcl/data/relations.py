"""Relations: the edges of a type, or of a direction, as weights of the same connections.

- An undirected type t is one relation: each end of an edge is connected with the other.
- A directed type is two: `t out` connects a node with the nodes that its edges lead to, `t in` with those that edges
  come from. Without types they are called `out` and `in`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

MOST = 16  # types
MISSING = "(no type)"


@dataclass(frozen=True)
class Types:
    """The type of each edge: its number `(M,)`, -1 if it has none, and the names of the types."""

    codes: Array
    names: list[str]

    def of(self, use: Array) -> "Types":
        """The types of some edges."""
        return Types(self.codes[use], self.names)


def joined(types: Types | None, of_nodes: Types, source: Array, target: Array, *, directed: bool) -> Types:
    """Types of edges that also tell the types of both ends, such as `user rates film`.

    Without types of edges and without directions, `user - film` and `film - user` are the same.
    """
    kinds = sorted([*of_nodes.names, MISSING])
    rank = np.array([kinds.index(name) for name in (*of_nodes.names, MISSING)])  # the last is that of code -1
    first, last = rank[of_nodes.codes[source]], rank[of_nodes.codes[target]]
    if types is None and not directed:
        first, last = np.minimum(first, last), np.maximum(first, last)
    own = ["-"] if types is None else [*types.names, MISSING]
    middle = np.zeros(len(first), dtype=np.int64) if types is None else types.codes % len(own)
    every, codes = np.unique((first * len(own) + middle) * len(kinds) + last, return_inverse=True)
    names = [
        f"{kinds[key // len(kinds) // len(own)]} {own[key // len(kinds) % len(own)]} {kinds[key % len(kinds)]}"
        for key in every.tolist()
    ]
    return Types(codes, names)


def relations(
    pairs: Array, weights: Array | None, types: Types | None, edge_index: Array, nodes: int, *, directed: bool,
    where: str,
) -> tuple[list[str], Array]:  # fmt: skip
    """The names of the relations, and the weight of each connection in each of them, `(2E, R)`.

    Args:
        pairs: the edges as they were given, `(2, M)`: source and target.
        weights: their weights; None: 1, however often an edge is there.
        types: their types; None: they have one.
        edge_index: the clean edges `(2, 2E)` in both directions.
        nodes: number of nodes.
        directed: whether directions count.
        where: source of the edges, for errors.
    """
    types = types or Types(np.zeros(pairs.shape[1], dtype=np.int64), [""])
    names = [*types.names, MISSING] if (types.codes < 0).any() else types.names
    if len(names) > MOST:
        raise BGCLError(
            f"{where}: edges have {len(names)} types, and a model tells at most {MOST} apart. Give rare types one name."
        )
    found, columns = list[str](), list[Array]()
    for code, name in enumerate(names):
        use = (types.codes == (code if code < len(types.names) else -1)) & (pairs[0] != pairs[1])
        values = np.ones(int(use.sum())) if weights is None else weights[use]
        there = csr_matrix((values, (pairs[0][use], pairs[1][use])), shape=(nodes, nodes))
        there.sum_duplicates()
        back = csr_matrix(there.T)
        if directed:
            both = [(f"{name} out".strip(), there), (f"{name} in".strip(), back)]
        else:
            both = [(name, there if (there != back).nnz == 0 else csr_matrix(there + back))]
        for title, matrix in both:
            column = np.asarray(matrix[edge_index[0], edge_index[1]], dtype=np.float32).ravel()
            found.append(title)
            columns.append(column if weights is not None else (column > 0).astype(np.float32))
    if directed and all(np.array_equal(columns[i], columns[i + 1]) for i in range(0, len(columns), 2)):
        raise BGCLError(
            f"{where}: every edge is there in both directions, so directions say nothing: leave out --directed."
        )
    return found, np.stack(columns, axis=1)
