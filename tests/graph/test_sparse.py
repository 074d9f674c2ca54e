"""Sparse products on a pattern are the dense products, forward and backward."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from bgcl.graph.sparse import Pattern, block_gather, block_propagate, normalise, row_pointer, row_sum, spmm
from small import dense_connections, dense_normalise, make_graph, on_connections, on_matrix, random_graph


def pattern_of(matrix: np.ndarray) -> Pattern:
    row, column = (torch.as_tensor(index) for index in np.nonzero(matrix))
    return Pattern(row_pointer(row, matrix.shape[0]), column, matrix.shape[1])


def random_matrix(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Positive entries on half of the places, with an empty row and an empty column where there is room."""
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
def test_normalise_is_the_dense_formula_in_each_block(seed: int) -> None:
    graph = random_graph(9, seed=seed)
    masks = np.random.default_rng(seed).random((9, 9, 3)) * dense_connections(graph)[:, :, None]
    masks[3, :, 1] = 0  # node 3 hears nothing in block 1
    masks[:, 4, 2] = 0  # and nobody hears node 4 in block 2
    result = normalise(graph.connections, on_connections(graph, masks))
    for block in range(3):
        expected = dense_normalise(masks[:, :, block])
        np.testing.assert_allclose(on_matrix(graph, result[:, block]), expected, atol=1e-12)


def test_normalise_has_the_right_gradient_for_uneven_masks() -> None:
    graph = random_graph(6)
    values = torch.rand(len(graph.connections), 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values = (values + 0.05).requires_grad_()
    assert gradcheck(lambda v: normalise(graph.connections, v), (values,))


def test_normalise_of_a_symmetric_matrix_is_that_of_kipf_and_welling() -> None:
    graph = random_graph(9)
    weight = np.random.default_rng(0).random((9, 9))
    matrix = (weight + weight.T) * dense_connections(graph)
    result = normalise(graph.connections, on_connections(graph, matrix)[:, None])
    root = np.diag(matrix.sum(1) ** -0.5)
    np.testing.assert_allclose(on_matrix(graph, result[:, 0]), root @ matrix @ root, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), rate=st.sampled_from([0.1, 0.5, 0.95]))
def test_normalised_entries_are_at_most_one_whatever_is_dropped(seed: int, rate: float) -> None:
    graph = random_graph(7, seed=seed % 10)
    random = np.random.default_rng(seed)
    values = random.random((len(graph.connections), 2)) * (random.random((len(graph.connections), 2)) > rate)
    result = normalise(graph.connections, torch.as_tensor(values))
    assert torch.isfinite(result).all()
    assert (result >= 0).all()
    assert (result <= 1 + 1e-12).all()


def test_a_graph_without_any_connection_passes_nothing_on() -> None:
    graph = random_graph(5)
    values = torch.zeros(len(graph.connections), 2, dtype=torch.float64, requires_grad=True)
    result = normalise(graph.connections, values)
    result.sum().backward()
    assert (result == 0).all()
    assert torch.isfinite(values.grad).all()


def test_a_connection_that_is_lost_with_all_others_has_the_gradient_of_one_that_comes_back_alone() -> None:
    # As under a hard mask: node 2 hears nothing, nobody hears node 4, and all else is there.
    graph = make_graph(1 - np.eye(6), np.ones((6, 1)))
    masks = np.ones((6, 6, 1))
    masks[2, :] = masks[:, 4] = 0
    values = on_connections(graph, masks).requires_grad_()
    weight = np.random.default_rng(0).normal(size=(6, 6)) * (masks[:, :, 0] == 0)  # the loss looks at what is lost
    (normalise(graph.connections, values) * on_connections(graph, weight)[:, None]).sum().backward()
    heard, hears = masks[:, :, 0].sum(0), masks[:, :, 0].sum(1)  # 5 connections, or none
    alone = np.sqrt(np.outer(hears.clip(1), heard.clip(1)))
    np.testing.assert_allclose(on_matrix(graph, values.grad[:, 0]), weight / alone, atol=1e-12)


def normalised_gradient(logit: float, dtype: torch.dtype) -> Tensor:
    """The gradient of a weighted sum of the normalised entries in the logits of their keep values, all near `logit`."""
    graph = random_graph(5)
    entries = torch.arange(len(graph.connections), dtype=dtype)[:, None]
    logits = (logit + (entries % 3) / 2).requires_grad_()
    (normalise(graph.connections, torch.sigmoid(logits)) * entries).sum().backward()
    return logits.grad.double()


@pytest.mark.parametrize("logit", [-5.0, -12.0, -20.0])
def test_nodes_that_keep_next_to_nothing_do_not_spoil_the_gradient_in_float32(logit: float) -> None:
    expected = normalised_gradient(logit, torch.float64)
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(normalised_gradient(logit, torch.float32), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("logit", [-50.0, -65.0, -80.0])
def test_nodes_that_keep_nothing_fade_out_as_under_a_hard_mask_with_a_finite_gradient(logit: float) -> None:
    # At temperature 0.05 a keep value of exp(-80) is a connection of noise logit(u) = logit(pi) - 4: one of fifty.
    assert normalised_gradient(logit, torch.float32).abs().max() < 1e-3
    graph = random_graph(5)
    faded = torch.full((len(graph.connections), 1), logit).sigmoid()
    assert normalise(graph.connections, faded).max() < 1e-6


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
