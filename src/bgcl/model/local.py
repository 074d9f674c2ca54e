"""Draws of a few nodes from the part of the graph that they depend on.

A node depends on the nodes within some hops: those that the encoder and the parts of its embedding look at, and one
more, because a connection is normalized by the degrees of both its ends. Masks are hashes of the numbers of nodes, so
this part of the graph sees the draws of the whole graph.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from bgcl.graph.k_hop import k_hop
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.network import Network
from bgcl.model.parts import STEPS
from bgcl.model.posterior import draws

LAYERED = ("gcn", "sage", "gin", "gat")  # encoders whose layers look one hop far each


def reach_of(network: Network) -> int | None:
    """How many hops a node's draws depend on; None if they depend on the whole graph, or if it is not known."""
    settings = network.settings
    whole = network.parts.needs_alike or any(mask.kind == "subgraph" for mask in settings.masks())
    if whole or (settings.norm == "batch" and settings.encoder != "mlp"):
        return None
    if settings.encoder == "mlp":
        encoder = 0 if settings.norm != "batch" else None
    elif settings.encoder == "hops":
        encoder = settings.hops
    else:
        encoder = settings.layers if settings.encoder in LAYERED else None
    if encoder is None:
        return None
    parts = [
        (encoder if part.source == "encoder" else 0) + (STEPS if part.hops is None else part.hops)
        for part in network.parts.parts
    ]
    return max(parts) + 1


def draws_of_nodes(
    network: Network, graph: PreparedGraph, nodes: Tensor, numbers: Iterable[int], seed: int, *, scale: float | None,
    hard: bool,
) -> Iterator[Tensor]:  # fmt: skip
    """Draws of the embeddings of some nodes, each `(n, d)`: the rows that draws of the whole graph have.

    Args:
        network: a network whose nodes do not depend on the whole graph, see `reach_of`.
        graph: the scaled graph.
        nodes: the nodes, each once, `(n,)`.
        numbers, seed, scale, hard: see `bgcl.model.posterior.draws`.
    """
    reach = reach_of(network)
    assert reach is not None, "nodes depend on the whole graph"
    around = k_hop(graph, nodes, reach)
    for draw in draws(network, around, numbers, seed, scale=scale, hard=hard, alike={}):
        yield draw[: len(nodes)].clone()


def rows_of_draws(found: Iterator[Tensor], nodes: Tensor) -> Iterator[Tensor]:
    """The rows of some nodes in draws of the whole graph, each `(n, d)`."""
    with torch.no_grad():
        for draw in found:
            yield draw[nodes]
