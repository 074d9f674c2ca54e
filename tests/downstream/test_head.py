"""What both heads have in common: warnings, parameter checks, and scikit-learn's own checks of an estimator."""

import math
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from bgcl import BGCLError, MixtureClassifier, MixtureRegressor
from synthetic_draws import random_draws

HEADS = [MixtureClassifier, MixtureRegressor]


class TestBothHeads:
    @pytest.mark.parametrize("head", HEADS)
    @pytest.mark.parametrize("C", [1.0, "cv"])
    def test_too_few_iterations_raise_a_warning(self, head, C):
        draws, y = random_draws()
        with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
            head(C, max_iter=2).fit(draws, y)

    @pytest.mark.parametrize("head", HEADS)
    @pytest.mark.parametrize("C", [1.0, "cv"])
    def test_enough_iterations_raise_no_warning(self, head, C):
        draws, y = random_draws()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            head(C).fit(draws, y)

    @pytest.mark.parametrize("head", HEADS)
    def test_draws_of_another_width_are_refused(self, head):
        draws, y = random_draws()
        with pytest.raises(BGCLError, match="X has 1 features, but"):
            head(1.0).fit(draws, y).predict(draws[..., :1])

    @pytest.mark.parametrize("head", HEADS)
    @pytest.mark.parametrize("C", [0, -1.0, math.nan, "cross"])
    def test_a_strength_that_is_not_a_positive_number_is_refused(self, head, C):
        draws, y = random_draws()
        message = f"The 'C' parameter of {head.__name__} must be 'cv', or a number above 0. Got {C!r} instead."
        with pytest.raises(BGCLError, match=re.escape(message)):
            head(C).fit(draws, y)

    @pytest.mark.parametrize("head", HEADS)
    @pytest.mark.parametrize(
        ("parameter", "value", "allowed"),
        [
            ("solver", "newton", "'lbfgs' or 'adam'"),
            ("max_iter", 0, "a whole number of 1 or more"),
            ("folds", 1, "a whole number of 2 or more"),
            ("folds", 2.5, "a whole number of 2 or more"),
            ("normalize", "perhaps", "true or false"),
            ("random_state", -1, "a whole number of 0 or more"),
        ],
    )
    def test_a_parameter_out_of_range_is_refused_by_fit(self, head, parameter, value, allowed):
        draws, y = random_draws()
        made = head(1.0, **{parameter: value})
        with pytest.raises(BGCLError) as caught:
            made.fit(draws, y)
        assert str(caught.value).startswith(f"The '{parameter}' parameter of {head.__name__} must be {allowed}")
        assert str(caught.value).endswith(f". Got {value!r} instead.")

    @pytest.mark.parametrize("head", HEADS)
    def test_a_subclass_may_have_parameters_of_its_own(self, head):
        class WithName(head):
            def __init__(self, C="cv", *, name="", normalize=True):
                super().__init__(C, normalize=normalize)
                self.name = name

        draws, y = random_draws()
        assert WithName(1.0, name="mine").fit(draws, y).predict(draws).shape == y.shape

    @pytest.mark.parametrize("head", HEADS)
    def test_clone_keeps_every_parameter(self, head):
        made = head(3.0, solver="adam", max_iter=7, folds=3, normalize=False, random_state=5)
        assert clone(made).get_params() == made.get_params()

    @pytest.mark.parametrize("head", HEADS)
    def test_fit_does_not_change_the_draws(self, head):
        draws, y = random_draws()
        before = draws.copy()
        head(1.0, normalize=False).fit(draws, y).predict(draws)
        np.testing.assert_array_equal(draws, before)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [head(C, normalize=False) for head in HEADS for C in ("cv", 1.0)],
)
def test_scikit_learns_checks_of_an_estimator_pass(estimator, check):
    check(estimator)
