"""Numbers to predict: coverage, CRPS against a ridge regression, and no head that has seen the number it predicts."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch_geometric.data import Data

from bgcl import BGCLError, splits
from bgcl.baselines.number_floors import number_floors
from bgcl.downstream.evaluation import summary
from bgcl.downstream.number_head import NumberHead, _ridge, calibrated_level
from bgcl.downstream.numbers import evaluate_numbers, predict_numbers

NODES = 900


class FixedDraws:
    """A stand-in for a model: embeddings that are the node's place on a circle, with noise in every draw."""

    parts_ = (3,)

    def draws(self, data: Data, samples: int, *, seed: int | None = None):
        random = np.random.default_rng(7)
        angle = np.linspace(0, 2 * np.pi, data.num_nodes, endpoint=False)
        place = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], 1)
        for _ in range(samples):
            yield torch.as_tensor(place + 0.1 * random.normal(size=place.shape), dtype=torch.float32)


def synthetic(noise: float = 0.3, unlabeled: int = 0) -> Data:
    """A number that depends on an attribute, and in a curved way on the place, with skewed noise."""
    random = np.random.default_rng(0)
    angle = np.linspace(0, 2 * np.pi, NODES, endpoint=False)
    x = random.normal(size=(NODES, 4))
    y = x[:, 0] + 2 * np.cos(3 * angle) + noise * random.exponential(size=NODES)
    y[:unlabeled] = np.nan
    ring = np.arange(NODES)
    data = Data(
        x=torch.as_tensor(x, dtype=torch.float32), edge_index=torch.as_tensor(np.stack([ring, (ring + 1) % NODES]))
    )
    data.y = torch.as_tensor(y, dtype=torch.float32)
    return data


def test_ninety_percent_intervals_cover_their_share_and_the_score_beats_ridge_on_the_attributes():
    data = synthetic()
    results = evaluate_numbers(FixedDraws(), data, "half", 6, samples=8)
    scores = {name: score["mean"] for name, score in summary([results]).items()}
    assert 0.88 <= scores["coverage"] <= 0.92
    assert scores["calibration"] < 0.03
    ridge = number_floors(data, splits(data, "half", 6))[1]
    assert scores["crps"] < 0.5 * ridge.crps
    assert 0.88 <= ridge.coverage <= 0.92


def test_ridge_equals_the_normal_equations_of_all_draws():
    random = np.random.default_rng(1)
    features, y = random.normal(size=(3, 20, 5)), random.normal(size=20)
    weights = _ridge(features, y, np.array([0.01, 1.0]))
    for i, penalty in enumerate((0.01, 1.0)):
        expected = Ridge(alpha=60 * penalty).fit(features.reshape(60, 5), np.tile(y, 3))
        np.testing.assert_allclose(weights[:, i], [*expected.coef_, expected.intercept_], atol=1e-10)


def test_a_calibrated_quantile_has_its_share_of_new_numbers_below_it_whatever_the_noise_is():
    random = np.random.default_rng(2)
    rows = random.normal(size=(1, 4000, 2))
    y = rows[0, :, 0] + random.exponential(size=4000) ** 2
    head = NumberHead.fit(rows[:, :2000], y[:2000])
    means = head.mean(rows[0, 2000:])[None]
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert (y[2000:] <= head.quantile(means, level)).mean() == pytest.approx(level, abs=0.035)


def test_levels_of_few_nodes_say_nothing_about_far_quantiles():
    assert calibrated_level(np.array([0.2, 0.8]), 0.95) == 0.95
    assert calibrated_level(np.linspace(0, 1, 19), 0.9) == pytest.approx(17 / 18)


def test_changing_a_number_changes_other_predictions_but_not_its_own():
    data, changed, node = synthetic(), synthetic(), 20
    changed.y[node] += 50
    before, after = (predict_numbers(FixedDraws(), each, samples=6) for each in (data, changed))
    assert before.predicted[node] == after.predicted[node]
    assert np.abs(before.predicted - after.predicted).max() > 1e-3


def test_the_variance_is_that_of_the_draws_and_of_the_noise():
    found = predict_numbers(FixedDraws(), synthetic(unlabeled=100), samples=8)
    assert (found.epistemic >= 0).all()
    assert (found.variance > found.epistemic).all()
    assert np.isnan(found.label[:100]).all()
    assert list(found.columns())[:4] == ["node", "label", "predicted", "deviation"]
    wide = predict_numbers(FixedDraws(), synthetic(unlabeled=100), samples=8, level=0.98)
    assert (wide.upper - wide.lower > found.upper - found.lower).all()


def test_numbers_of_the_training_graph_join_those_of_a_new_graph():
    old, new = synthetic(), synthetic(unlabeled=NODES)
    old.ids = new.ids = np.arange(NODES)
    new.y[5] = 3.0
    found = predict_numbers(FixedDraws(), new, samples=6, labels_from=old)
    assert found.label[5] == 3.0
    np.testing.assert_array_equal(np.delete(found.label, 5), np.delete(old.y.double().numpy(), 5))


def test_the_same_graph_without_ids_gives_each_node_one_number_that_does_not_predict_it():
    found = predict_numbers(FixedDraws(), synthetic(), samples=6, labels_from=synthetic())
    alone = predict_numbers(FixedDraws(), synthetic(), samples=6)
    np.testing.assert_array_equal(found.predicted, alone.predicted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.y.fill_(float("nan")), "all values of data.y are NaN"),
        (lambda data: data.y[3:].fill_(float("nan")), "Only 3 nodes have a number"),
        (lambda data: data.y[3].fill_(float("inf")), "the label of node 3 is infinite"),
    ],
)
def test_too_few_numbers_are_refused(change, message):
    data = synthetic()
    change(data)
    with pytest.raises(BGCLError, match=message):
        predict_numbers(FixedDraws(), data, samples=6)


@pytest.mark.parametrize("level", [0, 1, 1.5, True])
def test_a_level_out_of_range_is_refused(level):
    with pytest.raises(BGCLError, match="between 0 and 1"):
        predict_numbers(FixedDraws(), synthetic(), samples=6, level=level)
