"""The quality of prediction sets, against plain loops."""

import math
from itertools import pairwise

import numpy as np
import pytest

from bgcl.measures.prediction_sets import SetQuality, degree_groups


def test_quality_equals_a_plain_loop():
    random = np.random.default_rng(0)
    sets, label = random.random((50, 3)) < 0.5, random.integers(3, size=50)
    found = SetQuality.of(sets, label)
    rows = [[c for c in range(3) if row[c]] for row in sets]
    assert found.nodes == 50
    assert found.coverage == pytest.approx(sum(y in row for row, y in zip(rows, label, strict=True)) / 50)
    assert found.size == pytest.approx(sum(map(len, rows)) / 50)
    single = [row[0] == y for row, y in zip(rows, label, strict=True) if len(row) == 1]
    assert found.singletons == pytest.approx(len(single) / 50)
    assert found.right_singletons == pytest.approx(sum(single) / len(single))
    assert found.empty == pytest.approx(sum(not row for row in rows) / 50)


def test_groups_are_scored_alone_and_no_singletons_are_nan():
    sets, label = np.array([[True, True], [True, True], [False, False]]), np.array([0, 1, 1])
    found = SetQuality.by_group(sets, label, np.array([4, 4, 7]))
    assert {group: (quality.nodes, quality.coverage) for group, quality in found.items()} == {4: (2, 1.0), 7: (1, 0.0)}
    assert math.isnan(found[4].right_singletons)


@pytest.mark.parametrize("degree", [[3, 3, 3], [0, 0, 0, 0, 9], list(range(30)), [1]])
def test_groups_of_degrees_are_ranges_that_do_not_overlap(degree):
    group, names = degree_groups(np.array(degree))
    assert len(names) == len(set(group.tolist())) <= 3
    spans = [sorted(d for d, g in zip(degree, group, strict=True) if g == number) for number in range(len(names))]
    assert all(one[-1] < other[0] for one, other in pairwise(spans))


def test_degrees_that_differ_make_groups_of_equal_size():
    assert np.bincount(degree_groups(np.random.default_rng(0).permutation(30))[0]).tolist() == [10, 10, 10]
