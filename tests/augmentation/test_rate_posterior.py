"""`RatePosterior`: its density and quantiles against quadrature, SciPy and torch's `DropRate`."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import integrate, stats

from bgcl.augmentation import RatePosterior
from bgcl.augmentation.drop_rates import DropRate
from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.views import Augmentation
from small import in_turn

SHAPES = [(1.0, 1.0), (2.5, 1.0), (1.0, 3.0), (0.5, 2.0), (3.0, 0.8), (4.0, 6.0), (60.0, 900.0)]
PARAMETERS = st.floats(0.05, 200)


def one_rate(a: float, b: float) -> RatePosterior:
    """The posterior of a single rate, with parameters in double precision."""
    return RatePosterior("edges", ((math.nan,),), ((math.nan,),), ((a,),), ((b,),))


def cdf(pi: np.ndarray, a: float, b: float) -> np.ndarray:
    return 1 - (1 - pi**a) ** b


def expectation(rate: RatePosterior, power: int) -> float:
    """`E[pi^power]` by quadrature of the density between quantiles, where the integrand is smooth."""
    cuts = [float(rate.quantile(level)[0, 0]) for level in (0.01, 0.25, 0.5, 0.75, 0.99)]

    def integrand(pi: float) -> float:
        return pi**power * float(rate.density(np.array([pi]))[0, 0, 0])

    pieces = zip([0.0, *cuts], [*cuts, 1.0], strict=True)
    return sum(integrate.quad(integrand, low, high, limit=200)[0] for low, high in pieces)


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_the_density_integrates_to_one(a: float, b: float) -> None:
    assert expectation(one_rate(a, b), 0) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_the_density_is_the_slope_of_the_distribution_function(a: float, b: float) -> None:
    rate = one_rate(a, b)
    pi = np.array([float(rate.quantile(level)[0, 0]) for level in (0.1, 0.4, 0.8)])
    step = 1e-6 * pi
    slope = (cdf(pi + step, a, b) - cdf(pi - step, a, b)) / (2 * step)
    np.testing.assert_allclose(rate.density(pi)[0, 0], slope, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1.0, 1.0), (2.5, 1.0), (1.0, 3.0)])
def test_the_density_is_a_beta_density_if_one_parameter_is_one(shape: tuple[float, float]) -> None:
    pi = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(one_rate(*shape).density(pi)[0, 0], stats.beta(*shape).pdf(pi), rtol=1e-10)


@pytest.mark.parametrize(("a", "b"), [(1e-3, 1e3), (1e3, 1e-3), (1e4, 1e6)])
def test_the_density_does_not_overflow_for_extreme_parameters(a: float, b: float) -> None:
    density = one_rate(a, b).density(np.array([1e-12, 0.3, 1 - 1e-12]))
    assert not np.isnan(density).any()
    assert (density >= 0).all()


@given(PARAMETERS, PARAMETERS, st.floats(0.001, 0.999))
def test_the_quantile_inverts_the_distribution_function(a: float, b: float, level: float) -> None:
    [[pi]] = one_rate(a, b).quantile(level)
    assume(0 < pi < 1 - 1e-9)  # beyond, a double cannot hold the quantile
    log_survival = b * math.log(-math.expm1(a * math.log(pi)))  # of 1 - cdf, without cancellation
    assert -math.expm1(log_survival) == pytest.approx(level, rel=1e-5, abs=1e-6)


@given(PARAMETERS, PARAMETERS, st.floats(0, 0.999), st.floats(0, 0.999))
def test_quantiles_rise_with_the_level(a: float, b: float, first: float, second: float) -> None:
    rate = one_rate(a, b)
    low, high = sorted((first, second))
    assert 0 <= rate.quantile(low)[0, 0] <= rate.quantile(high)[0, 0] <= 1


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_mean_and_std_of_a_drop_rate_are_the_moments_of_the_density(a: float, b: float) -> None:
    rate = DropRate((1, 1), start=(a, b)).posterior("edges")
    mean = expectation(rate, 1)
    assert rate.average == pytest.approx(mean, rel=1e-4)
    assert rate.average_std == pytest.approx(math.sqrt(expectation(rate, 2) - mean**2), rel=1e-2)


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_the_median_and_the_draws_are_those_of_the_drop_rate(a: float, b: float) -> None:
    drop_rate = DropRate((40, 50), start=(a, b))
    rate = drop_rate.posterior("edges")
    np.testing.assert_allclose(rate.quantile(0.5), torch.sigmoid(drop_rate.median()).detach().numpy(), rtol=1e-4)
    draws = torch.sigmoid(drop_rate.draw(in_turn(0))).detach().numpy()
    for level in (0.1, 0.5, 0.9):
        share = (draws <= rate.quantile(level)).mean()
        assert share == pytest.approx(level, abs=4 * math.sqrt(level * (1 - level) / 2000))


def test_each_layer_and_block_has_its_own_density_and_quantile() -> None:
    a, b = ((1.0, 2.0, 3.0), (0.5, 4.0, 1.0)), ((2.0, 1.0, 0.7), (3.0, 5.0, 1.0))
    rate = RatePosterior("connections in 3 blocks per block", ((0.5,) * 3,) * 2, ((0.1,) * 3,) * 2, a, b)
    pi = np.array([0.2, 0.5, 0.9, 0.95])
    assert rate.density(pi).shape == (2, 3, 4)
    assert rate.quantile(0.3).shape == (2, 3)
    for i, j, _ in rate.places():
        single = one_rate(a[i][j], b[i][j])
        np.testing.assert_array_equal(rate.density(pi)[i, j], single.density(pi)[0, 0])
        assert rate.quantile(0.3)[i, j] == single.quantile(0.3)[0, 0]


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((1, 1), [""]),
        ((2, 1), ["layer 1", "layer 2"]),
        ((1, 2), ["block 1", "block 2"]),
        ((2, 2), ["layer 1, block 1", "layer 1, block 2", "layer 2, block 1", "layer 2, block 2"]),
    ],
)
def test_places_name_the_layers_and_blocks_that_do_not_share_a_rate(shape: tuple[int, int], words: list[str]) -> None:
    rate = DropRate(shape).posterior("connections")
    assert [place[2] for place in rate.places()] == words
    assert [place[:2] for place in rate.places()] == list(np.ndindex(*shape))


@pytest.mark.parametrize("fixed", [None, 0.0, 0.25, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3)])
def test_a_posterior_is_the_same_after_json(shape: tuple[int, int], fixed: float | None) -> None:
    rate = DropRate(shape, rate=fixed, start=(1.3, 0.7)).posterior("edges at 0.25" if fixed is not None else "edges")
    written = json.loads(json.dumps(rate.to_dict()))
    assert RatePosterior.from_dict(written) == rate
    assert written.keys() == ({"mask", "mean", "std"} | (set() if fixed is not None else {"a", "b"}))
    hash(rate)


@pytest.mark.parametrize("fixed", [0.0, 0.25, 1.0])
def test_a_fixed_rate_has_a_mean_and_no_posterior(fixed: float) -> None:
    rate = DropRate((2, 3), rate=fixed).posterior("edges")
    assert not rate.learned
    assert (rate.average, rate.average_std) == (fixed, 0)
    assert np.shape(rate.mean) == np.shape(rate.std) == (2, 3)
    for call in (lambda: rate.density(np.array([0.5])), lambda: rate.quantile(0.5)):
        with pytest.raises(ValueError, match="The drop rate of 'edges' is fixed, so it has no posterior"):
            call()


def test_an_augmentation_lists_the_posterior_of_each_mask_in_each_view() -> None:
    masks = [parse_mask("connections in 2 blocks per block"), parse_mask("features at 0.25/0.5")]
    augmentation = Augmentation(masks, 3, start=(2.0, 1.0))
    posteriors = augmentation.posteriors()
    assert list(posteriors) == ["o", "t"]
    for view, fixed in (("o", 0.25), ("t", 0.5)):
        learned, given_ = posteriors[view]
        assert [learned.mask, given_.mask] == [str(mask) for mask in masks]
        assert learned.learned
        assert np.shape(learned.mean) == (3, 2)
        assert learned.average == pytest.approx(2 / 3, rel=1e-6)  # Kumaraswamy(2, 1) is Beta(2, 1)
        assert given_.average == fixed
