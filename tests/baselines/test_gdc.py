"""Graph DropConnect: its objective against a plain loop, and rates that follow the data or the prior."""

import dataclasses

import numpy as np
import pytest
import torch

from bgcl import BGCLError
from bgcl.baselines.gdc import GDCGCN, GDCNetwork
from bgcl.baselines.scoring import evaluate_classifier
from bgcl.baselines.supervised import Task
from communities import communities, split_of
from small import dense_connections, dense_features, loop_layer

QUICK = GDCGCN(layers=3, width=8, epochs=10, samples=6)


def train(method: GDCGCN, data, split) -> GDCNetwork:
    task = Task.of(data, split, row_norm=method.row_norm)
    return method.train(task, torch.Generator().manual_seed(method.seed))


def test_draws_are_probabilities_and_differ():
    data = communities()
    found = QUICK.fit(data, split_of(data))
    assert found.shape == (6, 60, 3)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(2), 1, atol=1e-5)
    assert found.std(0).max() > 1e-3


@pytest.mark.parametrize("validation", [0, 15])
def test_the_same_seed_gives_the_same_result(validation):
    data = communities()
    split = split_of(data, validation)
    torch.manual_seed(1)
    one = QUICK.fit(data, split)
    torch.manual_seed(2)
    np.testing.assert_array_equal(one, QUICK.fit(data, split))
    assert not np.array_equal(one, QUICK.with_changes(seed=1).fit(data, split))


@pytest.mark.parametrize("validation", [0, 15])
def test_only_labels_of_training_and_validation_nodes_are_used(validation):
    data = communities()
    split = split_of(data, validation)
    other = data.clone()
    other.y[split.test] = (data.y[split.test] + 1) % 3
    np.testing.assert_array_equal(QUICK.fit(data, split), QUICK.fit(other, split))
    other.y[split.train] = (data.y[split.train] + 1) % 3
    assert not np.array_equal(QUICK.fit(data, split), QUICK.fit(other, split))


def test_planted_communities_are_learned_with_four_layers():
    data = communities()
    (result,) = evaluate_classifier(lambda: GDCGCN(width=16, epochs=150, samples=20), data, [split_of(data)])
    assert result.scores()["accuracy"] > 0.9


