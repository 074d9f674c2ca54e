"""The scale of attributes: weights by a loop, and normal scores against SciPy's ranks and quantiles."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata
from torch import Tensor

from bgcl.graph.prepared import PreparedGraph, SparseFeatures, to_dense
from bgcl.model.scaling import KNOTS, MANY, Scaling, are_all_equal, are_dense_numbers
from small import dense_connections, make_graph, on_matrix, random_adjacency, random_features, with_weights


def graph_of(features: np.ndarray, *, sparse: bool = False, seed: int = 0) -> PreparedGraph:
    return make_graph(random_adjacency(len(features), 0.3, seed), features, sparse=sparse, double=False)


def words(nodes: int = 12, width: int = 7, seed: int = 0) -> np.ndarray:
    """Counts of words. Word 3 is in no node, word 4 in all, and node 2 has no words but that one."""
    counts = np.random.default_rng(seed).poisson(0.5, size=(nodes, width)).astype(float)
    counts[2], counts[:, 3], counts[:, 4] = 0, 0, 1
    return counts


def fitted(graph: PreparedGraph, *, dense: bool, rule: str = "auto") -> tuple[Scaling, np.ndarray]:
    """The scaling, and the scaled attributes."""
    scaling = Scaling(to_dense(graph.features).shape[1], rule, dense)
    scaling.fit(graph)
    return scaling, to_dense(scaling(graph).features).numpy()


# Words


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_a_word_weighs_as_much_as_its_rarity_and_rows_have_length_one(sparse, binary):
    counts = words()
    counts = (counts > 0).astype(float) if binary else counts
    expected = np.zeros_like(counts)
    for j in range(counts.shape[1]):
        having = 0
        for i in range(len(counts)):
            having += counts[i, j] != 0
        weight = np.sqrt(np.log((1 + len(counts)) / (1 + having)) + 1)
        for i in range(len(counts)):
            expected[i, j] = counts[i, j] * weight
    for row in expected:
        row /= np.sqrt((row**2).sum()) or 1
    scaling, found = fitted(graph_of(counts, sparse=sparse), dense=False)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert scaling.width == counts.shape[1]
    assert float(scaling.weight[4]) == 1  # a word of all nodes
    assert float(scaling.weight.max()) == float(scaling.weight[3])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_node_without_words_stays_zero(sparse):
    counts = words()
    counts[:, 4] = np.arange(12) != 2
    _, found = fitted(graph_of(counts, sparse=sparse), dense=False)
    assert (found[2] == 0).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_numbers_that_are_not_counts_only_get_rows_of_length_one(sparse):
    values = words() * 0.3
    scaling, found = fitted(graph_of(values, sparse=sparse), dense=False)
    assert (scaling.weight == 1).all()
    np.testing.assert_allclose(found, values / np.linalg.norm(values, axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("factor", [-1.0, 0.3])
def test_numbers_of_which_some_are_negative_are_left_as_they_are(sparse, factor):
    """Of the training graph: another graph without negative numbers is left as it is too, and the other way round."""
    plain, values = words() * abs(factor), words() * factor
    values[0, 0] = -0.7
    scaling, found = fitted(graph_of(values, sparse=sparse), dense=False)
    assert (scaling.weight == 1).all()
    np.testing.assert_allclose(found, values, atol=1e-6)
    np.testing.assert_allclose(to_dense(scaling(graph_of(plain, sparse=sparse)).features), plain, atol=1e-6)
    scaling, _ = fitted(graph_of(words() * 0.3, sparse=sparse), dense=False)
    found = to_dense(scaling(graph_of(values, sparse=sparse)).features)
    np.testing.assert_allclose(found, values / np.linalg.norm(values, axis=1, keepdims=True), atol=1e-6)


def test_stored_zeros_do_not_count_as_words():
    graph = graph_of(words(), sparse=True)
    values = graph.features.values.clone()
    values[::2] = 0
    graph = replace(graph, features=SparseFeatures(graph.features.pattern, values))
    plain = replace(graph, features=to_dense(graph.features))
    np.testing.assert_allclose(fitted(graph, dense=False)[1], fitted(plain, dense=False)[1], atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_new_graph_of_words_has_the_weights_of_the_old_one(sparse):
    old, new = graph_of(words(), sparse=sparse), graph_of(words(30, seed=1), sparse=sparse)
    scaling, _ = fitted(old, dense=False)
    weights = scaling.weight.clone()
    found = to_dense(scaling(new).features).numpy()
    weighted = words(30, seed=1) * weights.numpy()
    np.testing.assert_allclose(found, weighted / np.linalg.norm(weighted, axis=1, keepdims=True), atol=1e-6)
    assert torch.equal(scaling.weight, weights)


@pytest.mark.parametrize("rule", ["length", "sum", "none"])
@pytest.mark.parametrize("sparse", [False, True])
def test_other_rules_scale_rows_and_learn_nothing(rule, sparse):
    values = random_features(9, 6)
    scaling, found = fitted(graph_of(values, sparse=sparse), dense=True, rule=rule)
    size = {"length": np.linalg.norm(values, axis=1), "sum": np.abs(values).sum(1), "none": np.ones(9)}[rule]
    np.testing.assert_allclose(found, values / np.where(size > 0, size, 1)[:, None], atol=1e-6)
    assert scaling.state_dict() == {}
    assert scaling.width == 6


# Dense numbers


def scores_by_rank(column: np.ndarray) -> np.ndarray:
    """`Phi^-1` of the middle rank of each value, with mean 0 and mean square 1; zeros for a constant column."""
    scores = norm.ppf((rankdata(column, "average") - 0.5) / len(column))
    scores = scores - scores.mean()
    return scores / scores.std() if scores.std() > 1e-6 else scores


def with_degree(graph: PreparedGraph) -> np.ndarray:
    return np.concatenate([to_dense(graph.features).numpy(), dense_connections(graph).sum(1, keepdims=True)], axis=1)


def check_scores(values: np.ndarray) -> None:
    graph = graph_of(values)
    scaling, found = fitted(graph, dense=True)
    assert scaling.width == found.shape[1] == (values.shape[1] + 1) * 3
    expected = [np.stack([scores_by_rank(column) for column in with_degree(graph).T], axis=1)]
    connections = dense_connections(graph)
    for _ in range(2):  # the means over a node and its neighbors, and over theirs
        expected.append(connections / connections.sum(1, keepdims=True) @ expected[-1])
    np.testing.assert_allclose(found * np.sqrt(scaling.width), np.concatenate(expected, axis=1), atol=1e-4)


@pytest.mark.parametrize("nodes", [2, 3, 40, KNOTS])
def test_dense_columns_are_normal_scores_of_the_node_and_of_two_neighborhoods_and_the_degree_is_one_more(nodes):
    random = np.random.default_rng(nodes)
    check_scores(np.stack([random.normal(size=nodes), np.exp(5 * random.normal(size=nodes)), np.arange(nodes)], axis=1))


def test_with_weights_the_degree_is_their_sum_and_means_are_by_weight():
    graph = with_weights(graph_of(np.random.default_rng(0).normal(size=(30, 2))))
    scaling, found = fitted(graph, dense=True)
    heavy = on_matrix(graph, graph.weights)
    columns = np.concatenate([to_dense(graph.features).numpy(), heavy.sum(1, keepdims=True)], axis=1)
    expected = [np.stack([scores_by_rank(column) for column in columns.T], axis=1)]
    for _ in range(2):
        expected.append(heavy / heavy.sum(1, keepdims=True) @ expected[-1])
    np.testing.assert_allclose(found * np.sqrt(scaling.width), np.concatenate(expected, axis=1), atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([-2.0, 0.0, 0.5, 7.0]), min_size=2, max_size=60),
    st.integers(0, 9),
)
def test_equal_values_share_the_score_of_the_middle_of_their_ranks(column, seed):
    """Constant and binary columns are among these."""
    check_scores(np.stack([column, np.random.default_rng(seed).normal(size=len(column))], axis=1))


def test_a_constant_column_is_zero():
    values = np.stack([np.full(20, 3.0), np.arange(20.0)], axis=1)
    _, found = fitted(graph_of(values), dense=True)
    assert np.abs(found[:, 0]).max() < 1e-6
    assert np.isfinite(found).all()


def test_a_binary_column_has_two_scores_with_mean_zero_and_mean_square_one():
    column = (np.arange(20) < 5).astype(float)
    scaling, found = fitted(graph_of(np.stack([column, np.arange(20.0)], axis=1)), dense=True)
    first = found[:, 0] * np.sqrt(scaling.width)
    np.testing.assert_allclose(first[:5], np.sqrt(15 / 5), rtol=1e-4)
    np.testing.assert_allclose(first[5:], -np.sqrt(5 / 15), rtol=1e-4)


def test_columns_of_many_values_are_scored_between_knots():
    """Between two knots the score is on a straight line, so it is close to the score of the rank."""
    random = np.random.default_rng(0)
    values = np.stack([random.normal(size=3000), random.exponential(size=3000), random.poisson(1.0, 3000)], axis=1)
    graph = make_graph(np.zeros((3000, 3000)), values, double=False)
    scaling, found = fitted(graph, dense=True)
    scores = found * np.sqrt(scaling.width)
    for j in range(3):
        expected = scores_by_rank(with_degree(graph)[:, j])
        middle = np.abs(expected) < 2
        np.testing.assert_allclose(scores[middle, j], expected[middle], atol=0.03)
        order = np.argsort(values[:, j])
        assert (np.diff(scores[order, j]) >= -1e-6).all()
    np.testing.assert_allclose(scores[:, :3].mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(scores[:, :3].std(0), 1, atol=1e-3)


def test_units_and_skewness_of_a_column_do_not_matter():
    values = np.abs(np.random.default_rng(0).normal(size=(50, 2))) + 0.1
    others = np.stack([1e4 * values[:, 0], values[:, 1] ** 3], axis=1)
    first, second = (fitted(graph_of(each), dense=True)[1] for each in (values, others))
    np.testing.assert_allclose(first, second, atol=1e-4)


def test_a_new_graph_has_the_scores_of_the_old_one():
    """The values of the old graph keep their scores, also among other nodes, and others are in between."""
    random = np.random.default_rng(1)
    old = random.normal(size=(60, 3))
    scaling, found = fitted(graph_of(old), dense=True)
    knots, scores = scaling.knots.clone(), scaling.scores.clone()
    new = np.concatenate([old[10:30], random.normal(size=(40, 3)) * 5])
    scaled = to_dense(scaling(graph_of(new, seed=1)).features).numpy()
    np.testing.assert_allclose(scaled[:20, :3], found[10:30, :3], atol=1e-5)
    for j in range(3):
        expected = np.interp(new[:, j], knots[j], scores[j])
        np.testing.assert_allclose(scaled[:, j] * np.sqrt(scaling.width), expected, atol=1e-4)
    assert torch.equal(scaling.knots, knots)


def test_values_beyond_the_range_have_the_scores_of_the_ends():
    values = np.random.default_rng(2).normal(size=(40, 2))
    scaling, found = fitted(graph_of(values), dense=True)
    beyond = np.array([[1e9, -1e9], [values[:, 0].max(), values[:, 1].min()]])
    scaled = to_dense(scaling(graph_of(beyond)).features).numpy()
    np.testing.assert_allclose(scaled[0, :2], scaled[1, :2], atol=1e-6)
    np.testing.assert_allclose(scaled[0, :2], [found[:, 0].max(), found[:, 1].min()], atol=1e-5)


def test_the_degree_of_a_new_graph_is_scored_by_the_old_degrees():
    values = np.random.default_rng(2).normal(size=(30, 1))
    scaling, found = fitted(graph_of(values), dense=True)
    degree = with_degree(graph_of(values))[:, -1]
    alone = make_graph(np.zeros((3, 3)), values[:3], double=False)  # degree 1 with the self-connection
    scaled = to_dense(scaling(alone).features).numpy()
    assert degree.min() > 1
    np.testing.assert_allclose(scaled[:, 1], found[degree.argmin(), 1], atol=1e-5)
    np.testing.assert_allclose(scaled, np.tile(scaled[:, :2], (1, 3)), atol=1e-6)  # they are their own neighborhood


@pytest.mark.parametrize(
    ("features", "dense"),
    [
        (torch.rand(9, 4), True),
        (-torch.eye(9), True),  # below zero
        (torch.eye(9), False),
        (torch.rand(9, MANY + 1), False),
        (torch.ones(9, 4), True),
        (torch.zeros(9, 0), False),
        (torch.tensor([[1.0, 0.0]]).expand(9, 2), False),  # half of the entries are zero
    ],
)
def test_dense_numbers_are_those_that_are_mostly_not_zero_or_below_it(features: Tensor, dense: bool):
    assert are_dense_numbers(features) is dense


def test_sparse_features_are_no_dense_numbers():
    assert not are_dense_numbers(graph_of(words(), sparse=True).features)


@pytest.mark.parametrize("kind", ["numbers", "words", "negative"])
def test_the_scales_are_saved_with_the_model(kind):
    values = {"numbers": np.random.default_rng(2).normal(size=(12, 7)), "words": words(), "negative": -words()}[kind]
    scaling, found = fitted(graph_of(values), dense=kind == "numbers")
    again = Scaling(7, "auto", kind == "numbers")
    again.load_state_dict(scaling.state_dict())
    np.testing.assert_array_equal(to_dense(again(graph_of(values)).features).numpy(), found)


@pytest.mark.parametrize("sparse", [False, True])
def test_counts_of_any_size_have_the_same_scaled_rows(sparse):
    expected = fitted(graph_of(words(), sparse=sparse), dense=False)[1]
    for factor in (2.0**60, 2.0**110):
        np.testing.assert_array_equal(fitted(graph_of(words() * factor, sparse=sparse), dense=False)[1], expected)


def test_dense_numbers_of_any_size_have_the_same_scores():
    numbers = np.random.default_rng(0).uniform(-1, 1, (40, 3))
    expected = fitted(graph_of(numbers.astype(np.float32)), dense=True)[1]
    for factor in (1e-30, 1e20, 3e38):
        found = fitted(graph_of((numbers * factor).astype(np.float32)), dense=True)[1]
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_numbers_that_nearly_are_zero_with_32_bits_have_finite_scores():
    smallest = np.arange(12, dtype=np.float32)[:, None] * np.float32(1.4e-45)
    assert np.isfinite(fitted(graph_of(smallest), dense=True)[1]).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("rows", "equal"),
    [
        ([[1.0, 0.0]] * 3, True),
        ([[0.0]] * 3, True),
        ([[1.0], [1.0], [0.0]], False),
        ([[1.0, 1.0], [1.0, 2.0], [1.0, 1.0]], False),
    ],
)
def test_equal_attributes_of_all_nodes_are_noticed(rows, equal, sparse):
    assert are_all_equal(graph_of(np.array(rows, dtype=np.float32), sparse=sparse).features) is equal
