"""The graph isomorphism network against a loop over nodes and neighbors, and against PyTorch Geometric."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GINConv

from bgcl.augmentation.views import LayerMask
from bgcl.model.encoders.gin import GINEncoder, MaskedSum
from masked import DenseMask, array, check_against_loop, masked_graphs, on_layers, random_masks, randomize
from small import make_graph, random_adjacency, random_features, random_graph, seeded


def loop_layer(A: np.ndarray, X: np.ndarray, mask: DenseMask, layer: MaskedSum) -> np.ndarray:
    """The layer node by node."""
    X, Z, eps = mask.inputs(X), mask.by_feature(), array(layer.eps)
    result = []
    for v in range(len(X)):
        total = (1 + eps) * Z[v, v] * X[v]
        for u in np.flatnonzero(A[v]):
            if u != v:
                total = total + Z[v, u] * X[u]
        hidden = np.maximum(total @ array(layer.first) + array(layer.first_bias), 0)
        result.append(hidden @ array(layer.second) + array(layer.second_bias))
    return np.array(result)


@masked_graphs
def test_encoder_is_the_loop_over_nodes_and_neighbors(width: int, **how: int) -> None:
    check_against_loop(GINEncoder((width, 4, 3)), loop_layer, width=width, **how)


def test_encoder_without_masks_equals_pytorch_geometrics_gin() -> None:
    adjacency, features = random_adjacency(10), random_features(10, 6)
    graph, encoder = make_graph(adjacency, features), randomize(GINEncoder((6, 4)))
    (layer,) = encoder.layers
    convolution = GINConv(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 4)), train_eps=True).double()
    convolution.load_state_dict({
        "eps": layer.eps.detach().reshape(convolution.eps.shape),
        "nn.0.weight": layer.first.detach().t(),
        "nn.0.bias": layer.first_bias.detach(),
        "nn.2.weight": layer.second.detach().t(),
        "nn.2.bias": layer.second_bias.detach(),
    })  # fmt: skip
    target, source = np.nonzero(adjacency)
    expected = convolution(torch.as_tensor(features), torch.as_tensor(np.stack([source, target])))
    torch.testing.assert_close(encoder(graph), torch.relu(expected))


def test_eps_starts_at_zero_and_is_learned() -> None:
    graph, encoder = random_graph(double=False), GINEncoder((5, 4))
    encoder.reset_parameters(seeded(0))
    (layer,) = encoder.layers
    encoder(graph).sum().backward()
    assert layer.eps.item() == 0
    assert layer.eps.grad.item() != 0


@pytest.mark.parametrize("sparse", [False, True])
def test_layer_has_the_right_gradients(sparse: bool) -> None:
    graph = random_graph(4, 3, sparse=sparse)
    encoder = randomize(GINEncoder((3, 2)))
    (layer,), (mask,) = encoder.layers, on_layers(graph, random_masks(graph, encoder, blocks=2))

    def compute(connections: Tensor, columns: Tensor, entries: Tensor, *weights: Tensor) -> Tensor:
        parameters = dict(zip(("eps", "first", "second"), weights, strict=True))
        return torch.func.functional_call(
            layer, parameters, (graph, graph.features, LayerMask(connections, columns, entries))
        )

    weights = (each.detach() for each in (layer.eps, layer.first, layer.second))
    values = (mask.connections, mask.columns, mask.entries, *weights)
    assert torch.autograd.gradcheck(compute, tuple(value.clone().requires_grad_() for value in values))
