"""The order of nodes by uncertainty, and the choice of uncertain and different nodes, against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bgcl import BGCLError, rank
from bgcl.measures import acquire

MEASURES = st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9]), min_size=1, max_size=12)


def loop_acquire(uncertainty, embeddings, count: int) -> list[int]:
    """The greatest product of uncertainty and distance from the nearest chosen node, one at a time."""

    def distance(i: int, j: int) -> float:
        x, y = embeddings[i], embeddings[j]
        return 1 - float(x @ y) / math.sqrt((x @ x) * (y @ y))

    chosen = [int(np.argmax(uncertainty))]
    while len(chosen) < count:
        left = [i for i in range(len(uncertainty)) if i not in chosen]
        chosen.append(max(left, key=lambda i: uncertainty[i] * min(distance(i, j) for j in chosen)))
    return chosen


class TestRank:
    @settings(max_examples=50, deadline=None)
    @given(MEASURES)
    def test_the_most_uncertain_comes_first_and_ties_are_ordered_by_number(self, measure):
        expected = sorted(range(len(measure)), key=lambda i: (-measure[i], i))
        assert list(rank(np.array(measure))) == expected

    def test_only_given_nodes_are_considered(self):
        assert list(rank(np.array([0.9, 0.1, 0.5, 0.7]), np.array([1, 2, 3]))) == [3, 2, 1]

    def test_a_mask_selects_the_same_nodes_as_their_numbers(self):
        uncertainty, embeddings = random_case(0, positive=True)
        numbers = np.array([3, 5, 8, 13])
        mask = np.isin(np.arange(15), numbers)
        np.testing.assert_array_equal(rank(uncertainty, mask), rank(uncertainty, numbers))
        found = (acquire(uncertainty, embeddings, 3, among=among) for among in (mask, numbers))
        np.testing.assert_array_equal(*found)

    def test_ties_keep_the_given_order(self):
        assert list(rank(np.ones(5), np.array([1, 3, 4]))) == [1, 3, 4]


def random_case(seed: int, positive: bool) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    embeddings = random.normal(size=(15, 3))
    uncertainty = random.random(15)
    uncertainty[random.integers(15)] = 0
    return uncertainty, np.abs(embeddings) if positive else embeddings


class TestAcquire:
    @pytest.mark.parametrize("seed", range(8))
    def test_equals_the_loop_for_embeddings_without_negative_cosines(self, seed):
        """Such as after a ReLU."""
        uncertainty, embeddings = random_case(seed, positive=True)
        assert list(acquire(uncertainty, embeddings, 8)) == loop_acquire(uncertainty, embeddings, 8)

    @pytest.mark.parametrize("seed", range(8))
    def test_equals_the_loop_for_any_embeddings(self, seed):
        """Such as after a PReLU. The distance `1 - cosine` goes up to 2."""
        uncertainty, embeddings = random_case(seed, positive=False)
        assert list(acquire(uncertainty, embeddings, 8)) == loop_acquire(uncertainty, embeddings, 8)

    @pytest.mark.parametrize("seed", range(4))
    def test_uncertainty_is_not_shifted_to_start_at_zero(self, seed):
        """The score multiplies by the uncertainty, not by its difference from the smallest value."""
        uncertainty, embeddings = random_case(seed, positive=True)
        assert list(acquire(uncertainty + 1, embeddings, 8)) == loop_acquire(uncertainty + 1, embeddings, 8)

    @pytest.mark.parametrize("seed", range(5))
    def test_the_first_is_the_most_uncertain(self, seed):
        uncertainty, embeddings = random_case(seed, positive=False)
        assert acquire(uncertainty, embeddings, 3)[0] == rank(uncertainty)[0]

    def test_of_two_nodes_with_the_same_direction_one_is_chosen_last(self):
        embeddings = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        chosen = acquire(np.array([1.0, 0.99, 0.2, 0.1]), embeddings, 4)
        assert chosen[0] == 0
        assert chosen[-1] == 1

    def test_of_two_embeddings_of_zeros_one_is_not_chosen_while_others_remain(self):
        embeddings = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        chosen = acquire(np.array([1.0, 0.99, 0.2, 0.1]), embeddings, 3)
        assert set(chosen) == {0, 2, 3}

    def test_no_node_is_chosen_twice_even_if_all_are_the_same(self):
        assert sorted(acquire(np.ones(6), np.ones((6, 2)), 6)) == list(range(6))

    def test_only_given_nodes_are_considered(self):
        uncertainty, embeddings = random_case(0, positive=True)
        among = np.array([3, 5, 8, 13])
        found = acquire(uncertainty, embeddings, 3, among=among)
        inside = among[acquire(uncertainty[among], embeddings[among], 3)]
        np.testing.assert_array_equal(found, inside)

    @pytest.mark.parametrize("count", [0, -1, 16])
    def test_a_count_out_of_range_is_refused(self, count):
        with pytest.raises(BGCLError, match=f"between 1 and 15. Got {count} instead"):
            acquire(*random_case(0, positive=True), count)

    def test_a_count_above_the_number_of_given_nodes_is_refused(self):
        with pytest.raises(BGCLError, match=r"between 1 and 2. Got 3 instead"):
            acquire(*random_case(0, positive=True), 3, among=np.array([1, 2]))

    def test_another_number_of_embeddings_is_refused(self):
        with pytest.raises(BGCLError, match="4 embeddings, but 5 measures"):
            acquire(np.ones(5), np.ones((4, 2)), 1)
