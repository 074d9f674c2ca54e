"""PAvPU, calibration, error detection and risk-coverage against loops over nodes, torchmetrics and scikit-learn."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from torchmetrics.classification import MulticlassCalibrationError

from bgcl import BGCLError
from bgcl.measures.metrics import (
    brier,
    error_aupr,
    error_auroc,
    negative_log_likelihood,
    pavpu,
    reliability,
    risk_coverage,
)

# Few different values, so that there are many ties.
NODES = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.3, 0.7, 1.0])), min_size=1)


def arrays_of(nodes) -> tuple[np.ndarray, np.ndarray]:
    return np.array([right for right, _ in nodes]), np.array([u for _, u in nodes])


def loop_pavpu(correct, uncertainty, threshold) -> list[tuple[float, float, float]]:
    """The definitions, counting nodes for each threshold."""
    rows = []
    for t in threshold:
        n_ac = n_au = n_ic = n_iu = 0
        for right, u in zip(correct, uncertainty, strict=True):
            certain = u <= t
            n_ac += right and certain
            n_au += right and not certain
            n_ic += not right and certain
            n_iu += not right and not certain
        rows.append(
            (
                (n_ac + n_iu) / (n_ac + n_au + n_ic + n_iu),
                n_ac / (n_ac + n_ic) if n_ac + n_ic else 1.0,
                n_iu / (n_ic + n_iu) if n_ic + n_iu else 1.0,
            )
        )
    return rows


class TestPAvPU:
    @settings(max_examples=150, deadline=None)
    @given(NODES, st.integers(2, 12))
    def test_all_thresholds_at_once_equal_a_loop_over_nodes(self, nodes, thresholds):
        correct, uncertainty = arrays_of(nodes)
        found = pavpu(correct, uncertainty, thresholds)
        assert len(found.threshold) == thresholds
        expected = loop_pavpu(correct, uncertainty, found.threshold)
        parts = np.column_stack([found.pavpu, found.accurate_if_certain, found.uncertain_if_inaccurate])
        np.testing.assert_allclose(parts, expected)

    def test_the_thresholds_go_from_the_least_to_the_greatest_in_equal_steps(self):
        found = pavpu(np.array([True, False, True]), np.array([2.0, 7.0, 3.0]))
        np.testing.assert_allclose(found.threshold, [2 + 0.5 * i for i in range(11)])

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6))
    def test_at_the_last_threshold_every_node_is_certain(self, values):
        found = pavpu(np.zeros(len(values)), np.array(values))
        assert found.pavpu[-1] == found.accurate_if_certain[-1] == found.uncertain_if_inaccurate[-1] == 0

    def test_all_right(self):
        found = pavpu(np.ones(5), np.arange(5), 5)
        np.testing.assert_allclose(found.pavpu, [0.2, 0.4, 0.6, 0.8, 1.0])
        np.testing.assert_array_equal(found.accurate_if_certain, 1)
        np.testing.assert_array_equal(found.uncertain_if_inaccurate, 1)  # 0/0: no node is wrong

    def test_all_wrong(self):
        found = pavpu(np.zeros(5), np.arange(5), 5)
        np.testing.assert_allclose(found.pavpu, [0.8, 0.6, 0.4, 0.2, 0.0])
        np.testing.assert_array_equal(found.accurate_if_certain, 0)
        np.testing.assert_allclose(found.uncertain_if_inaccurate, [0.8, 0.6, 0.4, 0.2, 0.0])

    def test_all_equally_uncertain_is_the_accuracy(self):
        found = pavpu(np.array([True, True, False, True]), np.full(4, 0.3))
        np.testing.assert_array_equal(found.pavpu, 0.75)
        np.testing.assert_array_equal(found.accurate_if_certain, 0.75)
        np.testing.assert_array_equal(found.uncertain_if_inaccurate, 0)

    def test_a_perfect_measure_has_pavpu_one_and_a_reversed_one_zero(self):
        correct, measure = np.arange(10) < 5, np.arange(10) >= 5
        np.testing.assert_array_equal(pavpu(correct, measure).pavpu[:-1], 1)
        np.testing.assert_array_equal(pavpu(~correct, measure).pavpu[:-1], 0)

    def test_the_area_is_the_mean_height_of_the_curve(self):
        found = pavpu(np.array([True, False, True, False]), np.array([0.1, 0.2, 0.5, 0.9]), 5)
        heights = [(left + right) / 2 for left, right in itertools.pairwise(found.pavpu)]
        assert found.area == pytest.approx(sum(heights) / 4)


def random_predictions(nodes: int = 400, classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.dirichlet(np.full(classes, 0.5), size=nodes), random.integers(classes, size=nodes)


def calibrated(nodes: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and labels drawn from them."""
    random = np.random.default_rng(1)
    probability = random.dirichlet(np.ones(3), size=nodes)
    return probability, (random.random((nodes, 1)) > probability.cumsum(1)).sum(1)


