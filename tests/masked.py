"""Masks as dense arrays, for encoders that are compared with plain loops in float64."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.encoders.base import Encoder
from small import (
    dense_connections,
    dense_features,
    feature_masks,
    on_connections,
    on_matrix,
    random_graph,
    seeded,
    with_weights,
)


@dataclass
class DenseMask:
    """The masks of one layer."""

    connections: np.ndarray  # (N, N, B)
    columns: np.ndarray  # (F,)
    entries: np.ndarray  # (N, F)

    def on(self, graph: PreparedGraph, *, first: bool) -> LayerMask:
        """The mask in the shapes that an encoder takes; only its first layer has the graph's sparse features."""
        entries = torch.as_tensor(self.entries)
        if first and not isinstance(graph.features, Tensor):
            entries = entries[graph.features.pattern.row, graph.features.pattern.column]
        return LayerMask(on_connections(graph, self.connections), torch.as_tensor(self.columns), entries)

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """`X * Z`."""
        return X * self.columns * self.entries

    def by_feature(self) -> np.ndarray:
        """The keep values of the connections for each input feature, `(N, N, F)`."""
        return feature_masks(self.connections, len(self.columns))

    def times(self, weights: np.ndarray) -> "DenseMask":
        """The mask, multiplied by the weights of the connections, `(N, N)`."""
        return DenseMask(self.connections * weights[:, :, None], self.columns, self.entries)

    def relabeled(self, order: np.ndarray) -> "DenseMask":
        return DenseMask(self.connections[np.ix_(order, order)], self.columns, self.entries[order])


def random_masks(graph: PreparedGraph, encoder: Encoder, *, blocks: int = 1, seed: int = 0) -> list[DenseMask]:
    """Relaxed keep values for each layer. Some connections have 0, and the directions of an edge differ."""
    random, nodes = np.random.default_rng(seed), graph.nodes
    kept = [
        random.random((nodes, nodes, blocks)) * (random.random((nodes, nodes, blocks)) < 0.8)
        for _ in range(encoder.masked_layers)
    ]
    widths = [layer.width for layer in encoder.inputs(graph)]
    return [
        DenseMask(keep, random.random(width), random.random((nodes, width)))
        for keep, width in zip(kept, widths, strict=True)
    ]


def on_layers(graph: PreparedGraph, masks: list[DenseMask]) -> list[LayerMask]:
    return [mask.on(graph, first=i == 0) for i, mask in enumerate(masks)]


def randomize(encoder: Encoder, *, seed: int = 0, double: bool = True) -> Encoder:
    """The encoder with random weights. Biases and other parameters that start at 0 or 1 are moved away from there."""
    encoder.reset_parameters(seeded(seed))
    generator = seeded(seed + 1)
    with torch.no_grad():
        for parameter in encoder.parameters():
            if parameter.ndim < 2:
                parameter += torch.randn(parameter.shape, generator=generator) / 4
    return encoder.double() if double else encoder


def array(parameter: Tensor) -> np.ndarray:
    return parameter.detach().double().numpy()


def masked_graphs(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on small graphs of every kind, with and without weights, with masks in blocks."""
    return settings(max_examples=40, deadline=None)(
        given(
            nodes=st.integers(1, 7), width=st.integers(1, 7), blocks=st.integers(1, 5), sparse=st.booleans(),
            weighted=st.booleans(), seed=st.integers(0, 1000),
        )(test)
    )  # fmt: skip


def check_against_loop(
    encoder: Encoder, loop_layer: Callable[..., np.ndarray], *, nodes: int, width: int, blocks: int, sparse: bool,
    weighted: bool, seed: int,
) -> None:  # fmt: skip
    """Layers with ReLU equal `loop_layer(A, X, mask, layer)` one after the other, under random masks.

    The keep values of a connection are multiplied by its weight.
    """
    graph: Any = random_graph(nodes, width, sparse=sparse, seed=seed)
    graph = with_weights(graph, seed) if weighted else graph
    weights = on_matrix(graph, graph.weights) if weighted else dense_connections(graph)
    encoder = randomize(encoder, seed=seed)
    masks = random_masks(graph, encoder, blocks=blocks, seed=seed)
    expected = dense_features(graph)
    for layer, mask in zip(encoder.layers, masks, strict=True):
        expected = np.maximum(loop_layer(dense_connections(graph), expected, mask.times(weights), layer), 0)
    np.testing.assert_allclose(array(encoder(graph, on_layers(graph, masks))), expected, atol=1e-10)
