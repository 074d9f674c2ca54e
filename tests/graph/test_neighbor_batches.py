"""A batch of sampled neighbors is a subgraph whose first nodes are the seeds, which alone are in the loss."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import bgcl
from bgcl.graph.neighbor_batches import NeighborBatches
from bgcl.graph.prepared import PreparedGraph, numbers_of
from small import dense_connections, dense_features, make_graph, random_adjacency, random_features, seeded


def graph_of(nodes: int, density: float = 0.1) -> PreparedGraph:
    return make_graph(random_adjacency(nodes, density), random_features(nodes, 4), double=False)


@pytest.mark.parametrize("neighbors", [(3,), (2, 2), (50, 50)])
def test_every_node_is_a_seed_once_and_a_batch_is_an_induced_subgraph(neighbors: tuple[int, ...]) -> None:
    graph = graph_of(50)
    whole, found = dense_connections(graph), []
    for batch in NeighborBatches(graph, 12, neighbors).epoch(seeded(0)):
        nodes = numbers_of(batch).numpy()
        assert len(set(nodes)) == len(nodes)
        found += nodes[: batch.seeds].tolist()
        np.testing.assert_array_equal(dense_connections(batch), whole[np.ix_(nodes, nodes)])
        np.testing.assert_array_equal(dense_features(batch), dense_features(graph)[nodes])
    assert sorted(found) == list(range(50))


def test_added_nodes_are_neighbors_of_nodes_of_the_layer_before() -> None:
    graph = graph_of(60, 0.05)
    whole, batches = dense_connections(graph), NeighborBatches(graph, 5, (2, 3))
    batch = batches.batch(torch.arange(5), seeded(1))
    nodes = numbers_of(batch).numpy()
    reached = whole @ (whole @ np.isin(np.arange(60), np.arange(5)))
    assert (reached[nodes] > 0).all()
    assert len(nodes) <= 5 * (1 + 2) * (1 + 3)
    assert not batches._seen.any()


def test_with_all_neighbors_seeds_are_encoded_as_in_the_whole_graph() -> None:
    """With 400 draws of each of a few neighbors, two layers have all of them, so only the third hop is cut."""
    graph = graph_of(30)
    network = (
        bgcl.BGCL(encoder="gin", widths=(6, 5), epochs=1).fit(bgcl.example_graph(nodes=40), progress=False).network_
    )
    width = network.encoder.layers[0].weight_matrices()[0].shape[0]
    features = torch.randn(30, width, generator=seeded(2))
    graph = replace(graph, features=features)
    batch = NeighborBatches(graph, 4, (400, 400)).batch(torch.arange(4), seeded(0))
    with torch.no_grad():
        torch.testing.assert_close(network.encoder(batch)[:4], network.encoder(graph)[:4])


def test_a_model_trains_on_sampled_neighbors_and_resumes(tmp_path) -> None:
    data = bgcl.example_graph(nodes=90)
    how = {"encoder": "gcn", "widths": (8, 4), "epochs": 2, "batch_nodes": 20, "neighbors": (3, 3)}
    whole = bgcl.BGCL(**how).fit(data, progress=False)
    bgcl.BGCL(**how | {"epochs": 1}).fit(data, progress=False, out=tmp_path / "run")
    resumed = bgcl.BGCL(**how).fit(data, progress=False, out=tmp_path / "run", resume=True)
    assert torch.equal(whole.embed(data), resumed.embed(data))
    assert bgcl.BGCL.load(tmp_path / "run").settings_.neighbors == (3, 3)
