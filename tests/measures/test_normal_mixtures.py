"""Quantiles and the CRPS of mixtures of normal distributions against quadrature and closed forms."""

import numpy as np
import pytest
from scipy.stats import norm

from bgcl.measures.normal_mixtures import mixture_cdf, mixture_crps, mixture_quantile


@pytest.mark.parametrize("std", [0.05, 0.7, 30.0])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_crps_equals_the_integral_of_its_definition(std, count):
    random = np.random.default_rng(count)
    means, y = random.normal(size=(count, 5)), random.normal(size=5)
    found = mixture_crps(means, std, y)
    for node in range(5):
        ends = np.array([*means[:, node], y[node]])
        grid = np.linspace(ends.min() - 12 * std, ends.max() + 12 * std, 400_001)
        cdf = sum(norm.cdf(grid, mean, std) for mean in means[:, node]) / count
        expected = np.trapezoid((cdf - (grid >= y[node])) ** 2, grid)
        assert found[node] == pytest.approx(expected, rel=1e-3, abs=1e-4 * std)


def test_crps_of_one_normal_is_the_known_closed_form():
    y = np.linspace(-3, 3, 9)
    expected = 2 * (y / 2 * (2 * norm.cdf(y / 2) - 1) + 2 * norm.pdf(y / 2) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(mixture_crps(np.zeros((1, 9)), 2.0, y), expected, atol=1e-12)


def test_without_noise_crps_is_the_distance():
    np.testing.assert_allclose(mixture_crps(np.zeros((3, 2)), 1e-9, np.array([-2.0, 0.5])), [2, 0.5], atol=1e-8)


def test_tiles_do_not_change_the_score(monkeypatch):
    means, y = np.random.default_rng(0).normal(size=(6, 50)), np.zeros(50)
    whole = mixture_crps(means, 0.4, y)
    monkeypatch.setattr("bgcl.measures.normal_mixtures.TILE", 100)
    np.testing.assert_array_equal(mixture_crps(means, 0.4, y), whole)


@pytest.mark.parametrize("level", [1e-6, 0.05, 0.5, 0.99])
def test_a_quantile_is_where_the_distribution_reaches_its_level(level):
    means = np.random.default_rng(1).normal(size=(5, 8))
    np.testing.assert_allclose(mixture_cdf(means, 0.3, mixture_quantile(means, 0.3, level)), level, rtol=1e-6)
