r"""Random walks on a graph. All walks take a step together, with a few array operations.

A first-order walk goes to each neighbor with the same probability. A second-order walk that came from t to v goes to
the neighbor x with a probability proportional to

    1/p if x = t,    1 if x is a neighbor of t,    1/q otherwise.

Second-order steps are drawn by rejection sampling: propose a random neighbor, accept it with probability
`weight / greatest weight`, or else propose again.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Neighbors:
    """The neighbors of each node in compressed rows, sorted within each row."""

    pointer: Array  # (N + 1,)
    neighbor: Array  # (E,)

    @classmethod
    def of(cls, data: Data) -> "Neighbors":
        """The neighbors in a checked graph."""
        nodes = data.num_nodes
        source, target = data.edge_index.numpy()
        key = np.sort(source * nodes + target)
        degree = np.bincount(source, minlength=nodes)
        return cls(np.concatenate([[0], np.cumsum(degree)]), key % nodes)

    @property
    def nodes(self) -> int:
        return len(self.pointer) - 1

    @cached_property
    def degree(self) -> Array:
        return np.diff(self.pointer)

    @cached_property
    def _key(self) -> Array:
        """`v N + u` for each edge from v to u, in ascending order."""
        return np.repeat(np.arange(self.nodes), self.degree) * self.nodes + self.neighbor

    def connected(self, v: Array, u: Array) -> Array:
        """Whether there is an edge from v to u, for each pair."""
        if not len(self._key):
            return np.zeros(len(v), dtype=bool)
        wanted = v * self.nodes + u
        place = np.searchsorted(self._key, wanted).clip(max=len(self._key) - 1)
        return np.asarray(self._key[place] == wanted)

    def step(self, v: Array, random: np.random.Generator) -> Array:
        """A random neighbor of each v; v itself if it has no neighbors."""
        degree = self.degree[v]
        chosen = self.pointer[v] + (random.random(len(v)) * degree).astype(np.int64)
        moves = degree > 0
        following = v.copy()
        following[moves] = self.neighbor[chosen[moves]]
        return following

    def second_order_step(self, t: Array, v: Array, p: float, q: float, random: np.random.Generator) -> Array:
        """The next node of each walk that came from t to v."""
        greatest = max(1 / p, 1.0, 1 / q)
        following = v.copy()
        waiting = np.flatnonzero(self.degree[v] > 0)
        while len(waiting):
            proposed = self.step(v[waiting], random)
            before = t[waiting]
            weight = np.where(proposed == before, 1 / p, np.where(self.connected(before, proposed), 1.0, 1 / q))
            accepted = random.random(len(waiting)) * greatest < weight
            following[waiting[accepted]] = proposed[accepted]
            waiting = waiting[~accepted]
        return following


def random_walks(
    neighbors: Neighbors, walks: int, length: int, random: np.random.Generator, *, p: float = 1.0, q: float = 1.0
) -> Array:
    """Walk from every node.

    Args:
        neighbors: the graph.
        walks: the number of walks from each node.
        length: the number of nodes in a walk.
        random: the random generator.
        p: return parameter; see the top of this module.
        q: in-out parameter. With `p = q = 1`, the walks are first-order walks.

    Returns:
        Node numbers, `(walks * N, length)`.
    """
    start = np.concatenate([random.permutation(neighbors.nodes) for _ in range(walks)])
    steps = [start]
    for i in range(1, length):
        if i == 1 or p == q == 1:
            steps.append(neighbors.step(steps[-1], random))
        else:
            steps.append(neighbors.second_order_step(steps[-2], steps[-1], p, q, random))
    return np.stack(steps, axis=1)
