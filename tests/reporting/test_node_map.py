"""The map of the nodes, compared with plain loops."""

import sys

import numpy as np
import pytest

from bgcl.reporting.report import node_map
from bgcl.reporting.report.node_map import make_map, nearest_nodes, place_draws
from bgcl.reporting.report.page import quantize


def test_a_draw_is_placed_at_the_nodes_that_it_resembles():
    random = np.random.default_rng(0)
    center = np.eye(3)[np.arange(60) % 3] * 5 + random.normal(scale=0.1, size=(60, 3))
    unit = center / np.linalg.norm(center, axis=1, keepdims=True)
    position = np.eye(3)[np.arange(60) % 3][:, :2] * 100
    swapped = np.roll(center, 1, axis=0)[None]  # each draw resembles a node of another group
    np.testing.assert_allclose(place_draws(swapped, unit, position)[0], np.roll(position, 1, axis=0), atol=1e-6)


def test_placing_draws_equals_a_plain_loop(monkeypatch):
    monkeypatch.setattr(node_map, "_TILE", 7)
    random = np.random.default_rng(1)
    mean, draws, position = random.normal(size=(25, 4)), random.normal(size=(2, 25, 4)), random.normal(size=(25, 2))
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    found = place_draws(draws, unit, position)
    for d in range(2):
        for i in range(25):
            cosine = np.array([draws[d, i] @ u / np.linalg.norm(draws[d, i]) for u in unit])
            near = np.argsort(-cosine)[: node_map.NEIGHBORS]
            span = cosine[near].max() - cosine[near].min()
            weight = np.exp(-3 * (cosine[near].max() - cosine[near]) / span)
            np.testing.assert_allclose(found[d, i], weight @ position[near] / weight.sum(), atol=1e-4)


def test_with_few_landmarks_a_draw_that_equals_its_node_stays_close_to_it():
    random = np.random.default_rng(2)
    mean, position = random.normal(size=(200, 16)), random.normal(size=(200, 2)) * 50
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    placed = place_draws(mean[None], unit, position, landmarks=20)[0]
    distance = np.linalg.norm(placed - position, axis=1)
    to_center = np.linalg.norm(position - position.mean(0), axis=1)
    assert np.median(distance) < 0.5 * np.median(to_center)


def test_nearest_nodes_equal_a_plain_sort(monkeypatch):
    monkeypatch.setattr(node_map, "_TILE", 40)
    random = np.random.default_rng(3)
    x = random.normal(size=(35, 6))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    found, distance = nearest_nodes(x, 4)
    for i in range(35):
        far = np.linalg.norm(x - x[i], axis=1)
        expected = [j for j in np.argsort(far) if j != i][:4]
        assert found[i].tolist() == expected
        np.testing.assert_allclose(distance[i], far[expected], atol=1e-6)


@pytest.mark.parametrize("most", [0, 1000])
def test_tsne_keeps_groups_together_and_is_the_same_every_time(monkeypatch, most):
    """With forces from a grid, and from a tree as in a small graph."""
    pytest.importorskip("openTSNE")
    monkeypatch.setattr(node_map, "FFT", most)
    random = np.random.default_rng(0)
    group = np.arange(90) % 3
    mean = np.eye(3)[group] * 4 + random.normal(scale=0.3, size=(90, 3))
    first, second = (make_map(mean, mean[None], seed=1) for _ in range(2))
    assert first.method == "t-SNE"
    np.testing.assert_array_equal(first.position, second.position)
    far = np.linalg.norm(first.position[:, None] - first.position[None], axis=-1)
    np.fill_diagonal(far, np.inf)
    assert (group[far.argmin(1)] == group).mean() > 0.95


def test_a_small_map_is_made_with_a_tree_and_a_large_one_with_a_grid(monkeypatch):
    opentsne = pytest.importorskip("openTSNE")
    used = []

    def spy(*_, negative_gradient_method, **others):
        used.append(negative_gradient_method)
        return TSNE(negative_gradient_method=negative_gradient_method, **others)

    TSNE = opentsne.TSNE
    monkeypatch.setattr(opentsne, "TSNE", spy)
    monkeypatch.setattr(node_map, "FFT", 70)
    for nodes in (60, 80):
        mean = np.random.default_rng(0).normal(size=(nodes, 5))
        make_map(mean, mean[None])
    assert used == ["bh", "fft"]


def test_without_opentsne_the_map_is_pca(monkeypatch):
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    random = np.random.default_rng(0)
    mean = random.normal(size=(60, 5))
    found = make_map(mean, mean[None])
    assert found.method == "PCA"
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    centered = unit - unit.mean(0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    np.testing.assert_allclose(np.abs(found.position), np.abs(centered @ axes[:2].T), atol=1e-5)


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_tiny_graphs_and_equal_nodes_have_a_map(nodes):
    found = make_map(np.ones((nodes, 4)), np.ones((3, nodes, 4)))
    assert np.isfinite(found.position).all()
    assert np.isfinite(quantize(found)[1]).all()
