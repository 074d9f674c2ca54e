"""`Augmentation`: the masks that it draws for each view, at which rates, and its KL divergence."""

from functools import partial

import numpy as np
import pytest
import torch

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.views import Augmentation, LayerMask, Positives
from bgcl.graph.node_batches import NodeBatches
from bgcl.graph.prepared import PreparedGraph
from small import (
    SENTENCES,
    dense_connections,
    in_turn,
    make_graph,
    on_matrix,
    random_encoder,
    random_graph,
    seeded,
    with_relations,
    with_weights,
)


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_rate_of_zero_keeps_everything_and_a_rate_of_one_nothing(sentence: str, hard: bool) -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    mask = parse_mask(f"{sentence} at 0/1")
    augmentation = Augmentation([mask], 2)
    kept = augmentation.draw("o", graph, encoder.inputs(graph), in_turn(0), hard=hard)
    dropped = augmentation.draw("t", graph, encoder.inputs(graph), in_turn(0), hard=hard)
    assert (getattr(kept[0], mask.on) == 1).all()
    gone = getattr(dropped[0], mask.on)
    if mask.kind == "edges":
        gone = gone[~graph.is_self]
    assert (gone == 0).all()


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("scale", [0.2, 0.5])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_masks_at_a_fraction_of_a_rate_equal_masks_at_the_lower_rate(sentence: str, scale: float, hard: bool) -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    on, inputs = parse_mask(sentence).on, encoder.inputs(graph)
    # The median of a learned rate is 1/2 at the start.
    for given, rate in ((f"{sentence} at 0", 0), (f"{sentence} at 0.7", 0.7), (f"{sentence} at 1", 1), (sentence, 0.5)):
        scaled = Augmentation([parse_mask(given)], 2, draw="median")
        lower = Augmentation([parse_mask(f"{sentence} at {scale * rate}")], 2)
        found = scaled.draw("o", graph, inputs, in_turn(3), hard=hard, scale=scale)
        expected = lower.draw("o", graph, inputs, in_turn(3), hard=hard)
        torch.testing.assert_close(getattr(found[0], on), getattr(expected[0], on), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scale", [0.1, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("pi", [0.3, 0.8])
def test_hard_masks_at_a_fraction_of_a_rate_keep_one_minus_that_fraction_of_pi(pi: float, scale: float) -> None:
    graph, encoder = random_graph(40, double=False), random_encoder((5, 4), double=False)
    augmentation = Augmentation([parse_mask(f"connections in 5 blocks at {pi}")], 1)
    [mask] = augmentation.draw("o", graph, encoder.inputs(graph), in_turn(0), hard=True, scale=scale)
    assert set(mask.connections.flatten().tolist()) == {0.0, 1.0}
    dropped = scale * pi
    error = 4 * (dropped * (1 - dropped) / mask.connections.numel()) ** 0.5
    assert float(mask.connections.double().mean()) == pytest.approx(1 - dropped, abs=error)


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_scale_of_one_changes_nothing_bit_for_bit(sentence: str, hard: bool) -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    on, inputs = parse_mask(sentence).on, encoder.inputs(graph)
    for start in ((1.0, 1.0), (60.0, 1.0), (0.01, 1.0)):  # the last two: `logit(sigmoid(x))` is not x in float32
        augmentation = Augmentation([parse_mask(sentence)], 2, start=start)
        draw = partial(augmentation.draw, "o", graph, inputs, hard=hard)
        plain, scaled = draw(noise=in_turn(1)), draw(noise=in_turn(1), scale=1.0)
        assert torch.equal(getattr(plain[0], on), getattr(scaled[0], on))


def test_masks_of_one_layer_multiply() -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    inputs = encoder.inputs(graph)
    masks = [parse_mask(s) for s in ("connections in 3 blocks at 0.3", "edges at 0.2", "nodes of layer 2 at 0.4")]
    together = Augmentation(masks, 2).draw("o", graph, inputs, in_turn(5))
    noise, apart = in_turn(5), []
    for mask in masks:
        apart.append(Augmentation([mask], 2).draw("o", graph, inputs, noise))
    torch.testing.assert_close(together[0].connections, apart[0][0].connections * apart[1][0].connections)
    torch.testing.assert_close(
        together[1].connections, apart[0][1].connections * apart[1][1].connections * apart[2][1].connections
    )
    assert apart[2][0].connections is None


@pytest.mark.parametrize("kind", ["connections", "edges", "nodes", "subgraph"])
def test_shared_masks_are_equal_in_all_layers_and_masks_drawn_anew_are_not(kind: str) -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    inputs = encoder.inputs(graph)
    shared = Augmentation([parse_mask(f"{kind} shared at 0.5")], 2).draw("o", graph, inputs, in_turn(0))
    anew = Augmentation([parse_mask(f"{kind} anew at 0.5")], 2).draw("o", graph, inputs, in_turn(0))
    assert torch.equal(shared[0].connections, shared[1].connections)
    assert not torch.equal(anew[0].connections, anew[1].connections)


@pytest.mark.parametrize(
    ("sentence", "shape"),
    [
        ("connections in 4 blocks", (1, 1)),
        ("connections in 4 blocks per layer", (3, 1)),
        ("connections in 4 blocks per block", (3, 4)),
        ("edges per layer", (3, 1)),
        ("features", (1, 1)),
    ],
)
def test_rates_have_one_row_per_layer_and_one_column_per_block_with_a_separate_rate(
    sentence: str, shape: tuple[int, int]
) -> None:
    for view in ("o", "t"):
        [(_, rate)] = Augmentation([parse_mask(sentence)], 3).of(view)
        assert rate.log_a.shape == rate.log_b.shape == shape


def test_each_layer_and_block_is_dropped_at_its_own_rate() -> None:
    graph, encoder = random_graph(40, double=False), random_encoder((5, 4, 3), double=False)
    augmentation = Augmentation([parse_mask("connections in 2 blocks per block")], 2, draw="median")
    rates = torch.tensor([[0.1, 0.3], [0.6, 0.9]])
    [(_, rate)] = augmentation.of("o")
    with torch.no_grad():  # with b = 1 the median of pi is 2^(-1/a)
        rate.log_a.copy_(torch.log(-np.log(2) / torch.log(rates)))
    masks = augmentation.draw("o", graph, encoder.inputs(graph), in_turn(0), hard=True)
    kept = torch.stack([mask.connections.mean(0) for mask in masks])
    assert ((kept - (1 - rates)).abs() < 4 * (0.25 / len(graph.connections)) ** 0.5).all()


@pytest.mark.parametrize(("rate_draw", "spread"), [("sample", 12**-0.5), ("median", 0.0)])
def test_the_rate_is_a_new_draw_each_time_or_the_median(rate_draw: str, spread: float) -> None:
    graph, encoder = random_graph(40, double=False), random_encoder((5, 4), double=False)
    augmentation = Augmentation([parse_mask("connections")], 1, draw=rate_draw)  # pi is uniform on (0, 1) at the start
    inputs, noise = encoder.inputs(graph), in_turn(0)
    with torch.no_grad():
        shares = [augmentation.draw("o", graph, inputs, noise, hard=True)[0].connections.mean() for _ in range(200)]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.06)
    assert np.std(shares) == pytest.approx(spread, abs=0.03)


