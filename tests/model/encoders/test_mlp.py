"""Linear layers against dense matrices."""

import numpy as np
import pytest
import torch
from torch import Tensor

from bgcl.augmentation.views import LayerMask
from bgcl.model.encoders.base import DENSE
from bgcl.model.encoders.mlp import MLPEncoder
from masked import array, on_layers, random_masks, randomize
from small import dense_features, make_graph, random_graph, seeded


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("sparse", [False, True])
def test_encoder_is_linear_layers_with_norm_and_relu_between_them(sparse: bool, norm: str) -> None:
    graph = random_graph(6, 5, sparse=sparse)
    encoder = randomize(MLPEncoder((5, 4, 3), norm=norm))
    masks = random_masks(graph, encoder)
    first, second = encoder.layers
    hidden = masks[0].inputs(dense_features(graph)) @ array(first.weight) + array(first.bias)
    if norm != "none":
        axis = 1 if norm == "layer" else 0
        spread = np.sqrt(hidden.var(axis, keepdims=True) + 1e-5)
        hidden = (hidden - hidden.mean(axis, keepdims=True)) / spread
        hidden = hidden * array(encoder.norms[0].weight) + array(encoder.norms[0].bias)
    expected = masks[1].inputs(np.maximum(hidden, 0)) @ array(second.weight) + array(second.bias)
    result = array(encoder(graph, on_layers(graph, masks)))
    np.testing.assert_allclose(result, expected, atol=1e-12)
    assert (result < 0).any()  # neither norm nor activation after the last layer


def test_features_with_few_nonzero_entries_take_another_way_to_the_same_product() -> None:
    X = np.diag(np.arange(1.0, 31.0))
    graph = make_graph(np.zeros((30, 30)), X, sparse=True)
    encoder = randomize(MLPEncoder((30, 3), norm="none"))
    (layer,), (mask,) = encoder.layers, random_masks(graph, encoder)
    assert len(graph.features.pattern) < DENSE * X.size
    expected = mask.inputs(X) @ array(layer.weight) + array(layer.bias)
    np.testing.assert_allclose(array(encoder(graph, on_layers(graph, [mask]))), expected, atol=1e-12)


def test_a_nodes_vector_does_not_depend_on_other_nodes() -> None:
    graph, encoder = random_graph(6, 5), randomize(MLPEncoder((5, 4, 3)))
    graph.features.requires_grad_()
    (gradient,) = torch.autograd.grad(encoder(graph)[2].sum(), graph.features)
    assert not encoder.propagates
    assert gradient[2].abs().min() > 0
    assert gradient[[0, 1, 3, 4, 5]].abs().max() == 0


@pytest.mark.parametrize("sparse", [False, True])
def test_layer_has_the_right_gradients(sparse: bool) -> None:
    graph = random_graph(4, 3, sparse=sparse)
    encoder = randomize(MLPEncoder((3, 2)))
    (layer,), (mask,) = encoder.layers, on_layers(graph, random_masks(graph, encoder))

    def compute(columns: Tensor, entries: Tensor, weight: Tensor) -> Tensor:
        mask = LayerMask(columns=columns, entries=entries)
        return torch.func.functional_call(layer, {"weight": weight}, (graph, graph.features, mask))

    values = (mask.columns, mask.entries, layer.weight.detach())
    assert torch.autograd.gradcheck(compute, tuple(value.clone().requires_grad_() for value in values))


def test_only_a_first_layer_that_is_normalized_starts_wide() -> None:
    spread = {}
    for norm, widths in (("layer", (100, 200, 4)), ("none", (100, 200, 4)), ("layer", (100, 200))):
        encoder = MLPEncoder(widths, norm=norm)
        encoder.reset_parameters(seeded(0))
        spread[norm, len(widths)] = encoder.layers[0].weight.std().item()
    assert spread["layer", 3] == pytest.approx(1, abs=0.05)
    assert spread["none", 3] == spread["layer", 2] == pytest.approx(0.1, abs=0.005)
