r"""The position of a node among the others, from the connections alone.

Positions are the principal directions of the normalized adjacency matrix, by subspace iteration from random signs.
Nodes that are close in the graph have similar positions. They are learned from the training graph and kept, each with
the key of its node: a hash of its id, or its number. In another graph, a node that was in the training graph has its
position of then, and a new node has a position of 0. Propagated once, a new node is where its neighbors are.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bgcl.graph.keys import keys_of, mixed
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.propagation import Propagation

log = logging.getLogger("bgcl")

ROUNDS = 8
BY_NUMBER = (
    "This is not the training graph, and its nodes have no ids (data.ids). So the part 'structure' of the embedding "
    "takes a node by its number: nodes of both graphs must have the same numbers."
)


class Structure(nn.Module):
    """Positions of the nodes of the training graph.

    Args:
        width: number of directions.
        nodes: nodes of the training graph, if a fitted state is to be loaded.
    """

    known: Tensor  # (N, width), positions of the training graph's nodes
    keys: Tensor  # (N,), ascending

    def __init__(self, width: int, nodes: int = 0) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("known", torch.zeros(nodes, width))
        self.register_buffer("keys", torch.zeros(nodes, dtype=torch.int64))

    @torch.no_grad()
    def fit(self, graph: PreparedGraph) -> None:
        """Find the positions of a graph's nodes."""
        connections, found = Propagation(graph), random_signs(keys_of(graph), self.width)
        for _ in range(ROUNDS):
            found = connections(found)
            found = found @ orthonormal_turn(found.T @ found)
        self.keys, order = torch.sort(keys_of(graph))
        self.known = found[order]

    def warn_of_other_nodes(self, graph: PreparedGraph, is_same: Callable[[], bool]) -> None:
        """Positions are by the ids of nodes, or by their numbers, which mean little in another graph.

        Args:
            graph: a graph that is to be embedded.
            is_same: says whether it has the edges and attributes of the training graph, which takes time.
        """
        if not torch.isin(keys_of(graph), self.keys).any():
            log.warning(
                "No node of this graph was in the training graph, so the part 'structure' of the embedding is 0. If it "
                "has the same nodes, give both graphs the same ids (data.ids), or neither of them."
            )
        elif graph.keys is None and not is_same():
            log.warning(BY_NUMBER)

    def forward(self, graph: PreparedGraph) -> Tensor:
        """The positions of a graph's nodes, `(N, width)`; 0 for a node that the training graph did not have."""
        return self.of_keys(keys_of(graph))

    def of_keys(self, keys: Tensor) -> Tensor:
        """The positions of nodes with some keys, `(n, width)`."""
        place = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        return torch.where((self.keys[place] == keys)[:, None], self.known[place], 0.0)


@contextmanager
def same_numbers() -> Iterator[None]:
    """Say that graphs have the nodes of the training graph, with the same numbers, so that nobody is warned of it."""

    def others(record: logging.LogRecord) -> bool:
        return record.msg != BY_NUMBER

    log.addFilter(others)
    try:
        yield
    finally:
        log.removeFilter(others)


def random_signs(keys: Tensor, width: int) -> Tensor:
    """Signs `(N, width)` that depend only on a node's key, so that the order of the nodes does not matter."""
    column = torch.arange(width, device=keys.device)
    return ((mixed(keys[:, None], (column + 1) * _SILVER) >> 40) & 1).float() * 2 - 1


_SILVER = 0xD1B54A32D192ED03 - (1 << 64)  # as a signed number


def orthonormal_turn(products: Tensor) -> Tensor:
    """The `(w, w)` matrix that makes the columns of a tall matrix orthonormal, the strongest direction first.

    Directions that are lost to rounding get a turn of 0.

    Args:
        products: the products of the columns, `(w, w)`.
    """
    values, vectors = torch.linalg.eigh(products.cpu().double())  # some devices have no float64
    values, vectors = values.flip(0), vectors.flip(1)
    scale = torch.where(values > values[0] * 1e-5, values.clamp(min=1e-30).rsqrt(), 0.0)
    turn: Tensor = (vectors * scale).to(products)
    return turn
