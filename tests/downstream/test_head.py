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
from bgcl.downstream.head import principal_directions
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


def wide_draws(nodes: int, samples: int = 2, width: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """More columns than are fitted as they are. The class shows in a few of them."""
    random = np.random.default_rng(0)
    y = np.arange(nodes) % 3
    center = random.normal(size=(nodes, width)) / np.sqrt(np.arange(width) + 1)
    center[:, :3] += 1.5 * np.eye(3)[y]
    return center + 0.2 * random.normal(size=(samples, nodes, width)), y


class TestPrincipalDirections:
    @pytest.mark.parametrize("nodes", [30, 200])
    def test_they_are_an_orthonormal_basis_of_all_rows(self, nodes):
        draws, _ = wide_draws(nodes)
        draws = draws - draws.mean((0, 1))
        turned, basis = principal_directions(draws)
        rows = min(2 * nodes, 300)
        assert rows - 2 <= basis.shape[1] <= rows
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-4)
        np.testing.assert_allclose(turned @ basis.T, draws, atol=1e-3)
        np.testing.assert_allclose(turned, draws @ basis, atol=1e-3)

    def test_directions_without_any_spread_are_left_out(self):
        draws, _ = wide_draws(200)
        draws[:, :, 100:] = draws[:, :, :1]  # the other columns are copies
        _, basis = principal_directions(draws - draws.mean((0, 1)))
        assert basis.shape[1] == 100

    @pytest.mark.parametrize("C", [1.0, 20.0, "cv"])
    @pytest.mark.parametrize("nodes", [45, 240])
    def test_a_wide_classifier_has_the_solution_of_a_plain_one(self, C, nodes, monkeypatch):
        """With fewer rows than columns, and with more."""
        draws, y = wide_draws(nodes)
        assert draws.shape[2] > MixtureClassifier.wide
        wide = MixtureClassifier(C, normalize=False).fit(draws, y)
        monkeypatch.setattr(MixtureClassifier, "wide", 10**6)
        plain = MixtureClassifier(C, normalize=False).fit(draws, y)
        assert pytest.approx(plain.C_) == wide.C_
        assert wide.sharpness_ == plain.sharpness_
        assert wide.coefficients_.shape == plain.coefficients_.shape
        spread = np.abs(plain.coefficients_).max()
        # A C from cross-validation is fitted with low precision.
        np.testing.assert_allclose(wide.coefficients_, plain.coefficients_, atol=(0.02 if C == "cv" else 4e-3) * spread)
        np.testing.assert_allclose(wide.predict_proba(draws), plain.predict_proba(draws), atol=0.01)

    @pytest.mark.parametrize("nodes", [45, 240])
    def test_a_wide_regressor_has_the_solution_of_a_plain_one(self, nodes, monkeypatch):
        """Both stop at about the same loss. It is flat around the minimum, so single coefficients differ more."""
        draws, _ = wide_draws(nodes)
        y = draws.mean(0)[:, :3].sum(1) + np.random.default_rng(1).normal(size=nodes)
        wide = MixtureRegressor(1e-3, normalize=False).fit(draws, y)
        monkeypatch.setattr(MixtureRegressor, "wide", 10**6)
        plain = MixtureRegressor(1e-3, normalize=False).fit(draws, y)
        assert pytest.approx(plain.C_) == wide.C_
        np.testing.assert_allclose(wide.coefficients_, plain.coefficients_, atol=0.01)
        np.testing.assert_allclose(wide.predict(draws), plain.predict(draws), atol=0.02)
        assert np.corrcoef(plain.predict(draws), y)[0, 1] > 0.5

    @pytest.mark.parametrize("C", [1.0, "cv"])
    def test_columns_that_are_all_equal_are_accepted(self, C):
        """There is no direction at all. The prediction is the share of each class, or the mean of the targets."""
        draws, y = np.ones((2, 30, 300)), np.arange(30) % 3
        found = MixtureClassifier(C, normalize=False).fit(draws, y)
        np.testing.assert_allclose(found.predict_proba(draws), 1 / 3, atol=1e-5)
        assert found.coefficients_.shape == (301 * 3,)
        np.testing.assert_allclose(MixtureRegressor(C, normalize=False).fit(draws, y).predict(draws), 1, atol=1e-3)

    def test_adam_gets_the_embeddings_as_they_are(self, monkeypatch):
        draws, y = wide_draws(30)
        first = MixtureClassifier.paper().fit(draws, y)
        monkeypatch.setattr(MixtureClassifier, "wide", 10**6)
        np.testing.assert_array_equal(first.coefficients_, MixtureClassifier.paper().fit(draws, y).coefficients_)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [head(C, normalize=False) for head in HEADS for C in ("cv", 1.0)],
)
def test_scikit_learns_checks_of_an_estimator_pass(estimator, check):
    check(estimator)
