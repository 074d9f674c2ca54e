"""The positions of nodes against NumPy's singular vectors, and in graphs that grow."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bgcl.graph.keys import keys_of
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.structure import ROUNDS, Structure, random_signs
from small import (
    dense_connections,
    dense_normalize,
    make_graph,
    random_adjacency,
    random_features,
    seeded,
)


def blocks(count: int = 3, size: int = 12, seed: int = 0) -> np.ndarray:
    """Dense communities in a row with one edge from each to the next: the spectrum has a gap after `count` values."""
    adjacency = np.kron(np.eye(count), np.ones((size, size))) * random_adjacency(count * size, 0.9, seed)
    for i in range(count - 1):
        u, v = i * size, (i + 1) * size + 1
        adjacency[u, v] = adjacency[v, u] = 1
    return adjacency


def graph_of(adjacency: np.ndarray) -> PreparedGraph:
    return make_graph(adjacency, random_features(len(adjacency), 2), double=False)


def grown(adjacency: np.ndarray, *neighbors: list[int]) -> np.ndarray:
    """The graph with a new node for each list of neighbors, which may name new nodes."""
    nodes = len(adjacency)
    larger = np.zeros((nodes + len(neighbors), nodes + len(neighbors)))
    larger[:nodes, :nodes] = adjacency
    for i, every in enumerate(neighbors, start=nodes):
        larger[i, every] = larger[every, i] = 1
    return larger


def fitted(graph: PreparedGraph, width: int = 3) -> Structure:
    structure = Structure(width)
    structure.fit(graph)
    return structure


def same_span(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the columns of two matrices span the same space."""
    one, other = (np.linalg.qr(each)[0] for each in (first, second))
    return bool(np.allclose(one @ one.T, other @ other.T, atol=1e-2))


def test_positions_span_the_first_singular_vectors_of_the_normalized_adjacency():
    graph = graph_of(blocks())
    positions = fitted(graph)(graph).double().numpy()
    left, values, _ = np.linalg.svd(dense_normalize(dense_connections(graph)))
    assert values[3] < 0.6 * values[2]
    assert same_span(positions, left[:, :3])
    np.testing.assert_allclose(positions.T @ positions, np.eye(3), atol=1e-4)
    for i in range(3):  # the strongest direction first
        assert abs(positions[:, i] @ left[:, i]) == pytest.approx(1, abs=2e-2)


@pytest.mark.parametrize("seed", range(3))
def test_positions_are_those_of_a_subspace_iteration_by_qr(seed):
    """The same space, whether each round ends in a turn to the strongest directions or in a QR decomposition."""
    graph = graph_of(random_adjacency(30, 0.2, seed))
    P, found = dense_normalize(dense_connections(graph)), random_signs(keys_of(graph), 4).double().numpy()
    for _ in range(ROUNDS):
        found, _ = np.linalg.qr(P @ found)
    assert same_span(fitted(graph, 4)(graph).double().numpy(), found)


def test_nodes_of_a_community_are_at_one_place():
    graph = graph_of(blocks())
    found = torch.nn.functional.normalize(fitted(graph)(graph), dim=1).double().numpy()
    similarity, same = found @ found.T, np.kron(np.eye(3), np.ones((12, 12))) > 0
    assert similarity[same].min() > 0.9
    assert similarity[~same].max() < 0.5


@pytest.mark.parametrize("width", [3, 20, 60, 256])
def test_old_nodes_keep_their_positions_in_a_graph_that_grows_and_new_nodes_have_none(width):
    """Also if there are more directions than nodes, when the last of them are noise."""
    adjacency = random_adjacency(60, 0.1)
    structure = fitted(graph_of(adjacency), width)
    before = structure(graph_of(adjacency))
    after = structure(graph_of(grown(adjacency, [0, 5], [60])))
    assert torch.isfinite(before).all()
    torch.testing.assert_close(after[:60], before, rtol=0, atol=0)
    assert (after[60:] == 0).all()


def test_nodes_with_keys_keep_their_positions_in_any_order():
    adjacency = blocks()
    keys = torch.randint(2**62, (36,), generator=seeded(0))
    order = torch.randperm(36, generator=seeded(1))
    graph = replace(graph_of(adjacency), keys=keys)
    shuffled = replace(graph_of(adjacency[np.ix_(order, order)]), keys=keys[order])
    structure = fitted(graph)
    torch.testing.assert_close(structure(shuffled), structure(graph)[order], rtol=0, atol=0)
    # A model that is fitted to the shuffled graph finds the same positions, apart from rounding.
    torch.testing.assert_close(fitted(shuffled)(shuffled), structure(graph)[order], atol=1e-4, rtol=1e-3)


def test_a_graph_with_other_keys_has_no_positions():
    graph = graph_of(blocks())
    stranger = replace(graph, keys=torch.arange(100, 136))
    assert (fitted(graph)(stranger) == 0).all()


def test_positions_are_saved_with_their_keys():
    graph = replace(graph_of(blocks()), keys=torch.randperm(36, generator=seeded(0)) * 7)
    structure, again = fitted(graph), Structure(3, nodes=36)
    again.load_state_dict(structure.state_dict())
    torch.testing.assert_close(again(graph), structure(graph), rtol=0, atol=0)


def test_signs_are_fair_and_independent():
    graph = make_graph(np.zeros((2000, 2000)), np.ones((2000, 1)), double=False)
    signs = random_signs(keys_of(graph), 8).double().numpy()
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert np.abs(signs.mean(0)).max() < 0.1
    assert np.abs(np.corrcoef(signs.T) - np.eye(8)).max() < 0.1
    assert np.abs((signs[:-1] * signs[1:]).mean(0)).max() < 0.1
    few = random_signs(torch.arange(50), 3).numpy()
    np.testing.assert_array_equal(few, signs[:50, :3])  # they depend on the node and the column only
