"""The folds of a cross-validation that are fitted together, against fits of their own with high precision."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bgcl.downstream import softmax_fits
from bgcl.downstream.descent import minimize_together
from bgcl.downstream.softmax_fits import SoftmaxFits, held_out_logits, split

CLASSES, NODES, WIDTH = 3, 90, 6
FOLDS = [np.arange(i, NODES, 4) for i in range(4)]


def make_draws(samples: int = 2, nodes: int = NODES, dtype=np.float64) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    y = random.integers(CLASSES, size=nodes)
    draws = random.normal(size=(samples, nodes, WIDTH)) * np.geomspace(1, 0.01, WIDTH) + np.eye(CLASSES, WIDTH)[y]
    return (draws - draws.mean((0, 1))).astype(dtype), y


def loss_of(draws: np.ndarray, y: np.ndarray, C: float):
    """The loss of one problem, from the formula."""

    def loss(parameters: np.ndarray) -> float:
        W, c = parameters[: WIDTH * CLASSES].reshape(WIDTH, CLASSES), parameters[WIDTH * CLASSES :]
        exps = np.exp(draws @ W + c)
        p = (exps / exps.sum(2, keepdims=True)).mean(0)
        return -np.log(p[np.arange(len(y)), y]).sum() + np.square(W).sum() / (2 * C)

    return loss


def precise(draws: np.ndarray, y: np.ndarray, C: float) -> np.ndarray:
    start = np.zeros((WIDTH + 1) * CLASSES)
    return minimize(loss_of(draws, y, C), start, method="BFGS", options={"gtol": 1e-6}).x


def rest(nodes: np.ndarray) -> np.ndarray:
    return np.setdiff1d(np.arange(NODES), nodes)


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("C", [0.5, 30.0])
def test_each_fold_has_the_solution_of_high_precision(samples, C):
    draws, y = make_draws(samples)
    fits = SoftmaxFits(draws, y, CLASSES, FOLDS)
    found, steps, enough = fits.solve(C, np.zeros((4, (WIDTH + 1) * CLASSES)), 1e-10, 1000)
    assert enough
    assert steps > 0
    for point, nodes in zip(found, FOLDS, strict=True):
        expected = precise(draws[:, rest(nodes)], y[rest(nodes)], C)
        W, own = (split(each[None], WIDTH, CLASSES)[0][0] for each in (expected, point))
        np.testing.assert_allclose(own, W, atol=1e-3 * np.abs(W).max())


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
def test_the_loss_is_within_the_tolerance_of_the_minimum(tolerance):
    draws, y = make_draws()
    found, *_ = SoftmaxFits(draws, y, CLASSES, FOLDS).solve(10.0, np.zeros((4, 21)), tolerance, 1000)
    for point, nodes in zip(found, FOLDS, strict=True):
        loss = loss_of(draws[:, rest(nodes)], y[rest(nodes)], 10.0)
        least = loss(precise(draws[:, rest(nodes)], y[rest(nodes)], 10.0))
        assert loss(point) <= least * (1 + 10 * tolerance)  # it is judged by the last steps


def test_single_precision_has_nearly_the_same_solution():
    (draws, y), (single, _) = make_draws(), make_draws(dtype=np.float32)
    one, other = (
        SoftmaxFits(each, y, CLASSES, FOLDS).solve(3.0, np.zeros((4, 21)), 1e-7, 1000)[0] for each in (draws, single)
    )
    np.testing.assert_allclose(one, other, atol=2e-3)


@pytest.mark.parametrize("block", [1, 300, 10**6])
def test_the_size_of_the_blocks_makes_no_difference(block, monkeypatch):
    draws, y = make_draws(3)
    parameters = np.random.default_rng(1).normal(size=(2, 21))
    expected = SoftmaxFits(draws, y, CLASSES, FOLDS).values(np.array([1, 3]), parameters, 0.3)
    monkeypatch.setattr(softmax_fits, "BLOCK", block)
    found = SoftmaxFits(draws, y, CLASSES, FOLDS).values(np.array([1, 3]), parameters, 0.3)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_values_are_those_of_each_problem_alone():
    draws, y = make_draws(3)
    parameters = np.random.default_rng(1).normal(size=(4, 21))
    losses, gradients = SoftmaxFits(draws, y, CLASSES, FOLDS).values(np.arange(4), parameters, 1 / 5)
    for i, nodes in enumerate(FOLDS):
        loss = loss_of(draws[:, rest(nodes)], y[rest(nodes)], 5.0)
        assert losses[i] == pytest.approx(loss(parameters[i]))
        ahead = [(loss(parameters[i] + e) - loss(parameters[i] - e)) / 2e-6 for e in 1e-6 * np.eye(21)]
        np.testing.assert_allclose(gradients[i], ahead, atol=1e-6)


def test_the_logits_of_a_node_are_those_of_the_fold_that_holds_it_out():
    draws, _ = make_draws(3)
    parameters = np.random.default_rng(1).normal(size=(4, 21))
    found = held_out_logits(parameters, draws, CLASSES, FOLDS)
    for nodes, W, c in zip(FOLDS, *split(parameters, WIDTH, CLASSES), strict=True):
        np.testing.assert_allclose(found[:, nodes], draws[:, nodes] @ W + c)


def test_the_rough_hessian_saves_most_steps_where_columns_differ_in_spread():
    random, spread = np.random.default_rng(0), np.geomspace(1, 0.01, WIDTH)
    draws = random.normal(size=(1, 3000, WIDTH)) * spread
    logits = draws[0] / spread @ random.normal(size=(WIDTH, CLASSES))  # narrow columns say as much as wide ones
    y = (logits + random.gumbel(size=logits.shape)).argmax(1)
    fits, start = SoftmaxFits(draws, y, CLASSES, [np.arange(0)]), np.zeros((1, 21))
    _, steps, enough = fits.solve(1e4, start, 1e-6, 1000)
    _, without, _ = minimize_together(
        lambda which, points: fits.values(which, points, 1e-4), start, lambda v: v, tolerance=1e-6, most=1000
    )
    assert enough
    assert steps < 0.5 * without


def test_a_path_of_penalties_ends_where_a_fit_of_its_own_ends():
    """What is known from one C serves the next, and then a problem of all nodes and more draws."""
    draws, y = make_draws(2)
    fits, found = SoftmaxFits(draws[:1], y, CLASSES, FOLDS), np.zeros((4, 21))
    for C in (0.3, 3.0, 30.0):
        found, *_ = fits.solve(C, found, 1e-12, 1000)
        alone, *_ = SoftmaxFits(draws[:1], y, CLASSES, FOLDS).solve(C, np.zeros((4, 21)), 1e-12, 1000)
        np.testing.assert_allclose(found, alone, atol=1e-3)
    last = SoftmaxFits(draws, y, CLASSES, [np.arange(0)])
    last.take_over(fits)
    whole, *_ = last.solve(30.0, found.mean(0)[None], 1e-12, 1000)
    W, expected = (split(each[None], WIDTH, CLASSES)[0][0] for each in (whole[0], precise(draws, y, 30.0)))
    np.testing.assert_allclose(W, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("directions", [2, 256])
def test_the_rough_inverse_is_that_of_the_diagonal_in_principal_directions(directions, monkeypatch):
    """Against the Hessian, number by number, at probabilities that are the same for all nodes."""
    monkeypatch.setattr(softmax_fits, "DIRECTIONS", directions)
    monkeypatch.setattr(softmax_fits, "WHOLE", directions)
    draws, y = make_draws(1)
    fits, C = SoftmaxFits(draws, y, CLASSES, [np.arange(0)]), 2.0
    c = np.log([0.2, 0.3, 0.5])
    inverse = fits._inverse(np.concatenate([np.zeros(WIDTH * CLASSES), c]), C)
    p, X = np.exp(c), draws[0]
    S, gram = np.diag(p) - np.outer(p, p), X.T @ X
    axes, _, rest = fits.principal
    if directions < WIDTH:
        gram = axes @ axes.T @ gram @ axes @ axes.T + NODES * rest * (np.eye(WIDTH) - axes @ axes.T)
        gram = axes @ np.diag(np.diag(axes.T @ gram @ axes)) @ axes.T + NODES * rest * (np.eye(WIDTH) - axes @ axes.T)
    hessian = np.kron(S, gram) + np.eye(WIDTH * CLASSES) / C
    vector = np.random.default_rng(0).normal(size=WIDTH * CLASSES)
    found = inverse(np.concatenate([vector, np.zeros(CLASSES)])[None])[0, : WIDTH * CLASSES]
    np.testing.assert_allclose(found, np.linalg.solve(hessian, vector), rtol=1e-3, atol=1e-5)
