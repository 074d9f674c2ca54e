"""Relations on one pattern: the connections of each, and keep values over all of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bgcl.graph.clusters import induced
from bgcl.graph.node_batches import NodeBatches
from bgcl.graph.relations import in_relation, over_relations
from small import dense_connections, on_matrix, random_graph, seeded, with_relations


def test_a_relation_has_its_own_weights_and_nodes_are_connected_with_themselves_or_not():
    graph = with_relations(random_graph(9, double=False), 3)
    for r in range(3):
        own = on_matrix(graph, graph.relations[:, r])
        for itself in (False, True):
            found = in_relation(graph, r, itself=itself)
            np.testing.assert_array_equal(on_matrix(found, found.weights), own + itself * np.eye(9))


def test_a_keep_value_over_relations_is_the_mean_by_weight_of_a_plain_loop():
    graph = with_relations(random_graph(9, double=False), 3)
    kept = torch.rand(len(graph.connections), 3, generator=seeded(0))
    found = over_relations(graph, kept)
    for i in range(len(kept)):
        weights = graph.relations[i].tolist() if graph.relations[i].sum() > 0 else [1, 1, 1]
        expected = sum(w * k for w, k in zip(weights, kept[i].tolist(), strict=True)) / sum(weights)
        assert found[i].item() == pytest.approx(expected, rel=1e-5)


def test_without_relations_all_keep_values_count_the_same():
    graph = random_graph(9, double=False)
    kept = torch.rand(len(graph.connections), 3, generator=seeded(0))
    assert torch.allclose(over_relations(graph, kept), kept.mean(1, keepdim=True))
    assert over_relations(graph, kept[:, :1]).shape == (len(kept), 1)
    assert over_relations(graph, None) is None


def test_batches_keep_relations_with_their_directions():
    graph = with_relations(random_graph(12, double=False), 3)
    every = [on_matrix(graph, graph.relations[:, r]) for r in range(3)]
    nodes = torch.tensor([7, 3, 11, 0])
    batch = induced(graph, nodes)
    for r in range(3):
        np.testing.assert_array_equal(on_matrix(batch, batch.relations[:, r]), every[r][np.ix_(nodes, nodes)])
    features = torch.arange(12.0)[:, None]
    batch = NodeBatches(replace(graph, features=features), 12).batch(torch.arange(12), seeded(0))
    numbers = batch.features[:, 0].long().numpy()
    there = dense_connections(batch) - np.eye(batch.nodes)
    for r in range(3):
        expected = there * every[r][np.ix_(numbers, numbers)]
        np.testing.assert_array_equal(on_matrix(batch, batch.relations[:, r]), expected)
