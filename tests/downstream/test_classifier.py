"""The mixture heads against plain loops, numerical differences, scikit-learn, PyTorch's Adam and grid integrals."""

import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from bgcl import BGCLError, MixtureClassifier, MixtureRegressor
from bgcl.downstream.classifier import PATH, PATH_DRAWS
from bgcl.measures.metrics import pavpu

HEADS = [MixtureClassifier, MixtureRegressor]


def random_draws(samples: int = 3, nodes: int = 24, width: int = 2, classes: int = 3, seed: int = 0):
    """Draws that tell the classes apart, but not well, and the labels."""
    random = np.random.default_rng(seed)
    y = np.arange(nodes) % classes
    centres = random.normal(size=(classes, width))
    nodes_at = centres[y] + 0.8 * random.normal(size=(nodes, width))
    return nodes_at + 0.5 * random.normal(size=(samples, nodes, width)), y


def loop_class_loss(parameters, draws, y, classes: int, penalty: float) -> float:
    """`- sum_n log 1/K sum_k softmax(h_k W + c)_y + penalty/2 |W|^2`, number by number."""
    samples, nodes, width = draws.shape
    W, c = parameters[: width * classes].reshape(width, classes), parameters[width * classes :]
    loss = sum(penalty / 2 * w * w for w in W.ravel())
    for n in range(nodes):
        likelihood = 0.0
        for k in range(samples):
            exps = [math.exp(sum(draws[k, n, i] * W[i, j] for i in range(width)) + c[j]) for j in range(classes)]
            likelihood += exps[y[n]] / sum(exps) / samples
        loss -= math.log(likelihood)
    return loss


def loop_normal_loss(parameters, draws, y, penalty: float) -> float:
    """`- sum_n log 1/K sum_k Normal(y; h_k w + c, s^2) + penalty/2 |w|^2`, and the floor under s."""
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


def numerical_gradient(f, at, step: float = 1e-5):
    shifts = np.eye(len(at)) * step
    return np.array([(f(at + shift) - f(at - shift)) / (2 * step) for shift in shifts])


def class_objective(draws, y):
    head = MixtureClassifier(normalise=False)
    head.classes_ = np.unique(y)
    return head._objective(draws, y)


class TestLikelihood:
    @pytest.mark.parametrize("samples", [1, 4])
    @pytest.mark.parametrize("penalty", [0.0, 0.7])
    def test_loss_and_gradient_of_the_classifier_equal_the_loops(self, samples, penalty):
        draws, y = random_draws(samples, 7)
        parameters = np.random.default_rng(1).normal(size=9)
        loss, gradient = class_objective(draws, y)(parameters, penalty)
        assert loss == pytest.approx(loop_class_loss(parameters, draws, y, 3, penalty), rel=1e-12)
        expected = numerical_gradient(lambda p: loop_class_loss(p, draws, y, 3, penalty), parameters)
        np.testing.assert_allclose(gradient, expected, atol=1e-7)

    @pytest.mark.parametrize("samples", [1, 4])
    @pytest.mark.parametrize("penalty", [0.0, 0.7])
    def test_loss_and_gradient_of_the_regressor_equal_the_loops(self, samples, penalty):
        random = np.random.default_rng(2)
        draws, y = random.normal(size=(samples, 6, 2)), random.normal(size=6)
        parameters = random.normal(size=4)
        loss, gradient = MixtureRegressor()._objective(draws, y)(parameters, penalty)
        assert loss == pytest.approx(loop_normal_loss(parameters, draws, y, penalty), rel=1e-12)
        expected = numerical_gradient(lambda p: loop_normal_loss(p, draws, y, penalty), parameters)
        np.testing.assert_allclose(gradient, expected, atol=1e-6)

    def test_the_order_of_the_draws_does_not_matter(self):
        draws, y = random_draws(5)
        parameters = np.random.default_rng(0).normal(size=9)
        loss, gradient = class_objective(draws, y)(parameters, 0.3)
        other_loss, other_gradient = class_objective(draws[[3, 0, 4, 2, 1]], y)(parameters, 0.3)
        assert loss == pytest.approx(other_loss, rel=1e-13)
        np.testing.assert_allclose(gradient, other_gradient, atol=1e-12)

    def test_likelihoods_that_underflow_keep_a_finite_loss_and_gradient(self):
        draws, y = random_draws()
        loss, gradient = class_objective(1e4 * draws, y)(np.random.default_rng(0).normal(size=9), 0.0)
        assert np.isfinite(loss)
        assert np.isfinite(gradient).all()


