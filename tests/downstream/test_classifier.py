"""The mixture classifier against plain loops, numerical gradients, scikit-learn and PyTorch's Adam."""

import math

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold

from bgcl import BGCLError, MixtureClassifier
from bgcl.downstream import head as head_module
from bgcl.downstream.head import PATH
from bgcl.downstream.softmax_fits import SoftmaxFits
from bgcl.measures.metrics import pavpu
from synthetic_draws import numerical_gradient, random_draws


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


def class_objective(draws, y):
    """The loss without held-out nodes and its gradient, by the parameters and the penalty."""
    fits = SoftmaxFits(draws, y, len(np.unique(y)), [np.empty(0, dtype=np.int64)])

    def objective(parameters, penalty):
        losses, gradients = fits.values(np.array([0]), parameters[None], penalty)
        return losses[0], gradients[0]

    return objective


class TestLikelihood:
    @pytest.mark.parametrize("samples", [1, 4])
    @pytest.mark.parametrize("penalty", [0.0, 0.7])
    def test_loss_and_gradient_equal_the_loops(self, samples, penalty):
        draws, y = random_draws(samples, 7)
        parameters = np.random.default_rng(1).normal(size=9)
        loss, gradient = class_objective(draws, y)(parameters, penalty)
        assert loss == pytest.approx(loop_class_loss(parameters, draws, y, 3, penalty), rel=1e-12)
        expected = numerical_gradient(lambda p: loop_class_loss(p, draws, y, 3, penalty), parameters)
        np.testing.assert_allclose(gradient, expected, atol=1e-7)

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
        head = MixtureClassifier(C, normalize=False).fit(X, y)
        logistic = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, y)
        np.testing.assert_allclose(head.predict_proba(X), logistic.predict_proba(X), atol=2e-4)
        W, c = head.coefficients_[:6].reshape(2, 3), head.coefficients_[6:]
        np.testing.assert_allclose(W - W.mean(1, keepdims=True), logistic.coef_.T, atol=2e-3)
        np.testing.assert_allclose(c - c.mean(), logistic.intercept_ - logistic.intercept_.mean(), atol=2e-3)

    def test_two_classes_are_logistic_regression_with_twice_the_inverse_strength(self):
        """scikit-learn has one vector w for two classes. Here there are w/2 and -w/2, so |W|^2 is |w|^2 / 2."""
        X, y = random_draws(1, 60, classes=2)[0][0], np.arange(60) % 2
        head = MixtureClassifier(1.0, normalize=False).fit(X, y)
        logistic = LogisticRegression(C=2.0, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(head.predict_proba(X), logistic.predict_proba(X), atol=2e-4)

    def test_repeating_a_draw_changes_nothing(self):
        draws, y = random_draws(1)
        once = MixtureClassifier(1.0).fit(draws, y)
        often = MixtureClassifier(1.0).fit(np.repeat(draws, 5, axis=0), y)
        np.testing.assert_allclose(often.coefficients_, once.coefficients_, atol=1e-5)
        np.testing.assert_allclose(often.predict_proba(np.repeat(draws, 3, axis=0)), once.predict_proba(draws[0]))

    def test_fit_finds_the_minimum_of_the_loss(self):
        draws, y = random_draws(4, 12)
        head = MixtureClassifier(2.0, normalize=False).fit(draws, y)
        gradient = numerical_gradient(lambda p: loop_class_loss(p, draws, y, 3, 0.5), head.coefficients_)
        np.testing.assert_allclose(gradient, 0, atol=5e-3)

    def test_probabilities_are_the_mean_over_the_draws(self):
        draws, y = random_draws(4)
        head = MixtureClassifier(1.0, normalize=False).fit(draws, y)
        W, c = head.coefficients_[:6].reshape(2, 3), head.coefficients_[6:]
        for k in range(4):
            exps = np.exp(draws[k] @ W + c)
            np.testing.assert_allclose(head.predict_samples(draws)[k], exps / exps.sum(1, keepdims=True))
        np.testing.assert_allclose(head.predict_proba(draws), sum(head.predict_samples(draws)) / 4)
        np.testing.assert_array_equal(head.predict(draws), head.predict_proba(draws).argmax(1))

    def test_normalize_scales_embeddings_to_unit_length(self):
        draws, y = random_draws()
        unit = draws / np.sqrt((draws**2).sum(-1, keepdims=True))
        ours = MixtureClassifier(1.0).fit(draws, y).predict_proba(draws)
        np.testing.assert_allclose(ours, MixtureClassifier(1.0, normalize=False).fit(unit, y).predict_proba(unit))

    def test_an_embedding_of_zeros_is_not_divided_by_its_length(self):
        draws, y = random_draws()
        draws[:, 0] = 0
        assert np.isfinite(MixtureClassifier(1.0).fit(draws, y).predict_proba(draws)).all()

    def test_the_papers_head_is_150_epochs_of_adam_with_learning_rate_one_tenth(self):
        draws, y = random_draws(4)
        X, labels = torch.as_tensor(draws), torch.as_tensor(y)
        W, c = (torch.zeros(shape, dtype=torch.float64, requires_grad=True) for shape in ((2, 3), (3,)))
        optimizer = torch.optim.Adam([W, c], lr=0.1)
        for _ in range(150):
            optimizer.zero_grad()
            log_p = torch.log_softmax(X @ W + c, -1)[:, torch.arange(24), labels]
            (-(torch.logsumexp(log_p, 0) - math.log(4)).sum()).backward()
            optimizer.step()
        head = MixtureClassifier.paper().fit(draws, y)
        W, c = W.detach().numpy(), c.detach().numpy()
        np.testing.assert_allclose(head.coefficients_[:6].reshape(2, 3), W, atol=1e-6)
        np.testing.assert_allclose(head.coefficients_[6:], c, atol=1e-6)
        assert head.sharpness_ == 1

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

    def test_torch_tensors_and_float32_are_accepted(self):
        draws, y = random_draws()
        ours = MixtureClassifier(1.0).fit(torch.as_tensor(draws, dtype=torch.float32), torch.as_tensor(y))
        expected = MixtureClassifier(1.0).fit(draws, y)
        probability = ours.predict_proba(torch.as_tensor(draws, dtype=torch.float32))
        np.testing.assert_allclose(probability, expected.predict_proba(draws), atol=1e-4)

    def test_an_unknown_criterion_is_refused(self):
        draws, y = random_draws()
        with pytest.raises(
            BGCLError, match="'criterion' parameter of MixtureClassifier must be 'likelihood' or 'pavpu'"
        ):
            MixtureClassifier(criterion="accuracy").fit(draws, y)

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

    def test_predict_before_fit_raises_not_fitted_error(self):
        for method in ("predict", "predict_proba", "predict_samples"):
            with pytest.raises(NotFittedError):
                getattr(MixtureClassifier(), method)(random_draws()[0])


class TestCrossValidation:
    def test_sharpness_multiplies_the_coefficients(self):
        draws, y = random_draws(4, 60)
        chosen = MixtureClassifier().fit(draws, y)
        plain = MixtureClassifier(chosen.C_).fit(draws, y)
        assert plain.sharpness_ == 1
        assert chosen.sharpness_ in MixtureClassifier.sharpnesses
        np.testing.assert_allclose(chosen.coefficients_, chosen.sharpness_ * plain.coefficients_, rtol=0.01, atol=0.01)

    def test_separable_classes_are_sharpened(self):
        """All held-out nodes are predicted correctly, so the penalty makes their probabilities underconfident."""
        draws = np.eye(2)[np.arange(40) % 2] + 0.01 * np.random.default_rng(0).normal(size=(3, 40, 2))
        assert MixtureClassifier().fit(draws, np.arange(40) % 2).sharpness_ == max(MixtureClassifier.sharpnesses)

    def test_sharpness_for_pavpu_maximizes_the_area_on_held_out_nodes(self):
        """The loop fits a head to each fold with the chosen C, and computes the area for each sharpness."""
        draws, y = random_draws(4, 60)
        head = MixtureClassifier(criterion="pavpu", normalize=False).fit(draws, y)
        centered = draws - draws.mean((0, 1))
        spread = np.square(centered).sum(2).mean()
        areas = {}
        for sharpness in MixtureClassifier.sharpnesses:
            correct, uncertain = [], []
            for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
                fold = MixtureClassifier(head.C_, normalize=False).fit(
                    draws[: MixtureClassifier.path_draws, train], y[train]
                )
                fold.coefficients_ = fold.coefficients_ * sharpness
                p = fold.predict_proba(draws[:, test])
                correct += list(p.argmax(1) == y[test])
                uncertain += list(-(p * np.log(p)).sum(1))
            areas[sharpness] = pavpu(np.array(correct), np.array(uncertain)).area
        assert min(abs(head.C_ * spread - C) for C in PATH) < 1e-9
        assert areas[head.sharpness_] >= max(areas.values()) - 0.01  # the folds are fitted with low precision
        assert head.sharpness_ > MixtureClassifier(normalize=False).fit(draws, y).sharpness_

    def test_the_strength_is_one_of_the_path_and_the_choice_is_deterministic(self):
        draws, y = random_draws(5, 45)
        one, other = (MixtureClassifier().fit(draws, y) for _ in range(2))
        unit = draws / np.linalg.norm(draws, axis=-1, keepdims=True)
        spread = np.square(unit - unit.mean((0, 1))).sum(2).mean()
        assert min(abs(one.C_ * spread - C) for C in PATH) < 1e-9
        assert (one.C_, one.sharpness_) == (other.C_, other.sharpness_)
        np.testing.assert_array_equal(one.coefficients_, other.coefficients_)

    def test_noise_gets_a_stronger_penalty_than_signal(self):
        random = np.random.default_rng(0)
        y = np.arange(60) % 2
        noise = random.normal(size=(2, 60, 20))
        signal = 0.1 * random.normal(size=(2, 60, 2)) + y[:, None]
        weak, strong = (
            MixtureClassifier(normalize=False).fit(X, y).C_ * np.square(X - X.mean((0, 1))).sum(2).mean()
            for X in (signal, noise)
        )
        assert weak > strong
        assert strong == pytest.approx(min(PATH))

    def test_the_choice_does_not_depend_on_the_scale_of_the_embeddings(self):
        draws, y = random_draws(5, 45)
        one, scaled = (MixtureClassifier(normalize=False).fit(s * draws, y) for s in (1, 100))
        assert pytest.approx(one.C_ / 1e4) == scaled.C_
        np.testing.assert_allclose(one.predict_proba(draws), scaled.predict_proba(100 * draws), atol=1e-3)


def test_a_criterion_that_a_given_penalty_leaves_without_effect_is_refused():
    draws, labels = np.random.default_rng(0).normal(size=(2, 20, 3)), np.arange(20) % 2
    with pytest.raises(BGCLError, match="criterion='pavpu' has no effect if C is a number"):
        MixtureClassifier(C=1.0, criterion="pavpu").fit(draws, labels)


@pytest.mark.parametrize("seed", range(4))
def test_a_penalty_that_is_left_early_would_not_have_been_chosen(seed, monkeypatch):
    random = np.random.default_rng(seed)
    y = random.integers(3, size=90)
    draws = random.normal(size=(2, 90, 12)) + random.uniform(0.2, 2) * np.eye(3, 12)[y]
    early = MixtureClassifier().fit(draws, y)
    monkeypatch.setattr(head_module, "ROUGH", 0.0)
    whole = MixtureClassifier().fit(draws, y)
    assert early.C_ == whole.C_
    np.testing.assert_allclose(early.predict_proba(draws), whole.predict_proba(draws), atol=5e-3)


def test_a_penalty_that_is_clearly_worse_takes_fewer_steps(monkeypatch):
    random = np.random.default_rng(0)
    y = random.integers(2, size=80)
    draws = random.normal(size=(1, 80, 40)) + 0.3 * np.eye(2, 40)[y]  # weak: the strongest penalty is best
    solve, tolerances = SoftmaxFits.solve, []

    def noted(self, C, start, tolerance, most):
        tolerances.append((C, tolerance))
        return solve(self, C, start, tolerance, most)

    monkeypatch.setattr(SoftmaxFits, "solve", noted)
    head = MixtureClassifier(normalize=False).fit(draws, y)
    assert PATH[1] > head.C_
    assert (PATH[1], head_module.ROUGH) in tolerances
    assert (PATH[1], MixtureClassifier.path_tolerance) not in tolerances
