"""Small random graphs, and the paper's equations as plain loops and dense matrices in float64."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.noise import NoiseStream
from bgcl.augmentation.views import Augmentation, LayerMask
from bgcl.graph.prepared import PreparedGraph, SparseFeatures, prepare
from bgcl.model.encoders.gcn import GCNEncoder

SENTENCES = [
    "connections in 3 blocks",
    "edges",
    "nodes",
    "subgraph",
    "features",
    "entries",
]  # one for each kind of mask


def random_adjacency(nodes: int, density: float = 0.4, seed: int = 0) -> np.ndarray:
    """A symmetric matrix of zeros and ones, with zeros on its diagonal, `(N, N)`."""
    upper = np.triu(np.random.default_rng(seed).random((nodes, nodes)) < density, 1)
    return (upper | upper.T).astype(float)


def random_features(nodes: int, width: int, seed: int = 0) -> np.ndarray:
    """Attributes, of which 55 % are zero on average, `(N, F)`."""
    random = np.random.default_rng(seed + 1000)
    return random.normal(size=(nodes, width)) * (random.random((nodes, width)) < 0.45)


def make_graph(
    adjacency: np.ndarray, features: np.ndarray, *, sparse: bool = False, double: bool = True
) -> PreparedGraph:
    """A prepared graph from dense matrices."""
    target, source = np.nonzero(adjacency)
    x = torch.as_tensor(features)
    data = Data(x=x.to_sparse_csr() if sparse else x, edge_index=torch.as_tensor(np.stack([source, target])))
    data.num_nodes = len(features)
    graph = prepare(data, row_norm="none")
    if not double:
        return graph
    if not sparse:
        return replace(graph, features=x.double())
    pattern = graph.features.pattern
    values = x.double()[pattern.row, pattern.column]
    return replace(graph, features=SparseFeatures(pattern, values))


def random_graph(
    nodes: int = 8, width: int = 5, *, sparse: bool = False, double: bool = True, seed: int = 0, density: float = 0.4
) -> PreparedGraph:
    adjacency, features = random_adjacency(nodes, density, seed), random_features(nodes, width, seed)
    return make_graph(adjacency, features, sparse=sparse, double=double)


def with_weights(graph: PreparedGraph, seed: int = 0) -> PreparedGraph:
    """The graph with random weights, the same in both directions of an edge; 1 for self-connections."""
    weights = np.exp(np.random.default_rng(seed).normal(size=(graph.nodes, graph.nodes)))
    weights = np.sqrt(weights * weights.T)
    np.fill_diagonal(weights, 1)
    like = graph.features if isinstance(graph.features, Tensor) else graph.features.values
    return replace(graph, weights=on_connections(graph, weights).to(like))


def with_relations(graph: PreparedGraph, count: int, seed: int = 0) -> PreparedGraph:
    """The graph with relations of random weights, other ones in each direction. Every edge is in some relation."""
    random = np.random.default_rng(seed)
    shape = (graph.nodes, graph.nodes, count)
    weights = np.exp(random.normal(size=shape)) * (random.random(shape) < 0.5)
    weights[:, :, 0] += weights.sum(2) == 0
    weights[np.arange(graph.nodes), np.arange(graph.nodes)] = 0
    like = graph.features if isinstance(graph.features, Tensor) else graph.features.values
    return replace(graph, relations=on_connections(graph, weights).to(like))


def random_data(nodes: int, width: int, *, classes: int = 2, seed: int = 0) -> Data:
    """A random graph with attributes and labels, as PyTorch Geometric's `Data`."""
    target, source = np.nonzero(random_adjacency(nodes, density=4 / nodes, seed=seed))
    x = torch.as_tensor(random_features(nodes, width, seed)).float()
    labels = torch.as_tensor(np.random.default_rng(seed).permutation(np.arange(nodes) % classes))
    return Data(x=x, edge_index=torch.as_tensor(np.stack([source, target])), y=labels)


def dense_connections(graph: PreparedGraph) -> np.ndarray:
    """The matrix of a graph's connections, including self-connections, `(N, N)`."""
    dense = np.zeros((graph.nodes, graph.nodes))
    dense[graph.connections.row.numpy(), graph.connections.column.numpy()] = 1
    return dense


