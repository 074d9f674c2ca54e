"""The neural baselines against plain loops: loss and schedules of BGRL, corruption of DGI, non-edges and layers of the
auto-encoders.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from bgcl import BGCLError
from bgcl.baselines import baseline
from bgcl.baselines.autoencoders import NonEdges, _Gaussian, without_edges
from bgcl.baselines.bootstrap import _encoder, bootstrap_loss, follow, learning_rate, target_decay
from bgcl.baselines.convolutions import Convolutions
from bgcl.baselines.infomax import corrupt
from bgcl.graph.clusters import feature_rows
from planted import planted_graph
from small import dense_connections, dense_features, dense_normalize, random_adjacency, random_graph


def test_bootstrap_loss_equals_a_loop_over_nodes_and_the_target_gets_no_gradient() -> None:
    q = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    y = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    loss = bootstrap_loss(q, y)
    total = 0.0
    for i in range(6):
        dot = sum(float(q[i, j] * y[i, j]) for j in range(4))
        lengths = [math.sqrt(sum(float(v[i, j]) ** 2 for j in range(4))) for v in (q, y)]
        total += 1 - dot / (lengths[0] * lengths[1])
    assert float(loss.detach()) == pytest.approx(total / 6, rel=1e-12)
    loss.backward()
    assert q.grad is not None
    assert y.grad is None


def test_target_decay_rises_along_a_cosine_to_one() -> None:
    values = [target_decay(epoch, 100, 0.99) for epoch in range(101)]
    assert values[0] == pytest.approx(0.99)
    assert values[50] == pytest.approx(0.995)
    assert values[25] == pytest.approx(1 - 0.01 * math.cos(math.pi / 8) ** 2)  # (1 + cos x) / 2 = cos^2 (x / 2)
    assert values[100] == 1
    assert all(a < b for a, b in pairwise(values))


def test_learning_rate_rises_linearly_and_decays_along_a_cosine() -> None:
    values = [learning_rate(epoch, 110, 0.2, 10) for epoch in range(111)]
    np.testing.assert_allclose(values[:11], np.linspace(0, 0.2, 11))
    np.testing.assert_allclose(values[10:], 0.2 * np.cos(np.linspace(0, math.pi / 2, 101)) ** 2, atol=1e-12)
    assert learning_rate(0, 10, 0.2, 0) == 0.2


def test_the_target_follows_as_a_moving_average() -> None:
    target, online = nn.Linear(2, 2), nn.Linear(2, 2)
    weights = [module.weight.detach().clone() for module in (target, online)]
    for _ in range(3):
        follow(target, online, 0.9)
    torch.testing.assert_close(target.weight, 0.9**3 * weights[0] + (1 - 0.9**3) * weights[1])
    torch.testing.assert_close(online.weight, weights[1])
    follow(target, online, 0.0)
    torch.testing.assert_close(target.weight, weights[1])


def test_held_out_edges_are_a_random_share_in_both_directions() -> None:
    graph = planted_graph()
    pairs = {tuple(pair) for pair in graph.edge_index.t().tolist()}
    for share in (0.15, 0.5, 0.9):
        kept = [tuple(pair) for pair in without_edges(graph, share).edge_index.t().tolist()]
        assert len(kept) == len(set(kept)) == len(pairs) - 2 * int(share * len(pairs) / 2)
        assert set(kept) <= pairs
        assert {(v, u) for u, v in kept} == set(kept)
    both = [without_edges(graph, 0.5).edge_index for _ in range(2)]
    assert not torch.equal(*both)
    with_all, without, again = (
        baseline("gae", widths=(8, 4), epochs=2, held_out=share).fit(graph) for share in (0.0, 0.5, 0.5)
    )
    np.testing.assert_array_equal(without, again)
    assert not np.allclose(with_all, without)
    assert len(pairs) == graph.edge_index.shape[1]  # the graph is not changed


@pytest.mark.parametrize("sparse", [False, True])
def test_permuted_rows_equal_permuted_rows_of_the_dense_matrix(sparse: bool) -> None:
    graph = random_graph(9, 5, sparse=sparse)
    order = torch.as_tensor(np.random.default_rng(0).permutation(9))
    permuted = feature_rows(graph.features, order)
    moved = type(graph)(graph.connections, permuted)
    np.testing.assert_array_equal(dense_features(moved), dense_features(graph)[order.numpy()])


@pytest.mark.parametrize("sparse", [False, True])
def test_corruption_keeps_connections_and_moves_whole_rows_of_attributes(sparse: bool) -> None:
    graph = random_graph(9, 5, sparse=sparse)
    torch.manual_seed(0)
    corrupted = corrupt(graph)
    assert corrupted.connections is graph.connections
    before, after = dense_features(graph), dense_features(corrupted)
    assert not np.array_equal(before, after)
    assert sorted(map(tuple, before)) == sorted(map(tuple, after))


def test_all_pairs_without_an_edge_are_drawn_equally_often() -> None:
    A = random_adjacency(6)
    edges = torch.as_tensor(np.stack(np.nonzero(A)))
    torch.manual_seed(0)
    drawn = NonEdges(edges, 6).draw(20_000)
    counts = np.zeros((6, 6))
    np.add.at(counts, tuple(drawn.numpy()), 1)
    allowed = (A == 0) & ~np.eye(6, dtype=bool)
    assert drawn.shape == (2, 20_000)
    assert not counts[~allowed].any()
    expected = 20_000 / allowed.sum()
    assert np.abs(counts[allowed] - expected).max() < 5 * math.sqrt(expected)


def test_a_complete_graph_has_no_non_edges() -> None:
    edges = torch.as_tensor(np.stack(np.nonzero(1 - np.eye(4))))
    with pytest.raises(BGCLError, match="The graph is complete"):
        NonEdges(edges, 4)


def dense_layer(graph, layer, features: np.ndarray) -> np.ndarray:
    W, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    return dense_normalize(dense_connections(graph)) @ features @ W + bias


@pytest.mark.parametrize("sparse", [False, True])
def test_mean_and_standard_deviation_have_separate_linear_last_layers(sparse: bool) -> None:
    graph = random_graph(8, 5, sparse=sparse)
    torch.manual_seed(0)
    encoder = _Gaussian((5, 4, 3)).double()
    mean, log_std = (each.detach().numpy() for each in encoder(graph))
    hidden = np.maximum(dense_layer(graph, encoder.mean.layers[0], dense_features(graph)), 0)
    np.testing.assert_allclose(mean, dense_layer(graph, encoder.mean.layers[1], hidden), atol=1e-10)
    np.testing.assert_allclose(log_std, dense_layer(graph, encoder.log_std, hidden), atol=1e-10)
    assert (mean < 0).any()
    np.testing.assert_allclose(encoder.mean(graph).detach().numpy(), mean, atol=1e-12)


def test_reset_parameters_draws_new_weights_from_the_global_generator() -> None:
    encoder = Convolutions((5, 4), [nn.PReLU()])
    with torch.no_grad():
        encoder.after[0].weight.fill_(3.0)
        encoder.layers[0].bias.fill_(1.0)
    torch.manual_seed(0)
    encoder.reset_parameters()
    first = encoder.layers[0].weight.detach().clone()
    assert float(encoder.after[0].weight) == 0.25
    assert not encoder.layers[0].bias.any()
    torch.manual_seed(0)
    encoder.reset_parameters()
    torch.testing.assert_close(encoder.layers[0].weight, first)


def test_the_encoder_of_bgrl_normalizes_each_feature_before_its_activation() -> None:
    graph = random_graph(8, 5)
    encoder = _encoder((5, 4)).double()
    raw = dense_layer(graph, encoder.layers[0], dense_features(graph))
    unit = (raw - raw.mean(0)) / np.sqrt(raw.var(0) + 1e-5)
    np.testing.assert_allclose(encoder(graph).detach().numpy(), np.where(unit > 0, unit, 0.25 * unit), atol=1e-10)
