"""Answers at a risk: the bound is that of Clopper and Pearson, and the risk holds as often as it should."""

import numpy as np
import pytest
from scipy.stats import binom

from bgcl import BGCLError
from bgcl.conformal.abstention import CANDIDATES, CERTAINTY, Abstention, fewest_for, upper_bound


@pytest.mark.parametrize(("wrong", "answers"), [(0, 30), (3, 50), (20, 21), (5, 400)])
def test_the_bound_is_the_share_at_which_so_few_wrong_answers_are_hardly_likely(wrong, answers):
    found = upper_bound(wrong, answers)
    assert binom.cdf(wrong, answers, found) == pytest.approx((1 - CERTAINTY) / CANDIDATES)
    assert upper_bound(answers, answers) == 1


def test_the_threshold_equals_a_plain_loop():
    random = np.random.default_rng(0)
    doubt = random.integers(0, 60, 900) / 60  # with ties
    wrong = random.random(900) < 0.3 * doubt**2
    found = Abstention.at_risk(doubt, wrong, 0.1)
    best = None
    for candidate in range(1, 21):
        threshold = np.sort(doubt)[-(-candidate * 900 // 20) - 1]
        answered = doubt <= threshold
        if upper_bound(int(wrong[answered].sum()), int(answered.sum())) <= 0.1:
            best = threshold, answered.mean(), wrong[answered].mean()
    assert (found.threshold, found.answered, found.wrong) == pytest.approx(best)
    assert found.abstains(doubt).tolist() == (doubt > best[0]).tolist()


def test_the_true_share_of_wrong_answers_is_above_the_risk_only_rarely():
    """`P(wrong | u) = u / 4`, so among the answers up to t the true share is t / 8."""
    random, broken, answered = np.random.default_rng(0), 0, []
    for _ in range(600):
        doubt = random.random(500)
        found = Abstention.at_risk(doubt, random.random(500) < doubt / 4, 0.1)
        broken += found.threshold / 8 > 0.1
        answered.append(found.answered)
    assert broken / 600 <= 1 - CERTAINTY
    assert 0.2 < np.mean(answered) < 0.8


def test_if_no_threshold_holds_nobody_gets_an_answer():
    found = Abstention.at_risk(np.linspace(0, 1, 500), np.ones(500, bool), 0.05)
    assert found.abstains(np.array([-1.0, 0.0, 1.0])).all()
    assert found.answered == 0
    assert np.isnan(found.bound)


@pytest.mark.parametrize("risk", [0.01, 0.05, 0.3])
def test_the_fewest_nodes_are_the_fewest_with_which_a_risk_may_hold(risk):
    assert upper_bound(0, fewest_for(risk)) <= risk < upper_bound(0, fewest_for(risk) - 1)


@pytest.mark.parametrize(
    ("risk", "count", "message"),
    [
        (0.05, 116, "needs 117 labeled nodes or more. Got 116"),
        (0, 500, "between 0 and 1"),
        (5, 500, "Got 5"),
        ("0.05", 500, "share"),
        (float("nan"), 500, "share"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(risk, count, message):
    with pytest.raises(BGCLError, match=message):
        Abstention.at_risk(np.zeros(count), np.zeros(count, bool), risk)


@pytest.mark.parametrize(
    ("uncertainty", "count", "message"),
    [
        (np.where(np.arange(500) == 7, np.nan, 0.5), 500, "uncertainty of node 7 is NaN"),
        (np.zeros(500), 400, "one uncertainty for each labeled node.*500"),
        (np.zeros((500, 2)), 500, "one uncertainty for each labeled node"),
    ],
)
def test_uncertainty_that_cannot_be_compared_is_refused(uncertainty, count, message):
    """Without this, a NaN as threshold would answer every node."""
    with pytest.raises(BGCLError, match=message):
        Abstention.at_risk(uncertainty, np.zeros(count, bool), 0.1)
    with pytest.raises(BGCLError, match="node 1 is NaN"):
        Abstention.at_risk(np.zeros(500), np.zeros(500, bool), 0.1).abstains(np.array([0.1, np.nan]))
