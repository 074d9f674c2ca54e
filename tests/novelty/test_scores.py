"""Each score equals its definition, computed in another way."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from bgcl.errors import BGCLError
from bgcl.novelty import energy
from bgcl.novelty.attribute_scores import AttributeStatistics
from bgcl.novelty.density import Ellipsoid, Neighborhood, NormalDensity
from bgcl.novelty.draw_scores import surprise
from bgcl.novelty.edge_scores import misfit
from bgcl.novelty.propagation import mean_of_neighbors, propagated
from small import dense_features, random_graph, with_weights


def neighbors(graph) -> list[list[tuple[int, float]]]:
    """The neighbors of each node and the weights of the edges, without the node itself."""
    row, column = graph.connections.row.tolist(), graph.connections.column.tolist()
    weights = [1.0] * len(row) if graph.weights is None else graph.weights.tolist()
    found: list[list[tuple[int, float]]] = [[] for _ in range(graph.nodes)]
    for v, u, w in zip(row, column, weights, strict=True):
        if v != u:
            found[v].append((u, w))
    return found


def some_graph(*, weighted: bool):
    graph = random_graph(12, 6, seed=3)
    return with_weights(graph) if weighted else graph


@pytest.mark.parametrize("weighted", [False, True])
def test_propagation_equals_a_plain_loop(weighted):
    graph = some_graph(weighted=weighted)
    scores = np.random.default_rng(0).normal(size=12)
    expected = scores
    for _ in range(3):
        previous, expected = expected, expected.copy()
        for v, near in enumerate(neighbors(graph)):
            if near:
                mean = sum(w * previous[u] for u, w in near) / sum(w for _, w in near)
                expected[v] = 0.3 * previous[v] + 0.7 * mean
    assert propagated(mean_of_neighbors(graph), scores, own=0.3, steps=3) == pytest.approx(expected)


def test_neighbors_without_a_score_do_not_count():
    mean = csr_matrix([[0, 0.5, 0.5, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0.0]])
    found = propagated(mean, np.array([1.0, 3.0, -np.inf, np.nan]), own=0.5, steps=1)
    assert found[:3].tolist() == [2.0, 2.0, 1.0]
    assert np.isnan(found[3])


def test_equal_scores_stay_equal_and_a_share_of_one_changes_nothing():
    mean = mean_of_neighbors(some_graph(weighted=True))
    assert propagated(mean, np.ones(12)) == pytest.approx(np.ones(12))
    scores = np.arange(12.0)
    assert propagated(mean, scores, own=1.0) == pytest.approx(scores)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_misfit_of_a_node_is_one_minus_the_mean_cosine_with_its_neighbors(weighted):
    graph = some_graph(weighted=weighted)
    vectors = np.random.default_rng(1).normal(size=(12, 4))
    vectors[3] = 0  # a node without a position
    found = misfit(mean_of_neighbors(graph), vectors)
    for v, near in enumerate(neighbors(graph)):
        near = [(u, w) for u, w in near if u != 3]
        if v == 3:
            assert found[v] == -np.inf
        elif near:
            cosines = [
                vectors[v] @ vectors[u] / np.linalg.norm(vectors[v]) / np.linalg.norm(vectors[u]) for u, _ in near
            ]
            assert found[v] == pytest.approx(1 - np.average(cosines, weights=[w for _, w in near]))


@pytest.mark.parametrize("sparse", [False, True])
def test_scores_of_attributes_equal_their_formulas(sparse):
    graph = random_graph(9, 6, sparse=sparse, seed=2)
    x = dense_features(graph)
    directions = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 2)))[0]
    known = np.arange(7)
    found = AttributeStatistics.of(graph.features, known, directions).scores(graph.features, graph.features)
    variance = x[known].var(0)
    assert (variance > 0).all()
    spread = np.log(np.mean((x - x[known].mean(0)) ** 2 / variance, axis=1))
    assert found["spread"] == pytest.approx(spread, abs=1e-6)
    assert found["count"].tolist() == (x != 0).sum(1).tolist()
    for row, value in zip(x, found["residual"], strict=True):
        rest = row - directions @ (directions.T @ row)
        assert value == pytest.approx(rest @ rest / (row @ row)) if row.any() else np.isnan(value)


def test_a_strange_number_is_seen_beside_columns_of_any_scale():
    """One column is around 0, one in the millions, one is a time in seconds: each counts by its own variance."""
    random = np.random.default_rng(0)
    usual = np.stack([random.normal(size=200), 1e6 * random.random(200), 1.6e9 + 1e3 * random.normal(size=200)], 1)
    statistics = AttributeStatistics.of(torch.as_tensor(usual), np.arange(200), np.eye(3))
    changed = usual.copy()
    changed[[0, 1, 2], [0, 1, 2]] += 12 * usual.std(0)
    found = statistics.scores(torch.as_tensor(changed), torch.as_tensor(changed))["spread"]
    expected = np.log((np.square(changed - usual.mean(0)) / usual.var(0)).mean(1))
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert found[:3].min() > found[3:].max()


def test_a_column_that_no_known_node_has_or_all_have_counts_half_a_node():
    usual = np.array([[2.0, 0, 1], [2, 0, 0], [2, 0, 3], [2, 0, 0]])
    statistics = AttributeStatistics.of(torch.as_tensor(usual), np.arange(4), np.eye(3))
    typical = np.square(usual[usual != 0]).mean()  # nothing is known of the second column but that of the others
    assert statistics.variance == pytest.approx([0.5 / 4 * 4, 0.5 / 4 * typical, usual[:, 2].var()])


def test_attributes_that_are_all_zero_have_finite_scores_and_any_other_is_stranger():
    nothing, some = torch.zeros(5, 3), torch.eye(5)[:, :3] * 1e3
    statistics = AttributeStatistics.of(nothing, np.arange(5), np.zeros((3, 0)))
    before, after = statistics.scores(nothing, nothing)["spread"], statistics.scores(some, some)["spread"]
    assert np.isfinite([before, after]).all()
    assert after[:3].min() > before.max()


def test_the_residual_is_zero_where_directions_explain_all_attributes():
    graph = random_graph(9, 6, seed=2)
    found = AttributeStatistics.of(graph.features, np.arange(9), np.eye(6)).scores(graph.features, graph.features)
    assert (found["residual"][dense_features(graph).any(1)] == 0).all()


def test_an_energy_is_minus_the_log_of_the_sum_and_falls_as_logits_grow():
    logits = np.random.default_rng(0).normal(size=(5, 3, 4)) * 50
    assert energy(logits) == pytest.approx(-logsumexp(logits, axis=-1))
    assert energy(logits + 2) == pytest.approx(energy(logits) - 2)


def test_the_distance_is_one_minus_the_mean_cosine_with_the_nearest_without_the_node_itself():
    embedding = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    nodes = np.array([1, 4, 5, 8, 11])
    around = Neighborhood.of(embedding, nodes, np.random.default_rng(0))
    unit = embedding / np.linalg.norm(embedding, axis=1, keepdims=True)
    for same in (True, False):
        found = around.distance(embedding, same=same, most=3)
        for v in range(12):
            cosines = sorted(unit[v] @ unit[u] for u in nodes if u != v or not same)
            assert found[v] == pytest.approx(1 - np.mean(cosines[-3:]), abs=1e-5)


def test_the_only_reference_is_near_to_others_and_not_to_itself():
    embedding = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    around = Neighborhood.of(embedding, np.array([2]), np.random.default_rng(0))
    assert np.isnan(around.distance(embedding, same=True)).tolist() == [False, False, True, False]
    assert around.distance(embedding, same=False)[2] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("rows", "message"), [(np.ones((1, 3)), "needs 2 known nodes"), (np.ones((9, 3)), "the same")])
def test_a_density_needs_nodes_that_differ(rows, message):
    with pytest.raises(BGCLError, match=message):
        NormalDensity.of(rows, np.arange(len(rows)), 0)


def test_one_component_is_a_normal_distribution_and_mahalanobis_its_exponent():
    random = np.random.default_rng(0)
    embedding = random.normal(size=(30, 3)) @ np.diag([3.0, 1.0, 0.5]) + 1  # too few for more than one component
    found = NormalDensity.of(embedding, np.arange(30), 0)
    unit = embedding / np.linalg.norm(embedding, axis=1, keepdims=True)
    covariance = np.cov(unit.T)
    centered = unit - unit.mean(0)
    expected = np.einsum("ni,ij,nj->n", centered, np.linalg.inv(covariance), centered)
    assert found.mahalanobis(embedding) == pytest.approx(expected, rel=1e-3)
    points = (unit - found.center) @ found.directions
    variance = points.var(0) + 1e-3  # the mixture adds a little
    assert found.surprise(embedding) == pytest.approx(
        -multivariate_normal(points.mean(0), np.diag(variance)).logpdf(points), rel=1e-3
    )


def test_the_distance_of_the_encoders_output_is_that_of_mahalanobis():
    rows = np.random.default_rng(0).normal(size=(20, 3)) @ np.diag([3.0, 1.0, 0.5])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    covariance = np.cov(unit.T, bias=True)
    covariance += 1e-3 * np.trace(covariance) / 3 * np.eye(3)
    found = Ellipsoid.of(rows).distance(rows)
    for row, value in zip(unit - unit.mean(0), found, strict=True):
        assert value == pytest.approx(row @ np.linalg.solve(covariance, row), rel=1e-4)


def test_two_heaps_are_two_components_and_the_place_between_them_is_strange():
    random = np.random.default_rng(0)
    heaps = np.repeat([[1.0, 0.0], [0.0, 1.0]], 60, 0) + 0.02 * random.normal(size=(120, 2))
    found = NormalDensity.of(heaps, np.arange(120), 0)
    assert found.mixture.n_components >= 2
    assert found.surprise(np.array([[1.0, 1.0]])) > found.surprise(heaps).max()


def test_the_surprise_is_minus_the_log_of_the_mean_likelihood():
    likelihood = np.random.default_rng(0).random((5, 4))
    found = surprise([torch.as_tensor(row).log() for row in likelihood])
    assert found == pytest.approx(-np.log(likelihood.mean(0)))
