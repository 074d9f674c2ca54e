"""The encoder that keeps every hop against dense matrices."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.encoders.hops import HopsEncoder
from masked import DenseMask, array, on_layers, random_masks, randomize
from small import dense_connections, dense_features, dense_normalize, feature_masks, random_graph, seeded


def dense_hops(graph: PreparedGraph, encoder: HopsEncoder, masks: list[DenseMask]) -> np.ndarray:
    """Each part by itself: weights, then one propagation after the other, each with the masks of its hop."""
    A, U = dense_connections(graph), dense_features(graph)
    before, hops = masks[: len(encoder.layers)], masks[len(encoder.layers) :]
    for layer, mask in zip(encoder.layers, before, strict=True):
        U = np.maximum(mask.inputs(U) @ array(layer.weight) + array(layer.bias), 0)
    U = hops[0].inputs(U)
    parts = []
    for k, weight in enumerate(encoder.weights):
        part = U @ array(weight)
        for hop in range(k):
            if hop:
                part = hops[hop].inputs(part)
            Z = feature_masks(hops[hop].connections, part.shape[1])
            part = np.stack([dense_normalize(A * Z[:, :, j]) @ part[:, j] for j in range(part.shape[1])], 1)
        part = np.maximum(part, 0)
        length = np.linalg.norm(part, axis=1, keepdims=True)
        parts.append(part / np.where(length > 0, length, 1))
    return np.concatenate(parts, 1)


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(1, 7),
    widths=st.sampled_from([(5, 4), (3, 7), (5, 6, 4), (5, 6, 5, 3)]),
    hops=st.integers(1, 4),
    blocks=st.integers(1, 5),
    sparse=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_encoder_is_the_dense_propagation_of_each_part(
    nodes: int, widths: tuple[int, ...], hops: int, blocks: int, sparse: bool, seed: int
) -> None:
    """Blocks are slices of each part, although the encoder propagates several parts at once."""
    graph = random_graph(nodes, widths[0], sparse=sparse, seed=seed)
    encoder = randomize(HopsEncoder(widths, hops=hops), seed=seed)
    masks = random_masks(graph, encoder, blocks=blocks, seed=seed)
    assert len(masks) == len(widths) - 2 + hops
    result = array(encoder(graph, on_layers(graph, masks)))
    np.testing.assert_allclose(result, dense_hops(graph, encoder, masks), atol=1e-9)


def test_parts_have_length_one() -> None:
    encoder = randomize(HopsEncoder((5, 6), hops=2, activation="prelu", norm="layer"))
    parts = encoder(random_graph()).reshape(8, 3, 6)
    torch.testing.assert_close(parts.norm(dim=2), torch.ones(8, 3, dtype=torch.float64))


def test_every_weight_belongs_to_one_masked_layer() -> None:
    encoder = HopsEncoder((5, 6, 4), hops=3)
    matrices = encoder.weight_matrices()
    assert len(matrices) == encoder.masked_layers == 4
    found = {id(weight) for layer in matrices for weight in layer}
    assert found == {id(parameter) for parameter in encoder.parameters() if parameter.ndim == 2}


@pytest.mark.parametrize("sparse", [False, True])
def test_encoder_has_the_right_gradients(sparse: bool) -> None:
    graph = random_graph(4, 3, sparse=sparse)
    encoder = randomize(HopsEncoder((3, 3), hops=2, activation="prelu"))
    masks = on_layers(graph, random_masks(graph, encoder, blocks=2))

    def compute(*values: Tensor) -> Tensor:
        return encoder(graph, [LayerMask(*values[:3]), LayerMask(*values[3:])])

    values = [value for mask in masks for value in (mask.connections + 0.1, mask.columns + 0.1, mask.entries + 0.1)]
    assert torch.autograd.gradcheck(compute, tuple(value.clone().requires_grad_() for value in values))


@pytest.mark.parametrize("activation", ["relu", "prelu"])
def test_gradients_are_of_usual_size_where_all_connections_of_a_node_are_dropped(activation: str) -> None:
    """A part of zeros has no direction: to divide it by a tiny length would multiply gradients by 1e12."""
    graph = random_graph(6, 5, double=False)
    encoder = randomize(HopsEncoder((5, 4), hops=2, activation=activation), double=False)
    keep = torch.ones(len(graph.connections), 1)
    keep[(graph.connections.row == 2) | (graph.connections.column == 2)] = 0
    keep.requires_grad_()
    result = encoder(graph, [LayerMask(keep), LayerMask(keep)])
    assert result[2, 4:].abs().max() == 0
    (result * torch.randn(result.shape, generator=seeded(0))).sum().backward()
    for gradient in (keep.grad, *(parameter.grad for parameter in encoder.parameters())):
        assert gradient.abs().max() < 1e3
