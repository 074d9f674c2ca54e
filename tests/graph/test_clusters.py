"""Batches are a partition of the nodes, and each batch is the subgraph that its nodes induce."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bgcl.errors import BGCLError
from bgcl.graph.clusters import Batches, feature_rows, induced, members_of, metis
from bgcl.graph.prepared import PreparedGraph, SparseFeatures, to_dense
from small import (
    dense_connections,
    dense_features,
    make_graph,
    on_connections,
    on_matrix,
    random_adjacency,
    random_graph,
    seeded,
    with_weights,
)


def numbered_graph(nodes: int, *, sparse: bool, density: float = 0.15) -> PreparedGraph:
    """A graph whose attributes identify the nodes: node i has i + 1 in column 0."""
    features = np.stack([np.arange(nodes) + 1.0, np.arange(nodes) % 3], axis=1)
    return make_graph(random_adjacency(nodes, density), features, sparse=sparse)


def numbers_in(batch: PreparedGraph) -> np.ndarray:
    return dense_features(batch)[:, 0].astype(int) - 1


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("count", "clusters"), [(2, 1), (3, 1), (7, 1), (40, 1), (2, 3), (3, 5), (5, 8), (3, 100), (40, 2)]
)
def test_batches_are_a_partition_of_the_nodes_into_induced_subgraphs(count: int, clusters: int, sparse: bool) -> None:
    graph = numbered_graph(40, sparse=sparse)
    whole = dense_connections(graph)
    batches, generator = Batches(graph, count, clusters), seeded(0)
    for _ in range(2):
        epoch = list(batches.epoch(generator))
        members = [numbers_in(batch) for batch in epoch]
        assert sorted(np.concatenate(members)) == list(range(40))
        assert 1 < len(members) <= count
        for batch, nodes in zip(epoch, members, strict=True):
            np.testing.assert_array_equal(dense_connections(batch), whole[np.ix_(nodes, nodes)])
            np.testing.assert_array_equal(dense_features(batch), dense_features(graph)[nodes])


def test_batches_of_several_clusters_differ_between_epochs_and_batches_of_one_cluster_do_not() -> None:
    graph = numbered_graph(60, sparse=False)
    for clusters, same in ((1, True), (5, False)):
        batches, generator = Batches(graph, 3, clusters), seeded(1)
        epochs = [{frozenset(numbers_in(batch)) for batch in batches.epoch(generator)} for _ in range(3)]
        assert (epochs[0] == epochs[1] == epochs[2]) == same
        again = [{frozenset(numbers_in(batch)) for batch in batches.epoch(seeded(1))} for _ in range(2)]
        assert again[0] == again[1] == epochs[0]


def test_clusters_have_about_the_same_size_and_cut_few_edges() -> None:
    blocks = np.kron(np.eye(4), np.ones((15, 15))) * (random_adjacency(60, 0.5) > 0)
    blocks[0, 15] = blocks[15, 0] = blocks[30, 45] = blocks[45, 30] = 1
    shuffled = np.random.default_rng(0).permutation(60)
    graph = make_graph(blocks[np.ix_(shuffled, shuffled)], np.ones((60, 1)))
    parts = list(Batches(graph, 4).epoch(seeded(0)))
    assert sum(len(part.connections) for part in parts) >= len(graph.connections) - 8
    assert all(12 <= part.nodes <= 18 for part in parts)


def test_one_batch_is_the_graph_itself() -> None:
    graph = random_graph()
    assert list(Batches(graph, 1, 20).epoch(seeded(0))) == [graph]


def test_more_batches_than_nodes_are_refused() -> None:
    with pytest.raises(BGCLError, match=r"'batches' is 9, more than the graph has nodes \(8\)"):
        Batches(random_graph(8), 9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_an_induced_subgraph_is_the_dense_submatrix_in_the_order_of_its_nodes(seed: int, sparse: bool) -> None:
    graph = random_graph(12, 6, sparse=sparse, seed=seed)
    nodes = np.random.default_rng(seed).permutation(12)[: 3 + 2 * seed]
    part = induced(graph, torch.as_tensor(nodes))
    assert part.nodes == len(nodes)
    np.testing.assert_array_equal(dense_connections(part), dense_connections(graph)[np.ix_(nodes, nodes)])
    assert len(part.connections) == dense_connections(part).sum()
    np.testing.assert_array_equal(dense_features(part), dense_features(graph)[nodes])
    assert isinstance(part.features, SparseFeatures) is sparse


@pytest.mark.parametrize("sparse", [False, True])
def test_the_subgraph_of_a_single_node_is_its_self_connection(sparse: bool) -> None:
    part = induced(random_graph(6, sparse=sparse), torch.tensor([4]))
    np.testing.assert_array_equal(dense_connections(part), [[1.0]])


@pytest.mark.parametrize("sparse", [False, True])
def test_feature_rows_may_repeat_and_come_in_any_order(sparse: bool) -> None:
    graph = random_graph(8, 5, sparse=sparse)
    nodes = torch.tensor([6, 1, 6, 0, 7, 1])
    rows = feature_rows(graph.features, nodes)
    np.testing.assert_array_equal(to_dense(rows).numpy(), dense_features(graph)[nodes.numpy()])


def test_connections_keep_their_weights_in_a_batch() -> None:
    graph = with_weights(numbered_graph(20, sparse=False))
    nodes = torch.tensor([7, 3, 11, 0, 19])
    batch = induced(graph, nodes)
    np.testing.assert_array_equal(
        on_matrix(batch, batch.weights), on_matrix(graph, graph.weights)[np.ix_(nodes, nodes)]
    )


def test_clusters_cut_light_edges_rather_than_heavy_ones() -> None:
    """In a complete graph only the weights tell which nodes belong together."""
    group = np.random.default_rng(0).permutation(np.arange(40) % 2)
    graph = make_graph(1 - np.eye(40), np.ones((40, 1)), double=False)
    heavy = np.where(group[:, None] == group, 10.0, 0.1)
    graph = replace(graph, weights=on_connections(graph, heavy))
    for nodes in metis(graph, 2):
        assert len(set(group[nodes].tolist())) == 1


def test_members_come_in_the_order_of_a_search_for_each_part() -> None:
    part = torch.from_numpy(np.random.default_rng(0).integers(0, 7, 50) * 2)  # odd parts are empty
    expected = [torch.nonzero(part == i)[:, 0] for i in range(14)]
    found = members_of(part)
    assert [nodes.tolist() for nodes in found] == [nodes.tolist() for nodes in expected if len(nodes)]


def test_room_for_numbers_is_left_as_it_was() -> None:
    graph, room = random_graph(12), torch.full((12,), -1)
    for nodes in (torch.tensor([3, 1, 7]), torch.tensor([11, 3])):
        one, other = induced(graph, nodes, room), induced(graph, nodes)
        assert torch.equal(one.connections.column, other.connections.column)
        assert torch.equal(one.connections.pointer, other.connections.pointer)
        assert (room == -1).all()
