"""Masks: the relaxation against its law, every augmentation against its textbook definition, and their gradients."""

from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.masks import bernoulli, concrete, straight_through
from bgcl.augmentation.views import Augmentation, LayerMask
from bgcl.graph.prepared import Graph
from bgcl.model.encoders.gcn import Encoder, MaskedConvolution
from bgcl.model.network import Network
from bgcl.settings import make_settings
from small import (
    dense_connections,
    dense_features,
    dense_gcn,
    loop_layer,
    make_graph,
    on_connections,
    on_matrix,
    random_adjacency,
    random_encoder,
    random_features,
    random_graph,
    seeded,
)

LEARNED = ["connections in 3 blocks", "edges", "nodes", "subgraph", "features", "entries"]


# The relaxation


def midpoints(count: int) -> Tensor:
    """Uniform noise without chance: equally spaced."""
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


@pytest.mark.parametrize("pi", [0.013, 0.3, 0.5, 0.877])
def test_hard_masks_keep_the_share_one_minus_pi(pi: float) -> None:
    keep = bernoulli(torch.logit(torch.tensor(pi, dtype=torch.float64)), midpoints(10_000))
    assert set(keep.tolist()) == {0.0, 1.0}
    assert float(keep.mean()) == pytest.approx(1 - pi, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.05, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("pi", [0.013, 0.3, 0.877])
def test_relaxed_masks_have_the_law_of_the_concrete_distribution(pi: float, temperature: float) -> None:
    # P(z > x) of the concrete distribution; at x = 1/2 it is 1 - pi, whatever the temperature.
    keep = concrete(torch.logit(torch.tensor(pi, dtype=torch.float64)), midpoints(10_000), temperature)
    for x in (0.1, 0.5, 0.8):
        odds = (1 - pi) / pi * ((1 - x) / x) ** temperature
        assert float((keep > x).double().mean()) == pytest.approx(odds / (1 + odds), abs=1.01e-4)
    assert float((keep > 0.5).double().mean()) == pytest.approx(1 - pi, abs=1.01e-4)


def test_relaxed_masks_tend_to_the_hard_ones_as_the_temperature_falls() -> None:
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


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("sentence", LEARNED)
def test_rates_of_zero_and_one_keep_all_and_nothing(sentence: str, hard: bool) -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    mask = parse_mask(f"{sentence} at 0/1")
    augmentation = Augmentation([mask], 2)
    kept = augmentation.draw("o", graph, encoder.inputs(graph), seeded(0), hard=hard)
    dropped = augmentation.draw("t", graph, encoder.inputs(graph), seeded(0), hard=hard)
    assert (getattr(kept[0], mask.on) == 1).all()
    gone = getattr(dropped[0], mask.on)
    if mask.kind == "edges":
        gone = gone[~graph.is_self]
    assert (gone == 0).all()


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("scale", [0.2, 0.5])
@pytest.mark.parametrize("sentence", LEARNED)
def test_masks_at_a_share_of_a_rate_are_those_of_the_lower_rate(sentence: str, scale: float, hard: bool) -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    on, inputs = parse_mask(sentence).on, encoder.inputs(graph)
    # The median of a learned rate is 1/2 at the start.
    for given, rate in ((f"{sentence} at 0", 0), (f"{sentence} at 0.7", 0.7), (f"{sentence} at 1", 1), (sentence, 0.5)):
        scaled = Augmentation([parse_mask(given)], 2, draw="median")
        lower = Augmentation([parse_mask(f"{sentence} at {scale * rate}")], 2)
        found = scaled.draw("o", graph, inputs, seeded(3), hard=hard, scale=scale)
        expected = lower.draw("o", graph, inputs, seeded(3), hard=hard)
        torch.testing.assert_close(getattr(found[0], on), getattr(expected[0], on), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scale", [0.1, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("pi", [0.3, 0.8])
def test_hard_masks_at_a_share_of_a_rate_keep_one_minus_that_share_of_pi(pi: float, scale: float) -> None:
    graph, encoder = random_graph(40, double=False), random_encoder((5, 4), double=False)
    augmentation = Augmentation([parse_mask(f"connections in 5 blocks at {pi}")], 1)
    [mask] = augmentation.draw("o", graph, encoder.inputs(graph), seeded(0), hard=True, scale=scale)
    assert set(mask.connections.flatten().tolist()) == {0.0, 1.0}
    dropped = scale * pi
    error = 4 * (dropped * (1 - dropped) / mask.connections.numel()) ** 0.5
    assert float(mask.connections.double().mean()) == pytest.approx(1 - dropped, abs=error)


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("sentence", LEARNED)
def test_the_whole_of_a_rate_is_the_rate_bit_for_bit(sentence: str, hard: bool) -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    on, inputs = parse_mask(sentence).on, encoder.inputs(graph)
    for start in ((1.0, 1.0), (60.0, 1.0), (0.01, 1.0)):  # at the last ones `logit(sigmoid(x))` is not `x` in float32
        augmentation = Augmentation([parse_mask(sentence)], 2, start=start)
        plain, whole = (augmentation.draw("o", graph, inputs, seeded(1), hard=hard, **s) for s in ({}, {"scale": 1.0}))
        assert torch.equal(getattr(plain[0], on), getattr(whole[0], on))


# The four augmentations


def draw(
    sentence: str, graph: Graph, encoder: Encoder, seed: int = 0, *, hard: bool = True
) -> tuple[list[LayerMask], Tensor]:
    """One draw of a mask for all layers, and the embeddings under it."""
    augmentation = Augmentation([parse_mask(sentence)], len(encoder.layers))
    masks = augmentation.draw("o", graph, encoder.inputs(graph), seeded(seed), hard=hard)
    return masks, encoder(graph, masks)


def kept_nodes(graph: Graph, mask: LayerMask) -> np.ndarray:
    """The nodes whose self-connection is kept."""
    return np.flatnonzero(np.diag(on_matrix(graph, mask.connections[:, 0])))


@pytest.mark.parametrize("sentence", ["nodes at 0.4", "subgraph at 0.4"])
@pytest.mark.parametrize("seed", range(4))
def test_dropping_nodes_is_the_network_on_the_subgraph_that_the_others_induce(sentence: str, seed: int) -> None:
    graph, encoder = random_graph(12, double=False, seed=seed), random_encoder((5, 6, 4), double=False)
    masks, embeddings = draw(sentence, graph, encoder, seed)
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
    masks, embeddings = draw("edges at 0.4", graph, encoder, seed)
    left = on_matrix(graph, masks[0].connections[:, 0])
    assert (np.diag(left) == 1).all()
    off_diagonal = ~np.eye(12, dtype=bool) & (dense_connections(graph) == 1)
    assert set(left[off_diagonal]) == {0.0, 1.0}
    np.testing.assert_allclose(embeddings.detach().numpy(), dense_gcn(left, dense_features(graph), encoder), atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_dropping_features_is_the_network_on_attributes_with_columns_of_zeros(seed: int, sparse: bool) -> None:
    graph, encoder = random_graph(9, 10, sparse=sparse, double=False), random_encoder((10, 6, 4), double=False)
    masks, embeddings = draw("features at 0.4", graph, encoder, seed)
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
    masks, embeddings = draw("features of every layer at 0.4", graph, encoder, seed)
    features = dense_features(graph)
    for layer, mask, width in zip(encoder.layers, masks, (10, 6), strict=True):
        columns = mask.columns.double().numpy()
        assert columns.shape == (width,)
        W, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
        ones = np.ones((9, 9, width))
        layer_out = loop_layer(dense_connections(graph), ones, features * columns, W, bias, normalise_after=True)
        features = np.maximum(layer_out, 0)
    np.testing.assert_allclose(embeddings.detach().numpy(), features, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_dropping_entries_is_the_network_on_x_times_z(sparse: bool) -> None:
    graph, encoder = random_graph(9, 10, sparse=sparse, double=False), random_encoder((10, 6, 4), double=False)
    masks, embeddings = draw("entries at 0.4", graph, encoder)
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
    # The paper's Z^(i) = 1 diag(Z[:, i]): all that node u sends of feature i is kept or dropped together.
    graph = random_graph(7, 5, sparse=sparse)
    layer = random_encoder((5, 4)).layers[0]
    Z = (np.random.default_rng(0).random((7, 5)) > 0.4).astype(float)
    general = np.stack([np.ones((7, 7)) @ np.diag(Z[:, i]) for i in range(5)], axis=2)
    W, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    X = dense_features(graph)
    loops = loop_layer(dense_connections(graph), general, X, W, bias, normalise_after=False)

    entries = torch.as_tensor(Z)
    if sparse:
        entries = entries[graph.features.pattern.row, graph.features.pattern.column]
    by_entries = layer(graph, graph.features, LayerMask(entries=entries))
    before = MaskedConvolution(5, 4, normalise_after=False).double()
    before.load_state_dict(layer.state_dict())
    by_connections = before(graph, graph.features, LayerMask(connections=on_connections(graph, general)))
    np.testing.assert_allclose(by_entries.detach().numpy(), loops, atol=1e-12)
    np.testing.assert_allclose(by_connections.detach().numpy(), loops, atol=1e-12)


def test_connections_are_dropped_one_by_one_in_each_block_and_layer() -> None:
    graph, encoder = random_graph(40, double=False), random_encoder((5, 6, 4), double=False)
    masks, _ = draw("connections in 3 blocks at 0.3", graph, encoder)
    keep = torch.stack([mask.connections for mask in masks]).double()  # (2, E, 3)
    count = len(graph.connections)
    assert keep.shape == (2, count, 3)
    error = 4 * (0.3 * 0.7 / count) ** 0.5
    flat = keep.permute(0, 2, 1).reshape(6, count)
    assert ((flat.mean(1) - 0.7).abs() < error).all()
    assert ((keep[:, graph.is_self[:, 0]].mean() - 0.7).abs()) < 0.15  # self-connections like any other
    assert (torch.corrcoef(flat) - torch.eye(6)).abs().max() < 4 / count**0.5


# Growing a subgraph


def growth_ranks(graph: Graph, count: int) -> np.ndarray:
    """For each draw the rank of each node, from its noise, `(count, N)`."""
    mask, generator = parse_mask("subgraph"), seeded(0)
    noise = torch.stack([mask.uniform(graph, None, generator)[:, 0] for _ in range(count)]).double().numpy()
    return (1 - noise) * graph.nodes - 0.5


def growth_law(adjacency: np.ndarray) -> dict[tuple[int, ...], float]:
    """The probability of every order: again and again through a uniformly random edge at the border.

    Where there is none, at the start and when a component is full, go on at a uniformly random new node.
    """
    nodes = len(adjacency)

    def extend(order: tuple[int, ...], probability: float) -> None:
        if len(order) == nodes:
            law[order] = probability
            return
        outside = [u for u in range(nodes) if u not in order]
        border = [u for v in order for u in outside if adjacency[v, u]]
        for u, times in Counter(border or outside).items():
            extend((*order, u), probability * times / len(border or outside))

    law: dict[tuple[int, ...], float] = {}
    extend((), 1.0)
    return law


def from_edges(nodes: int, edges: list[tuple[int, int]]) -> np.ndarray:
    adjacency = np.zeros((nodes, nodes))
    for v, u in edges:
        adjacency[v, u] = adjacency[u, v] = 1
    return adjacency


SHAPES = {
    "path": from_edges(4, [(0, 1), (1, 2), (2, 3)]),
    "star": from_edges(4, [(0, 1), (0, 2), (0, 3)]),
    "paw": from_edges(4, [(2, 1), (2, 0), (1, 0), (2, 3)]),  # here a random edge is not a random neighbour
    "two components": from_edges(5, [(0, 2), (2, 4), (1, 3)]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_subgraph_grows_through_random_edges_at_its_border(shape: str) -> None:
    adjacency, count = SHAPES[shape], 1200
    law = growth_law(adjacency)
    ranks = growth_ranks(make_graph(adjacency, np.ones((len(adjacency), 1))), count)
    seen = Counter(tuple(order) for order in np.argsort(ranks, axis=1).tolist())
    assert set(seen) <= set(law)
    observed = [seen[order] for order in law]
    assert stats.chisquare(observed, [probability * count for probability in law.values()]).pvalue > 0.01


def test_ranks_of_growth_are_a_permutation_and_fill_one_component_after_another() -> None:
    blocks = [random_adjacency(n, 0.7, seed=n) for n in (6, 3, 1, 4)]
    adjacency = np.zeros((14, 14))
    component, start = np.zeros(14, dtype=int), 0
    for i, block in enumerate(blocks):
        inside = slice(start, start + len(block))
        adjacency[inside, inside], component[inside] = block, i
        start += len(block)
    shuffled = np.random.default_rng(0).permutation(14)
    adjacency, component = adjacency[np.ix_(shuffled, shuffled)], component[shuffled]
    for ranks in growth_ranks(make_graph(adjacency, np.ones((14, 1))), 20):
        np.testing.assert_allclose(np.sort(ranks), np.arange(14), atol=1e-4)
        order = np.argsort(ranks)
        assert (np.diff(component[order]) != 0).sum() == 3
        for i in range(1, 14):  # every node but a component's first has a neighbour that was there before it
            fresh = component[order[i]] != component[order[i - 1]]
            assert fresh or adjacency[order[i], order[:i]].any()


@pytest.mark.parametrize("rate", [0.1, 0.33, 0.5, 0.72, 0.95])
@pytest.mark.parametrize("nodes", [7, 20])
def test_a_subgraph_keeps_the_share_one_minus_pi_of_the_nodes_and_is_connected(nodes: int, rate: float) -> None:
    adjacency = np.maximum(random_adjacency(nodes, 0.1), from_edges(nodes, [(i, i + 1) for i in range(nodes - 1)]))
    graph, encoder = make_graph(adjacency, np.ones((nodes, 5)), double=False), random_encoder((5, 4), double=False)
    for seed in range(5):
        masks, _ = draw(f"subgraph at {rate}", graph, encoder, seed)
        kept = kept_nodes(graph, masks[0])
        assert abs(len(kept) - (1 - rate) * nodes) <= 0.5 + 1e-6
        if len(kept):
            reached = np.linalg.matrix_power(adjacency[np.ix_(kept, kept)] + np.eye(len(kept)), len(kept))
            assert (reached > 0).all()


# The gradient of the augmentation's step


def learning_network(
    sentence: str, *, double: bool, temperature: float = 0.3, rate_draw: str = "sample", mask_values: str = "relaxed"
) -> Network:
    values = {"drop": sentence, "rate_start": (1.3, 0.9), "temperature": temperature, "rate_draw": rate_draw}
    values |= {"mask_values": mask_values}
    network = Network(5, make_settings(widths=(8, 6), **values))
    network.reset_parameters(seeded(1))
    network.encoder.load_state_dict(random_encoder((5, 8, 6), double=False).state_dict())
    for parameter in (*network.encoder.parameters(), *network.head.parameters()):
        parameter.requires_grad_(False)
    return network.double() if double else network


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rate_draw", ["sample", "median"])
@pytest.mark.parametrize(
    "sentence", [*LEARNED, "connections in 2 blocks per block", "features of every layer per layer"]
)
def test_the_gradient_of_the_rates_is_the_difference_quotient(sentence: str, rate_draw: str, sparse: bool) -> None:
    graph = random_graph(7, 5, sparse=sparse)
    network = learning_network(sentence, double=True, rate_draw=rate_draw)  # relaxed: a hard mask has no derivative

    def loss() -> Tensor:
        # Several draws: one alone may have a rate at which every unit of the encoder is dead.
        return sum(network.loss(*network.views(graph, seeded(seed))) for seed in range(4))

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


@pytest.mark.parametrize("sentence", LEARNED)
@pytest.mark.parametrize(
    ("mask_values", "temperature"), [("relaxed", 0.3), ("relaxed", 0.05), ("relaxed", 0.01), ("hard", 0.3)]
)
def test_the_gradient_of_the_rates_is_finite_in_the_precision_of_training(
    sentence: str, mask_values: str, temperature: float
) -> None:
    # A node without neighbours has one connection, and a low temperature leaves next to nothing of it.
    adjacency = random_adjacency(20, 0.1)
    adjacency[:8] = adjacency[:, :8] = 0
    graph = make_graph(adjacency, random_features(20, 5), double=False)
    network = learning_network(sentence, double=False, temperature=temperature, mask_values=mask_values)
    generator = seeded(0)
    for _ in range(5):
        network.zero_grad()
        network.loss(*network.views(graph, generator)).backward()
        for parameter in network.augmentation.parameters():
            assert torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize("sentence", ["connections in 3 blocks", "connections shared", "nodes"])
def test_nodes_that_lose_all_their_connections_do_not_rule_the_gradient_under_hard_masks(sentence: str) -> None:
    adjacency = random_adjacency(20, 0.1)  # half of the nodes have two neighbours or fewer
    graph, largest = make_graph(adjacency, random_features(20, 5), double=False), {}
    for mask_values in ("hard", "relaxed"):
        network = learning_network(sentence, double=False, rate_draw="median", mask_values=mask_values)
        generator, gradients = seeded(0), []
        for _ in range(10):
            network.zero_grad()
            network.loss(*network.views(graph, generator)).backward()
            gradients.extend(float(p.grad.abs().max()) for p in network.augmentation.parameters())
        largest[mask_values] = max(gradients)
    assert 0.1 < largest["hard"] / largest["relaxed"] < 10


@pytest.mark.parametrize("rate_draw", ["sample", "median"])
@pytest.mark.parametrize("sentence", ["connections in 3 blocks", "edges", "features", "entries"])
def test_hard_masks_have_the_gradient_of_relaxed_ones_where_the_loss_is_linear_in_them(
    sentence: str, rate_draw: str
) -> None:
    # A layer that normalises before it masks is linear in its mask, so where the gradient is taken does not matter.
    graph, encoder = random_graph(9, 24), random_encoder((24, 4), normalise_after=False)
    weight = torch.randn(9, 4, dtype=torch.float64, generator=seeded(2))
    gradients, keeps = [], []
    for hard in (True, False):
        augmentation = Augmentation([parse_mask(sentence)], 1, hard=hard, draw=rate_draw, start=(1.3, 0.9)).double()
        [mask] = augmentation.draw("o", graph, encoder.inputs(graph), seeded(4))
        (encoder.layers[0](graph, graph.features, mask) * weight).sum().backward()
        [(_, rate)] = augmentation.of("o")
        gradients.append(torch.cat([rate.log_a.grad, rate.log_b.grad]))
        keeps.append(getattr(mask, parse_mask(sentence).on).detach())
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-10, atol=0)
    assert (gradients[0].abs() > 1e-6).all()
    assert set(keeps[0].flatten().tolist()) == {0.0, 1.0}
    assert not torch.equal(keeps[0], keeps[1])


# What an augmentation draws


def test_masks_of_one_layer_multiply() -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    inputs = encoder.inputs(graph)
    masks = [parse_mask(s) for s in ("connections in 3 blocks at 0.3", "edges at 0.2", "nodes of layer 2 at 0.4")]
    together = Augmentation(masks, 2).draw("o", graph, inputs, seeded(5))
    generator, apart = seeded(5), []
    for mask in masks:
        apart.append(Augmentation([mask], 2).draw("o", graph, inputs, generator))
    torch.testing.assert_close(together[0].connections, apart[0][0].connections * apart[1][0].connections)
    torch.testing.assert_close(
        together[1].connections, apart[0][1].connections * apart[1][1].connections * apart[2][1].connections
    )
    assert apart[2][0].connections is None


@pytest.mark.parametrize("kind", ["connections", "edges", "nodes", "subgraph"])
def test_shared_masks_are_one_draw_for_all_layers_and_anew_one_for_each(kind: str) -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    inputs = encoder.inputs(graph)
    shared = Augmentation([parse_mask(f"{kind} shared at 0.5")], 2).draw("o", graph, inputs, seeded(0))
    anew = Augmentation([parse_mask(f"{kind} anew at 0.5")], 2).draw("o", graph, inputs, seeded(0))
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
def test_rates_have_the_shape_of_what_has_a_rate_of_its_own(sentence: str, shape: tuple[int, int]) -> None:
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
    masks = augmentation.draw("o", graph, encoder.inputs(graph), seeded(0), hard=True)
    kept = torch.stack([mask.connections.mean(0) for mask in masks])
    assert ((kept - (1 - rates)).abs() < 4 * (0.25 / len(graph.connections)) ** 0.5).all()


@pytest.mark.parametrize(("rate_draw", "spread"), [("sample", 12**-0.5), ("median", 0.0)])
def test_the_rate_is_drawn_from_its_posterior_each_time_or_is_its_median(rate_draw: str, spread: float) -> None:
    graph, encoder = random_graph(40, double=False), random_encoder((5, 4), double=False)
    augmentation = Augmentation([parse_mask("connections")], 1, draw=rate_draw)  # pi is uniform on (0, 1) at the start
    inputs, generator = encoder.inputs(graph), seeded(0)
    with torch.no_grad():
        shares = [augmentation.draw("o", graph, inputs, generator, hard=True)[0].connections.mean() for _ in range(200)]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.06)
    assert np.std(shares) == pytest.approx(spread, abs=0.03)


def test_the_two_views_have_rates_of_their_own() -> None:
    graph, encoder = random_graph(40, double=False), random_encoder((5, 4), double=False)
    augmentation = Augmentation([parse_mask("connections at 0.2/0.8")], 1)
    for view, rate in (("o", 0.2), ("t", 0.8)):
        [mask] = augmentation.draw(view, graph, encoder.inputs(graph), seeded(0), hard=True)
        assert float(mask.connections.mean()) == pytest.approx(1 - rate, abs=0.06)


@pytest.mark.parametrize("sentence", LEARNED)
def test_the_same_seed_gives_the_same_draw_and_another_seed_another(sentence: str) -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    augmentation = Augmentation([parse_mask(sentence)], 2)
    first, again, other = (
        getattr(augmentation.draw("o", graph, encoder.inputs(graph), seeded(seed))[0], parse_mask(sentence).on)
        for seed in (7, 7, 8)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_kl_is_the_sum_over_views_and_masks() -> None:
    masks = [parse_mask("connections in 2 blocks per block"), parse_mask("features"), parse_mask("edges at 0.2")]
    augmentation = Augmentation(masks, 2, start=(2.0, 1.0))
    # Kumaraswamy(2, 1) is Beta(2, 1): its KL to the uniform law is E[log 2 pi] = log 2 - 1/2.
    with torch.no_grad():
        assert float(augmentation.kl()) == pytest.approx(2 * (2 * 2 + 1) * (np.log(2) - 0.5), rel=1e-5)


def test_a_view_that_drops_nothing_has_no_kl_and_keeps_everything() -> None:
    augmentation = Augmentation([], 2)
    assert float(augmentation.kl()) == 0
    assert float(augmentation.kept(0)) == 1