def dense_features(graph: PreparedGraph) -> np.ndarray:
    if isinstance(graph.features, Tensor):
        return graph.features.double().numpy()
    dense = np.zeros((graph.nodes, graph.features.width))
    pattern = graph.features.pattern
    dense[pattern.row.numpy(), pattern.column.numpy()] = graph.features.values.double().numpy()
    return dense


def on_connections(graph: PreparedGraph, dense: np.ndarray) -> Tensor:
    """The entries of a dense `(N, N, ...)` array at the graph's connections, `(E, ...)`."""
    return torch.as_tensor(dense[graph.connections.row.numpy(), graph.connections.column.numpy()])


def on_matrix(graph: PreparedGraph, values: Tensor) -> np.ndarray:
    """The matrix of `(E,)` values, `(N, N)`."""
    dense = np.zeros((graph.nodes, graph.nodes))
    dense[graph.connections.row.numpy(), graph.connections.column.numpy()] = values.detach().double().numpy()
    return dense


def dense_normalize(matrix: np.ndarray) -> np.ndarray:
    """`a_vu / sqrt(d_v d'_u)`, entry by entry; 0 where a degree is 0."""
    result = np.zeros_like(matrix)
    for v, u in zip(*np.nonzero(matrix), strict=True):
        result[v, u] = matrix[v, u] / np.sqrt(matrix[v, :].sum() * matrix[:, u].sum())
    return result


def loop_layer(
    A: np.ndarray, Z: np.ndarray, X: np.ndarray, W: np.ndarray, bias: np.ndarray, *, normalize_after: bool
) -> np.ndarray:
    """The paper's layer before its activation, node by node and feature pair by feature pair.

    `Z` is `(N, N, F)`: a mask for each input feature.
    """
    (nodes, width_in), width_out = X.shape, W.shape[1]
    masked = [
        dense_normalize(A * Z[:, :, i]) if normalize_after else dense_normalize(A) * Z[:, :, i] for i in range(width_in)
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
    """The mask of each feature, `(N, N, width)`, from masks of B equal slices `(N, N, B)`; the last may be shorter."""
    size = int(np.ceil(width / blocks.shape[2]))
    return np.stack([blocks[:, :, i // size] for i in range(width)], axis=2)


def dense_gcn(connections: np.ndarray, features: np.ndarray, encoder: GCNEncoder) -> np.ndarray:
    """Kipf and Welling's network on a weighted adjacency matrix with self-connections, `(N, d)`."""
    propagate = dense_normalize(connections)
    for layer in encoder.layers:
        W, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
        features = np.maximum(propagate @ features @ W + bias, 0)
    return features


def random_encoder(widths: tuple[int, ...], *, double: bool = True, seed: int = 0, **options: bool | str) -> GCNEncoder:
    """An encoder with random weights and biases."""
    encoder = GCNEncoder(widths, **options)
    generator = torch.Generator().manual_seed(seed)
    for layer in encoder.layers:
        layer.reset_parameters(generator)
        with torch.no_grad():
            layer.bias.copy_(torch.randn(layer.bias.shape, generator=generator) / 4)
    return encoder.double() if double else encoder


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def in_turn(seed: int) -> NoiseStream:
    """Noise from a generator."""
    return NoiseStream(seeded(seed))


def draw_masks(
    sentence: str, graph: PreparedGraph, encoder: GCNEncoder, seed: int = 0, *, hard: bool = True
) -> tuple[list[LayerMask], Tensor]:
    """One draw of a mask for all layers, and the embeddings under it."""
    augmentation = Augmentation([parse_mask(sentence)], len(encoder.layers))
    masks = augmentation.draw("o", graph, encoder.inputs(graph), in_turn(seed), hard=hard)
    return masks, encoder(graph, masks)


def kept_nodes(graph: PreparedGraph, mask: LayerMask) -> np.ndarray:
    """The nodes whose self-connection is kept."""
    return np.flatnonzero(np.diag(on_matrix(graph, mask.connections[:, 0])))