def test_the_objective_equals_a_plain_loop():
    """Loops over nodes, features and layers. Quadrature gives the KL divergence and the mean rate."""
    data = communities(12)
    split = split_of(data, 0)
    method = GDCGCN(layers=2, width=4, prior=(0.8, 1.0), kl_weight=0.3, weight_decay=0.02, warm_up=4)
    task = Task.of(data, split, row_norm="none")
    network = GDCNetwork(task.width, 3, method)
    network.classifier.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():
        network.rates.log_a.copy_(torch.tensor([[0.3], [-0.2]]))
        network.rates.log_b.copy_(torch.tensor([[0.1], [0.6]]))
    found = network.objective(task, 1, torch.Generator().manual_seed(5))

    generator = torch.Generator().manual_seed(5)
    a, b = np.exp([0.3, -0.2]), np.exp([0.1, 0.6])
    u = torch.rand((2, 1), generator=generator).numpy()[:, 0].astype(float)
    pi = (1 - u ** (1 / b)) ** (1 / a)
    A, X = dense_connections(task.graph), dense_features(task.graph)
    row, column = task.graph.connections.row.numpy(), task.graph.connections.column.numpy()
    penalty = kl = 0.0
    for i, layer in enumerate(network.classifier.layers):
        noise = torch.rand((len(row), 2), generator=generator).numpy().astype(float)
        keep = 1 / (1 + ((1 - noise) / noise * pi[i] / (1 - pi[i])) ** (1 / 0.67))
        Z = np.zeros((12, 12, X.shape[1]))
        for feature in range(X.shape[1]):
            Z[row, column, feature] = keep[:, feature // int(np.ceil(X.shape[1] / 2))]
        W, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
        X = loop_layer(A, Z, X, W, bias, normalize_after=True)
        X = np.maximum(X, 0) if i == 0 else X
        x = (np.arange(200_000) + 0.5) / 200_000
        q = a[i] * b[i] * x ** (a[i] - 1) * (1 - x ** a[i]) ** (b[i] - 1)
        kl += np.mean(q * (np.log(q) - np.log(0.8 * x**-0.2)))
        penalty += (1 - np.mean(q * x)) * (W**2).sum()
    loss = 0.0
    for v in split.train:
        loss -= (X[v, int(data.y[v])] - np.log(np.exp(X[v]).sum())) / len(split.train)
    expected = loss + 0.3 * 2 / 4 * kl + 0.02 * penalty  # in the second of four epochs of warm-up
    assert found.item() == pytest.approx(expected, rel=1e-3)


def test_the_weight_of_the_kl_rises_only_during_the_warm_up():
    data = communities(12)
    task = Task.of(data, split_of(data), row_norm="none")
    network = GDCNetwork(task.width, 3, GDCGCN(layers=2, width=4, warm_up=4, prior=(3.0, 1.0)))
    network.classifier.reset_parameters(torch.Generator().manual_seed(0))
    at = [float(network.objective(task, epoch, torch.Generator().manual_seed(0)).detach()) for epoch in (0, 1, 3, 4, 9)]
    kl = float(network.rates.kl().detach())
    assert at[1] - at[0] == pytest.approx(kl / 4, rel=1e-4)
    assert at[2] - at[0] == pytest.approx(kl * 3 / 4, rel=1e-4)
    assert at[2] == at[3] == at[4]


def test_rates_follow_the_data_unless_the_weight_of_the_kl_is_huge():
    """Only the neighbors of a node determine its label, so dropping connections hurts and rates fall."""
    random = np.random.default_rng(0)
    data = communities(60)
    data.x = torch.as_tensor(random.random((60, 4)) < 0.5, dtype=torch.float32)
    data.x[:, 0] = 1
    source = np.arange(60)
    data.edge_index = torch.as_tensor(np.stack([source, (source + 1) % 60]))
    data.edge_index = torch.cat([data.edge_index, data.edge_index.flip(0)], 1)
    # The class is how many of the two neighbors have attribute 1.
    total = (data.x[(source + 1) % 60] + data.x[source - 1])[:, 1]
    data.y = total.long()
    split = split_of(data)
    split = dataclasses.replace(split, train=np.arange(45), test=np.arange(45, 60))
    method = GDCGCN(layers=2, width=16, epochs=200, lr=0.02, weight_decay=0.0)
    free = train(method.with_changes(kl_weight=1e-3), data, split).rates
    assert (free.mean() < 0.35).all(), free.mean()
    held = train(method.with_changes(kl_weight=1e3), data, split).rates
    np.testing.assert_allclose(held.mean().detach(), 0.5, atol=0.02)
    np.testing.assert_allclose(held.std().detach(), 12**-0.5, atol=0.02)
    elsewhere = train(method.with_changes(kl_weight=1e3, prior=(4.0, 1.0)), data, split).rates
    np.testing.assert_allclose(elsewhere.mean().detach(), 0.8, atol=0.02)


def test_each_layer_has_its_own_rate_and_only_one_view_is_trained():
    data = communities()
    network = train(QUICK.with_changes(epochs=30, lr=0.05, kl_weight=0.01), data, split_of(data))
    assert network.rates.log_a.shape == (3, 1)
    assert len(np.unique(network.rates.mean().detach().numpy())) == 3
    ((_, idle),) = network.augmentation.of("t")
    np.testing.assert_allclose(idle.log_b.detach(), np.log(1.5), atol=1e-6)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("layers", 0, "'layers' must be a whole number of 1 or more. Got 0"),
        ("samples", 0, "'samples' must be a whole number of 1 or more. Got 0"),
        ("kl_weight", -1.0, "'kl_weight' must be a number of 0 or more. Got -1.0"),
        ("temperature", 0.0, "'temperature' must be a number above 0. Got 0.0"),
        ("prior", (0.0, 1.0), "'prior' must be 2 numbers above 0"),
    ],
)
def test_settings_out_of_range_are_refused(setting, value, message):
    with pytest.raises(BGCLError, match=message):
        GDCGCN(**{setting: value})
