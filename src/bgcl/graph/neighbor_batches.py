"""Batches of random nodes with some of their neighbors, for encoders with layers (Hamilton, Ying and Leskovec, 2017).

A batch begins with its seeds, and only these are in the loss. For each layer of the encoder, some random neighbors of
each node that was new before are added. Then the batch has all edges between its nodes. So a step costs the same on
every graph, and nothing has to be cut. A batch of clusters has more edges inside, and is better where METIS fits.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from bgcl.graph.clusters import induced
from bgcl.graph.epoch_batches import EpochBatches
from bgcl.graph.prepared import PreparedGraph


class NeighborBatches(EpochBatches):
    """The batches of an epoch: every node is a seed once, in random order.

    Args:
        graph: the graph.
        size: seeds in a batch.
        neighbors: for each layer, how many neighbors of a node are drawn. They are drawn with replacement, so a node
            may get fewer different ones.
    """

    def __init__(self, graph: PreparedGraph, size: int, neighbors: Sequence[int]) -> None:
        self.graph, self.size, self.neighbors = graph, size, tuple(neighbors)
        self.count = -(-graph.nodes // size)
        device = graph.connections.column.device
        self._number = torch.full((graph.nodes,), -1, device=device)
        self._seen = torch.zeros(graph.nodes, dtype=torch.bool, device=device)

    def plans(self, generator: torch.Generator) -> list[Tensor]:
        """The seeds of each batch."""
        order = torch.randperm(self.graph.nodes, generator=generator, device=generator.device)
        return list(order.tensor_split(self.count))

    def make(self, plan: Tensor, generator: torch.Generator) -> PreparedGraph:
        return self.batch(plan, generator)

    def batch(self, seeds: Tensor, generator: torch.Generator) -> PreparedGraph:
        """The batch of some seeds, which are its first nodes."""
        nodes, new = [seeds], seeds
        self._seen[seeds] = True
        for most in self.neighbors:
            found = self._some_neighbors(new, most, generator)
            new = torch.unique(found[~self._seen[found]])
            self._seen[new] = True
            nodes.append(new)
        every = torch.cat(nodes)
        self._seen[every] = False  # for the next batch
        return replace(induced(self.graph, every, self._number), seeds=len(seeds))

    def _some_neighbors(self, nodes: Tensor, most: int, generator: torch.Generator) -> Tensor:
        """Random connections of each node, `(n * most,)`: the nodes at their other ends."""
        first = self.graph.connections.pointer[nodes]
        counts = self.graph.connections.pointer[nodes + 1] - first
        uniform = torch.rand(len(nodes), most, generator=generator, device=generator.device)
        place = first[:, None] + (uniform * counts[:, None]).long().clamp(max=counts[:, None] - 1)
        return self.graph.connections.column[place.flatten()].long()
