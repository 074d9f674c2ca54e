"""The test of drift: its distance is that of Kolmogorov and Smirnov, and it warns where there is a drift."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from bgcl import BGCLError
from bgcl.conformal.exchangeability import TOLERANCE, Drift, largest_gap


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    random = np.random.default_rng(0)
    for _ in range(20):
        one, other = random.integers(0, 9, 30), random.integers(1, 12, 50)
        assert largest_gap(one, other) == pytest.approx(ks_2samp(one, other).statistic)


def test_nodes_from_the_same_source_are_never_warned_about():
    random = np.random.default_rng(0)
    for _ in range(200):
        draws = [{name: random.normal(size=count) for name in "abc"} for count in (400, 2000)]
        assert not Drift.between(*draws).warns


def test_the_least_distance_is_below_the_true_one():
    """Two uniform distributions on [0, 1] and [0.3, 1.3] have the distance 0.3."""
    random, least = np.random.default_rng(0), []
    for _ in range(300):
        found = Drift.between({"a": random.random(800)}, {"a": 0.3 + random.random(800)})
        least.append(found.surely["a"])
    assert np.mean(np.array(least) > 0.3) <= 0.01
    assert min(least) > TOLERANCE


def test_one_score_that_drifts_is_named_among_others():
    random = np.random.default_rng(0)
    known = {name: random.normal(size=900) for name in ("same", "moved", "also same")}
    new = {name: random.normal(size=900) + (name == "moved") for name in known}
    found = Drift.between(known, new)
    assert (found.worst, found.warns) == ("moved", True)
    assert (found.calibration, found.new) == (900, 900)


def test_few_nodes_cannot_show_a_drift():
    assert not Drift.between({"a": np.zeros(3)}, {"a": np.ones(3)}).warns


@pytest.mark.parametrize("empty", [0, 1])
def test_without_nodes_there_is_nothing_to_compare(empty):
    both = [{"a": np.zeros(3)}, {"a": np.zeros(3)}]
    both[empty] = {"a": np.zeros(0)}
    with pytest.raises(BGCLError, match="cannot be compared"):
        Drift.between(*both)


def test_other_scores_and_nan_are_refused():
    with pytest.raises(BGCLError, match="Compare the same scores"):
        Drift.between({"a": np.zeros(9)}, {"b": np.zeros(9)})
    with pytest.raises(BGCLError, match="'a' of a node is NaN"):
        Drift.between({"a": np.zeros(9)}, {"a": np.full(9, np.nan)})