class TestClassifier:
    @pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
    def test_one_draw_is_logistic_regression(self, C):
        X, y = random_draws(1, 60)[0][0], np.arange(60) % 3
        head = MixtureClassifier(C, normalise=False).fit(X, y)
        logistic = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, y)
        np.testing.assert_allclose(head.predict_proba(X), logistic.predict_proba(X), atol=2e-4)
        W, c = head.coefficients_[:6].reshape(2, 3), head.coefficients_[6:]
        np.testing.assert_allclose(W - W.mean(1, keepdims=True), logistic.coef_.T, atol=2e-3)
        np.testing.assert_allclose(c - c.mean(), logistic.intercept_ - logistic.intercept_.mean(), atol=2e-3)

    def test_two_classes_are_logistic_regression_at_twice_the_strength(self):
        """Scikit-learn has one vector w for two classes, here there are w/2 and -w/2: |W|^2 is |w|^2 / 2."""
        X, y = random_draws(1, 60, classes=2)[0][0], np.arange(60) % 2
        head = MixtureClassifier(1.0, normalise=False).fit(X, y)
        logistic = LogisticRegression(C=2.0, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(head.predict_proba(X), logistic.predict_proba(X), atol=2e-4)

    def test_a_draw_that_is_repeated_counts_once(self):
        draws, y = random_draws(1)
        once = MixtureClassifier(1.0).fit(draws, y)
        often = MixtureClassifier(1.0).fit(np.repeat(draws, 5, axis=0), y)
        np.testing.assert_allclose(often.coefficients_, once.coefficients_, atol=1e-5)
        np.testing.assert_allclose(often.predict_proba(np.repeat(draws, 3, axis=0)), once.predict_proba(draws[0]))

    def test_fit_finds_the_least_of_the_loss(self):
        draws, y = random_draws(4, 12)
        head = MixtureClassifier(2.0, normalise=False).fit(draws, y)
        gradient = numerical_gradient(lambda p: loop_class_loss(p, draws, y, 3, 0.5), head.coefficients_)
        np.testing.assert_allclose(gradient, 0, atol=5e-3)

    def test_the_probability_of_a_mixture_is_the_mean_over_its_draws(self):
        draws, y = random_draws(4)
        head = MixtureClassifier(1.0, normalise=False).fit(draws, y)
        W, c = head.coefficients_[:6].reshape(2, 3), head.coefficients_[6:]
        for k in range(4):
            exps = np.exp(draws[k] @ W + c)
            np.testing.assert_allclose(head.predict_samples(draws)[k], exps / exps.sum(1, keepdims=True))
        np.testing.assert_allclose(head.predict_proba(draws), sum(head.predict_samples(draws)) / 4)
        np.testing.assert_array_equal(head.predict(draws), head.predict_proba(draws).argmax(1))

    def test_normalise_is_the_same_as_embeddings_of_unit_length(self):
        draws, y = random_draws()
        unit = draws / np.sqrt((draws**2).sum(-1, keepdims=True))
        ours = MixtureClassifier(1.0).fit(draws, y).predict_proba(draws)
        np.testing.assert_allclose(ours, MixtureClassifier(1.0, normalise=False).fit(unit, y).predict_proba(unit))

    def test_an_embedding_of_zeros_is_left_as_it_is(self):
        draws, y = random_draws()
        draws[:, 0] = 0
        assert np.isfinite(MixtureClassifier(1.0).fit(draws, y).predict_proba(draws)).all()

    def test_paper_is_150_epochs_of_adam_at_rate_a_tenth(self):
        draws, y = random_draws(4)
        X, labels = torch.as_tensor(draws), torch.as_tensor(y)
        W, c = (torch.zeros(shape, dtype=torch.float64, requires_grad=True) for shape in ((2, 3), (3,)))
        optimiser = torch.optim.Adam([W, c], lr=0.1)
        for _ in range(150):
            optimiser.zero_grad()
            log_p = torch.log_softmax(X @ W + c, -1)[:, torch.arange(24), labels]
            (-(torch.logsumexp(log_p, 0) - math.log(4)).sum()).backward()
            optimiser.step()
        head = MixtureClassifier.paper().fit(draws, y)
        W, c = W.detach().numpy(), c.detach().numpy()
        np.testing.assert_allclose(head.coefficients_[:6].reshape(2, 3), W, atol=1e-6)
        np.testing.assert_allclose(head.coefficients_[6:], c, atol=1e-6)
        assert head.sharpness_ == 1

    def test_sharpness_multiplies_the_coefficients(self):
        draws, y = random_draws(4, 60)
        chosen = MixtureClassifier().fit(draws, y)
        plain = MixtureClassifier(chosen.C_).fit(draws, y)
        assert plain.sharpness_ == 1
        assert chosen.sharpness_ in MixtureClassifier.sharpnesses
        np.testing.assert_allclose(chosen.coefficients_, chosen.sharpness_ * plain.coefficients_, rtol=0.01, atol=0.01)

    def test_separable_classes_are_sharpened(self):
        """Unit embeddings under a penalty are too timid where every held-out node is right."""
        draws = np.eye(2)[np.arange(40) % 2] + 0.01 * np.random.default_rng(0).normal(size=(3, 40, 2))
        assert MixtureClassifier().fit(draws, np.arange(40) % 2).sharpness_ == max(MixtureClassifier.sharpnesses)

    def test_sharpness_for_pavpu_has_the_greatest_area_on_held_out_nodes(self):
        """By a plain loop: a head for each fold at the strength that was chosen, and each sharpness by its area."""
        draws, y = random_draws(4, 60)
        head = MixtureClassifier(criterion="pavpu", normalise=False).fit(draws, y)
        centred = draws - draws.mean((0, 1))
        spread = np.square(centred).sum(2).mean()
        areas = {}
        for sharpness in MixtureClassifier.sharpnesses:
            correct, uncertain = [], []
            for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
                fold = MixtureClassifier(head.C_, normalise=False).fit(draws[:PATH_DRAWS, train], y[train])
                fold.coefficients_ = fold.coefficients_ * sharpness
                p = fold.predict_proba(draws[:, test])
                correct += list(p.argmax(1) == y[test])
                uncertain += list(-(p * np.log(p)).sum(1))
            areas[sharpness] = pavpu(np.array(correct), np.array(uncertain)).area
        assert min(abs(head.C_ * spread - C) for C in PATH) < 1e-9
        assert areas[head.sharpness_] >= max(areas.values()) - 0.01  # folds are optimised coarsely
        assert head.sharpness_ > MixtureClassifier(normalise=False).fit(draws, y).sharpness_

    def test_an_unknown_criterion(self):
        draws, y = random_draws()
        with pytest.raises(BGCLError, match="'criterion' of MixtureClassifier must be 'likelihood' or 'pavpu'"):
            MixtureClassifier(criterion="accuracy").fit(draws, y)

    def test_cross_validation_picks_from_the_path_and_is_deterministic(self):
        draws, y = random_draws(5, 45)
        one, other = (MixtureClassifier().fit(draws, y) for _ in range(2))
        unit = draws / np.linalg.norm(draws, axis=-1, keepdims=True)
        spread = np.square(unit - unit.mean((0, 1))).sum(2).mean()
        assert min(abs(one.C_ * spread - C) for C in PATH) < 1e-9
        assert (one.C_, one.sharpness_) == (other.C_, other.sharpness_)
        np.testing.assert_array_equal(one.coefficients_, other.coefficients_)

    def test_noise_is_penalised_more_than_signal(self):
        random = np.random.default_rng(0)
        y = np.arange(60) % 2
        noise = random.normal(size=(2, 60, 20))
        signal = 0.1 * random.normal(size=(2, 60, 2)) + y[:, None]
        weak, strong = (
            MixtureClassifier(normalise=False).fit(X, y).C_ * np.square(X - X.mean((0, 1))).sum(2).mean()
            for X in (signal, noise)
        )
        assert weak > strong
        assert strong == pytest.approx(min(PATH))

    def test_the_choice_does_not_depend_on_the_scale_of_the_embeddings(self):
        draws, y = random_draws(5, 45)
        one, scaled = (MixtureClassifier(normalise=False).fit(s * draws, y) for s in (1, 100))
        assert pytest.approx(one.C_ / 1e4) == scaled.C_
        np.testing.assert_allclose(one.predict_proba(draws), scaled.predict_proba(100 * draws), atol=1e-3)

    @pytest.mark.parametrize("labels", [np.array(["b", "a", "c"]), np.array(["b", "a", "c"], dtype=object)])
    def test_labels_may_be_strings(self, labels):
        draws, y = random_draws()
        named = MixtureClassifier(1.0).fit(draws, labels[y])
        numbered = MixtureClassifier(1.0).fit(draws, np.array([1, 0, 2])[y])
        assert list(named.classes_) == ["a", "b", "c"]
        np.testing.assert_array_equal(named.predict(draws), named.classes_[numbered.predict(draws)])
        np.testing.assert_allclose(named.predict_proba(draws), numbered.predict_proba(draws))

    def test_score_is_accuracy(self):
        draws, y = random_draws()
        head = MixtureClassifier(1.0).fit(draws, y)
        assert head.score(draws, y) == accuracy_score(y, head.predict(draws)) > 0.5

    def test_torch_tensors_and_float32_are_welcome(self):
        draws, y = random_draws()
        ours = MixtureClassifier(1.0).fit(torch.as_tensor(draws, dtype=torch.float32), torch.as_tensor(y))
        expected = MixtureClassifier(1.0).fit(draws, y)
        probability = ours.predict_proba(torch.as_tensor(draws, dtype=torch.float32))
        np.testing.assert_allclose(probability, expected.predict_proba(draws), atol=1e-4)

    def test_one_class_is_refused(self):
        with pytest.raises(BGCLError, match="Got 1 class among the training nodes"):
            MixtureClassifier(1.0).fit(random_draws()[0], np.zeros(24))

    def test_a_class_of_one_node_is_refused_by_cross_validation_only(self):
        draws = random_draws()[0]
        y = np.array([1] + [0] * 23)
        with pytest.raises(BGCLError, match="Class 1 has only one training node"):
            MixtureClassifier().fit(draws, y)
        assert MixtureClassifier(1.0).fit(draws, y).predict(draws).shape == (24,)

    def test_numbers_with_fractions_are_refused_as_labels(self):
        with pytest.raises(BGCLError, match="continuous"):
            MixtureClassifier().fit(random_draws()[0], np.arange(24) / 7)

    def test_predict_before_fit_says_so(self):
        for method in ("predict", "predict_proba", "predict_samples"):
            with pytest.raises(NotFittedError):
                getattr(MixtureClassifier(), method)(random_draws()[0])


class TestBothHeads:
    @pytest.mark.parametrize("head", HEADS)
    @pytest.mark.parametrize("C", [1.0, "cv"])
    def test_too_few_iterations_are_warned_of(self, head, C):
        draws, y = random_draws()
        with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
            head(C, max_iter=2).fit(draws, y)

    @pytest.mark.parametrize("head", HEADS)
    @pytest.mark.parametrize("C", [1.0, "cv"])
    def test_enough_iterations_are_not_warned_of(self, head, C):
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
    def test_a_strength_that_is_no_positive_number_is_refused(self, head, C):
        draws, y = random_draws()
        with pytest.raises(BGCLError, match="C"):
            head(C).fit(draws, y)

    @pytest.mark.parametrize("head", HEADS)
    def test_an_unknown_solver_is_refused(self, head):
        draws, y = random_draws()
        with pytest.raises(BGCLError, match="solver"):
            head(1.0, solver="newton").fit(draws, y)

    @pytest.mark.parametrize("head", HEADS)
    def test_clone_keeps_every_parameter(self, head):
        made = head(3.0, solver="adam", max_iter=7, folds=3, normalise=False, random_state=5)
        assert clone(made).get_params() == made.get_params()

    @pytest.mark.parametrize("head", HEADS)
    def test_fitting_leaves_the_draws_as_they_were(self, head):
        draws, y = random_draws()
        before = draws.copy()
        head(1.0, normalise=False).fit(draws, y).predict(draws)
        np.testing.assert_array_equal(draws, before)


def linear_data(samples: int = 5, nodes: int = 300, spread: float = 0.4, noise: float = 0.3, seed: int = 0):
    """Targets `2 h_1 - h_2 + 5 + noise` of one draw h of many, of which the head sees others."""
    random = np.random.default_rng(seed)
    centre = random.normal(size=(nodes, 2))
    draws = centre + spread * random.normal(size=(samples, nodes, 2))
    h = centre + spread * random.normal(size=(nodes, 2))
    return draws, h @ [2, -1] + 5 + noise * random.normal(size=nodes)


class TestRegressor:
    def test_a_linear_function_and_its_noise_are_recovered(self):
        draws, y = linear_data(samples=1, spread=0.0)
        head = MixtureRegressor(1e6, normalise=False).fit(draws, y)
        np.testing.assert_allclose(head.predict(draws), draws[0] @ [2, -1] + 5, atol=0.1)
        assert head.noise_ == pytest.approx(0.3, abs=0.04)

    def test_one_draw_without_penalty_is_least_squares(self):
        draws, y = linear_data(samples=1)
        head = MixtureRegressor(math.inf, normalise=False).fit(draws, y)
        design = np.column_stack([draws[0], np.ones(len(y))])
        solution, residual, *_ = np.linalg.lstsq(design, y)
        np.testing.assert_allclose(head.predict(draws), design @ solution, atol=2e-3)
        assert head.noise_ == pytest.approx(math.sqrt(residual[0] / len(y)), rel=1e-3)

    @pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
    def test_mean_deviation_and_interval_equal_those_of_the_density_on_a_grid(self, level):
        draws, y = linear_data()
        head = MixtureRegressor(1.0, normalise=False).fit(draws, y)
        few = draws[:, :6]
        mean, deviation = head.predict(few, return_std=True)
        low, high = head.predict_interval(few, level)
        grid = np.linspace(-20, 30, 200_001)
        for n, centres in enumerate(head.predict_samples(few).T):
            parts = [np.exp(-0.5 * ((grid - m) / head.noise_) ** 2) for m in centres]
            density = sum(parts) / (len(parts) * head.noise_ * math.sqrt(2 * math.pi))
            assert np.trapezoid(density, grid) == pytest.approx(1)
            assert mean[n] == pytest.approx(np.trapezoid(grid * density, grid))
            assert deviation[n] == pytest.approx(math.sqrt(np.trapezoid((grid - mean[n]) ** 2 * density, grid)))
            below = np.cumsum(density) * (grid[1] - grid[0])
            assert low[n] == pytest.approx(np.interp((1 - level) / 2, below, grid), abs=1e-3)
            assert high[n] == pytest.approx(np.interp((1 + level) / 2, below, grid), abs=1e-3)

    @pytest.mark.parametrize("level", [0.5, 0.9])
    def test_an_interval_holds_about_its_share_of_new_targets(self, level):
        draws, y = linear_data(samples=12, nodes=900)
        head = MixtureRegressor(normalise=False).fit(draws[:, :400], y[:400])
        low, high = head.predict_interval(draws[:, 400:], level)
        assert np.mean((low < y[400:]) & (y[400:] < high)) == pytest.approx(level, abs=0.07)

    def test_a_draw_that_is_repeated_counts_once(self):
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
            head = MixtureRegressor(1e6, normalise=False).fit(draws, y)
            np.testing.assert_allclose(head.predict(draws), y, atol=0.05)
            low, high = head.predict_interval(draws)
            assert (low <= high).all()

    @pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, math.nan])
    def test_a_level_out_of_range_is_refused(self, level):
        draws, y = linear_data(nodes=20)
        with pytest.raises(BGCLError, match=f"between 0 and 1. Got {level} instead"):
            MixtureRegressor(1.0).fit(draws, y).predict_interval(draws, level)

    def test_cross_validation_needs_two_nodes(self):
        with pytest.raises(BGCLError, match="only one sample"):
            MixtureRegressor().fit(np.ones((2, 1, 3)), [1.0])


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [head(C, normalise=False) for head in HEADS for C in ("cv", 1.0)],
)
def test_scikit_learns_own_checks_hold(estimator, check):
    check(estimator)
