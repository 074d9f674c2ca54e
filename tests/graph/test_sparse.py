"""Sparse products on a pattern are the dense products, forward and backward."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from bgcl.graph.sparse import Pattern, block_gather, block_propagate, normalize, row_pointer, row_sum, spmm
from small import dense_connections, dense_normalize, make_graph, on_connections, on_matrix, random_graph


def pattern_of(matrix: np.ndarray) -> Pattern:
    row, column = (torch.as_tensor(index) for index in np.nonzero(matrix))
    return Pattern(row_pointer(row, matrix.shape[0]), column, matrix.shape[1])


def random_matrix(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Positive entries at half of the places, with an empty row and an empty column if the matrix is large enough."""
    random = np.random.default_rng(seed)
    matrix = (0.1 + random.random((rows, columns))) * (random.random((rows, columns)) < 0.5)
    if rows > 2 and columns > 2:
        matrix[1, :], matrix[:, 2] = 0, 0
    matrix[0, 0] = 0.7
    return matrix


def values_of(matrix: np.ndarray) -> Tensor:
    return torch.as_tensor(matrix[np.nonzero(matrix)])


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 9), columns=st.integers(1, 9), width=st.integers(1, 5), seed=st.integers(0, 99))
def test_spmm_is_the_dense_product(rows: int, columns: int, width: int, seed: int) -> None:
    matrix = random_matrix(rows, columns, seed)
    dense = np.random.default_rng(seed).normal(size=(columns, width))
    result = spmm(pattern_of(matrix), values_of(matrix), torch.as_tensor(dense))
    np.testing.assert_allclose(result.numpy(), matrix @ dense, atol=1e-12)


def test_spmm_has_the_gradients_of_values_and_dense() -> None:
    matrix = random_matrix(6, 5)
    pattern = pattern_of(matrix)
    values = values_of(matrix).requires_grad_()
    dense = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert gradcheck(lambda v, d: spmm(pattern, v, d), (values, dense))
    assert gradcheck(lambda v: spmm(pattern, v, dense.detach()), (values,))
    assert gradcheck(lambda d: spmm(pattern, values.detach(), d), (dense,))


