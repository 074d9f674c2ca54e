"""Draws indexed by node, as scikit-learn's tools use them, and the errors for bad draws and labels."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score

from bgcl import BGCLError, MixtureClassifier, MixtureRegressor
from bgcl.downstream import NodeDraws
from bgcl.downstream.node_draws import as_draws, check_targets


@pytest.fixture
def draws() -> np.ndarray:
    random = np.random.default_rng(0)
    return random.normal(size=(3, 30, 2)) + 1.5 * (np.arange(30) % 2)[:, None]


Y = np.arange(30) % 2


@pytest.mark.parametrize("index", [[4], [1, 2, 2], np.arange(30) % 3 == 0, np.array([], dtype=int)])
def test_indexing_takes_nodes_and_keeps_all_samples(draws, index):
    found = NodeDraws(draws)[index]
    np.testing.assert_array_equal(found.draws, np.stack([draw[index] for draw in draws]))
    assert len(found) == found.shape[0] == found.draws.shape[1]


def test_a_slice_takes_nodes_too(draws):
    np.testing.assert_array_equal(NodeDraws(draws)[2:5].draws, draws[:, 2:5])


def test_tensors_become_arrays(draws):
    np.testing.assert_array_equal(NodeDraws(torch.as_tensor(draws)).draws, draws)


def test_a_matrix_is_refused():
    with pytest.raises(BGCLError, match=r"must have the shape \(samples, nodes, width\). Got \(4, 2\) instead"):
        NodeDraws(np.zeros((4, 2)))


def test_a_head_fits_node_draws_and_their_array_alike(draws):
    one, other = (MixtureClassifier(1.0).fit(form, Y) for form in (draws, NodeDraws(draws)))
    np.testing.assert_array_equal(one.predict_proba(draws), other.predict_proba(NodeDraws(draws)))


def test_cross_val_score_equals_a_loop_over_the_folds(draws):
    head, folds = MixtureClassifier(1.0, normalize=False), KFold(3)
    expected = []
    for train, test in folds.split(Y):
        fitted = clone(head).fit(draws[:, train], Y[train])
        expected.append(np.mean(fitted.predict(draws[:, test]) == Y[test]))
    np.testing.assert_allclose(cross_val_score(head, NodeDraws(draws), Y, cv=folds), expected)


def test_cross_val_predict_predicts_every_node(draws):
    found = cross_val_predict(MixtureClassifier(1.0), NodeDraws(draws), Y, method="predict_proba")
    assert found.shape == (30, 2)


def test_grid_search_finds_the_strength_that_a_loop_finds(draws):
    grid = {"C": [0.001, 0.1, 10.0]}
    search = GridSearchCV(MixtureRegressor(normalize=False), grid, cv=KFold(3)).fit(NodeDraws(draws), Y)
    by_hand = {
        C: cross_val_score(MixtureRegressor(C, normalize=False), NodeDraws(draws), Y, cv=KFold(3)).mean()
        for C in grid["C"]
    }
    assert search.best_params_["C"] == max(by_hand, key=by_hand.get)
    assert search.best_score_ == pytest.approx(max(by_hand.values()))
    assert search.predict(NodeDraws(draws)).shape == (30,)


def test_a_matrix_is_one_draw(draws):
    np.testing.assert_array_equal(as_draws(draws[0], False, None), draws[:1])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64)],
)
def test_the_precision_of_draws_is_kept(given, wanted):
    assert as_draws(np.ones((2, 3, 1), dtype=given), True, None).dtype == wanted


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((0, 5, 2)), "must not be empty"),
        (np.zeros((3, 0, 2)), "must not be empty"),
        (np.zeros((3, 5, 0)), "must not be empty"),
        (np.full((1, 5, 2), np.nan), "NaN or infinity"),
        (np.full((1, 5, 2), np.inf), "NaN or infinity"),
        (np.full((1, 5, 2), 1j), "must be real numbers"),
        (np.full((1, 5, 2), "a"), "must be real numbers"),
    ],
)
def test_bad_draws_are_refused(bad, message):
    with pytest.raises(BGCLError, match=message):
        MixtureClassifier(1.0).fit(bad, np.arange(5) % 2)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (None, "requires y to be passed"),
        ([0, 1], "draws of 3 nodes, but 2 labels"),
        ([0, 1, np.nan], "NaN or infinity"),
        ([0, 1, np.inf], "NaN or infinity"),
        ([0, 1, 0.5], "continuous"),
    ],
)
def test_bad_labels_are_refused(targets, message):
    with pytest.raises(BGCLError, match=message):
        check_targets(targets, 3, MixtureClassifier(), numeric=False)


def test_floats_without_fractions_are_labels():
    np.testing.assert_array_equal(check_targets([0.0, 2.0], 2, MixtureClassifier(), numeric=False), [0, 2])


@pytest.mark.parametrize(("kind", "sizes"), [(np.float32, (1e30, 1e-30)), (np.float64, (1e300, 1e-300))])
def test_rows_of_any_size_get_length_one(kind, sizes):
    rows = np.random.default_rng(0).normal(size=(2, 9, 4)).astype(kind)
    rows[0, 0] = 0
    expected = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), np.finfo(kind).tiny)
    for size in sizes:
        np.testing.assert_allclose(as_draws(rows * kind(size), True, None), expected, rtol=1e-5)


def test_one_entry_that_is_too_great_does_not_erase_the_others():
    rows = np.ones((1, 2, 3))
    rows[0, 0, 1] = 1e300
    np.testing.assert_allclose(as_draws(rows, True, None)[0], [[0, 1, 0], [3**-0.5] * 3], atol=1e-12)


def test_rows_that_are_left_as_they_are_must_be_small_enough_to_compute_with(draws):
    draws[1, 2, 0] = 1e40
    with pytest.raises(BGCLError, match=r"an entry as great as 1e[+]40, too great to be computed with"):
        MixtureClassifier(normalize=False).fit(draws, Y)


def test_masked_values_are_refused(draws):
    with pytest.raises(BGCLError, match="The draws have masked values"):
        MixtureClassifier().fit(np.ma.masked_greater(draws, 1), Y)


@pytest.mark.parametrize(("labels", "told"), [([-1, 0, 1], True), ([-1, 1], False), ([0, 1], False)])
def test_minus_one_as_a_class_is_told(labels, told, caplog):
    check_targets(np.resize(labels, 30), 30, MixtureClassifier(), numeric=False)
    assert ("-1 is a class here" in caplog.text) == told


@pytest.mark.filterwarnings("error")
def test_great_draws_are_draws_and_infinite_ones_are_refused_without_a_warning():
    """The sum of finite numbers may be infinite."""
    great = np.full((2, 30, 2), 3e38, dtype=np.float32)
    np.testing.assert_allclose(as_draws(great, True, MixtureClassifier()), 0.5**0.5, rtol=1e-6)
    for wrong in (np.inf, np.nan):
        bad = great.copy()
        bad[0, 0, 0], bad[1, 3, 1] = wrong, -wrong
        with pytest.raises(BGCLError, match="NaN or infinity"):
            as_draws(bad, True, MixtureClassifier())
