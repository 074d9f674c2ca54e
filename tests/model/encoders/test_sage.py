"""GraphSAGE against a loop over nodes and neighbors, and against PyTorch Geometric."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.nn import SAGEConv

from bgcl.augmentation.views import LayerMask
from bgcl.model.encoders.sage import MaskedMean, SAGEEncoder, neighbor_mean
from masked import DenseMask, array, check_against_loop, masked_graphs, on_layers, random_masks, randomize
from small import (
    make_graph,
    on_matrix,
    random_adjacency,
    random_features,
    random_graph,
    seeded,
)


def loop_layer(A: np.ndarray, X: np.ndarray, mask: DenseMask, layer: MaskedMean) -> np.ndarray:
    """The layer node by node and feature by feature."""
    X, Z, (nodes, width) = mask.inputs(X), mask.by_feature(), X.shape
    mean = np.zeros_like(X)
    for v in range(nodes):
        neighbors = [u for u in range(nodes) if A[v, u] and u != v]
        for i in range(width):
            total = sum(Z[v, u, i] for u in neighbors)
            if total > 0:
                mean[v, i] = sum(Z[v, u, i] * X[u, i] for u in neighbors) / total
    return X @ array(layer.weight_self) + mean @ array(layer.weight_neighbors) + array(layer.bias)


@masked_graphs
def test_encoder_is_the_loop_over_nodes_and_neighbors(width: int, **how: int) -> None:
    check_against_loop(SAGEEncoder((width, 4, 3)), loop_layer, width=width, **how)


def test_encoder_without_masks_equals_pytorch_geometrics_sage() -> None:
    adjacency, features = random_adjacency(10), random_features(10, 6)
    adjacency[3, :] = adjacency[:, 3] = 0  # a node without edges
    graph, encoder = make_graph(adjacency, features), randomize(SAGEEncoder((6, 4)))
    (layer,) = encoder.layers
    convolution = SAGEConv(6, 4, aggr="mean").double()
    convolution.load_state_dict({
        "lin_l.weight": layer.weight_neighbors.detach().t(),
        "lin_l.bias": layer.bias.detach(),
        "lin_r.weight": layer.weight_self.detach().t(),
    })  # fmt: skip
    target, source = np.nonzero(adjacency)
    expected = convolution(torch.as_tensor(features), torch.as_tensor(np.stack([source, target])))
    torch.testing.assert_close(encoder(graph), torch.relu(expected))


def test_rows_of_the_mean_sum_to_one_or_to_zero_without_a_kept_neighbor() -> None:
    graph = make_graph(np.ones((6, 6)) - np.eye(6), random_features(6, 5))
    keep = torch.rand(len(graph.connections), 1, dtype=torch.float64, generator=seeded(0))
    keep[graph.connections.row == 2] = 0
    mean = on_matrix(graph, neighbor_mean(graph, keep)[:, 0])
    np.testing.assert_allclose(mean.sum(1), [1, 1, 0, 1, 1, 1])
    assert np.all(np.diag(mean) == 0)


@pytest.mark.parametrize("sparse", [False, True])
def test_layer_has_the_right_gradients(sparse: bool) -> None:
    graph = random_graph(4, 3, sparse=sparse)
    encoder = randomize(SAGEEncoder((3, 2)))
    (layer,), (mask,) = encoder.layers, on_layers(graph, random_masks(graph, encoder, blocks=2))

    def compute(connections: Tensor, columns: Tensor, entries: Tensor, *weights: Tensor) -> Tensor:
        parameters = dict(zip(("weight_self", "weight_neighbors"), weights, strict=True))
        return torch.func.functional_call(
            layer, parameters, (graph, graph.features, LayerMask(connections, columns, entries))
        )

    values = (mask.connections + 0.1, mask.columns, mask.entries, *(each.detach() for each in layer.weight_matrices()))
    assert torch.autograd.gradcheck(compute, tuple(value.clone().requires_grad_() for value in values))
