"""The posterior of the drop rates: draws against its distribution function, the KL against quadrature."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import betaln
from torch import Tensor
from torch.autograd import gradcheck

from bgcl.augmentation.drop_rates import (
    LOGIT_BOUND,
    DropRate,
    expected_log_complement,
    kumaraswamy_beta_kl,
    kumaraswamy_log_moment,
    kumaraswamy_logit,
    log1mexp,
)
from small import in_turn

pytestmark = pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")


def double(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def dense_log1mexp(x: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.where(x > -0.7, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def quadrature(a: float, b: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Quadrature nodes for `E_q[f]`: their weights, and `log pi`, `log(1 - pi)` and `log q(pi)` at each.

    With `1 - pi^a = exp(-t)`, t has an exponential distribution of rate b. In `x = log t` its density `b t exp(-b t)`
    falls off on both sides, so the trapezoid rule converges faster than any power of its step.
    """
    x = -math.log(b) + np.arange(-50, 5, 0.005)
    t = np.exp(x)
    weight = 0.005 * b * t * np.exp(-b * t)
    log_pi = dense_log1mexp(-t) / a
    far = t > 50  # there 1 - pi is exp(-t) / a in double precision
    log_complement = np.where(far, -t - math.log(a), dense_log1mexp(np.where(far, -1.0, log_pi)))
    log_q = math.log(a) + math.log(b) + (a - 1) * log_pi - (b - 1) * t
    return weight, log_pi, log_complement, log_q


def quadrature_kl(a: float, b: float, alpha: float, beta: float) -> float:
    weight, log_pi, log_complement, log_q = quadrature(a, b)
    log_p = (alpha - 1) * log_pi + (beta - 1) * log_complement - betaln(alpha, beta)
    return float(weight @ (log_q - log_p))


ORDINARY = [0.3, 1.0, 2.7, 12.0]
EXTREME = [0.01, 0.2, 30.0, 100.0]
PRIORS = [(1.0, 1.0), (0.5, 0.5), (0.4, 1.0), (2.0, 3.0), (5.0, 0.7)]


@pytest.mark.parametrize(("alpha", "beta"), PRIORS)
def test_kl_is_the_integral_that_defines_it(alpha: float, beta: float) -> None:
    for a in ORDINARY:
        for b in ORDINARY:
            kl = float(kumaraswamy_beta_kl(double(a), double(b), alpha, beta))
            assert kl == pytest.approx(quadrature_kl(a, b, alpha, beta), rel=1e-5, abs=1e-6), (a, b)


@pytest.mark.parametrize(("alpha", "beta"), PRIORS)
def test_kl_is_the_integral_for_extreme_posteriors_too(alpha: float, beta: float) -> None:
    for a in EXTREME:
        for b in EXTREME:
            kl = float(kumaraswamy_beta_kl(double(a), double(b), alpha, beta))
            assert kl == pytest.approx(quadrature_kl(a, b, alpha, beta), rel=1e-4, abs=1e-3), (a, b)


@pytest.mark.parametrize(("alpha", "beta"), PRIORS)
def test_kl_in_the_precision_of_training_is_close_to_the_integral(alpha: float, beta: float) -> None:
    for a in ORDINARY:
        for b in ORDINARY:
            kl = float(kumaraswamy_beta_kl(torch.tensor(a), torch.tensor(b), alpha, beta))
            assert kl == pytest.approx(quadrature_kl(a, b, alpha, beta), rel=1e-3, abs=1e-3), (a, b)


