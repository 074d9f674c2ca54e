"""Batches of random nodes, each with one of its neighbors. Their cost does not depend on the size of the graph."""

import torch
from torch import Tensor

from bgcl.graph.clusters import feature_rows
from bgcl.graph.epoch_batches import EpochBatches
from bgcl.graph.prepared import Features, PreparedGraph, SparseFeatures, numbers_of, to_dense
from bgcl.graph.sparse import Pattern, row_sum

DENSE = 0.1  # features with a greater share of nonzero entries are kept as a plain matrix


class NodeBatches(EpochBatches):
    """The batches of an epoch: every node once, in random order, and a random neighbor of each.

    In a batch, a node is connected with itself and with its neighbor. This connection stands for all connections of the
    node, so its count is their number. If edges have weights, a neighbor is drawn with a probability in proportion to
    the weight of the edge, and the count is the sum of the weights. An encoder that needs all neighbors of a node
    cannot use such batches.

    Args:
        graph: the graph.
        size: nodes in a batch, without their neighbors.
    """

    def __init__(self, graph: PreparedGraph, size: int) -> None:
        features = graph.features
        if isinstance(features, SparseFeatures):
            pattern = features.pattern
            if len(pattern) > DENSE * pattern.rows * pattern.columns:
                features = to_dense(features)
        self.graph, self.features, self.size = graph, features, size
        self.degree = graph.connections.pointer.diff() - 1
        self.itself = torch.nonzero(graph.is_self[:, 0])[:, 0]  # the place of each self-connection
        self.total: Tensor = self.degree  # (N,), what a neighbor stands for
        self.until: Tensor | None = None  # (E,), the weight of the edges up to each one
        if graph.weights is not None:
            # Some devices have no float64.
            of_edges = graph.weights.cpu().double().masked_fill(graph.is_self[:, 0].cpu(), 0.0)
            self.until = of_edges.cumsum(0)
            self.total = row_sum(graph.connections, of_edges.float().to(graph.weights)[:, None])[:, 0]
        self.count = -(-graph.nodes // size)

    def plans(self, generator: torch.Generator) -> list[Tensor]:
        """The nodes of each batch."""
        order = torch.randperm(self.graph.nodes, generator=generator, device=generator.device)
        return list(order.tensor_split(self.count))

    def make(self, plan: Tensor, generator: torch.Generator) -> PreparedGraph:
        return self.batch(plan, generator)

    def batch(self, nodes: Tensor, generator: torch.Generator) -> PreparedGraph:
        """The batch of some nodes and a random neighbor of each that has one."""
        degree = self.degree[nodes]
        there = self._edges(nodes[degree > 0], generator)
        partner = self.graph.connections.column[there]
        first = torch.nonzero(degree > 0)[:, 0]  # numbers in the batch of nodes with a partner
        second = len(nodes) + torch.arange(len(first), device=nodes.device)
        total = len(nodes) + len(first)
        size = torch.ones(total, dtype=torch.int64, device=nodes.device)
        size[first] = size[second] = 2
        pointer = torch.cat([size.new_zeros(1), size.cumsum(0)])
        column = torch.empty(int(pointer[-1]), dtype=torch.int64, device=nodes.device)
        counts = torch.ones(len(column), device=nodes.device)
        start = pointer[:-1]
        column[start] = torch.arange(total, device=nodes.device)  # right for nodes that stand alone
        column[start[first]], column[start[first] + 1] = first, second
        column[start[second]], column[start[second] + 1] = first, second
        relations = None
        if self.graph.relations is not None:
            relations = torch.zeros(len(column), self.graph.relations.shape[1], device=nodes.device)
            relations[start[first] + 1] = self.graph.relations[there]
            back = self.graph.connections.transposed[1]  # (E,), the place of each connection in the other direction
            relations[start[second]] = self.graph.relations[back[there]]
        counts[start[first] + 1] = self.total[nodes][first].float()
        counts[start[second]] = self.total[partner].float()
        chosen = torch.cat([nodes, partner])
        features = self.rows(chosen)
        numbers = numbers_of(self.graph)[chosen]
        pattern = Pattern(pointer, column, total)
        return PreparedGraph(pattern, features, counts=counts, relations=relations, numbers=numbers)

    def rows(self, nodes: Tensor) -> Features:
        """The features of some nodes. A node may occur more than once."""
        return feature_rows(self.features, nodes)

    def _edges(self, nodes: Tensor, generator: torch.Generator) -> Tensor:
        """The place of a random edge of each node."""
        uniform = torch.rand(len(nodes), generator=generator, device=generator.device)
        if self.until is not None:
            return self._by_weight(nodes, uniform, self.until)
        degree = self.degree[nodes]
        place = self.graph.connections.pointer[nodes] + (uniform * degree).long().clamp(max=degree - 1)
        return place + (place >= self.itself[nodes])  # the self-connection does not count

    def _by_weight(self, nodes: Tensor, uniform: Tensor, until: Tensor) -> Tensor:
        """The place of a random edge of each node: the first one up to which the weights reach a share of their sum."""
        pointer = self.graph.connections.pointer.cpu()
        own, before = nodes.cpu(), until.new_zeros(1)
        low, high = (torch.cat([before, until])[pointer[own + i]] for i in (0, 1))
        place = torch.searchsorted(until, low + uniform.cpu().double() * (high - low), right=True)
        # Rounding can lead beyond the last edge of a row, or to an edge without weight, which is a self-connection.
        place = place.clamp(pointer[own], pointer[own + 1] - 1)
        itself = self.itself.cpu()[own]
        other = torch.where(itself == pointer[own + 1] - 1, itself - 1, itself + 1)
        return torch.where(place == itself, other, place).to(nodes.device)
