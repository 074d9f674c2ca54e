"""Functions that are minimized together, against a solver of SciPy with high precision."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bgcl.downstream.descent import PAIRS, _Pairs, minimize_together


def quadratics(functions: int = 3, width: int = 12):
    random = np.random.default_rng(0)
    roots = random.normal(size=(functions, width, width))
    hessians = roots @ roots.transpose(0, 2, 1) + 0.01 * np.eye(width)
    minima = random.normal(size=(functions, width))

    def values(which, points):
        away = points - minima[which]
        slopes = np.einsum("aij,aj->ai", hessians[which], away)
        return 1 + (away * slopes).sum(1) / 2, slopes

    return values, minima, hessians


def test_quadratic_functions_end_at_their_minima():
    values, minima, _ = quadratics()
    found, _, enough = minimize_together(values, np.zeros((3, 12)), lambda v: v, tolerance=1e-14, most=1000)
    assert enough
    np.testing.assert_allclose(found, minima, atol=1e-4)


def test_with_the_inverse_of_its_hessian_a_quadratic_function_takes_one_step():
    values, minima, hessians = quadratics(1)
    inverse = np.linalg.inv(hessians[0])
    found, steps, _ = minimize_together(values, np.zeros((1, 12)), lambda v: v @ inverse, tolerance=1e-12, most=10)
    assert steps == 1
    np.testing.assert_allclose(found, minima, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_curved_valley_has_the_minimum_of_scipy_whatever_the_scale_of_the_inverse(scale):
    """The function of Rosenbrock, once from each side."""

    def rosenbrock(_, points):
        x, y = points.T
        values = (1 - x) ** 2 + 100 * (y - x**2) ** 2
        return 1 + values, np.stack([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)], 1)

    start = np.array([[-1.2, 1.0], [2.0, -1.0]])
    found, *_ = minimize_together(rosenbrock, start, lambda v: scale * v, tolerance=1e-14, most=1000)
    for point, begin in zip(found, start, strict=True):
        expected = minimize(lambda x: rosenbrock(None, x[None])[0][0], begin, tol=1e-14).x
        np.testing.assert_allclose(point, expected, atol=1e-4)


def test_functions_do_not_influence_each_other():
    values, _, _ = quadratics()
    together, *_ = minimize_together(values, np.zeros((3, 12)), lambda v: v, tolerance=1e-6, most=1000)
    for i in range(3):
        alone, *_ = minimize_together(
            lambda which, points, i=i: values(which + i, points), np.zeros((1, 12)), lambda v: v, tolerance=1e-6,
            most=1000,
        )  # fmt: skip
        np.testing.assert_allclose(alone[0], together[i], rtol=1e-12)


def test_too_few_steps_are_told():
    values, *_ = quadratics()
    _, steps, enough = minimize_together(values, np.zeros((3, 12)), lambda v: v, tolerance=1e-14, most=2)
    assert (steps, enough) == (2, False)


def test_a_function_whose_start_is_its_minimum_ends_there():
    values, minima, _ = quadratics()
    found, steps, enough = minimize_together(values, minima, lambda v: v, tolerance=1e-6, most=10)
    assert (steps, enough) == (0, True)
    np.testing.assert_array_equal(found, minima)


def test_steps_that_are_known_save_most_steps_of_nearly_the_same_functions():
    values, minima, _ = quadratics()
    known: list = [[], [], []]
    minimize_together(values, np.zeros((3, 12)), lambda v: v, tolerance=1e-10, most=1000, known=known)
    assert all(0 < len(steps) <= PAIRS for steps in known)
    start = minima + 0.1 * np.random.default_rng(1).normal(size=minima.shape)
    found, then, _ = minimize_together(values, start, lambda v: v, tolerance=1e-10, most=1000, known=known)
    _, alone, _ = minimize_together(values, start, lambda v: v, tolerance=1e-10, most=1000)
    np.testing.assert_allclose(found, minima, atol=1e-2)
    assert then < alone


def test_known_steps_along_which_the_gradient_does_not_grow_are_left_out():
    values, minima, _ = quadratics(1)
    wrong = [[(np.ones(12), -np.ones(12)), (np.ones(12), np.zeros(12))]]
    found, *_ = minimize_together(values, np.zeros((1, 12)), lambda v: v, tolerance=1e-14, most=1000, known=wrong)
    np.testing.assert_allclose(found, minima, atol=1e-4)


@pytest.mark.parametrize("steps", [1, 5, PAIRS, 3 * PAIRS])
def test_the_direction_is_that_of_the_formula_of_bfgs(steps):
    """Against the update of the inverse Hessian, matrix by matrix, with the last steps."""
    random, width = np.random.default_rng(1), 8
    root = random.normal(size=(width, width))
    hessian, H = root @ root.T + np.eye(width), np.diag(random.uniform(0.5, 2, size=width))
    taken = random.normal(size=(steps, width))
    pairs = _Pairs(width, np.float64)
    for step in taken:
        pairs.add(step, hessian @ step, H @ hessian @ step)
    last = hessian @ taken[-1]
    inverse = H * (taken[-1] @ last) / (last @ H @ last)
    for step in taken[-PAIRS:]:
        change = hessian @ step
        left = np.eye(width) - np.outer(step, change) / (step @ change)
        inverse = left @ inverse @ left.T + np.outer(step, step) / (step @ change)
    gradient = random.normal(size=width)
    np.testing.assert_allclose(pairs.direction(gradient, H @ gradient), inverse @ gradient, rtol=1e-6)


def test_a_step_whose_growth_is_lost_in_rounding_is_not_remembered():
    pairs = _Pairs(2, np.float32)
    pairs.add(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    assert len(pairs.rows[0]) == 0
