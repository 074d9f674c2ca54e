"""Masks: relaxed masks against their distribution, and each augmentation against its textbook definition."""

import numpy as np
import pytest
import torch
from torch import Tensor

from bgcl.augmentation.masks import bernoulli, concrete, straight_through
from bgcl.augmentation.views import LayerMask
from bgcl.model.encoders.gcn import MaskedConvolution
from small import (
    dense_connections,
    dense_features,
    dense_gcn,
    draw_masks,
    kept_nodes,
    loop_layer,
    on_connections,
    on_matrix,
    random_encoder,
    random_graph,
)


def midpoints(count: int) -> Tensor:
    """Equally spaced numbers in (0, 1), in place of uniform noise."""
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


@pytest.mark.parametrize("pi", [0.013, 0.3, 0.5, 0.877])
def test_hard_masks_keep_the_share_one_minus_pi(pi: float) -> None:
    keep = bernoulli(torch.logit(torch.tensor(pi, dtype=torch.float64)), midpoints(10_000))
    assert set(keep.tolist()) == {0.0, 1.0}
    assert float(keep.mean()) == pytest.approx(1 - pi, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.05, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("pi", [0.013, 0.3, 0.877])
def test_relaxed_masks_have_the_concrete_distribution(pi: float, temperature: float) -> None:
    # P(z > x) of the concrete distribution. At x = 1/2 it is 1 - pi for any temperature.
    keep = concrete(torch.logit(torch.tensor(pi, dtype=torch.float64)), midpoints(10_000), temperature)
    for x in (0.1, 0.5, 0.8):
        odds = (1 - pi) / pi * ((1 - x) / x) ** temperature
        assert float((keep > x).double().mean()) == pytest.approx(odds / (1 + odds), abs=1.01e-4)
    assert float((keep > 0.5).double().mean()) == pytest.approx(1 - pi, abs=1.01e-4)


def test_relaxed_masks_approach_hard_masks_as_the_temperature_falls() -> None:
    logit, uniform = torch.logit(torch.tensor(0.3, dtype=torch.float64)), midpoints(1000)
    hard = bernoulli(logit, uniform)
    gaps = [float((concrete(logit, uniform, t) - hard).abs().mean()) for t in (1.0, 0.3, 0.1, 0.01, 0.001)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0.2
    assert gaps[-1] < 2e-3


def test_straight_through_masks_have_the_hard_value_and_the_relaxed_gradient() -> None:
    noise = torch.rand(200, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    weight = torch.randn(200, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    gradients = []
    for mask in (straight_through, concrete):
        logit = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
        keep = mask(logit, noise, 0.3)
        (keep * weight).sum().backward()
        gradients.append(float(logit.grad))
        if mask is straight_through:
            torch.testing.assert_close(keep.detach(), bernoulli(logit.detach(), noise), rtol=0, atol=0)
    assert gradients[0] == pytest.approx(gradients[1], rel=1e-12)


def test_a_higher_drop_rate_keeps_less_for_the_same_noise() -> None:
    logits = torch.linspace(-3, 3, 50, dtype=torch.float64)[:, None]
    uniform = midpoints(20)
    assert (concrete(logits, uniform, 0.5).diff(dim=0) < 0).all()
    assert (bernoulli(logits, uniform).diff(dim=0) <= 0).all()


# Each augmentation against its definition


@pytest.mark.parametrize("sentence", ["nodes at 0.4", "subgraph at 0.4"])
@pytest.mark.parametrize("seed", range(4))
def test_dropping_nodes_is_the_network_on_the_subgraph_of_the_other_nodes(sentence: str, seed: int) -> None:
    graph, encoder = random_graph(12, double=False, seed=seed), random_encoder((5, 6, 4), double=False)
    masks, embeddings = draw_masks(sentence, graph, encoder, seed)
    kept = kept_nodes(graph, masks[0])
    assert 0 < len(kept) < 12
    expected = dense_gcn(dense_connections(graph)[np.ix_(kept, kept)], dense_features(graph)[kept], encoder)
    np.testing.assert_allclose(embeddings[kept].detach().numpy(), expected, atol=1e-5)
    assert np.abs(expected).max() > 0.1
    gone = np.setdiff1d(np.arange(12), kept)
    assert (on_matrix(graph, masks[0].connections[:, 0])[gone] == 0).all()
    assert (on_matrix(graph, masks[1].connections[:, 0])[:, gone] == 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_dropping_edges_is_the_network_on_the_graph_without_them(seed: int) -> None:
    graph, encoder = random_graph(12, double=False, seed=seed), random_encoder((5, 6, 4), double=False)
    masks, embeddings = draw_masks("edges at 0.4", graph, encoder, seed)
    left = on_matrix(graph, masks[0].connections[:, 0])
    assert (np.diag(left) == 1).all()
    off_diagonal = ~np.eye(12, dtype=bool) & (dense_connections(graph) == 1)
    assert set(left[off_diagonal]) == {0.0, 1.0}
    np.testing.assert_allclose(embeddings.detach().numpy(), dense_gcn(left, dense_features(graph), encoder), atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_dropping_features_is_the_network_on_attributes_with_columns_of_zeros(seed: int, sparse: bool) -> None:
    graph, encoder = random_graph(9, 10, sparse=sparse, double=False), random_encoder((10, 6, 4), double=False)
    masks, embeddings = draw_masks("features at 0.4", graph, encoder, seed)
    columns = np.flatnonzero(masks[0].columns.numpy() == 0)
    assert 0 < len(columns) < 10
    assert masks[1].columns is None
    features = dense_features(graph)
    features[:, columns] = 0
    expected = dense_gcn(dense_connections(graph), features, encoder)
    np.testing.assert_allclose(embeddings.detach().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_dropping_features_of_every_layer_masks_the_hidden_units_too(seed: int) -> None:
    graph, encoder = random_graph(9, 10, double=False), random_encoder((10, 6, 4), double=False)
    masks, embeddings = draw_masks("features of every layer at 0.4", graph, encoder, seed)
    features = dense_features(graph)
    for layer, mask, width in zip(encoder.layers, masks, (10, 6), strict=True):
        columns = mask.columns.double().numpy()
        assert columns.shape == (width,)
        W, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
        ones = np.ones((9, 9, width))
        layer_out = loop_layer(dense_connections(graph), ones, features * columns, W, bias, normalize_after=True)
        features = np.maximum(layer_out, 0)
    np.testing.assert_allclose(embeddings.detach().numpy(), features, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_dropping_entries_is_the_network_on_x_times_z(sparse: bool) -> None:
    graph, encoder = random_graph(9, 10, sparse=sparse, double=False), random_encoder((10, 6, 4), double=False)
    masks, embeddings = draw_masks("entries at 0.4", graph, encoder)
    features = dense_features(graph)
    if sparse:
        pattern = graph.features.pattern
        features[pattern.row.numpy(), pattern.column.numpy()] *= masks[0].entries.numpy()
    else:
        features *= masks[0].entries.numpy()
    share = float((masks[0].entries == 0).double().mean())
    assert 0.2 < share < 0.6
    expected = dense_gcn(dense_connections(graph), features, encoder)
    np.testing.assert_allclose(embeddings.detach().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_feature_drop_is_a_special_case_of_the_general_layer(sparse: bool) -> None:
    # The paper's Z^(i) = 1 diag(Z[:, i]): feature i of node u is kept or dropped for all receivers at once.
    graph = random_graph(7, 5, sparse=sparse)
    layer = random_encoder((5, 4)).layers[0]
    Z = (np.random.default_rng(0).random((7, 5)) > 0.4).astype(float)
    general = np.stack([np.ones((7, 7)) @ np.diag(Z[:, i]) for i in range(5)], axis=2)
    W, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    X = dense_features(graph)
    loops = loop_layer(dense_connections(graph), general, X, W, bias, normalize_after=False)

    entries = torch.as_tensor(Z)
    if sparse:
        entries = entries[graph.features.pattern.row, graph.features.pattern.column]
    by_entries = layer(graph, graph.features, LayerMask(entries=entries))
    before = MaskedConvolution(5, 4, normalize_after=False).double()
    before.load_state_dict(layer.state_dict())
    by_connections = before(graph, graph.features, LayerMask(connections=on_connections(graph, general)))
    np.testing.assert_allclose(by_entries.detach().numpy(), loops, atol=1e-12)
    np.testing.assert_allclose(by_connections.detach().numpy(), loops, atol=1e-12)


def test_connections_are_dropped_one_by_one_in_each_block_and_layer() -> None:
    graph, encoder = random_graph(40, double=False), random_encoder((5, 6, 4), double=False)
    masks, _ = draw_masks("connections in 3 blocks at 0.3", graph, encoder)
    keep = torch.stack([mask.connections for mask in masks]).double()  # (2, E, 3)
    count = len(graph.connections)
    assert keep.shape == (2, count, 3)
    error = 4 * (0.3 * 0.7 / count) ** 0.5
    flat = keep.permute(0, 2, 1).reshape(6, count)
    assert ((flat.mean(1) - 0.7).abs() < error).all()
    assert ((keep[:, graph.is_self[:, 0]].mean() - 0.7).abs()) < 0.15  # self-connections are dropped at the same rate
    assert (torch.corrcoef(flat) - torch.eye(6)).abs().max() < 4 / count**0.5
