"""The posterior over embeddings: its draws, and their mean and standard deviation."""

import math

import numpy as np
import pytest
import torch

from bgcl.augmentation.noise import CountedNoise
from bgcl.graph.prepared import PreparedGraph
from bgcl.model import posterior
from bgcl.model.network import Network
from bgcl.model.posterior import astd, draws, moments, pairs_of_views
from bgcl.settings import make_settings
from small import make_graph, random_encoder, random_graph, seeded


def network_dropping(sentence: str, **settings: object) -> Network:
    network = Network(5, make_settings(encoder="gcn", drop=sentence, widths=(6, 4), **settings))
    network.encoder.load_state_dict(random_encoder((5, 6, 4), double=False).state_dict())
    return network


@pytest.mark.parametrize("count", [2, 3, 50])
def test_moments_of_a_stream_equal_the_moments_of_draws_in_memory(count: int) -> None:
    sampled = torch.randn(count, 7, 3, generator=seeded(0)) * 0.01 + 5  # far from 0, where sums of squares cancel
    streamed = moments(iter(sampled))
    assert streamed.samples == count
    torch.testing.assert_close(streamed.mean, sampled.double().mean(0).float(), rtol=1e-6, atol=0)
    torch.testing.assert_close(streamed.std, sampled.double().std(0).float(), rtol=1e-3, atol=0)
    torch.testing.assert_close(streamed.astd, astd(sampled), rtol=1e-3, atol=0)


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
def test_moments_are_the_same_bits_whatever_the_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = torch.randn(5, 9, 3, generator=seeded(1))
    whole = moments(iter(sampled))
    monkeypatch.setattr(posterior, "BLOCK", block)
    found = moments(iter(sampled))
    assert torch.equal(found.mean, whole.mean)
    assert torch.equal(found.std, whole.std)


def test_the_std_of_a_single_draw_is_zero() -> None:
    draw = torch.randn(4, 3, generator=seeded(0))
    streamed = moments(iter([draw]))
    torch.testing.assert_close(streamed.mean, draw)
    assert (streamed.std == 0).all()


@pytest.mark.filterwarnings("ignore:std")
def test_astd_of_a_single_draw_is_the_same_for_a_stream_and_for_draws_in_memory() -> None:
    draw = torch.randn(4, 3, generator=seeded(0))
    torch.testing.assert_close(astd(draw[None]), moments(iter([draw])).astd)


def test_astd_is_the_std_over_draws_averaged_over_dimensions() -> None:
    sampled = torch.randn(6, 4, 3, generator=seeded(0))
    result = astd(sampled)
    for node in range(4):
        deviations = []
        for dimension in range(3):
            values = [float(sampled[s, node, dimension]) for s in range(6)]
            mean = sum(values) / 6
            deviations.append(math.sqrt(sum((value - mean) ** 2 for value in values) / 5))
        assert float(result[node]) == pytest.approx(sum(deviations) / 3, rel=1e-5)


@pytest.mark.parametrize("hard", [False, True])
def test_draws_come_from_the_two_views_in_turn(hard: bool) -> None:
    # View o keeps everything. View t drops everything, so only the last layer's bias is left.
    network, graph = network_dropping("connections at 0/1"), random_graph(double=False)
    kept, dropped = network.encoder(graph).detach(), torch.relu(network.encoder.layers[1].bias.detach()).expand(8, 4)
    assert not torch.allclose(kept, dropped)
    sampled = list(draws(network, graph, range(5), 0, scale=1.0, hard=hard))
    for i, draw in enumerate(sampled):
        torch.testing.assert_close(draw, dropped if i % 2 else kept)
    assert len(sampled) == 5


@pytest.mark.parametrize("mask_values", ["relaxed", "hard"])
@pytest.mark.parametrize("scale", [0.25, 0.7, 1.0])
def test_draws_are_masked_encoders_that_follow_their_noise(scale: float, mask_values: str) -> None:
    # The scale is an argument: the setting of the same name is not used.
    network = network_dropping("connections in 2 blocks", mask_values=mask_values, draw_scale=0.01)
    graph = random_graph(double=False)
    sampled = torch.stack(list(draws(network, graph, range(4), 0, scale=scale, hard=False)))
    again = torch.stack(list(draws(network, graph, range(4), 0, scale=scale, hard=False)))
    assert torch.equal(sampled, again)
    noise = [CountedNoise.of_draw(0, i) for i in range(4)]
    by_hand = torch.stack(
        [network.encode(view, graph, each, scale=scale) for view, each in zip("otot", noise, strict=True)]
    )
    assert torch.equal(sampled, by_hand)
    assert not sampled.requires_grad
    assert not torch.equal(sampled[0], sampled[2])


