"""The Graph Posterior Network: flows against autograd, diffusion against a loop, losses against integrals."""

import math

import numpy as np
import pytest
import torch
from torch.autograd.functional import jacobian

from bgcl.baselines import baseline
from bgcl.baselines.gpn import GPN, diffused, expected_cross_entropy
from bgcl.baselines.radial_flow import RadialFlows, RadialLayer
from bgcl.baselines.supervised import Task
from bgcl.model.propagation import Propagation
from communities import communities, split_of
from small import dense_connections, dense_normalize, random_graph, seeded


def test_log_determinants_are_those_of_the_jacobian():
    layer = RadialLayer(3, 4, seeded(1)).double()
    z = torch.randn(3, 5, 4, dtype=torch.float64, generator=seeded(2))
    _, found = layer(z)
    for c in range(3):
        for n in range(5):

            def move(vector: torch.Tensor, c: int = c) -> torch.Tensor:
                return layer(vector.expand(3, 1, 4))[0][c, 0]

            expected = torch.linalg.slogdet(jacobian(move, z[c, n])).logabsdet
            assert float(found[c, n]) == pytest.approx(float(expected), abs=1e-9)


def test_a_flow_is_a_density_that_integrates_to_one():
    flows = RadialFlows(2, 2, 3, seeded(4)).double()
    step = 0.05
    axis = torch.arange(-8, 8, step, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    with torch.no_grad():
        total = flows(grid).exp().sum(0) * step**2
    np.testing.assert_allclose(total, 1, atol=1e-3)


def test_the_center_of_a_flow_has_a_finite_gradient():
    layer = RadialLayer(1, 3, seeded(0))
    z = layer.center.detach().clone().requires_grad_()
    moved, determinant = layer(z)
    (moved.sum() + determinant.sum()).backward()
    assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize(("steps", "teleport"), [(0, 0.1), (1, 0.1), (7, 0.3), (4, 1.0)])
def test_diffusion_equals_a_loop_over_a_dense_matrix(steps, teleport):
    graph = random_graph(9)
    matrix = dense_normalize(dense_connections(graph))
    evidence = np.random.default_rng(0).random((9, 3))
    expected = evidence
    for _ in range(steps):
        expected = (1 - teleport) * matrix @ expected + teleport * evidence
    found = diffused(Propagation(graph), torch.as_tensor(evidence, dtype=torch.float32), steps, teleport)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_loss_is_the_mean_cross_entropy_under_the_dirichlet():
    alpha, codes = torch.tensor([[2.0, 3.5, 1.2]]).double(), torch.tensor([1])
    draws = torch.distributions.Dirichlet(alpha[0]).sample((200_000,))
    found = float(expected_cross_entropy(alpha, codes)[0])
    assert found == pytest.approx(float(-draws[:, 1].log().mean()), abs=5e-3)
    whole = torch.tensor([[2.0, 3.0]])  # digamma(5) - digamma(3) = 1/4 + 1/3
    assert float(expected_cross_entropy(whole, codes)[0]) == pytest.approx(1 / 3 + 1 / 4, abs=1e-6)


def test_evidence_is_the_density_times_the_frequency_of_the_class():
    data = communities()
    split = split_of(data, 10)
    method = GPN(epochs=2, warm_up=1, latent=4)
    task = Task.of(data, split, row_norm="sum")
    network = method.train(task)
    with torch.no_grad():
        found = network.evidence(task.graph)
    x = data.x.to_dense()
    x = x / x.sum(1, keepdim=True)
    with torch.no_grad():
        z = torch.relu(x @ network.first.weight + network.first.bias) @ network.second.weight + network.second.bias
        density = network.flows(z).exp() * torch.tensor([1 / 3] * 3) * (4 * math.pi) ** 2
    torch.testing.assert_close(found, density, rtol=1e-4, atol=1e-6)


def test_it_learns_communities_and_doubts_nodes_of_noise():
    data = communities(90)
    split = split_of(data, 20)
    method = baseline("gpn", epochs=60, latent=4, flows=4)
    probability = method.fit(data, split)
    assert probability.shape == (1, 90, 3)
    np.testing.assert_allclose(probability.sum(2), 1, atol=1e-5)
    assert (probability[0].argmax(1) == data.y.numpy())[split.test].mean() > 0.8
    np.testing.assert_array_equal(probability, method.fit(data, split))  # the same seed


def test_patience_ends_training_with_the_best_weights():
    data = communities()
    split, calls = split_of(data, 10), []
    task = Task.of(data, split, row_norm="sum")
    original = GPN(epochs=40, warm_up=0, patience=3, lr=0.3)

    class Counting(Task):
        def validation_loss(self, draws):
            loss = super().validation_loss(draws)

            def counted() -> float:
                calls.append(loss())
                return calls[-1]

            return counted

    counting = Counting(task.graph, task.classes, task.width, task.train, task.validation)
    network = original.train(counting)
    best = int(np.argmin(calls))
    assert len(calls) == best + 1 + 4 or len(calls) == 40
    with torch.no_grad():
        kept = counting.validation_loss(lambda: iter((network.log_probability(task.graph),)))()
    assert kept == pytest.approx(min(calls), abs=1e-6)