def test_spmm_takes_a_gradient_that_is_not_contiguous() -> None:
    matrix = random_matrix(6, 5)
    dense = torch.ones(5, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.arange(18, dtype=torch.float64).reshape(3, 6)
    (spmm(pattern_of(matrix), values_of(matrix), dense).t() * weight).sum().backward()
    np.testing.assert_allclose(dense.grad.numpy(), matrix.T @ weight.numpy().T, atol=1e-12)


def test_transposed_pattern_is_the_transposed_matrix() -> None:
    matrix = random_matrix(6, 4)
    transposed, order = pattern_of(matrix).transposed
    dense = np.zeros((4, 6))
    dense[transposed.row.numpy(), transposed.column.numpy()] = values_of(matrix)[order].numpy()
    np.testing.assert_array_equal(dense, matrix.T)


def test_row_sum_is_the_sum_of_each_row_and_block() -> None:
    first = random_matrix(6, 5)
    second = first * np.random.default_rng(3).random(first.shape)
    values = torch.stack([values_of(first), values_of(second)], dim=1).requires_grad_()
    pattern = pattern_of(first)
    expected = np.stack([first.sum(1), second.sum(1)], axis=1)
    np.testing.assert_allclose(row_sum(pattern, values).detach().numpy(), expected, atol=1e-12)
    assert gradcheck(lambda v: row_sum(pattern, v), (values,))


@pytest.mark.parametrize("seed", range(5))
def test_normalize_is_the_dense_formula_in_each_block(seed: int) -> None:
    graph = random_graph(9, seed=seed)
    masks = np.random.default_rng(seed).random((9, 9, 3)) * dense_connections(graph)[:, :, None]
    masks[3, :, 1] = 0  # node 3 receives nothing in block 1
    masks[:, 4, 2] = 0  # node 4 sends nothing in block 2
    result = normalize(graph.connections, on_connections(graph, masks))
    for block in range(3):
        expected = dense_normalize(masks[:, :, block])
        np.testing.assert_allclose(on_matrix(graph, result[:, block]), expected, atol=1e-12)


def test_normalize_has_the_right_gradient_for_uneven_masks() -> None:
    graph = random_graph(6)
    values = torch.rand(len(graph.connections), 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values = (values + 0.05).requires_grad_()
    assert gradcheck(lambda v: normalize(graph.connections, v), (values,))


def test_normalize_of_a_symmetric_matrix_is_kipf_and_wellings_formula() -> None:
    graph = random_graph(9)
    weight = np.random.default_rng(0).random((9, 9))
    matrix = (weight + weight.T) * dense_connections(graph)
    result = normalize(graph.connections, on_connections(graph, matrix)[:, None])
    root = np.diag(matrix.sum(1) ** -0.5)
    np.testing.assert_allclose(on_matrix(graph, result[:, 0]), root @ matrix @ root, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), rate=st.sampled_from([0.1, 0.5, 0.95]))
def test_normalized_entries_are_at_most_one_whatever_is_dropped(seed: int, rate: float) -> None:
    graph = random_graph(7, seed=seed % 10)
    random = np.random.default_rng(seed)
    values = random.random((len(graph.connections), 2)) * (random.random((len(graph.connections), 2)) > rate)
    result = normalize(graph.connections, torch.as_tensor(values))
    assert torch.isfinite(result).all()
    assert (result >= 0).all()
    assert (result <= 1 + 1e-12).all()


def test_if_all_connections_are_dropped_the_result_is_zero_with_a_finite_gradient() -> None:
    graph = random_graph(5)
    values = torch.zeros(len(graph.connections), 2, dtype=torch.float64, requires_grad=True)
    result = normalize(graph.connections, values)
    result.sum().backward()
    assert (result == 0).all()
    assert torch.isfinite(values.grad).all()


def test_the_gradient_of_a_lost_connection_is_as_if_it_were_the_nodes_only_one() -> None:
    # As under a hard mask: node 2 receives nothing, node 4 sends nothing, and all other connections are kept.
    graph = make_graph(1 - np.eye(6), np.ones((6, 1)))
    masks = np.ones((6, 6, 1))
    masks[2, :] = masks[:, 4] = 0
    values = on_connections(graph, masks).requires_grad_()
    weight = np.random.default_rng(0).normal(size=(6, 6)) * (masks[:, :, 0] == 0)  # only of lost connections
    (normalize(graph.connections, values) * on_connections(graph, weight)[:, None]).sum().backward()
    sends, receives = masks[:, :, 0].sum(0), masks[:, :, 0].sum(1)  # 5 connections, or none
    alone = np.sqrt(np.outer(receives.clip(1), sends.clip(1)))
    np.testing.assert_allclose(on_matrix(graph, values.grad[:, 0]), weight / alone, atol=1e-12)


def normalized_gradient(logit: float, dtype: torch.dtype) -> Tensor:
    """The gradient of a weighted sum of normalized entries with respect to the logits of the keep values.

    All logits are near `logit`.
    """
    graph = random_graph(5)
    entries = torch.arange(len(graph.connections), dtype=dtype)[:, None]
    logits = (logit + (entries % 3) / 2).requires_grad_()
    (normalize(graph.connections, torch.sigmoid(logits)) * entries).sum().backward()
    return logits.grad.double()


@pytest.mark.parametrize("logit", [-5.0, -12.0, -20.0])
def test_nodes_that_keep_almost_nothing_do_not_spoil_the_gradient_in_float32(logit: float) -> None:
    expected = normalized_gradient(logit, torch.float64)
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(normalized_gradient(logit, torch.float32), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("logit", [-50.0, -65.0, -80.0])
def test_nodes_that_keep_nothing_have_entries_and_gradients_near_zero(logit: float) -> None:
    # At temperature 0.05 a keep value of exp(-80) has the noise logit(u) = logit(pi) - 4, as one connection in fifty.
    assert normalized_gradient(logit, torch.float32).abs().max() < 1e-3
    graph = random_graph(5)
    faded = torch.full((len(graph.connections), 1), logit).sigmoid()
    assert normalize(graph.connections, faded).max() < 1e-6


@pytest.mark.parametrize(("width", "blocks"), [(6, 1), (6, 3), (7, 3), (5, 4), (2, 5)])
def test_block_propagation_is_one_dense_product_for_each_slice_of_the_features(width: int, blocks: int) -> None:
    graph = random_graph(6, width)
    random = np.random.default_rng(0)
    masks, features = random.normal(size=(6, 6, blocks)), random.normal(size=(6, width))
    result = block_propagate(graph.connections, on_connections(graph, masks), torch.as_tensor(features))
    size = int(np.ceil(width / blocks))
    connections = dense_connections(graph)
    for i in range(width):
        expected = (connections * masks[:, :, i // size]) @ features[:, i]
        np.testing.assert_allclose(result[:, i].numpy(), expected, atol=1e-12)


def test_block_gather_is_the_sum_of_one_dense_product_for_each_block() -> None:
    graph = random_graph(6)
    random = np.random.default_rng(0)
    masks, stacked = random.normal(size=(6, 6, 3)), random.normal(size=(6, 3, 4))
    result = block_gather(graph.connections, on_connections(graph, masks), torch.as_tensor(stacked.reshape(18, 4)))
    expected = sum((dense_connections(graph) * masks[:, :, b]) @ stacked[:, b] for b in range(3))
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-12)
