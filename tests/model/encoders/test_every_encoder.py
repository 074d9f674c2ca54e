"""What must hold for every encoder, whatever its layers compute."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.views import Augmentation, LayerMask
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.encoders.base import Encoder
from bgcl.model.encoders.gat import GATEncoder
from bgcl.model.encoders.gcn import GCNEncoder
from bgcl.model.encoders.gin import GINEncoder
from bgcl.model.encoders.hops import HopsEncoder
from bgcl.model.encoders.mlp import MLPEncoder
from bgcl.model.encoders.pyg import PyGEncoder
from bgcl.model.encoders.sage import SAGEEncoder
from masked import on_layers, random_masks, randomize
from small import in_turn, make_graph, random_adjacency, random_features, random_graph, seeded

ENCODERS: dict[str, Callable[..., Encoder]] = {
    "gcn": GCNEncoder,
    "hops": HopsEncoder,
    "sage": SAGEEncoder,
    "gin": GINEncoder,
    "gat": partial(GATEncoder, heads=2),
    "mlp": MLPEncoder,
    "pyg": partial(PyGEncoder, convolution="GraphConv"),
}
EVERY = pytest.mark.parametrize("name", ENCODERS)
LAYERED = pytest.mark.parametrize("name", [name for name in ENCODERS if name != "hops"])


def blocks_of(name: str) -> int:
    return 1 if name == "pyg" else 3  # PyTorch Geometric has one weight per connection


def ring_graph(nodes: int = 7, width: int = 5) -> PreparedGraph:
    """Each node has four neighbors, and no attribute is zero. So every keep value matters."""
    step = np.abs(np.subtract.outer(np.arange(nodes), np.arange(nodes)))
    near = np.minimum(step, nodes - step)
    return make_graph(((near == 1) | (near == 2)).astype(float), np.random.default_rng(0).normal(size=(nodes, width)))


@EVERY
@pytest.mark.parametrize("sparse", [False, True])
def test_masks_of_ones_change_nothing(name: str, sparse: bool) -> None:
    graph, encoder = random_graph(sparse=sparse), randomize(ENCODERS[name]((5, 6, 4)))
    masks = random_masks(graph, encoder, blocks=blocks_of(name))
    for mask in masks:
        for values in (mask.connections, mask.columns, mask.entries):
            values[:] = 1
    torch.testing.assert_close(encoder(graph, on_layers(graph, masks)), encoder(graph))
    assert encoder(graph).shape == (8, encoder.width)
    assert encoder(graph).abs().max() > 0.01


@EVERY
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_masks_drawn_at_rate_zero_give_the_deterministic_encoder(name: str, sparse: bool, hard: bool) -> None:
    graph = random_graph(sparse=sparse, double=False)
    encoder = randomize(ENCODERS[name]((5, 6, 4)), double=False)
    sentences = ["edges at 0", "nodes at 0", "features of every layer at 0", "entries of every layer at 0"]
    sentences.append(f"connections in {blocks_of(name)} blocks at 0")
    augmentation = Augmentation([parse_mask(sentence) for sentence in sentences], encoder.masked_layers)
    masks = augmentation.draw("o", graph, encoder.inputs(graph), in_turn(0), hard=hard)
    torch.testing.assert_close(encoder(graph, masks), encoder(graph))


@EVERY
@settings(max_examples=10, deadline=None)
@given(nodes=st.integers(1, 8), sparse=st.booleans(), masked=st.booleans(), seed=st.integers(0, 1000))
def test_relabeling_the_nodes_relabels_the_embeddings(
    name: str, nodes: int, sparse: bool, masked: bool, seed: int
) -> None:
    adjacency, features = random_adjacency(nodes, seed=seed), random_features(nodes, 5, seed)
    encoder = randomize(ENCODERS[name]((5, 6, 4)), seed=seed)
    graph = make_graph(adjacency, features, sparse=sparse)
    masks = random_masks(graph, encoder, blocks=blocks_of(name), seed=seed)
    new = np.random.default_rng(seed).permutation(nodes)  # node new[i] of the first graph is node i of the second
    relabeled = make_graph(adjacency[np.ix_(new, new)], features[new], sparse=sparse)
    first = encoder(graph, on_layers(graph, masks) if masked else None)
    second = encoder(relabeled, on_layers(relabeled, [mask.relabeled(new) for mask in masks]) if masked else None)
    torch.testing.assert_close(first[torch.as_tensor(new)], second)


@EVERY
def test_masks_reach_the_inputs_and_the_connections_of_every_layer(name: str) -> None:
    graph = ring_graph()
    encoder = randomize(ENCODERS[name]((5, 6, 6), activation="prelu"))
    if name == "gin":  # its layers have a ReLU inside, whose units must all be active here
        for layer in encoder.layers:
            layer.first_bias.data.fill_(9.0)
    masks = on_layers(graph, random_masks(graph, encoder, blocks=blocks_of(name)))
    masks = [LayerMask(mask.connections.clamp(min=0.1), mask.columns, mask.entries) for mask in masks]
    leaves = [value.requires_grad_() for mask in masks for value in (mask.connections, mask.columns, mask.entries)]
    result = encoder(graph, masks)
    (result * torch.randn(result.shape, generator=seeded(0), dtype=torch.float64)).sum().backward()
    assert len(leaves) == 3 * encoder.masked_layers
    for i, mask in enumerate(masks):
        assert mask.columns.grad.abs().min() > 1e-9, i
        assert mask.entries.grad.abs().min() > 1e-9, i
        if name == "mlp" or (name == "hops" and i < len(encoder.layers)):  # these layers have no connections
            assert mask.connections.grad is None
            continue
        reached = mask.connections.grad.abs() > 1e-9
        if name == "sage":  # no node is its own neighbor
            assert not reached[graph.is_self[:, 0]].any()
            reached = reached[~graph.is_self[:, 0]]
        assert reached.all(), i


@EVERY
@pytest.mark.parametrize("masked", [False, True])
def test_sparse_and_dense_features_give_the_same(name: str, masked: bool) -> None:
    encoder, results = randomize(ENCODERS[name]((5, 6, 4))), []
    for sparse in (False, True):
        graph = random_graph(sparse=sparse)
        masks = on_layers(graph, random_masks(graph, encoder, blocks=blocks_of(name))) if masked else None
        encoder.zero_grad()
        result = encoder(graph, masks)
        result.square().sum().backward()
        gradients = [parameter.grad.flatten() for parameter in encoder.parameters() if parameter.grad is not None]
        results.append(torch.cat([result.flatten(), *gradients]))
    torch.testing.assert_close(*results)


@EVERY
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("activation", ["relu", "prelu"])
def test_norms_and_activations_keep_the_shape(name: str, norm: str, activation: str) -> None:
    graph, encoder = random_graph(), randomize(ENCODERS[name]((5, 6, 4), norm=norm, activation=activation))
    result = encoder(graph)
    assert result.shape == (8, encoder.width)
    assert result.isfinite().all()
    assert len(encoder.weight_matrices()) == encoder.masked_layers == len(encoder.inputs(graph))
    result.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())


@LAYERED
@pytest.mark.parametrize("skip", [False, True])
def test_jumps_hand_on_the_last_layer_all_of_them_or_the_greatest_value(name: str, skip: bool) -> None:
    graph, widths = random_graph(), (5, 6, 6, 6)
    results = {}
    for jump in ("last", "concatenate", "max"):
        encoder = randomize(ENCODERS[name](widths, skip=skip, jump=jump))
        results[jump] = encoder(graph)
        assert results[jump].shape == (8, encoder.width)
    parts = results["concatenate"].reshape(8, 3, 6)
    torch.testing.assert_close(parts[:, 2], results["last"])
    torch.testing.assert_close(parts.amax(1), results["max"])


@LAYERED
def test_skips_add_the_input_of_a_layer_to_its_output(name: str) -> None:
    """The same weights without the skip, and the first layer's output, which the skip's matrix takes to width 4."""
    graph = random_graph()
    encoder = randomize(ENCODERS[name]((5, 6, 4), skip=True, jump="concatenate"))
    with_skip = encoder(graph)
    (matrix,), encoder.skips = encoder.skips, None
    without = encoder(graph)
    torch.testing.assert_close(with_skip[:, :6], without[:, :6])
    torch.testing.assert_close(with_skip[:, 6:], without[:, 6:] + without[:, :6] @ matrix.weight.t())


@EVERY
def test_the_same_generator_gives_the_same_parameters(name: str) -> None:
    states = []
    for seed in (0, 0, 1):
        skip = {} if name == "hops" else {"skip": True}
        encoder = ENCODERS[name]((5, 6, 4), norm="layer", **skip)
        encoder.reset_parameters(seeded(seed))
        states.append(torch.cat([parameter.flatten() for parameter in encoder.parameters()]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])
    assert states[0].isfinite().all()


@EVERY
@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize("dropped", ["row", "both", "all"])
def test_gradients_are_finite_where_all_connections_of_a_node_are_dropped(name: str, norm: str, dropped: str) -> None:
    graph = random_graph(double=False)
    encoder = randomize(ENCODERS[name]((5, 6, 4), norm=norm, activation="prelu"), double=False)
    row, column = graph.connections.row, graph.connections.column
    lost: dict[str, Tensor] = {"row": row == 2, "both": (row == 2) | (column == 2), "all": row >= 0}
    keep = torch.ones(len(row), blocks_of(name)).masked_fill(lost[dropped][:, None], 0.0).requires_grad_()
    result = encoder(graph, [LayerMask(keep)] * encoder.masked_layers)
    assert result.isfinite().all()
    (result * torch.randn(result.shape, generator=seeded(0))).sum().backward()
    gradients = [parameter.grad for parameter in encoder.parameters() if parameter.grad is not None]
    for gradient in [*gradients, *([] if name == "mlp" else [keep.grad])]:
        assert gradient.abs().max() < 1e5  # neither NaN nor infinite nor far out of scale