def test_each_view_has_its_own_rate() -> None:
    graph, encoder = random_graph(40, double=False), random_encoder((5, 4), double=False)
    augmentation = Augmentation([parse_mask("connections at 0.2/0.8")], 1)
    for view, rate in (("o", 0.2), ("t", 0.8)):
        [mask] = augmentation.draw(view, graph, encoder.inputs(graph), in_turn(0), hard=True)
        assert float(mask.connections.mean()) == pytest.approx(1 - rate, abs=0.06)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_same_seed_gives_the_same_draw_and_another_seed_another(sentence: str) -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    augmentation = Augmentation([parse_mask(sentence)], 2)
    first, again, other = (
        getattr(augmentation.draw("o", graph, encoder.inputs(graph), in_turn(seed))[0], parse_mask(sentence).on)
        for seed in (7, 7, 8)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_kl_is_the_sum_over_views_and_masks() -> None:
    masks = [parse_mask("connections in 2 blocks per block"), parse_mask("features"), parse_mask("edges at 0.2")]
    augmentation = Augmentation(masks, 2, start=(2.0, 1.0))
    # Kumaraswamy(2, 1) is Beta(2, 1). Its KL to the uniform distribution is E[log 2 pi] = log 2 - 1/2.
    with torch.no_grad():
        assert float(augmentation.kl()) == pytest.approx(2 * (2 * 2 + 1) * (np.log(2) - 0.5), rel=1e-5)


def test_a_view_that_drops_nothing_has_no_kl_and_keeps_everything() -> None:
    augmentation = Augmentation([], 2)
    assert float(augmentation.kl()) == 0
    assert float(augmentation.kept(0)) == 1


# Neighbors as positives


def neighbors(rate: str = "", **options: object) -> Augmentation:
    return Augmentation([parse_mask(f"neighbors{rate}")], 1, **options)


def star(leaves: int) -> PreparedGraph:
    """Node 0 is connected with all others."""
    adjacency = np.zeros((leaves + 1, leaves + 1))
    adjacency[0, 1:] = adjacency[1:, 0] = 1
    return make_graph(adjacency, np.ones((leaves + 1, 1)), double=False)


@pytest.mark.parametrize("hard", [True, False])
def test_the_weights_of_a_nodes_positives_sum_to_one_and_the_node_is_one_of_them(hard: bool) -> None:
    graph = random_graph(20, double=False)
    for seed in range(5):
        positives = neighbors(" at 0.4").draw_positives("o", graph, in_turn(seed), hard=hard)
        weights = on_matrix(graph, positives.weights)
        np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-5)
        assert (weights >= 0).all()
        assert (weights[dense_connections(graph) == 0] == 0).all()
        kept = weights > 0 if hard else weights
        assert (np.diag(kept) > 0).all()
        np.testing.assert_allclose(np.diag(weights), weights.max(1), rtol=1e-5)  # nobody counts more than the node
        if hard:  # all positives of a node count the same
            np.testing.assert_allclose(weights, kept / kept.sum(1, keepdims=True), rtol=1e-5)


