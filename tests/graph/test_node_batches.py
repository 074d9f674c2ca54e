"""Batches of random nodes: each node once, with one of its neighbors that is chosen fairly."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from bgcl.graph.node_batches import NodeBatches
from bgcl.graph.prepared import PreparedGraph, SparseFeatures
from small import (
    dense_connections,
    dense_features,
    make_graph,
    on_matrix,
    random_adjacency,
    random_features,
    seeded,
    with_weights,
)


def numbered_graph(adjacency: np.ndarray, *, sparse: bool = False, width: int = 2) -> PreparedGraph:
    """A graph whose attributes identify the nodes: node i has i + 1 in column 0, and random attributes."""
    nodes = len(adjacency)
    features = np.concatenate([np.arange(nodes)[:, None] + 1.0, random_features(nodes, width - 1)], axis=1)
    return make_graph(adjacency, features, sparse=sparse, double=False)


def with_isolated(nodes: int, seed: int = 0) -> np.ndarray:
    """A random graph in which nodes 3 and 7 have no edges."""
    adjacency = random_adjacency(nodes, density=0.2, seed=seed)
    for alone in (3, 7):
        adjacency[alone, :] = adjacency[:, alone] = 0
    return adjacency


def neighbors_of(batches: NodeBatches, nodes: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A random neighbor of each node."""
    return batches.graph.connections.column[batches._edges(nodes, generator)]


def numbers_of(batch: PreparedGraph) -> np.ndarray:
    return dense_features(batch)[:, 0].round().astype(int) - 1


def first_nodes(batch: PreparedGraph, adjacency: np.ndarray) -> int:
    """How many of the nodes of a batch are there for themselves: each of them with neighbors has one partner."""
    numbers = numbers_of(batch)
    for first in range(len(numbers) + 1):
        if first + int((adjacency[numbers[:first]].sum(1) > 0).sum()) == len(numbers):
            return first
    raise AssertionError("a batch without a fitting number of partners")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("size", [1, 2, 7, 12, 23, 24, 100])
