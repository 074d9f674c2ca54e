"""Features of a kernel: against the kernel itself, number by number."""

import math

import numpy as np
import pytest

from bgcl.downstream import kernel
from bgcl.downstream.kernel import Kernels, principal_axes

RANDOM = np.random.default_rng(0)


def gaussian(x: np.ndarray, z: np.ndarray, g: float, square: float) -> float:
    return math.exp(-g * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) / (2 * square))


@pytest.mark.parametrize("shape", [(30, 5), (12, 40)])
def test_products_of_features_are_the_kernel_where_the_landmarks_are_all_rows(shape):
    rows = RANDOM.normal(size=shape)
    square = np.square(rows).sum(1).mean()
    kernels = Kernels.fit(rows, np.random.default_rng(0))
    for g, features in zip(kernels.sharpnesses, kernels.features(rows), strict=True):
        expected = [[gaussian(x, z, g, square) for z in rows] for x in rows]
        np.testing.assert_allclose(features @ features.T, expected, atol=2e-3)


def test_a_linear_head_on_features_is_one_on_the_kernel_with_the_landmarks():
    rows, others = RANDOM.normal(size=(25, 6)), RANDOM.normal(size=(9, 6))
    kernels = Kernels.fit(rows, np.random.default_rng(0))
    heads = [RANDOM.normal(size=(root.shape[1], 3)) for root in kernels.roots]
    expected = sum(features @ head for features, head in zip(kernels.features(others), heads, strict=True))
    of_landmarks = [(root @ head).astype(np.float32) for root, head in zip(kernels.roots, heads, strict=True)]
    np.testing.assert_allclose(kernels.products(others, of_landmarks), expected, rtol=1e-3, atol=1e-3)


def test_scale_and_rotation_of_the_embedding_do_not_matter():
    rows, others = RANDOM.normal(size=(40, 6)), RANDOM.normal(size=(9, 6))
    turn, _ = np.linalg.qr(RANDOM.normal(size=(6, 6)))
    products = []
    for change in (np.eye(6), 5 * turn):
        kernels = Kernels.fit(rows @ change, np.random.default_rng(0))
        products.append(
            [f @ g.T for f, g in zip(kernels.features(others @ change), kernels.features(rows @ change), strict=True)]
        )
    np.testing.assert_allclose(products[0], products[1], atol=2e-3)


def test_few_landmarks_and_directions_come_close():
    rows = RANDOM.normal(size=(300, 4)) @ RANDOM.normal(size=(4, 50))  # of rank 4
    full, few = (Kernels.fit(rows, np.random.default_rng(0), most=most, directions=8) for most in (300, 150))
    assert few.landmarks.shape == (150, 8)
    for features, others in zip(full.features(rows), few.features(rows), strict=True):
        assert np.abs(features @ features.T - others @ others.T).mean() < 0.01


def test_axes_are_orthonormal_and_hold_the_rows():
    for shape in ((20, 50), (80, 50), (30, 4)):
        rows = RANDOM.normal(size=shape).astype(np.float32)
        axes = principal_axes(rows, 50)
        np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-4)
        np.testing.assert_allclose(rows @ axes @ axes.T, rows, atol=1e-4)


def test_rows_that_are_all_zero_or_equal_are_accepted():
    for rows in (np.zeros((5, 3)), np.ones((5, 3))):
        for features in Kernels.fit(rows, np.random.default_rng(0)).features(rows):
            assert np.isfinite(features).all()


def test_products_of_some_rows_are_those_of_all_rows_whatever_the_blocks(monkeypatch):
    rows = RANDOM.normal(size=(150, 6))
    kernels = Kernels.fit(rows[:40], np.random.default_rng(0))
    columns = [RANDOM.normal(size=(40, 3)).astype(np.float32) for _ in kernels.roots]
    every, nodes = kernels.products(rows, columns), RANDOM.permutation(150)[:90]
    monkeypatch.setattr(kernel, "BLOCK", 40 * 32)
    np.testing.assert_allclose(kernels.products(rows, columns), every, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(kernels.products(rows, columns, nodes), every[nodes], rtol=1e-4, atol=1e-5)
