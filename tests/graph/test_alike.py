"""Connections between alike nodes against plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bgcl.graph import alike
from bgcl.graph.alike import NEAREST, SOFTNESS, among_alike, connected_rows, nearest, references
from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.sparse import Pattern
from small import dense_connections, make_graph, random_adjacency, random_features, seeded


def graph_of(nodes: int, *, seed: int = 0) -> PreparedGraph:
    return make_graph(random_adjacency(nodes, seed=seed), random_features(nodes, 3), double=False)


def dense_weights(graph: PreparedGraph) -> np.ndarray:
    found = np.zeros((graph.nodes, graph.nodes))
    found[graph.connections.row.numpy(), graph.connections.column.numpy()] = graph.weights.numpy()
    return found


def by_loops(vectors: np.ndarray, among: np.ndarray, most: int) -> np.ndarray:
    """The weights of the connections between alike nodes, without self-connections."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    found = np.zeros_like(cosine)
    for i in range(len(unit)):
        others = sorted((j for j in among if j != i), key=lambda j: -cosine[i, j])
        for j in others[:most]:
            found[i, j] = found[j, i] = np.exp((cosine[i, j] - 1) / SOFTNESS)
    return found


@pytest.mark.parametrize("both", [False, True])
@settings(max_examples=20, deadline=None)
@given(nodes=st.integers(2, 30), seed=st.integers(0, 1000))
def test_connections_are_those_of_a_plain_loop(both, nodes, seed):
    graph = graph_of(nodes, seed=seed % 7)
    vectors = torch.randn(nodes, 4, generator=seeded(seed))
    found = among_alike(graph, vectors, and_neighbors=both)
    expected = by_loops(vectors.double().numpy(), np.arange(nodes), NEAREST)
    expected = expected + (dense_connections(graph) if both else np.eye(nodes))
    np.testing.assert_allclose(dense_weights(found), expected, rtol=1e-3, atol=1e-6)
    key = found.connections.row * nodes + found.connections.column
    assert bool((key.diff() > 0).all())  # sorted, and every connection once
    assert found.is_self.sum() == nodes


def test_a_large_graph_has_nearest_nodes_among_some_nodes_alone(monkeypatch):
    monkeypatch.setattr(alike, "_ROWS", 7)
    graph, vectors = graph_of(40), torch.randn(40, 5, generator=seeded(0))
    among = references(graph, 12)
    assert len(set(among.tolist())) == 12
    assert among.tolist() == sorted(among.tolist())
    pairs = nearest(torch.nn.functional.normalize(vectors, dim=1), among, 3)
    row, column, cosine = torch.arange(40)[:, None], pairs.near, pairs.cosine
    assert column.shape == (40, 3)
    assert set(column.flatten().tolist()) <= set(among.tolist())
    assert bool((row != column).all())
    found = np.zeros((40, 40))
    found[row, column] = np.exp((cosine.numpy() - 1) / SOFTNESS)
    np.testing.assert_allclose(np.maximum(found, found.T), by_loops(vectors.numpy(), among.numpy(), 3), rtol=1e-4)


def test_references_depend_on_keys_and_not_on_the_order_of_nodes():
    graph = graph_of(30)
    keys = torch.randint(2**62, (30,), generator=seeded(1))
    order = torch.randperm(30, generator=seeded(2))
    first = references(PreparedGraph(graph.connections, graph.features, keys=keys), 10)
    second = references(PreparedGraph(graph.connections, graph.features, keys=keys[order]), 10)
    assert set(keys[first].tolist()) == set(keys[order][second].tolist())


@pytest.mark.parametrize("both", [False, True])
def test_relabeling_nodes_relabels_the_connections(both):
    adjacency, features = random_adjacency(25), random_features(25, 3)
    vectors, order = torch.randn(25, 4, generator=seeded(3)), np.random.default_rng(0).permutation(25)
    first = among_alike(make_graph(adjacency, features, double=False), vectors, and_neighbors=both)
    relabeled = make_graph(adjacency[order][:, order], features[order], double=False)
    second = among_alike(relabeled, vectors[order], and_neighbors=both)
    np.testing.assert_allclose(dense_weights(second), dense_weights(first)[order][:, order], rtol=1e-4)


def test_a_node_alone_is_connected_with_itself_alone():
    graph = make_graph(np.zeros((1, 1)), np.ones((1, 2)), double=False)
    np.testing.assert_array_equal(dense_weights(among_alike(graph, torch.ones(1, 3))), [[1.0]])


def test_nodes_that_are_all_the_same_are_connected_with_weight_one():
    graph = graph_of(6)
    np.testing.assert_allclose(dense_weights(among_alike(graph, torch.ones(6, 3))), np.ones((6, 6)), rtol=1e-5)


def test_rows_that_are_made_a_few_at_a_time_are_those_made_at_once():
    graph, vectors = graph_of(40), torch.randn(40, 5, generator=seeded(3))
    pairs = nearest(torch.nn.functional.normalize(vectors, dim=1), references(graph, 12), 3)
    for and_neighbors in (False, True):
        whole = connected_rows(graph, pairs, 0, 40, and_neighbors=and_neighbors)
        some = [connected_rows(graph, pairs, i, min(i + 7, 40), and_neighbors=and_neighbors) for i in range(0, 40, 7)]
        for one, pieces in zip(whole, zip(*some, strict=True), strict=True):
            assert torch.equal(one, torch.cat(pieces))


def test_a_graph_with_numbers_of_32_bits_has_the_connections_of_one_with_64():
    """A block of 4,096 rows of 600,000 nodes has more pairs than 32 bits can count."""
    nodes = 600_000
    itself = torch.arange(nodes)
    column = torch.stack([itself, (itself + 1) % nodes], 1).sort(1).values.flatten()
    pointer = torch.arange(nodes + 1) * 2
    found = alike.Nearest(((itself + 2) % nodes)[:, None], torch.full((nodes, 1), 0.5))
    rows = {}
    for kind in (torch.int32, torch.int64):
        graph = PreparedGraph(Pattern(pointer.to(kind), column.to(kind), nodes), torch.empty(nodes, 0))
        rows[kind] = connected_rows(graph, found, 4096, 8192, and_neighbors=True)
    for one, other in zip(*rows.values(), strict=True):
        assert torch.equal(one.to(other.dtype), other)
    counts, columns, _ = rows[torch.int64]
    assert columns[counts[:-1].sum() :].tolist() == [8189, 8191, 8192, 8193]  # of the last row