def test_heavy_neighbors_are_likelier_positives_as_in_a_plain_loop() -> None:
    graph = with_weights(random_graph(12, double=False))
    positives = neighbors(" at 0.4").draw_positives("o", graph, in_turn(1), hard=True)
    found, kept, heavy = (on_matrix(graph, each) for each in (positives.weights, positives.kept[:, 0], graph.weights))
    for v in range(12):
        total = sum(kept[v, u] * heavy[v, u] for u in range(12))
        for u in range(12):
            assert found[v, u] == pytest.approx(kept[v, u] * heavy[v, u] / total, rel=1e-5)


@pytest.mark.parametrize("hard", [True, False])
def test_at_a_rate_of_zero_all_neighbors_are_positives_and_at_one_none(hard: bool) -> None:
    graph = random_graph(12, double=False)
    augmentation, connections = neighbors(" at 0/1"), dense_connections(graph)
    kept = augmentation.draw_positives("o", graph, in_turn(0), hard=hard)
    expected = connections / connections.sum(1, keepdims=True)
    np.testing.assert_allclose(on_matrix(graph, kept.weights), expected, rtol=1e-5)
    dropped = augmentation.draw_positives("t", graph, in_turn(0), hard=hard)
    np.testing.assert_array_equal(on_matrix(graph, dropped.weights), np.eye(12))


