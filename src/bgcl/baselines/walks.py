r"""Random walks on a graph, all of them at once: a step is a few operations on arrays as long as there are walks.

A first-order walk goes to each neighbour with the same probability. A second-order walk, which came from t and stands
at v, goes to the neighbour x with a probability in proportion to

    1/p if x = t,    1 if x is a neighbour of t,    1/q otherwise,

drawn by rejection: propose a neighbour at random, accept it with its weight over the greatest one, else propose again.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of each node in compressed rows, sorted within a row."""

    pointer: Array  # (N + 1,)
    neighbour: Array  # (E,)

    @classmethod
    def of(cls, data: Data) -> "Neighbours":
        """Those of a clean graph."""
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
        """`v N + u` for each edge from v to u, in rising order."""
        return np.repeat(np.arange(self.nodes), self.degree) * self.nodes + self.neighbour

    def connected(self, v: Array, u: Array) -> Array:
        """Whether there is an edge from v to u, for each pair."""
        if not len(self._key):
            return np.zeros(len(v), dtype=bool)
        wanted = v * self.nodes + u
        place = np.searchsorted(self._key, wanted).clip(max=len(self._key) - 1)
        return np.asarray(self._key[place] == wanted)

    def step(self, v: Array, random: np.random.Generator) -> Array:
        """A random neighbour of each v; a node without neighbours stays where it is."""
        degree = self.degree[v]
        chosen = self.pointer[v] + (random.random(len(v)) * degree).astype(np.int64)
        moves = degree > 0
        following = v.copy()
        following[moves] = self.neighbour[chosen[moves]]
        return following

    def second_order_step(self, t: Array, v: Array, p: float, q: float, random: np.random.Generator) -> Array:
        """The next node of walks that came from t to v."""
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
    neighbours: Neighbours, walks: int, length: int, random: np.random.Generator, *, p: float = 1.0, q: float = 1.0
) -> Array:
    """`walks` walks of `length` nodes from every node, `(walks * N, length)`; in each round the nodes are shuffled.

    With `p = q = 1` they are first-order walks.
    """
    start = np.concatenate([random.permutation(neighbours.nodes) for _ in range(walks)])
    steps = [start]
    for i in range(1, length):
        if i == 1 or p == q == 1:
            steps.append(neighbours.step(steps[-1], random))
        else:
            steps.append(neighbours.second_order_step(steps[-2], steps[-1], p, q, random))
    return np.stack(steps, axis=1)
