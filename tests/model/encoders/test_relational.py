"""Encoders of several relations: the sum of a layer for each relation, or an encoder for each, side by side."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from bgcl.augmentation.views import LayerMask
from bgcl.model.encoders import make_encoder
from bgcl.model.encoders.gcn import GCNEncoder
from bgcl.model.encoders.hops import HopsEncoder
from bgcl.model.encoders.relational import for_relations, mask_of
from bgcl.settings import Settings
from masked import array, randomize
from small import dense_features, loop_layer, on_matrix, random_graph, seeded, with_relations


@pytest.mark.parametrize("masked", [False, True])
def test_layers_are_the_sums_of_the_loops_over_relations(masked: bool) -> None:
    graph = with_relations(random_graph(6, 5), 3)
    encoder = randomize(for_relations(lambda: GCNEncoder((5, 4, 3)), 3))
    kept = torch.rand(len(graph.connections), 3, generator=seeded(0)).double()
    X = dense_features(graph)
    for layer in encoder.layers:
        total = np.zeros((6, layer.layers[0].weight.shape[1]))
        for r, own in enumerate(layer.layers):
            A = on_matrix(graph, graph.relations[:, r]) + np.eye(6)
            Z = on_matrix(graph, kept[:, r]) if masked else np.ones((6, 6))
            Z = np.repeat(Z[:, :, None], X.shape[1], axis=2)
            total += loop_layer(A, Z, X, array(own.weight), array(own.bias), normalize_after=True)
        X = np.maximum(total, 0)
    masks = [LayerMask(relations=kept)] * 2 if masked else None
    np.testing.assert_allclose(array(encoder(graph, masks)), X, atol=1e-10)


def test_an_encoder_without_layers_is_there_for_each_relation() -> None:
    graph = with_relations(random_graph(6, 5), 2)
    encoder = randomize(for_relations(lambda: HopsEncoder((5, 4), hops=2), 2))
    assert encoder.width == 24
    found = encoder(graph)
    for r, part in enumerate(found.split(12, dim=1)):
        own = graph.relations[:, r] + graph.is_self[:, 0].double()
        expected = encoder.encoders[r](replace(graph, weights=own, relations=None))
        assert torch.equal(part, expected)


def test_the_mask_of_a_relation_multiplies_that_of_all() -> None:
    both = LayerMask(connections=torch.tensor([[0.5], [1.0]]), relations=torch.tensor([[1.0, 0.0], [0.5, 1.0]]))
    assert mask_of(both, 0).connections.tolist() == [[0.5], [0.5]]
    assert mask_of(both, 1).connections.tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("name", ["gcn", "hops", "sage", "gin", "gat", "pyg:GraphConv"])
def test_each_relation_has_weights_of_its_own_and_none_is_left_out(name: str) -> None:
    settings = Settings(encoder=name, widths=(8, 4), activation="prelu")
    graph = with_relations(random_graph(8, 5, double=False), 2)
    encoder = make_encoder(5, settings, relations=2)
    encoder.reset_parameters(seeded(0))
    before = encoder(graph)
    assert before.shape == (8, encoder.width)
    assert encoder.masked_layers == len(encoder.weight_matrices())
    for r in range(2):
        weights = graph.relations.clone()
        weights[:, r] *= torch.rand(len(weights), generator=seeded(1)) + 0.5
        assert not torch.allclose(encoder(replace(graph, relations=weights)), before)
    before.sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_one_relation_is_the_encoder_as_it_is() -> None:
    widths = (5, 4, 3)
    encoder = for_relations(lambda: GCNEncoder(widths), 1)
    assert isinstance(encoder, GCNEncoder)
    assert [tuple(layer.weight.shape) for layer in encoder.layers] == list(pairwise(widths))
