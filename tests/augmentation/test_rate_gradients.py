"""The gradient of the contrastive loss with respect to the drop rates."""

import numpy as np
import pytest
import torch
from torch import Tensor

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.views import Augmentation
from bgcl.model.network import Network
from bgcl.settings import make_settings
from small import (
    SENTENCES,
    in_turn,
    make_graph,
    random_adjacency,
    random_encoder,
    random_features,
    random_graph,
    seeded,
)


def learning_network(
    sentence: str, *, double: bool, temperature: float = 0.3, rate_draw: str = "sample", mask_values: str = "relaxed"
) -> Network:
    values = {"drop": sentence, "rate_start": (1.3, 0.9), "mask_temperature": temperature, "rate_draw": rate_draw}
    values |= {"mask_values": mask_values, "rate_rule": "adversary"}
    encoder = "mlp" if sentence == "neighbors" else "gcn"
    network = Network(5, make_settings(encoder=encoder, widths=(8, 6), **values))
    network.reset_parameters(seeded(1))
    if encoder == "gcn":
        network.encoder.load_state_dict(random_encoder((5, 8, 6), double=False).state_dict())
    for parameter in (*network.encoder.parameters(), *network.objective.parameters()):
        parameter.requires_grad_(False)
    return network.double() if double else network


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rate_draw", ["sample", "median"])
@pytest.mark.parametrize(
    "sentence", [*SENTENCES, "connections in 2 blocks per block", "features of every layer per layer", "neighbors"]
)
def test_the_gradient_of_the_rates_equals_the_difference_quotient(sentence: str, rate_draw: str, sparse: bool) -> None:
    graph = random_graph(7, 5, sparse=sparse)
    network = learning_network(sentence, double=True, rate_draw=rate_draw)  # relaxed: a hard mask has no derivative

    def loss() -> Tensor:
        # Several draws, because all units of the encoder can be dead in a single one.
        return sum(network.outcome(graph, seeded(seed)).loss for seed in range(4))

    loss().backward()
    assert all(weight.grad is None for weight in network.encoder.parameters())
    parameters = list(network.augmentation.parameters())
    assert len(parameters) == 4
    step = 1e-6
    for parameter in parameters:
        assert (parameter.grad.abs() > 1e-6).all()
        for index in np.ndindex(*parameter.shape):
            with torch.no_grad():
                parameter[index] += step
                above = float(loss())
                parameter[index] -= 2 * step
                below = float(loss())
                parameter[index] += step
            assert float(parameter.grad[index]) == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("sentence", [*SENTENCES, "neighbors"])
@pytest.mark.parametrize(
    ("mask_values", "temperature"), [("relaxed", 0.3), ("relaxed", 0.05), ("relaxed", 0.01), ("hard", 0.3)]
)
def test_the_gradient_of_the_rates_is_finite_in_float32(sentence: str, mask_values: str, temperature: float) -> None:
    # A node without neighbors has one connection, and a low temperature leaves almost nothing of it.
    adjacency = random_adjacency(20, 0.1)
    adjacency[:8] = adjacency[:, :8] = 0
    graph = make_graph(adjacency, random_features(20, 5), double=False)
    network = learning_network(sentence, double=False, temperature=temperature, mask_values=mask_values)
    generator = seeded(0)
    for _ in range(5):
        network.zero_grad()
        network.outcome(graph, generator).loss.backward()
        for parameter in network.augmentation.parameters():
            assert torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize("sentence", ["connections in 3 blocks", "connections shared", "nodes"])
def test_nodes_that_lose_all_their_connections_do_not_dominate_the_gradient_under_hard_masks(sentence: str) -> None:
    adjacency = random_adjacency(20, 0.1)  # half of the nodes have two neighbors or fewer
    graph, largest = make_graph(adjacency, random_features(20, 5), double=False), {}
    for mask_values in ("hard", "relaxed"):
        network = learning_network(sentence, double=False, rate_draw="median", mask_values=mask_values)
        generator, gradients = seeded(0), []
        for _ in range(10):
            network.zero_grad()
            network.outcome(graph, generator).loss.backward()
            gradients.extend(float(p.grad.abs().max()) for p in network.augmentation.parameters())
        largest[mask_values] = max(gradients)
    assert 0.1 < largest["hard"] / largest["relaxed"] < 10


@pytest.mark.parametrize("rate_draw", ["sample", "median"])
@pytest.mark.parametrize("sentence", ["connections in 3 blocks", "edges", "features", "entries"])
def test_hard_masks_have_the_gradient_of_relaxed_ones_if_the_loss_is_linear_in_them(
    sentence: str, rate_draw: str
) -> None:
    # A layer that normalizes before it masks is linear in its mask, so its gradient is the same at any mask.
    graph, encoder = random_graph(9, 24), random_encoder((24, 4), normalize_after=False)
    weight = torch.randn(9, 4, dtype=torch.float64, generator=seeded(2))
    gradients, keeps = [], []
    for hard in (True, False):
        augmentation = Augmentation([parse_mask(sentence)], 1, hard=hard, draw=rate_draw, start=(1.3, 0.9)).double()
        [mask] = augmentation.draw("o", graph, encoder.inputs(graph), in_turn(4))
        (encoder.layers[0](graph, graph.features, mask) * weight).sum().backward()
        [(_, rate)] = augmentation.of("o")
        gradients.append(torch.cat([rate.log_a.grad, rate.log_b.grad]))
        keeps.append(getattr(mask, parse_mask(sentence).on).detach())
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-10, atol=0)
    assert (gradients[0].abs() > 1e-6).all()
    assert set(keeps[0].flatten().tolist()) == {0.0, 1.0}
    assert not torch.equal(keeps[0], keeps[1])
