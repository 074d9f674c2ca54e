"""The mixture regressor against plain loops, numerical gradients, least squares and integrals on a grid."""

import math

import numpy as np
import pytest

from bgcl import BGCLError, MixtureRegressor
from synthetic_draws import numerical_gradient


def loop_normal_loss(parameters, draws, y, penalty: float) -> float:
    """`- sum_n log 1/K sum_k Normal(y; h_k w + c, s^2) + penalty/2 |w|^2`, and the term that keeps s above 0."""
    samples, nodes, width = draws.shape
    *w, c, log_s = parameters
    s = math.exp(log_s)
    loss = sum(penalty / 2 * v * v for v in w) + 1e-6 / s**2
    for n in range(nodes):
        density = 0.0
        for k in range(samples):
            mean = sum(draws[k, n, i] * w[i] for i in range(width)) + c
            density += math.exp(-((y[n] - mean) ** 2) / (2 * s * s)) / (s * math.sqrt(2 * math.pi)) / samples
        loss -= math.log(density)
    return loss


def linear_data(samples: int = 5, nodes: int = 300, spread: float = 0.4, noise: float = 0.3, seed: int = 0):
    """Targets `2 h_1 - h_2 + 5 + noise` of a draw h that is not among the draws of the head."""
    random = np.random.default_rng(seed)
    center = random.normal(size=(nodes, 2))
    draws = center + spread * random.normal(size=(samples, nodes, 2))
    h = center + spread * random.normal(size=(nodes, 2))
    return draws, h @ [2, -1] + 5 + noise * random.normal(size=nodes)


class TestRegressor:
    @pytest.mark.parametrize("samples", [1, 4])
    @pytest.mark.parametrize("penalty", [0.0, 0.7])
    def test_loss_and_gradient_equal_the_loops(self, samples, penalty):
        random = np.random.default_rng(2)
        draws, y = random.normal(size=(samples, 6, 2)), random.normal(size=6)
        parameters = random.normal(size=4)
        loss, gradient = MixtureRegressor()._objective(draws, y)(parameters, penalty)
        assert loss == pytest.approx(loop_normal_loss(parameters, draws, y, penalty), rel=1e-12)
        expected = numerical_gradient(lambda p: loop_normal_loss(p, draws, y, penalty), parameters)
        np.testing.assert_allclose(gradient, expected, atol=1e-6)

    def test_a_linear_function_and_its_noise_are_recovered(self):
        draws, y = linear_data(samples=1, spread=0.0)
        head = MixtureRegressor(1e6, normalize=False).fit(draws, y)
        np.testing.assert_allclose(head.predict(draws), draws[0] @ [2, -1] + 5, atol=0.1)
        assert head.noise_ == pytest.approx(0.3, abs=0.04)

    def test_one_draw_without_penalty_is_least_squares(self):
        draws, y = linear_data(samples=1)
        head = MixtureRegressor(math.inf, normalize=False).fit(draws, y)
        design = np.column_stack([draws[0], np.ones(len(y))])
        solution, residual, *_ = np.linalg.lstsq(design, y)
        np.testing.assert_allclose(head.predict(draws), design @ solution, atol=2e-3)
        assert head.noise_ == pytest.approx(math.sqrt(residual[0] / len(y)), rel=1e-3)

    @pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
    def test_mean_std_and_interval_equal_integrals_of_the_density(self, level):
        draws, y = linear_data()
        head = MixtureRegressor(1.0, normalize=False).fit(draws, y)
        few = draws[:, :6]
        mean, std = head.predict(few, return_std=True)
        low, high = head.predict_interval(few, level)
        grid = np.linspace(-20, 30, 200_001)
        for n, centers in enumerate(head.predict_samples(few).T):
            parts = [np.exp(-0.5 * ((grid - m) / head.noise_) ** 2) for m in centers]
            density = sum(parts) / (len(parts) * head.noise_ * math.sqrt(2 * math.pi))
            assert np.trapezoid(density, grid) == pytest.approx(1)
            assert mean[n] == pytest.approx(np.trapezoid(grid * density, grid))
            assert std[n] == pytest.approx(math.sqrt(np.trapezoid((grid - mean[n]) ** 2 * density, grid)))
            below = np.cumsum(density) * (grid[1] - grid[0])
            assert low[n] == pytest.approx(np.interp((1 - level) / 2, below, grid), abs=1e-3)
            assert high[n] == pytest.approx(np.interp((1 + level) / 2, below, grid), abs=1e-3)

    @pytest.mark.parametrize("level", [0.5, 0.9])
    def test_an_interval_covers_its_share_of_new_targets(self, level):
        draws, y = linear_data(samples=12, nodes=900)
        head = MixtureRegressor(normalize=False).fit(draws[:, :400], y[:400])
        low, high = head.predict_interval(draws[:, 400:], level)
        assert np.mean((low < y[400:]) & (y[400:] < high)) == pytest.approx(level, abs=0.07)

    def test_repeating_a_draw_changes_nothing(self):
        draws, y = linear_data(samples=1, nodes=50)
        once = MixtureRegressor(1.0).fit(draws, y)
        often = MixtureRegressor(1.0).fit(np.repeat(draws, 4, axis=0), y)
        np.testing.assert_allclose(often.coefficients_, once.coefficients_, atol=1e-4)

    def test_targets_may_have_any_unit(self):
        draws, y = linear_data(nodes=60)
        one = MixtureRegressor(1.0).fit(draws, y)
        thousand = MixtureRegressor(1.0).fit(draws, 1000 * y - 7)
        np.testing.assert_allclose(thousand.predict(draws), 1000 * one.predict(draws) - 7, atol=0.5)
        assert thousand.noise_ == pytest.approx(1000 * one.noise_, rel=1e-3)

    def test_a_perfect_fit_and_equal_targets_stay_finite(self):
        draws = np.random.default_rng(0).normal(size=(1, 20, 2))
        for y in (draws[0] @ [1.0, 2.0], np.full(20, 0.1)):
            head = MixtureRegressor(1e6, normalize=False).fit(draws, y)
            np.testing.assert_allclose(head.predict(draws), y, atol=0.05)
            low, high = head.predict_interval(draws)
            assert (low <= high).all()

    @pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, math.nan])
    def test_a_level_out_of_range_is_refused(self, level):
        draws, y = linear_data(nodes=20)
        with pytest.raises(BGCLError, match=f"between 0 and 1, such as 0.9. Got {level} instead"):
            MixtureRegressor(1.0).fit(draws, y).predict_interval(draws, level)

    def test_cross_validation_needs_two_nodes(self):
        with pytest.raises(BGCLError, match="only one sample"):
            MixtureRegressor().fit(np.ones((2, 1, 3)), [1.0])
