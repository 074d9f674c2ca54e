"""Graph attention against a loop over nodes, neighbors, heads and blocks, and against PyTorch Geometric."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GATConv

from bgcl.augmentation.views import LayerMask
from bgcl.errors import BGCLError
from bgcl.model.encoders.gat import GATEncoder, MaskedAttention, masked_softmax
from masked import DenseMask, array, check_against_loop, masked_graphs, on_layers, random_masks, randomize
from small import make_graph, random_adjacency, random_features, random_graph, seeded


def loop_layer(A: np.ndarray, X: np.ndarray, mask: DenseMask, layer: MaskedAttention) -> np.ndarray:
    """The layer node by node, head by head and feature by feature."""
    X, Z, W = mask.inputs(X), mask.by_feature(), array(layer.weight)
    at_self, at_neighbor = array(layer.attention_self), array(layer.attention_neighbor)
    heads, size = at_self.shape
    h, result = X @ W, np.tile(array(layer.bias), (len(X), 1))
    for v in range(len(X)):
        connected = np.flatnonzero(A[v])
        for head in range(heads):
            columns = slice(head * size, (head + 1) * size)
            scores = [at_self[head] @ h[v, columns] + at_neighbor[head] @ h[u, columns] for u in connected]
            weights = np.exp([score if score > 0 else 0.2 * score for score in scores])
            for i in range(X.shape[1]):
                total = sum(Z[v, u, i] * weight for u, weight in zip(connected, weights, strict=True))
                for u, weight in zip(connected, weights, strict=True):
                    if total > 0:
                        result[v, columns] += Z[v, u, i] * weight / total * X[u, i] * W[i, columns]
    return result


@pytest.mark.parametrize("heads", [1, 2, 3])
@masked_graphs
def test_encoder_is_the_loop_over_nodes_neighbors_and_heads(heads: int, width: int, **how: int) -> None:
    encoder = GATEncoder((width, 2 * heads, 2 * heads), heads=heads)
    check_against_loop(encoder, loop_layer, width=width, **how)


def test_encoder_without_masks_equals_pytorch_geometrics_gat() -> None:
    adjacency, features = random_adjacency(10), random_features(10, 6)
    graph, encoder = make_graph(adjacency, features), randomize(GATEncoder((6, 8), heads=4))
    (layer,) = encoder.layers
    convolution = GATConv(6, 2, heads=4).double()
    convolution.load_state_dict({
        "lin.weight": layer.weight.detach().t(),
        "att_dst": layer.attention_self.detach()[None],
        "att_src": layer.attention_neighbor.detach()[None],
        "bias": layer.bias.detach(),
    })  # fmt: skip
    target, source = np.nonzero(adjacency)
    expected = convolution(torch.as_tensor(features), torch.as_tensor(np.stack([source, target])))
    torch.testing.assert_close(encoder(graph), torch.relu(expected))


@pytest.mark.parametrize("sparse", [False, True])
def test_layer_has_the_right_gradients(sparse: bool) -> None:
    graph = random_graph(4, 3, sparse=sparse)
    encoder = randomize(GATEncoder((3, 4), heads=2))
    (layer,), (mask,) = encoder.layers, on_layers(graph, random_masks(graph, encoder, blocks=2))

    def compute(connections: Tensor, columns: Tensor, entries: Tensor, *weights: Tensor) -> Tensor:
        parameters = dict(zip(("weight", "attention_self", "attention_neighbor"), weights, strict=True))
        return torch.func.functional_call(
            layer, parameters, (graph, graph.features, LayerMask(connections, columns, entries))
        )

    values = (mask.connections + 0.1, mask.columns, mask.entries, *(each.detach() for each in layer.weight_matrices()))
    assert torch.autograd.gradcheck(compute, tuple(value.clone().requires_grad_() for value in values))


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
def test_softmax_of_great_scores_under_hard_and_tiny_masks_is_finite(size: float) -> None:
    """In float32, where the dropped connection has by far the greatest score, or all keep values are tiny."""
    graph = random_graph(6)
    row = graph.connections.row
    scores = size * torch.randn(len(row), 1, generator=seeded(0))
    greatest = torch.stack([scores[row == v].max() for v in range(6)])
    keep = (scores[:, 0] < greatest[row]).float()[:, None]
    keep[row == 2] = 0
    keep[row == 3] = 1e-30
    keep[row == 4] = 1e-10
    scores, keep = scores.requires_grad_(), keep.requires_grad_()
    result = masked_softmax(graph.connections, scores, keep)
    totals = torch.stack([result[row == v].sum() for v in range(6)])
    torch.testing.assert_close(totals, torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0, 1.0]))
    result.square().sum().backward()
    assert scores.grad.isfinite().all()
    assert keep.grad.isfinite().all()


def test_a_width_that_heads_do_not_divide_is_an_error() -> None:
    with pytest.raises(BGCLError, match=r"must be divisible .* Got width 6 and heads = 4"):
        GATEncoder((5, 8, 6))
