"""The prepared graph: connections and attributes against dense matrices, for any order of the edges and columns."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from bgcl.graph.csr import without_beta_warning
from bgcl.graph.prepared import SparseFeatures, prepare, scale_features, scale_rows, to_dense, width_of
from bgcl.graph.sparse import row_pointer
from small import dense_connections, on_matrix, random_adjacency, random_features


@st.composite
def symmetric_edges(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric matrix without a diagonal, and its edges `(2, 2E)` in any order."""
    nodes = draw(st.integers(1, 9))
    pairs = [(u, v) for u in range(nodes) for v in range(u)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    adjacency = np.zeros((nodes, nodes))
    for u, v in chosen:
        adjacency[u, v] = adjacency[v, u] = 1
    edges = np.stack(np.nonzero(adjacency))
    if not draw(st.booleans()):
        edges = edges[:, draw(st.permutations(range(edges.shape[1])))]
    return adjacency, edges


def sorted_connections(edge_index: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """Compressed rows of the edges and the diagonal by one sort of everything."""
    loops = torch.arange(nodes).expand(2, -1)
    source, target = torch.cat([edge_index, loops], dim=1)
    key, _ = torch.sort(target * nodes + source)
    return row_pointer(key // nodes, nodes), key % nodes


@settings(max_examples=200, deadline=None)
@given(symmetric_edges())
def test_connections_are_the_edges_and_the_diagonal_sorted_by_row_and_column(case: tuple) -> None:
    adjacency, edges = case
    nodes = len(adjacency)
    data = Data(x=torch.ones(nodes, 1), edge_index=torch.as_tensor(edges), num_nodes=nodes)
    graph = prepare(data, row_norm="none")
    np.testing.assert_array_equal(dense_connections(graph), adjacency + np.eye(nodes))
    assert len(graph.connections) == adjacency.sum() + nodes  # no connection twice
    pointer, column = sorted_connections(data.edge_index, nodes)
    assert torch.equal(graph.connections.pointer, pointer)
    assert torch.equal(graph.connections.column, column)
    assert torch.equal(graph.is_self[:, 0], graph.connections.row == graph.connections.column)
    assert graph.is_self.sum() == nodes


def csr(matrix: np.ndarray, generator: np.random.Generator | None) -> Tensor:
    """A sparse CSR tensor, with the columns of each row in random order if there is a generator."""
    pointer, columns, values = [0], [], []
    for row in matrix:
        places = np.flatnonzero(row)
        places = places if generator is None else generator.permutation(places)
        columns.extend(places)
        values.extend(row[places])
        pointer.append(len(columns))
    parts = torch.tensor(pointer), torch.tensor(columns, dtype=torch.int64), torch.tensor(values, dtype=torch.float32)
    return without_beta_warning(torch.sparse_csr_tensor, *parts, size=matrix.shape)


def loop_scaled(matrix: np.ndarray, norm: str) -> np.ndarray:
    """Each row divided by its length or by the sum of its absolute values, row by row."""
    result = matrix.copy()
    for row in result:
        size = {"length": np.sqrt((row**2).sum()), "sum": np.abs(row).sum(), "none": 1.0}[norm]
        if size > 0:
            row /= size
    return result


@pytest.mark.parametrize("norm", ["length", "sum", "none"])
@pytest.mark.parametrize("layout", ["dense", "sorted columns", "shuffled columns"])
@pytest.mark.parametrize("seed", range(3))
def test_attributes_are_scaled_row_by_row_in_any_layout(seed: int, layout: str, norm: str) -> None:
    matrix = random_features(9, 6, seed)
    matrix[4] = 0  # a node without attributes
    shuffle = np.random.default_rng(seed) if layout == "shuffled columns" else None
    x = torch.as_tensor(matrix).float() if layout == "dense" else csr(matrix, shuffle)
    data = Data(x=x, edge_index=torch.as_tensor(np.stack(np.nonzero(random_adjacency(9)))), num_nodes=9)
    graph = prepare(data, row_norm=norm)
    np.testing.assert_allclose(to_dense(graph.features).numpy(), loop_scaled(matrix, norm), atol=1e-6)
    assert width_of(graph) == 6
    if layout == "dense":
        torch.testing.assert_close(scale_rows(x, norm), graph.features)
        return
    assert isinstance(graph.features, SparseFeatures)
    pattern = graph.features.pattern
    key = pattern.row * 6 + pattern.column
    assert (key.diff() > 0).all()  # columns are sorted within each row


def test_shuffled_and_sorted_columns_give_the_same_bits() -> None:
    matrix = random_features(9, 6)
    edges = torch.as_tensor(np.stack(np.nonzero(random_adjacency(9))))
    first, second = (
        prepare(Data(x=csr(matrix, shuffle), edge_index=edges, num_nodes=9), row_norm="none").features
        for shuffle in (None, np.random.default_rng(0))
    )
    assert torch.equal(first.values, second.values)
    assert torch.equal(first.pattern.column, second.pattern.column)


@pytest.mark.parametrize("blocks", [1, 2, 4, 6])
def test_split_features_hold_each_block_of_a_node_in_its_own_row(blocks: int) -> None:
    matrix = random_features(7, 6)
    data = Data(x=csr(matrix, None), edge_index=torch.as_tensor(np.stack(np.nonzero(random_adjacency(7)))), num_nodes=7)
    features = prepare(data, row_norm="none").features
    pattern, size = features.split(blocks), int(np.ceil(6 / blocks))
    dense = np.zeros((7 * blocks, 6))
    dense[pattern.row.numpy(), pattern.column.numpy()] = features.values.numpy()
    for node in range(7):
        for block in range(blocks):
            expected = np.where(np.arange(6) // size == block, matrix[node], 0)
            np.testing.assert_allclose(dense[node * blocks + block], expected, rtol=1e-6)
    assert features.split(blocks) is pattern  # it is made once


@pytest.mark.parametrize("norm", ["length", "sum", "none"])
def test_features_can_be_scaled_after_they_were_prepared(norm: str) -> None:
    matrix = random_features(9, 6)
    matrix[4] = 0
    for x in (csr(matrix, None), torch.as_tensor(matrix).float()):
        data = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=9)
        scaled = scale_features(prepare(data, row_norm="none").features, norm)
        np.testing.assert_allclose(to_dense(scaled).numpy(), loop_scaled(matrix, norm), atol=1e-6)
        assert torch.equal(to_dense(scaled), to_dense(prepare(data, row_norm=norm).features))


@pytest.mark.parametrize("norm", ["length", "sum"])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_any_size_have_the_same_scaled_rows(norm: str, sparse: bool) -> None:
    """Squares of 1e20 are not in the range of float32, and those of 1e-30 are zero."""
    matrix = random_features(9, 6).astype(np.float32)
    matrix[4] = 0

    def scaled(factor: float) -> Tensor:
        values = (matrix.astype(np.float64) * factor).astype(np.float32)
        x = csr(values, None) if sparse else torch.as_tensor(values)
        features = prepare(Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=9), row_norm=norm)
        return to_dense(features.features)

    plain = torch.as_tensor(matrix)
    length = torch.linalg.vector_norm(plain, ord=1 if norm == "sum" else 2, dim=1, keepdim=True)
    expected = plain / torch.where(length > 0, length, 1.0)
    assert torch.equal(scaled(1.0), expected) or sparse  # bit for bit as without the power of two
    torch.testing.assert_close(scaled(1.0), expected)
    for exponent in (-100, -30, 5, 60, 120):
        assert torch.equal(scaled(2.0**exponent), scaled(1.0))
    for factor in (1e-30, 1e19, 1e20, 1e37):
        torch.testing.assert_close(scaled(factor), scaled(1.0), rtol=1e-5, atol=1e-7)


@settings(max_examples=50, deadline=None)
@given(symmetric_edges(), st.integers(0, 1000))
def test_every_connection_has_the_weight_of_its_edge_in_units_of_the_mean(case: tuple, seed: int) -> None:
    adjacency, edges = case
    nodes = len(adjacency)
    heavy = np.random.default_rng(seed).random((nodes, nodes)) + 0.1
    heavy = heavy + heavy.T
    data = Data(x=torch.ones(nodes, 1), edge_index=torch.as_tensor(edges), num_nodes=nodes)
    data.edge_weight = torch.as_tensor(heavy[edges[0], edges[1]])
    graph = prepare(data, row_norm="none")
    if len(np.unique(data.edge_weight)) < 2:
        assert graph.weights is None
        return
    mean = np.mean([heavy[u, v] for u, v in zip(*np.nonzero(adjacency), strict=True)])
    expected = np.where(adjacency > 0, heavy / mean, 0) + np.eye(nodes)
    np.testing.assert_allclose(on_matrix(graph, graph.weights), expected, rtol=1e-6)
    in_other_units = prepare(data, row_norm="none", unit=2.0)
    np.testing.assert_allclose(
        on_matrix(in_other_units, in_other_units.weights), np.where(adjacency > 0, heavy / 2, 0) + np.eye(nodes)
    )
    assert prepare(data, row_norm="none", unit=0.0).weights is None
