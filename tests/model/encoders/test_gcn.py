"""The masked layer against a triple loop; both orders against each other; the encoder against other networks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn import GCNConv

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.encoders.base import cheaper_order
from bgcl.model.encoders.gcn import GCNEncoder
from bgcl.model.network import Network
from bgcl.model.objectives.infonce import contrastive_loss
from bgcl.model.projection import ProjectionHead
from bgcl.settings import make_settings
from small import (
    dense_connections,
    dense_features,
    dense_gcn,
    feature_masks,
    in_turn,
    loop_layer,
    make_graph,
    on_connections,
    on_matrix,
    random_adjacency,
    random_encoder,
    random_features,
    random_graph,
    seeded,
    with_weights,
)

ORDERS = ["propagate", "transform"]


def random_mask(nodes: int, blocks: int, seed: int = 0) -> np.ndarray:
    """Relaxed keep values, some of them 0, different in each direction and block, `(N, N, B)`."""
    random = np.random.default_rng(seed)
    return random.random((nodes, nodes, blocks)) * (random.random((nodes, nodes, blocks)) < 0.8)


def on_entries(graph: PreparedGraph, dense: np.ndarray) -> Tensor:
    """Keep values `(N, F)` in the shape of a mask of entries."""
    values = torch.as_tensor(dense)
    if isinstance(graph.features, Tensor):
        return values
    return values[graph.features.pattern.row, graph.features.pattern.column]


@settings(max_examples=60, deadline=None)
@given(
    nodes=st.integers(1, 7),
    width_in=st.integers(1, 7),
    width_out=st.integers(1, 4),
    blocks=st.integers(1, 9),
    sparse=st.booleans(),
    weighted=st.booleans(),
    normalize_after=st.booleans(),
    order=st.sampled_from(ORDERS),
    seed=st.integers(0, 1000),
)
def test_layer_is_the_triple_loop_over_nodes_and_feature_pairs(
    nodes: int, width_in: int, width_out: int, blocks: int, sparse: bool, weighted: bool, normalize_after: bool,
    order: str, seed: int,
) -> None:  # fmt: skip
    graph = random_graph(nodes, width_in, sparse=sparse, seed=seed)
    graph = with_weights(graph, seed) if weighted else graph
    layer = random_encoder((width_in, width_out), seed=seed, normalize_after=normalize_after).layers[0]
    masks = random_mask(nodes, blocks, seed)
    result = layer(graph, graph.features, LayerMask(connections=on_connections(graph, masks)), order)
    W, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    by_feature = feature_masks(masks, width_in)
    A, X = dense_connections(graph), dense_features(graph)
    A = on_matrix(graph, graph.weights) if weighted else A
    expected = loop_layer(A, by_feature, X, W, bias, normalize_after=normalize_after)
    np.testing.assert_allclose(result.detach().numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("normalize_after", [True, False])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("sparse", [False, True])
def test_layer_with_masks_of_connections_columns_and_entries_is_the_loop(
    sparse: bool, order: str, normalize_after: bool
) -> None:
    graph = random_graph(6, 7, sparse=sparse)
    layer = random_encoder((7, 3), normalize_after=normalize_after).layers[0]
    random = np.random.default_rng(1)
    masks, columns, entries = random_mask(6, 3), random.random(7), random.random((6, 7))
    mask = LayerMask(on_connections(graph, masks), torch.as_tensor(columns), on_entries(graph, entries))
    W, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    X = dense_features(graph) * columns * entries
    expected = loop_layer(
        dense_connections(graph), feature_masks(masks, 7), X, W, bias, normalize_after=normalize_after
    )
    np.testing.assert_allclose(layer(graph, graph.features, mask, order).detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("normalize_after", [True, False])
@pytest.mark.parametrize("blocks", [1, 3, 5])
@pytest.mark.parametrize("sparse", [False, True])
def test_both_orders_of_computing_a_layer_have_the_same_values_and_gradients(
    sparse: bool, blocks: int, normalize_after: bool
) -> None:
    graph = random_graph(6, 7, sparse=sparse)
    layer = random_encoder((7, 3), normalize_after=normalize_after).layers[0]
    random = np.random.default_rng(1)
    leaves = {
        "connections": on_connections(graph, random_mask(6, blocks) + 0.01),
        "columns": torch.as_tensor(random.random(7)),
        "entries": on_entries(graph, random.random((6, 7))),
    }
    weight = torch.as_tensor(random.normal(size=(6, 3)))
    results = []
    for order in ORDERS:
        fresh = {name: value.clone().requires_grad_() for name, value in leaves.items()}
        layer.zero_grad()
        out = layer(graph, graph.features, LayerMask(**fresh), order)
        (out * weight).sum().backward()
        grads = {name: value.grad for name, value in fresh.items()}
        results.append({"out": out.detach(), "W": layer.weight.grad, "bias": layer.bias.grad, **grads})
    for name, value in results[0].items():
        assert value.abs().max() > 0, name
        torch.testing.assert_close(value, results[1][name], rtol=1e-10, atol=1e-12, msg=name)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("sparse", [False, True])
def test_layer_has_the_right_gradients(sparse: bool, order: str) -> None:
    graph = random_graph(4, 3, sparse=sparse)
    layer = random_encoder((3, 2)).layers[0]
    random = np.random.default_rng(1)

    def compute(connections: Tensor, columns: Tensor, entries: Tensor, W: Tensor) -> Tensor:
        mask = LayerMask(connections, columns, entries)
        return torch.func.functional_call(layer, {"weight": W}, (graph, graph.features, mask, order))

    inputs = (
        on_connections(graph, random.random((4, 4, 2)) + 0.1),
        torch.as_tensor(random.random(3)),
        on_entries(graph, random.random((4, 3))),
        layer.weight.detach().clone(),
    )
    assert torch.autograd.gradcheck(compute, tuple(value.requires_grad_() for value in inputs))


@pytest.mark.parametrize("sparse", [False, True])
def test_encoder_without_masks_equals_pytorch_geometrics_gcn(sparse: bool) -> None:
    adjacency, features = random_adjacency(10), random_features(10, 6)
    adjacency[3, :] = adjacency[:, 3] = 0  # a node without edges
    graph, encoder = make_graph(adjacency, features, sparse=sparse), random_encoder((6, 5, 4))
    target, source = np.nonzero(adjacency)
    edges = torch.as_tensor(np.stack([source, target]))
    expected = torch.as_tensor(features)
    for layer, (width_in, width_out) in zip(encoder.layers, [(6, 5), (5, 4)], strict=True):
        convolution = GCNConv(width_in, width_out).double()
        convolution.load_state_dict({"lin.weight": layer.weight.detach().t(), "bias": layer.bias.detach()})
        expected = torch.relu(convolution(expected, edges))
    torch.testing.assert_close(encoder(graph), expected)
    np.testing.assert_allclose(
        encoder(graph).detach().numpy(), dense_gcn(dense_connections(graph), features, encoder), atol=1e-12
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_relabeling_the_nodes_relabels_the_embeddings_and_leaves_the_loss(masked: bool, sparse: bool) -> None:
    adjacency, features = random_adjacency(9), random_features(9, 5)
    network = Network(5, make_settings(encoder="gcn", widths=(6, 4))).double()
    network.reset_parameters(seeded(0))
    new = np.random.default_rng(0).permutation(9)  # node new[i] of the first graph is node i of the second
    views, losses = [], []
    for order in (np.arange(9), new):
        graph = make_graph(adjacency[np.ix_(order, order)], features[order], sparse=sparse)
        embeddings = []
        for seed in (0, 1):
            masks = None
            if masked:
                dense = [random_mask(9, 3, seed + layer)[np.ix_(order, order)] for layer in (0, 2)]
                entries = np.random.default_rng(seed).random((9, 5))[order]
                masks = [LayerMask(connections=on_connections(graph, each)) for each in dense]
                masks[0].entries = on_entries(graph, entries)
            embeddings.append(network.encoder(graph, masks))
        views.append(embeddings)
        losses.append(contrastive_loss(*(network.objective.head(each) for each in embeddings), 0.4))
    for first, second in zip(*views, strict=True):
        torch.testing.assert_close(first[torch.as_tensor(new)], second)
        assert first.abs().max() > 0.01
    torch.testing.assert_close(losses[0], losses[1])


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("normalize", ["after", "before"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "drop",
    [
        ["connections in 3 blocks at 0"],
        ["connections in 3 blocks per block shared at 0", "features at 0", "nodes at 0"],
        ["edges at 0", "entries of every layer at 0", "subgraph at 0"],
    ],
)
def test_fixed_rates_of_zero_give_the_deterministic_encoder(
    drop: list[str], sparse: bool, normalize: str, hard: bool
) -> None:
    graph = random_graph(9, 5, sparse=sparse, double=False)
    relaxed = {"encoder": "gcn", "widths": (6, 4), "mask_values": "relaxed"}
    network = Network(5, make_settings(drop=drop, normalize=normalize, **relaxed))
    network.reset_parameters(seeded(0))
    for view in ("o", "t"):
        torch.testing.assert_close(network.encode(view, graph, in_turn(1), hard=hard), network.encoder(graph))
    assert network.encoder(graph).abs().max() > 0.01


def test_fixed_rates_of_one_leave_nothing_but_the_bias() -> None:
    graph = random_graph(9, 5, double=False)
    network = Network(5, make_settings(encoder="gcn", drop="connections in 3 blocks at 1", widths=(4,)))
    network.encoder.load_state_dict(random_encoder((5, 4), double=False).state_dict())
    expected = torch.relu(network.encoder.layers[0].bias).expand(9, 4)
    torch.testing.assert_close(network.encode("o", graph, in_turn(0)), expected)


def test_masks_of_ones_change_nothing() -> None:
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    ones = [LayerMask(connections=torch.ones(len(graph.connections), 3, dtype=torch.float64)) for _ in range(2)]
    torch.testing.assert_close(encoder(graph, ones), encoder(graph))


def test_the_default_order_is_the_cheaper_one() -> None:
    wide, narrow = random_graph(30, 40), random_graph(30, 2)
    assert cheaper_order(wide, wide.features, 1, 2) == "transform"
    assert cheaper_order(narrow, narrow.features, 1, 40) == "propagate"
    assert cheaper_order(wide, wide.features, 40, 20) == "propagate"  # forty passes over the edges instead of one


def test_prelu_learns_the_slope_of_negative_values() -> None:
    graph, encoder = random_graph(), random_encoder((5, 4), activation="prelu")
    with torch.no_grad():
        encoder.activation.weight.fill_(0.1)
    before = encoder.layers[0](graph, graph.features, LayerMask())
    torch.testing.assert_close(encoder(graph), torch.where(before > 0, before, 0.1 * before))


def test_the_projection_head_is_linear_elu_linear() -> None:
    head, h = ProjectionHead(3), torch.randn(4, 3, generator=seeded(0))
    hidden = h @ head.first.weight.t() + head.first.bias
    hidden = torch.where(hidden > 0, hidden, hidden.exp() - 1)
    torch.testing.assert_close(head(h), hidden @ head.second.weight.t() + head.second.bias)


def test_the_same_generator_gives_the_same_parameters() -> None:
    states = []
    for seed in (0, 0, 1):
        encoder, head = GCNEncoder((5, 4, 3)), ProjectionHead(3)
        generator = seeded(seed)
        encoder.reset_parameters(generator)
        head.reset_parameters(generator)
        states.append(torch.cat([p.flatten() for p in (*encoder.parameters(), *head.parameters())]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])