def test_a_stream_of_draws_does_not_turn_off_gradients_in_the_loop_over_it() -> None:
    network, graph = network_dropping("connections"), random_graph(double=False)
    weight = torch.ones((), requires_grad=True)
    for draw in draws(network, graph, range(2), 0, scale=1.0, hard=False):
        assert not draw.requires_grad
        assert (weight * draw).sum().requires_grad


@pytest.mark.parametrize("scale", [0.3, 0.8, 1.0])
def test_draws_are_made_at_a_fraction_of_the_rates_of_training(scale: float) -> None:
    # One layer on a graph without edges, normalized before masking: a node's draw is 3 if its self-connection is kept,
    # and the bias 1 if not. A self-connection is kept if its noise u is above scale * pi.
    settings = {"encoder": "gcn", "drop": "connections at 0.6/0.9", "normalize": "before"}
    network = Network(1, make_settings(widths=(1,), **settings))
    with torch.no_grad():
        network.encoder.layers[0].weight.fill_(2.0)
        network.encoder.layers[0].bias.fill_(1.0)
    nodes = 2000
    graph = make_graph(np.zeros((nodes, nodes)), np.ones((nodes, 1)), double=False)
    sampled = list(draws(network, graph, range(2), 0, scale=scale, hard=True))
    for i, (rate, draw) in enumerate(zip((0.6, 0.9), sampled, strict=True)):
        noise = CountedNoise.of_draw(0, i).of("mask", 0, 0).edges(graph)
        torch.testing.assert_close(draw, torch.where(noise > scale * rate, 3.0, 1.0))
        assert float((draw == 3).double().mean()) == pytest.approx(1 - scale * rate, abs=0.04)


def test_hard_draws_use_masks_of_zeros_and_ones() -> None:
    # With one node, one connection and one layer, a hard draw is 3 or the bias 1. Relaxed draws are in between.
    settings = {"encoder": "gcn", "drop": "connections at 0.5", "mask_values": "relaxed", "normalize": "before"}
    network = Network(1, make_settings(widths=(1,), **settings))
    with torch.no_grad():
        network.encoder.layers[0].weight.fill_(2.0)
        network.encoder.layers[0].bias.fill_(1.0)
    graph = random_graph(1, 1, double=False)
    graph.features.fill_(1.0)
    hard = {float(draw) for draw in draws(network, graph, range(40), 0, scale=1.0, hard=True)}
    relaxed = np.array([float(draw) for draw in draws(network, graph, range(40), 0, scale=1.0, hard=False)])
    assert hard == {1.0, 3.0}
    assert len(set(relaxed)) > 30
    assert ((relaxed >= 1) & (relaxed <= 3)).all()


def default_network() -> tuple[Network, PreparedGraph]:
    """The default encoder in parts, with the graph as it sees it."""
    network = Network(5, make_settings(drop=("entries at 0.5/0.9", "neighbors at 0.5"), widths=(6, 4), part_width=3))
    graph = network.fit_graph(random_graph(12, double=False), seeded(1))
    network.reset_parameters(seeded(2))
    return network, graph


@pytest.mark.parametrize("hard", [False, True])
def test_draws_of_embeddings_in_parts_follow_their_noise(hard: bool) -> None:
    network, graph = default_network()
    sampled = torch.stack(list(draws(network, graph, range(4), 0, scale=0.7, hard=hard)))
    noise = [CountedNoise.of_draw(0, i) for i in range(4)]
    by_hand = [network.draw(view, graph, each, scale=0.7, hard=hard) for view, each in zip("otot", noise, strict=True)]
    assert torch.equal(sampled, torch.stack(by_hand))
    assert sampled.shape == (4, 12, sum(network.parts.widths))
    assert not sampled.requires_grad
    # Every part varies, except for the position of a node if it were not propagated along kept neighbors.
    for part in (sampled[0] - sampled[2]).split(network.parts.widths, dim=1):
        assert part.abs().max() > 1e-3


@pytest.mark.parametrize("scale", [0.4, 1.0])
def test_pairs_of_views_are_outputs_of_the_encoder_before_the_parts(scale: float) -> None:
    network, graph = default_network()
    for i, (o, t) in enumerate(pairs_of_views(network, graph, 3, 0, scale=scale)):
        assert torch.equal(o, network.encode("o", graph, CountedNoise.of_draw(0, 2 * i), scale=scale))
        assert torch.equal(t, network.encode("t", graph, CountedNoise.of_draw(0, 2 * i + 1), scale=scale))
        assert o.shape == t.shape == (12, 8)  # two members
        assert not o.requires_grad
