"""Small random graphs, and the paper's equations as plain loops and dense matrices in float64."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from bgcl.graph.prepared import Graph, SparseFeatures, prepare
from bgcl.model.encoders.gcn import Encoder


def random_adjacency(nodes: int, density: float = 0.4, seed: int = 0) -> np.ndarray:
    """A symmetric matrix of zeros and ones with nothing on its diagonal, `(N, N)`."""
    upper = np.triu(np.random.default_rng(seed).random((nodes, nodes)) < density, 1)
    return (upper | upper.T).astype(float)


def random_features(nodes: int, width: int, seed: int = 0) -> np.ndarray:
    """Attributes of which a good half are zero, `(N, F)`."""
    random = np.random.default_rng(seed + 1000)
    return random.normal(size=(nodes, width)) * (random.random((nodes, width)) < 0.45)


def make_graph(adjacency: np.ndarray, features: np.ndarray, *, sparse: bool = False, double: bool = True) -> Graph:
    """The library's graph of dense matrices."""
    target, source = np.nonzero(adjacency)
    x = torch.as_tensor(features)
    data = Data(x=x.to_sparse_csr() if sparse else x, edge_index=torch.as_tensor(np.stack([source, target])))
    data.num_nodes = len(features)
    graph = prepare(data, normalise_rows=False)
    if not double:
        return graph
    if not sparse:
        return replace(graph, features=x.double())
    pattern = graph.features.pattern
    values = x.double()[pattern.row, pattern.column]
    return replace(graph, features=SparseFeatures(pattern, values))


def random_graph(nodes: int = 8, width: int = 5, *, sparse: bool = False, double: bool = True, seed: int = 0) -> Graph:
    adjacency, features = random_adjacency(nodes, seed=seed), random_features(nodes, width, seed)
    return make_graph(adjacency, features, sparse=sparse, double=double)


def random_data(nodes: int, width: int, *, classes: int = 2, seed: int = 0) -> Data:
    """A random graph with attributes and labels, as users have it."""
    target, source = np.nonzero(random_adjacency(nodes, density=4 / nodes, seed=seed))
    x = torch.as_tensor(random_features(nodes, width, seed)).float()
    labels = torch.as_tensor(np.random.default_rng(seed).permutation(np.arange(nodes) % classes))
    return Data(x=x, edge_index=torch.as_tensor(np.stack([source, target])), y=labels)


def dense_connections(graph: Graph) -> np.ndarray:
    """The matrix of a graph's connections, self-connections included, `(N, N)`."""
    dense = np.zeros((graph.nodes, graph.nodes))
    dense[graph.connections.row.numpy(), graph.connections.column.numpy()] = 1
    return dense


def dense_features(graph: Graph) -> np.ndarray:
    if isinstance(graph.features, Tensor):
        return graph.features.double().numpy()
    dense = np.zeros((graph.nodes, graph.features.width))
    pattern = graph.features.pattern
    dense[pattern.row.numpy(), pattern.column.numpy()] = graph.features.values.double().numpy()
    return dense


def on_connections(graph: Graph, dense: np.ndarray) -> Tensor:
    """The entries of `(N, N, ...)` that stand on the graph's connections, `(E, ...)`."""
    return torch.as_tensor(dense[graph.connections.row.numpy(), graph.connections.column.numpy()])


def on_matrix(graph: Graph, values: Tensor) -> np.ndarray:
    """The matrix of `(E,)` values, `(N, N)`."""
    dense = np.zeros((graph.nodes, graph.nodes))
    dense[graph.connections.row.numpy(), graph.connections.column.numpy()] = values.detach().double().numpy()
    return dense


def dense_normalise(matrix: np.ndarray) -> np.ndarray:
    """`a_vu / sqrt(d_v d'_u)`, entry by entry; 0 where a degree is 0."""
    result = np.zeros_like(matrix)
    for v, u in zip(*np.nonzero(matrix), strict=True):
        result[v, u] = matrix[v, u] / np.sqrt(matrix[v, :].sum() * matrix[:, u].sum())
    return result


def loop_layer(
    A: np.ndarray, Z: np.ndarray, X: np.ndarray, W: np.ndarray, bias: np.ndarray, *, normalise_after: bool
) -> np.ndarray:
    """The paper's layer before its activation, node by node and feature pair by feature pair.

    `Z` is `(N, N, F)`: a mask for each input feature.
    """
    (nodes, width_in), width_out = X.shape, W.shape[1]
    masked = [
        dense_normalise(A * Z[:, :, i]) if normalise_after else dense_normalise(A) * Z[:, :, i] for i in range(width_in)
    ]
    result = np.zeros((nodes, width_out))
    for v in range(nodes):
        for j in range(width_out):
            total = bias[j]
            for i in range(width_in):
                for u in range(nodes):
                    total += masked[i][v, u] * X[u, i] * W[i, j]
            result[v, j] = total
    return result


def feature_masks(blocks: np.ndarray, width: int) -> np.ndarray:
    """From a mask for each block, `(N, N, B)`, the mask of each of `width` features: B equal slices, the last short."""
    size = int(np.ceil(width / blocks.shape[2]))
    return np.stack([blocks[:, :, i // size] for i in range(width)], axis=2)


def dense_gcn(connections: np.ndarray, features: np.ndarray, encoder: Encoder) -> np.ndarray:
    """Kipf and Welling's network on a weighted adjacency matrix that has its self-connections already, `(N, d)`."""
    propagate = dense_normalise(connections)
    for layer in encoder.layers:
        W, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
        features = np.maximum(propagate @ features @ W + bias, 0)
    return features


def random_encoder(widths: tuple[int, ...], *, double: bool = True, seed: int = 0, **options: bool | str) -> Encoder:
    """An encoder with random weights and biases."""
    encoder = Encoder(widths, **options)
    generator = torch.Generator().manual_seed(seed)
    for layer in encoder.layers:
        layer.reset_parameters(generator)
        with torch.no_grad():
            layer.bias.copy_(torch.randn(layer.bias.shape, generator=generator) / 4)
    return encoder.double() if double else encoder


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