class TestCalibration:
    @pytest.mark.parametrize("bins", [5, 10, 15])
    def test_ece_equals_torchmetrics(self, bins):
        probability, label = random_predictions()
        metric = MulticlassCalibrationError(probability.shape[1], n_bins=bins, norm="l1")
        expected = metric(torch.as_tensor(probability, dtype=torch.float32), torch.as_tensor(label))
        assert reliability(probability, label, bins).ece == pytest.approx(float(expected), abs=1e-6)

    def test_bins_equal_a_loop_over_nodes(self):
        probability, label = random_predictions(60)
        found = reliability(probability, label, 15)
        gap = 0.0
        for i in range(15):
            inside = [n for n in range(60) if i / 15 < max(probability[n]) <= (i + 1) / 15]
            assert found.count[i] == len(inside)
            if not inside:
                assert np.isnan(found.confidence[i])
                assert np.isnan(found.accuracy[i])
                continue
            confidence = sum(max(probability[n]) for n in inside) / len(inside)
            accuracy = sum(list(probability[n]).index(max(probability[n])) == label[n] for n in inside) / len(inside)
            assert (found.confidence[i], found.accuracy[i]) == pytest.approx((confidence, accuracy))
            gap += len(inside) / 60 * abs(confidence - accuracy)
        assert found.ece == pytest.approx(gap)

    def test_an_edge_belongs_to_the_bin_below_it(self):
        found = reliability(np.array([[0.5, 0.5], [1.0, 0.0], [0.75, 0.25]]), np.zeros(3, dtype=int), 4)
        np.testing.assert_array_equal(found.count, [0, 1, 1, 1])

    def test_labels_drawn_from_the_probabilities_have_almost_no_calibration_error(self):
        probability, label = calibrated()
        assert reliability(probability, label).ece < 0.015

    def test_overconfidence_has_a_calibration_error(self):
        probability, label = calibrated()
        sharper = probability**3 / (probability**3).sum(1, keepdims=True)
        assert reliability(sharper, label).ece > 0.1

    def test_certain_and_always_wrong_has_a_calibration_error_of_one(self):
        assert reliability(np.array([[1.0, 0.0]] * 3), np.ones(3, dtype=int)).ece == 1

    def test_rows_that_are_not_probabilities_are_refused(self):
        with pytest.raises(BGCLError, match="must sum to 1"):
            reliability(np.array([[0.5, 0.2]]), np.array([0]))

    def test_log_likelihood_equals_scikit_learn(self):
        probability, label = random_predictions()
        assert negative_log_likelihood(probability, label) == pytest.approx(log_loss(label, probability))

    def test_a_label_with_probability_zero_has_a_large_but_finite_cost(self):
        assert 100 < negative_log_likelihood(np.array([[1.0, 0.0]]), np.array([1])) < np.inf

    def test_brier_equals_a_loop(self):
        probability, label = random_predictions(30)
        expected = sum((probability[n, c] - (label[n] == c)) ** 2 for n in range(30) for c in range(4)) / 30
        assert brier(probability, label) == pytest.approx(expected)
        assert brier(np.array([[1.0, 0.0]]), np.array([1])) == 2
        assert brier(np.array([[1.0, 0.0]]), np.array([0])) == 0