@pytest.mark.parametrize("pi", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("leaves", [1, 3, 8])
def test_the_expected_weight_of_a_node_itself_is_the_closed_form(leaves: int, pi: float) -> None:
    """With K of k neighbors kept it is E[1 / (K + 1)] = (1 - pi^(k + 1)) / ((k + 1) (1 - pi)), and neighbors share
    the rest equally."""
    graph, augmentation, noise = star(leaves), neighbors(f" at {pi}", hard=True), in_turn(0)
    draws = torch.stack([augmentation.draw_positives("o", graph, noise).weights for _ in range(3000)]).double()
    mean, error = draws.mean(0), 4 * 0.5 / 3000**0.5
    found = on_matrix(graph, mean)
    itself = (1 - pi ** (leaves + 1)) / ((leaves + 1) * (1 - pi))
    assert found[0, 0] == pytest.approx(itself, abs=error)
    np.testing.assert_allclose(found[0, 1:], (1 - itself) / leaves, atol=error)
    np.testing.assert_allclose(np.diag(found)[1:], (1 + pi) / 2, atol=error)  # k = 1


@pytest.mark.parametrize("pi", [0.2, 0.7])
def test_a_sampled_neighbor_counts_as_often_as_the_node_has_neighbors(pi: float) -> None:
    """In a batch the only neighbor of a node stands for all k of them: its weight is k / (k + 1) if it is kept."""
    graph = star(5)
    batch = NodeBatches(graph, 6).batch(torch.arange(6), seeded(0))
    positives = neighbors(f" at {pi}").draw_positives("o", batch, in_turn(1), hard=True)
    weights, connections = on_matrix(batch, positives.weights), dense_connections(batch)
    noise = torch.rand(len(batch.connections), 1, generator=seeded(1))
    kept = on_matrix(batch, (noise[:, 0] > pi).float())
    degree = np.concatenate([[5], np.ones(5), [1], np.full(5, 5)])  # of the six nodes, then of their partners
    for v in range(12):
        (partner,) = np.flatnonzero(connections[v] * (np.arange(12) != v))
        expected = degree[v] / (degree[v] + 1) if kept[v, partner] else 0
        assert weights[v, partner] == pytest.approx(expected, rel=1e-5)
        assert weights[v, v] == pytest.approx(1 - expected, rel=1e-5)
    assert 0 < kept[connections == 1].mean() < 1


def test_without_a_mask_of_neighbors_there_are_no_positives() -> None:
    augmentation = Augmentation([parse_mask("edges"), parse_mask("entries")], 2)
    assert augmentation.draw_positives("o", random_graph(), in_turn(0)) is None


def test_neighbors_are_no_mask_of_the_encoder() -> None:
    """They take no noise from the masks of the encoder, whether they come first or last."""
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    inputs = encoder.inputs(graph)
    assert Augmentation([parse_mask("neighbors")], 2).draw("o", graph, inputs, in_turn(0)) == [LayerMask(), LayerMask()]
    alone = Augmentation([parse_mask("entries")], 2).draw("o", graph, inputs, in_turn(0))
    for sentences in (("neighbors", "entries"), ("entries", "neighbors")):
        together = Augmentation([parse_mask(s) for s in sentences], 2).draw("o", graph, inputs, in_turn(0))
        assert torch.equal(together[0].entries, alone[0].entries)
        assert together[0].connections is None


def test_several_masks_of_neighbors_multiply() -> None:
    graph = random_graph(12, double=False)
    masks = [parse_mask("neighbors at 0.3"), parse_mask("entries"), parse_mask("neighbors at 0.5")]
    positives = Augmentation(masks, 1).draw_positives("o", graph, in_turn(2), hard=True)
    generator = seeded(2)
    noise = [torch.rand(len(graph.connections), 1, generator=generator)[:, 0] for _ in range(2)]
    kept = on_matrix(graph, (noise[0] > 0.3) & (noise[1] > 0.5))
    expected = np.maximum(kept, np.eye(12))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(on_matrix(graph, positives.weights), expected, rtol=1e-5)


@pytest.mark.parametrize("scale", [0.2, 0.6])
def test_neighbors_at_a_fraction_of_a_rate_are_those_at_the_lower_rate(scale: float) -> None:
    graph = random_graph(12, double=False)
    for hard in (True, False):
        found = neighbors(" at 0.5").draw_positives("o", graph, in_turn(3), hard=hard, scale=scale)
        expected = neighbors(f" at {0.5 * scale}").draw_positives("o", graph, in_turn(3), hard=hard)
        torch.testing.assert_close(found.weights, expected.weights, rtol=1e-4, atol=1e-6)


def test_the_rate_of_neighbors_is_learned() -> None:
    graph, augmentation = random_graph(12, double=False), neighbors(hard=True)
    itself = augmentation.draw_positives("o", graph, in_turn(0)).weights[graph.is_self[:, 0]].sum()
    itself.backward()
    [(_, rate)] = augmentation.of("o")
    assert float(rate.log_a.grad) > 0  # with a greater rate, a node itself counts more
    assert float(augmentation.kept(0)) == 1  # no connection of the encoder is dropped


@pytest.mark.parametrize("width", [1, 4])
def test_the_average_over_positives_is_the_dense_product(width: int) -> None:
    graph = random_graph(9)
    weights = torch.rand(len(graph.connections), dtype=torch.float64, generator=seeded(0))
    vectors = torch.randn(9, width, dtype=torch.float64, generator=seeded(1))
    found = Positives(graph.connections, weights).average(vectors)
    np.testing.assert_allclose(found.numpy(), on_matrix(graph, weights) @ vectors.numpy(), atol=1e-12)


@pytest.mark.parametrize("kind", ["edges", "nodes", "connections", "subgraph"])
def test_each_relation_is_dropped_at_its_own_rate(kind: str) -> None:
    graph, encoder = with_relations(random_graph(40, double=False), 2), random_encoder((5, 4, 3), double=False)
    augmentation = Augmentation([parse_mask(f"{kind} per relation")], 2, draw="median", relations=2)
    ((_, rate),) = augmentation.of("o")
    assert rate.log_a.shape == (1, 2)
    rate.set_posterior(2000.0, 1e6, 0)  # a narrow posterior at a high rate
    rate.set_posterior(1.0, 1e4, 1)  # close to 0
    (mask, _) = augmentation.draw("o", graph, encoder.inputs(graph), in_turn(0), hard=True)
    assert mask.connections is None
    kept = mask.relations[~graph.is_self[:, 0]].mean(0)
    assert kept[0] < 0.3 < 0.9 < kept[1]


def test_positives_of_relations_with_own_rates_are_those_of_a_plain_loop() -> None:
    graph = with_relations(random_graph(10, double=False), 2)
    augmentation = Augmentation([parse_mask("neighbors per relation")], 1, relations=2)
    positives = augmentation.draw_positives("o", graph, in_turn(1), hard=True)
    assert positives.kept.shape == (len(graph.connections), 2)
    found = on_matrix(graph, positives.weights)
    kept, heavy = ([on_matrix(graph, each[:, r]) for r in range(2)] for each in (positives.kept, graph.relations))
    for v in range(10):
        weights = {v: 1.0}
        for u in np.flatnonzero(dense_connections(graph)[v]):
            if u != v:
                total = heavy[0][v, u] + heavy[1][v, u]
                weights[u] = (kept[0][v, u] * heavy[0][v, u] + kept[1][v, u] * heavy[1][v, u]) / total
        for u, weight in weights.items():
            assert found[v, u] == pytest.approx(weight / sum(weights.values()), abs=1e-6)