@pytest.mark.parametrize("c", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_kl_is_the_papers_closed_form_if_beta_is_one(c: float, layers: int) -> None:
    a, b, alpha = 1.7, 0.6, c / layers
    digamma = -0.57721566490153286 - sum(1 / (n + b) - 1 / (n + 1) for n in range(200_000))
    paper = (a - alpha) / a * (-0.57721566490153286 - digamma - 1 / b) + math.log(a * b / alpha) - (b - 1) / b
    assert float(kumaraswamy_beta_kl(double(a), double(b), alpha, 1.0)) == pytest.approx(paper, rel=1e-4)


@pytest.mark.parametrize("shape", [(1.0, 1.0), (2.5, 1.0), (1.0, 3.0)])
def test_kl_is_zero_if_both_distributions_are_the_same(shape: tuple[float, float]) -> None:
    # Kumaraswamy(a, 1) is Beta(a, 1) and Kumaraswamy(1, b) is Beta(1, b).
    assert float(kumaraswamy_beta_kl(double(shape[0]), double(shape[1]), *shape)) == pytest.approx(0, abs=1e-7)


def test_expected_log_complement_is_its_integral() -> None:
    for a in ORDINARY + EXTREME:
        for b in ORDINARY + EXTREME:
            weight, _, log_complement, _ = quadrature(a, b)
            expected = float(weight @ log_complement)
            assert float(expected_log_complement(double(a), double(b))) == pytest.approx(expected, rel=1e-4), (a, b)


@pytest.mark.parametrize("a", [300.0, 1000.0])
def test_expected_log_complement_is_within_one_percent_for_the_slowest_series(a: float) -> None:
    for b in [0.01, 0.3, 12.0, 1000.0]:
        weight, _, log_complement, _ = quadrature(a, b)
        expected = float(weight @ log_complement)
        assert float(expected_log_complement(double(a), double(b))) == pytest.approx(expected, rel=0.01), b


def test_expected_log_complement_has_a_closed_form_for_a_of_one() -> None:
    b = torch.tensor([0.05, 0.5, 1.0, 8.0, 300.0], dtype=torch.float64)  # 1 - pi = u^(1/b)
    torch.testing.assert_close(expected_log_complement(torch.ones_like(b), b), -1 / b, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 0.5), (2.0, 3.0)])
def test_kl_has_the_right_gradient(alpha: float, beta: float) -> None:
    a = torch.tensor([0.4, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([2.0, 1.0, 0.5], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda a, b: kumaraswamy_beta_kl(a, b, alpha, beta), (a, b))


def test_log1mexp_is_exact_at_either_end() -> None:
    x = torch.tensor([-1e-12, -1e-3, -0.69, -0.7, -5.0, -700.0], dtype=torch.float64)
    expected = [math.log(-math.expm1(value)) if value > -1 else math.log1p(-math.exp(value)) for value in x.tolist()]
    torch.testing.assert_close(log1mexp(x), torch.tensor(expected, dtype=torch.float64), rtol=1e-13, atol=0)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 2.0), (3.0, 0.8), (4.0, 6.0)])
def test_draws_follow_the_cumulative_distribution(a: float, b: float) -> None:
    rate = DropRate((100, 100), start=(a, b))
    draws = torch.sigmoid(rate.draw(in_turn(0)).detach().double()).reshape(-1).numpy()
    assert stats.kstest(draws, lambda x: 1 - (1 - x**a) ** b).pvalue > 0.01


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 2.0), (3.0, 0.8), (4.0, 6.0), (30.0, 50.0)])
def test_mean_and_std_are_the_same_by_draws_and_by_quadrature(a: float, b: float) -> None:
    rate = DropRate((1, 1), start=(a, b))
    weight, log_pi, _, _ = quadrature(a, b)
    mean = weight @ np.exp(log_pi)
    std = math.sqrt(weight @ (np.exp(log_pi) - mean) ** 2)
    assert float(rate.mean()) == pytest.approx(mean, rel=1e-4)
    assert float(rate.std()) == pytest.approx(std, rel=1e-2)
    draws = torch.sigmoid(DropRate((100, 200), start=(a, b)).draw(in_turn(1)).detach())
    assert float(draws.mean()) == pytest.approx(mean, abs=4 * std / math.sqrt(20_000))
    assert float(draws.std()) == pytest.approx(std, rel=0.05)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1e4), (10.0, 1e4), (1.0, 1e6), (1e3, 1e3)])
