"""Convolutions of PyTorch Geometric, and modules of the user, against loops and against errors that help."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCN, GCNConv, GraphConv

from bgcl.augmentation.views import LayerMask
from bgcl.errors import BGCLError
from bgcl.model.encoders.pyg import ModuleEncoder, PyGEncoder, convolution_names, make_convolution
from masked import DenseMask, array, on_layers, random_masks, randomize
from small import dense_connections, dense_features, random_graph, seeded


def loop_graph_conv(A: np.ndarray, X: np.ndarray, mask: DenseMask, layer: GraphConv) -> np.ndarray:
    """`x_v W_root + sum_u z_vu x_u W_rel + bias` node by node, where u can be v."""
    X, Z = mask.inputs(X), mask.connections[:, :, 0]
    root, rel, bias = array(layer.lin_root.weight), array(layer.lin_rel.weight), array(layer.lin_rel.bias)
    result = []
    for v in range(len(X)):
        total = sum(Z[v, u] * X[u] for u in np.flatnonzero(A[v]))
        result.append(root @ X[v] + rel @ total + bias)
    return np.array(result)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sparse", [False, True])
def test_graph_conv_is_the_loop_over_nodes_and_neighbors(sparse: bool, seed: int) -> None:
    """The directions of a connection have different keep values, so source and target must not be swapped."""
    graph = random_graph(6, 5, sparse=sparse, seed=seed)
    encoder = randomize(PyGEncoder((5, 4, 3), convolution="GraphConv"), seed=seed)
    masks = random_masks(graph, encoder, seed=seed)
    expected = dense_features(graph)
    for layer, mask in zip(encoder.layers, masks, strict=True):
        expected = np.maximum(loop_graph_conv(dense_connections(graph), expected, mask, layer.convolution), 0)
    np.testing.assert_allclose(array(encoder(graph, on_layers(graph, masks))), expected, atol=1e-10)


def test_gcn_conv_keeps_the_mask_of_self_connections() -> None:
    """GCNConv adds self-connections only where there are none, so theirs are those of the graph, masked."""
    graph = random_graph(6, 5)
    encoder = randomize(PyGEncoder((5, 4), convolution="GCNConv"))
    (mask,), (layer,) = random_masks(graph, encoder), encoder.layers
    A = dense_connections(graph) * mask.connections[:, :, 0]
    root = np.array([1 / np.sqrt(total) if total > 0 else 0 for total in A.sum(1)])  # of the rows, on both sides
    X = mask.inputs(dense_features(graph)) @ array(layer.convolution.lin.weight).T
    expected = (root[:, None] * A * root) @ X + array(layer.convolution.bias)
    np.testing.assert_allclose(array(encoder(graph, on_layers(graph, [mask]))), np.maximum(expected, 0), atol=1e-10)


@pytest.mark.parametrize("name", convolution_names())
def test_every_named_convolution_encodes_with_finite_gradients_where_all_connections_are_dropped(name: str) -> None:
    graph = random_graph(6, 5, double=False)
    encoder = randomize(PyGEncoder((5, 4, 3), convolution=name), double=False)
    keep = torch.ones(len(graph.connections), 1)
    keep[(graph.connections.row == 2) | (graph.connections.column == 2)] = 0
    keep.requires_grad_()
    result = encoder(graph, [LayerMask(keep), LayerMask(keep)])
    assert result.shape == (6, 3)
    result.sum().backward()
    assert keep.grad.isfinite().all()
    assert keep.grad.abs().max() > 0
    assert all(matrices for matrices in encoder.weight_matrices())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("GrafConv", r"torch_geometric.nn has no convolution 'GrafConv'. Did you mean GraphConv"),
        ("data_parallel", r"torch_geometric.nn has no convolution 'data_parallel'. Known: .*GCNConv"),
        ("GATConv", r"GATConv cannot be .* forward takes x, edge_index, edge_attr, size and not x, edge_index, edge_w"),
        ("ChebConv", r"made with in_channels and out_channels only, but needs in_channels, out_channels, K. Did you"),
        ("LGConv", r"made with in_channels and out_channels only, but needs neither"),
        ("MixHopConv", r"MixHopConv\(5, 4\) returns the width 12, not 4. Known: .*GraphConv"),
    ],
)
def test_a_convolution_that_does_not_fit_is_an_error_that_says_why(name: str, message: str) -> None:
    with pytest.raises(BGCLError, match=message):
        make_convolution(name, 5, 4)


def test_making_and_initializing_leaves_the_global_generator_as_it_was() -> None:
    before = torch.get_rng_state()
    encoder = PyGEncoder((5, 4), convolution="GCNConv")
    encoder.reset_parameters(seeded(0))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("make", [lambda: PyGEncoder((5, 4)), lambda: ModuleEncoder(GraphConv(5, 4), 5)])
def test_masks_with_blocks_are_an_error(make) -> None:
    graph = random_graph(6, 5, double=False)
    with pytest.raises(BGCLError, match=r"one weight per connection, but the mask has 3 blocks"):
        make()(graph, [LayerMask(torch.ones(len(graph.connections), 3))])


class TwoLayers(nn.Module):
    """A module as a user writes it."""

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        self.first, self.second = GraphConv(width_in, 8), GraphConv(8, width)
        self.dropout, self.norm = nn.Dropout(0.5), nn.BatchNorm1d(8)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        return self.second(
            self.norm(self.dropout(self.first(x, edge_index, edge_weight).relu())), edge_index, edge_weight
        )


@pytest.mark.parametrize("sparse", [False, True])
def test_a_users_module_gets_masked_features_and_connections(sparse: bool) -> None:
    graph, module = random_graph(6, 5, sparse=sparse), GraphConv(5, 4)
    encoder = ModuleEncoder(module, 5).double()
    masks = random_masks(graph, encoder)
    expected = loop_graph_conv(dense_connections(graph), dense_features(graph), masks[0], module)
    assert (encoder.width, encoder.masked_layers, len(masks)) == (4, 1, 1)
    np.testing.assert_allclose(array(encoder(graph, on_layers(graph, masks))), expected, atol=1e-10)
    ones = [LayerMask(torch.ones(len(graph.connections), 1, dtype=torch.float64))]
    torch.testing.assert_close(encoder(graph), encoder(graph, ones))


def test_the_trial_call_leaves_the_module_as_it_was() -> None:
    module = TwoLayers(5, 3)
    module.dropout.eval()
    before, random = {name: value.clone() for name, value in module.state_dict().items()}, torch.get_rng_state()
    encoder = ModuleEncoder(module, 5)
    assert encoder.width == 3
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert module.training
    assert module.norm.training
    assert not module.dropout.training
    assert torch.equal(torch.get_rng_state(), random)


def test_a_users_module_starts_from_the_same_weights_with_the_same_seed() -> None:
    states = []
    for seed in (0, 0, 1):
        encoder = ModuleEncoder(TwoLayers(5, 3), 5)  # no reset_parameters of its own: that of each part is called
        encoder.reset_parameters(seeded(seed))
        states.append(torch.cat([parameter.flatten() for parameter in encoder.parameters()]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])
    (matrices,) = encoder.weight_matrices()
    assert sorted(tuple(matrix.shape) for matrix in matrices) == [(3, 8), (3, 8), (8, 5), (8, 5)]


def test_the_width_of_a_lazy_module_is_found_too() -> None:
    encoder = ModuleEncoder(GCN(-1, 8, num_layers=2, out_channels=3), 5)
    assert encoder.width == 3
    assert [matrix.shape for matrix in encoder.weight_matrices()[0]] == [(8, 5), (3, 8)]


class Returns(nn.Module):
    """A module that returns what it is told, or raises it."""

    def __init__(self, result: object) -> None:
        super().__init__()
        self.result = result

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> object:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


CALL = r"Returns cannot be an encoder: called as module\(x, edge_index, edge_weight\) with x \(3, 5\), "
CALL += r"edge_index \(2, 7\), edge_weight \(7,\), it "


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (RuntimeError("mat1 and mat2\ndo not match"), "raised RuntimeError: mat1 and mat2 do not match"),
        ((torch.zeros(3, 2), None), r"returned a tuple and not a tensor of shape \(3, d\)"),
        (torch.zeros(3), r"returned a tensor of shape \(3,\) and not \(3, d\)"),
        (torch.zeros(3, 2, 1), r"returned a tensor of shape \(3, 2, 1\) and not \(3, d\)"),
        (torch.zeros(1, 2), r"returned a tensor of shape \(1, 2\) and not \(3, d\)"),
    ],
)
def test_a_module_that_cannot_be_an_encoder_is_an_error_with_the_call_and_its_result(
    result: object, message: str
) -> None:
    with pytest.raises(BGCLError, match=CALL + message):
        ModuleEncoder(Returns(result), 5)


def test_a_class_or_a_module_that_caches_connections_is_an_error() -> None:
    with pytest.raises(BGCLError, match=r"must be an instance of torch.nn.Module. Got <class .*TwoLayers'>"):
        ModuleEncoder(TwoLayers, 5)
    with pytest.raises(BGCLError, match=r"must not cache its connections.* Set cached=False in GCNConv\."):
        ModuleEncoder(GCNConv(5, 4, cached=True), 5)