def test_every_node_is_once_in_an_epoch_and_has_a_neighbor_of_its_own(size, sparse):
    adjacency = with_isolated(24)
    batches, generator = NodeBatches(numbered_graph(adjacency, sparse=sparse), size), seeded(0)
    orders = []
    for _ in range(3):
        seen = []
        for batch in batches.epoch(generator):
            numbers, first = numbers_of(batch), first_nodes(batch, adjacency)
            nodes, partners = numbers[:first], numbers[first:]
            assert 1 <= len(nodes) <= size
            having = nodes[adjacency[nodes].sum(1) > 0]  # partners come in the order of the nodes that have one
            assert (adjacency[having, partners] == 1).all()
            assert (having != partners).all()
            seen.append(nodes)
        assert len(seen) == batches.count == -(-24 // size)
        assert max(map(len, seen)) - min(map(len, seen)) <= 1
        assert sorted(np.concatenate(seen)) == list(range(24))
        orders.append(np.concatenate(seen).tolist())
    assert orders[0] != orders[1] != orders[2]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_node_is_connected_with_itself_and_its_partner_that_stands_for_all_neighbors(sparse):
    adjacency = with_isolated(20)
    degree = adjacency.sum(1)
    batches = NodeBatches(numbered_graph(adjacency, sparse=sparse), 6)
    for batch in batches.epoch(seeded(1)):
        numbers, first = numbers_of(batch), first_nodes(batch, adjacency)
        expected, counts = np.eye(len(numbers)), np.eye(len(numbers))
        partner = first
        for i in range(first):
            if degree[numbers[i]] > 0:
                expected[i, partner] = expected[partner, i] = 1
                counts[i, partner], counts[partner, i] = degree[numbers[i]], degree[numbers[partner]]
                partner += 1
        assert partner == batch.nodes == len(numbers)
        np.testing.assert_array_equal(dense_connections(batch), expected)
        np.testing.assert_array_equal(on_matrix(batch, batch.counts), counts)
        assert len(batch.connections) == expected.sum()
        assert torch.equal(batch.is_self[:, 0], batch.connections.row == batch.connections.column)
        key = batch.connections.row * batch.nodes + batch.connections.column
        assert (key.diff() > 0).all()  # sorted by row, then column


@pytest.mark.parametrize("width", [2, 3, 60])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_features_of_a_batch_are_the_rows_of_its_nodes(sparse, width):
    graph = numbered_graph(with_isolated(20), sparse=sparse, width=width)
    for batch in NodeBatches(graph, 6).epoch(seeded(2)):
        np.testing.assert_array_equal(dense_features(batch), dense_features(graph)[numbers_of(batch)])


@pytest.mark.parametrize(("share", "stays_sparse"), [(0.05, True), (0.5, False)])
def test_only_features_with_few_entries_stay_sparse(share, stays_sparse):
    features = np.random.default_rng(0).random((40, 50)) < share
    graph = make_graph(random_adjacency(40), features.astype(float), sparse=True, double=False)
    batch = next(NodeBatches(graph, 10).epoch(seeded(0)))
    assert isinstance(batch.features, SparseFeatures) is stays_sparse


def test_every_neighbor_of_a_node_is_chosen_equally_often():
    """Chi-square tests of each node, over many draws. The places of neighbors before and after the node both occur."""
    adjacency = with_isolated(12)
    graph = numbered_graph(adjacency)
    batches, generator = NodeBatches(graph, 12), seeded(3)
    nodes = torch.arange(12)[torch.as_tensor(adjacency.sum(1)) > 0]
    counts = np.zeros((12, 12))
    for _ in range(3000):
        np.add.at(counts, (nodes.numpy(), neighbors_of(batches, nodes, generator).numpy()), 1)
    assert counts[adjacency == 0].sum() == 0
    smallest = [chisquare(counts[v, adjacency[v] > 0]).pvalue for v in nodes.tolist() if adjacency[v].sum() > 1]
    assert len(smallest) > 5
    assert min(smallest) > 1e-4


@pytest.mark.parametrize(("uniform", "neighbor"), [(0.0, 0), (0.24, 0), (0.26, 1), (0.5, 3), (0.76, 4), (1.0, 4)])
def test_a_uniform_number_names_the_neighbor(monkeypatch, uniform, neighbor):
    """Node 2 is connected with all others, so its own place is in the middle. A number that is rounded to 1 is safe."""
    star = np.zeros((5, 5))
    star[2, :] = star[:, 2] = 1
    star[2, 2] = 0
    batches = NodeBatches(numbered_graph(star), 5)
    monkeypatch.setattr(torch, "rand", lambda count, **_: torch.full((count,), uniform))
    assert neighbors_of(batches, torch.tensor([2]), seeded(0)).tolist() == [neighbor]


def test_a_graph_without_edges_has_batches_of_single_nodes():
    graph = numbered_graph(np.zeros((9, 9)))
    batches = list(NodeBatches(graph, 4).epoch(seeded(0)))
    assert [batch.nodes for batch in batches] == [3, 3, 3]
    for batch in batches:
        np.testing.assert_array_equal(dense_connections(batch), np.eye(3))
        assert (batch.counts == 1).all()


def test_the_same_generator_gives_the_same_batches():
    graph = numbered_graph(with_isolated(20))
    first, second = (list(NodeBatches(graph, 6).epoch(seeded(5))) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(numbers_of(one), numbers_of(other))


def test_a_heavy_edge_is_chosen_in_proportion_to_its_weight():
    adjacency = with_isolated(12)
    graph = with_weights(numbered_graph(adjacency))
    heavy = on_matrix(graph, graph.weights) * adjacency
    batches, generator = NodeBatches(graph, 12), seeded(3)
    nodes = torch.arange(12)[torch.as_tensor(adjacency.sum(1)) > 0]
    counts = np.zeros((12, 12))
    for _ in range(3000):
        np.add.at(counts, (nodes.numpy(), neighbors_of(batches, nodes, generator).numpy()), 1)
    assert counts[adjacency == 0].sum() == 0
    for v in nodes.tolist():
        there = adjacency[v] > 0
        expected = 3000 * heavy[v, there] / heavy[v, there].sum()
        assert there.sum() == 1 or chisquare(counts[v, there], expected).pvalue > 1e-4


def test_a_partner_stands_for_the_sum_of_the_weights():
    adjacency = with_isolated(20)
    graph = with_weights(numbered_graph(adjacency))
    total = (on_matrix(graph, graph.weights) * adjacency).sum(1)
    batch = NodeBatches(graph, 20).batch(torch.arange(20), seeded(0))
    numbers, counts = numbers_of(batch), on_matrix(batch, batch.counts)
    for v, u in zip(*np.nonzero(dense_connections(batch) - np.eye(batch.nodes)), strict=True):
        assert counts[v, u] == pytest.approx(total[numbers[v]], rel=1e-5)


@pytest.mark.parametrize("uniform", [0.0, 0.3, 0.999, 1.0])
def test_by_weight_no_uniform_number_leads_to_the_node_itself_or_out_of_its_row(monkeypatch, uniform):
    adjacency = with_isolated(20)
    batches = NodeBatches(with_weights(numbered_graph(adjacency)), 20)
    monkeypatch.setattr(torch, "rand", lambda count, **_: torch.full((count,), uniform))
    nodes = torch.arange(20)[torch.as_tensor(adjacency.sum(1)) > 0]
    assert (adjacency[nodes, neighbors_of(batches, nodes, seeded(0))] == 1).all()