def test_mean_and_std_are_right_for_any_posterior_that_the_settings_allow(a: float, b: float) -> None:
    rate = DropRate((1, 1), start=(a, b))
    weight, log_pi, _, _ = quadrature(a, b)
    mean = weight @ np.exp(log_pi)
    std = math.sqrt(weight @ (np.exp(log_pi) - mean) ** 2)
    assert float(rate.mean()) == pytest.approx(mean, rel=0.01)
    assert float(rate.std()) == pytest.approx(std, rel=0.1)


@pytest.mark.parametrize("order", [0.0, 1.0, 2.0, 7.5])
def test_moments_are_their_integrals(order: float) -> None:
    for a in ORDINARY:
        for b in ORDINARY:
            weight, log_pi, _, _ = quadrature(a, b)
            moment = float(kumaraswamy_log_moment(double(a), double(b), order).exp())
            assert moment == pytest.approx(weight @ np.exp(order * log_pi), rel=1e-9), (a, b)


def test_the_distribution_function_is_one_half_at_the_median() -> None:
    for a, b in [(1.0, 1.0), (0.5, 2.0), (4.0, 6.0)]:
        median = float(torch.sigmoid(DropRate((1, 1), start=(a, b)).median()))
        assert 1 - (1 - median**a) ** b == pytest.approx(0.5, abs=1e-5)


def test_draw_is_the_inverse_distribution_function_with_its_gradient() -> None:
    a = torch.tensor([0.4, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([2.0, 1.0, 0.5], dtype=torch.float64, requires_grad=True)
    uniform = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
    pi = (1 - uniform ** (1 / b)) ** (1 / a)
    torch.testing.assert_close(kumaraswamy_logit(a, b, uniform), torch.logit(pi))
    assert gradcheck(lambda a, b: kumaraswamy_logit(a, b, uniform), (a, b))


@pytest.mark.parametrize("uniform", [1e-6, 0.5, 1 - 1e-6])
def test_draws_and_gradients_are_finite_and_bounded_for_any_posterior(uniform: float) -> None:
    values = [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6]
    a = torch.tensor(values).repeat_interleave(len(values)).requires_grad_()
    b = torch.tensor(values).repeat(len(values)).requires_grad_()
    logit = kumaraswamy_logit(a, b, torch.full_like(a, uniform))
    logit.sum().backward()
    assert torch.isfinite(logit).all()
    assert (logit.abs() <= LOGIT_BOUND).all()
    assert torch.isfinite(a.grad).all()
    assert torch.isfinite(b.grad).all()


@pytest.mark.parametrize("start", [(1e-6, 1e6), (1e6, 1e-6)])
def test_a_rate_that_nears_zero_or_one_stops_at_the_bound(start: tuple[float, float]) -> None:
    expected = -LOGIT_BOUND if start[0] < 1 else LOGIT_BOUND
    assert float(DropRate((1, 1), start=start).draw(in_turn(0))) == expected


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (2, 4)])
def test_draw_median_mean_and_std_have_the_shape_of_the_rates(shape: tuple[int, int]) -> None:
    for rate in (DropRate(shape), DropRate(shape, rate=0.25)):
        assert rate.draw(in_turn(0)).shape == shape
        assert rate.median().shape == rate.mean().shape == rate.std().shape == shape
        assert rate.kl().shape == ()
    assert len(set(DropRate((2, 4)).draw(in_turn(0)).flatten().tolist())) == 8


def test_the_kl_of_several_rates_is_their_sum() -> None:
    rate = DropRate((2, 2), start=(2.0, 0.7), prior=(0.5, 0.5))
    assert float(rate.kl()) == pytest.approx(4 * quadrature_kl(2.0, 0.7, 0.5, 0.5), rel=1e-4)


@pytest.mark.parametrize(("rate", "logit"), [(0.0, -math.inf), (1.0, math.inf), (0.5, 0.0)])
def test_a_fixed_rate_is_exactly_the_given_number(rate: float, logit: float) -> None:
    fixed = DropRate((1, 1), rate=rate)
    assert float(fixed.draw(in_turn(0))) == float(fixed.median()) == logit
    assert float(fixed.mean()) == rate
    assert float(fixed.std()) == float(fixed.kl()) == 0
    assert not list(fixed.parameters())