class TestErrorDetection:
    @settings(max_examples=60, deadline=None)
    @given(NODES)
    def test_auroc_is_the_share_of_pairs_in_the_right_order(self, nodes):
        correct, uncertainty = arrays_of(nodes)
        wins = [
            1.0 if wrong > right else 0.5 if wrong == right else 0.0
            for wrong in uncertainty[~correct]
            for right in uncertainty[correct]
        ]
        expected = sum(wins) / len(wins) if wins else float("nan")
        assert error_auroc(correct, uncertainty) == pytest.approx(expected, nan_ok=True)

    def test_perfect_and_reversed_measures(self):
        correct, measure = np.array([1, 1, 1, 0, 0]), np.array([0.1, 0.2, 0.3, 0.8, 0.9])
        assert error_auroc(correct, measure) == error_aupr(correct, measure) == 1
        assert error_auroc(correct, -measure) == 0

    def test_a_constant_measure_is_as_good_as_chance(self):
        correct = np.arange(10) > 2
        assert error_aupr(correct, np.ones(10)) == pytest.approx(0.3)
        assert error_auroc(correct, np.ones(10)) == 0.5

    def test_aupr_by_hand(self):
        """The wrong nodes are first and third, so the precisions are 1/1 and 2/3."""
        assert error_aupr(np.array([0, 1, 0, 1]), np.array([4.0, 3.0, 2.0, 1.0])) == pytest.approx((1 + 2 / 3) / 2)

    def test_scores_without_errors_or_without_correct_nodes_are_nan(self):
        measure = np.arange(4)
        assert np.isnan(error_auroc(np.ones(4), measure))
        assert np.isnan(error_auroc(np.zeros(4), measure))
        assert np.isnan(error_aupr(np.ones(4), measure))
        assert error_aupr(np.zeros(4), measure) == 1


class TestRiskCoverage:
    @settings(max_examples=60, deadline=None)
    @given(NODES)
    def test_equals_a_loop_in_which_ties_share_their_errors(self, nodes):
        correct, uncertainty = arrays_of(nodes)
        found = risk_coverage(correct, uncertainty)
        risks, errors = [], 0.0
        for kept, u in enumerate(sorted(uncertainty), start=1):
            equals = uncertainty == u
            errors += (~correct[equals]).sum() / equals.sum()
            risks.append(errors / kept)
        np.testing.assert_allclose(found.risk, risks, atol=1e-12)
        np.testing.assert_allclose(found.coverage, [kept / len(nodes) for kept in range(1, len(nodes) + 1)])
        assert found.area == pytest.approx(sum(risks) / len(nodes))

    @settings(max_examples=40, deadline=None)
    @given(NODES, st.randoms(use_true_random=False))
    def test_the_order_of_the_nodes_does_not_matter(self, nodes, random):
        shuffled = list(nodes)
        random.shuffle(shuffled)
        one, other = risk_coverage(*arrays_of(nodes)), risk_coverage(*arrays_of(shuffled))
        np.testing.assert_allclose(one.risk, other.risk, atol=1e-12)

    def test_without_ties_risk_is_the_running_share_of_errors(self):
        found = risk_coverage(np.array([False, True, True, False]), np.array([0.9, 0.1, 0.3, 0.2]))
        np.testing.assert_allclose(found.risk, [0, 1 / 2, 1 / 3, 2 / 4])
        assert found.area == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 4)

    def test_ties_give_the_mean_over_all_orders(self):
        correct = np.array([True, False, False, True])
        orders = itertools.permutations(range(4))
        curves = [[np.mean(~correct[list(order[:kept])]) for kept in range(1, 5)] for order in orders]
        np.testing.assert_allclose(risk_coverage(correct, np.zeros(4)).risk, np.mean(curves, axis=0))


@pytest.mark.parametrize("score", [pavpu, error_auroc, error_aupr, risk_coverage])
@pytest.mark.parametrize(
    ("correct", "uncertainty", "message"),
    [
        ([True], [0.1, 0.2], r"Got the shapes \(1,\) and \(2,\)"),
        ([], [], "one number for each node"),
        ([[True]], [[0.1]], "one number for each node"),
        ([True, False], [0.1, np.nan], "NaN or infinity"),
        ([True, False], [0.1, np.inf], "NaN or infinity"),
    ],
)
def test_bad_measures_are_refused(score, correct, uncertainty, message):
    with pytest.raises(BGCLError, match=message):
        score(np.array(correct), np.array(uncertainty))
