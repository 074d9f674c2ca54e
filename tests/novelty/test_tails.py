"""Shares of known nodes: they equal a plain loop, and are uniform on exchangeable nodes."""

import numpy as np
import pytest

from bgcl.novelty.tails import Tail, strangeness, summed


@pytest.mark.parametrize("two_sided", [False, True])
def test_shares_equal_a_plain_loop(two_sided):
    random = np.random.default_rng(0)
    scores = random.integers(0, 9, 40).astype(float)  # with ties
    known = np.sort(random.choice(40, 15, replace=False))
    among = np.isin(np.arange(40), known)
    found = Tail.of(scores[known], two_sided=two_sided).shares(scores, among)
    for v in range(40):
        others = [i for i in known if i != v]
        above = (1 + sum(scores[i] >= scores[v] for i in others)) / (1 + len(others))
        below = (1 + sum(scores[i] <= scores[v] for i in others)) / (1 + len(others))
        assert found[v] == pytest.approx(min(1, 2 * above, 2 * below) if two_sided else above)


def test_the_share_of_an_exchangeable_node_is_uniform():
    """Each of n + 1 different scores is as likely to be the new one, so its share is each of 1/(n + 1) ... 1 once."""
    scores = np.random.default_rng(1).normal(size=20)
    shares = [Tail.of(np.delete(scores, v)).shares(scores[v : v + 1])[0] for v in range(20)]
    assert np.sort(shares) == pytest.approx(np.arange(1, 21) / 20)


def test_a_known_node_and_a_new_one_with_close_scores_keep_their_order():
    scores = np.arange(10.0)
    tail = Tail.of(scores)
    known, new = tail.shares(scores, np.ones(10, dtype=bool)), tail.shares(scores + 0.5)
    assert (new <= known).all()
    assert (known[1:] < new[:-1]).all()


def test_a_node_without_a_score_has_the_share_of_the_known_nodes_without_one():
    tail = Tail.of(np.array([1.0, np.nan, 3.0, np.nan]))
    found = tail.shares(np.array([np.nan, 2.0, -np.inf]))
    assert found == pytest.approx([3 / 5, 2 / 3, 1])
    assert tail.shares(np.array([np.nan]), np.array([True])) == pytest.approx([2 / 4])


def test_a_group_is_joined_by_fishers_sum_and_groups_by_the_smallest_weighted_share():
    shares = [np.array([0.5, 0.2]), np.array([0.1, 1.0])]
    assert summed(shares) == pytest.approx([-np.log(0.05), -np.log(0.2)])
    found = strangeness(shares, [np.zeros(2), np.zeros(2)], [1.0, 0.25])
    assert found == pytest.approx(-np.log([min(0.5, 0.1 / 0.25), 0.2]))


def test_nodes_beyond_all_known_ones_still_have_an_order():
    tail = Tail.of(np.arange(5.0))
    scores = np.array([7.0, 9.0])
    assert (tail.shares(scores) == 1 / 6).all()
    low, high = strangeness([tail.shares(scores)], [scores], [1.0])
    assert low < high


@pytest.mark.filterwarnings("error")
def test_if_no_known_node_has_a_score_all_have_the_share_one():
    """A graph without edges, or one known node: there is nothing to compare with."""
    for count in (1, 5):
        tail = Tail.of(np.full(count, np.nan))
        assert tail.shares(np.full(count, np.nan), np.ones(count, dtype=bool)).tolist() == [1] * count
        assert tail.shares(np.array([np.nan, 3.0])).tolist() == [1, 1]


def test_a_share_may_be_too_small_if_known_nodes_have_no_score_but_not_by_more_than_their_share():
    """What `bgcl.novelty.tails` says about missing scores, by counting: a tenth of 100 nodes has none."""
    scores = np.where(np.arange(100) < 10, np.nan, np.arange(100.0))
    shares = Tail.of(scores).shares(scores, np.ones(100, dtype=bool))
    for level in (0.05, 0.09):
        assert np.mean(shares <= level) <= level
    assert np.mean(shares <= 0.1) == pytest.approx(0.9 * 0.1 + 0.1)
    again = Tail.of(-np.log(shares))  # the tail of what is joined is counted anew
    for level in (0.05, 0.1, 0.2, 0.5):
        assert np.mean(again.shares(-np.log(shares), np.ones(100, dtype=bool)) <= level) <= level
