"""The classifier that may use one part of the columns: it keeps the likeliest on held-out training nodes."""

import numpy as np
import pytest

from bgcl import BGCLError, MixtureClassifier
from bgcl.downstream.parts import BestPartClassifier

RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(3, size=120)


def parts_of(strength: tuple[float, ...], width: int = 4) -> np.ndarray:
    """Parts of equal width, in which the class shows with the given strengths, `(120, width * parts)`."""
    centers = RANDOM.normal(size=(3, width)) / np.sqrt(width)
    return np.hstack([2 * s * centers[LABELS] + RANDOM.normal(size=(120, width)) for s in strength])


def test_it_equals_the_best_of_separate_classifiers():
    X = parts_of((0.5, 1.0, 0.2))
    head = BestPartClassifier(parts=3).fit(X, LABELS)
    columns = [slice(0, 12), slice(0, 4), slice(4, 8), slice(8, 12)]
    separate = [MixtureClassifier(normalize=False).fit(X[:, c], LABELS) for c in columns]
    best = int(np.argmax([one.held_out_ for one in separate]))
    assert head.part_ == (None if best == 0 else best - 1)
    np.testing.assert_allclose(head.predict_proba(X), separate[best].predict_proba(X[:, columns[best]]), atol=1e-12)
    assert head.held_out_ == max(one.held_out_ for one in separate)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_the_only_part_with_a_signal_is_chosen_whatever_its_place(part):
    signal = parts_of(tuple(2.0 * (i == part) for i in range(3)), width=40)
    signal *= np.repeat([1 if i == part else 10 for i in range(3)], 40)  # loud noise, which harms all columns together
    head = BestPartClassifier(parts=3).fit(signal, LABELS)
    assert head.part_ == part


def test_one_part_is_a_plain_classifier():
    X = parts_of((1.0,))
    ours, plain = BestPartClassifier().fit(X, LABELS), MixtureClassifier(normalize=False).fit(X, LABELS)
    assert ours.part_ is None
    np.testing.assert_array_equal(ours.coefficients_, plain.coefficients_)


def test_several_draws_are_a_mixture_as_in_the_plain_classifier():
    draws = np.stack([parts_of((0.0, 2.0), width=40) for _ in range(3)])
    head = BestPartClassifier(parts=2).fit(draws, LABELS)
    plain = MixtureClassifier(normalize=False).fit(draws[:, :, 40:], LABELS)
    assert head.part_ == 1
    np.testing.assert_allclose(head.predict_samples(draws), plain.predict_samples(draws[:, :, 40:]), atol=1e-12)


def test_columns_that_cannot_be_cut_and_a_given_c_are_refused():
    with pytest.raises(BGCLError, match=r"4 columns, which cannot be cut into 3 equal parts"):
        BestPartClassifier(parts=3).fit(parts_of((1.0,)), LABELS)
    with pytest.raises(BGCLError, match=r'needs C="cv"'):
        BestPartClassifier(parts=2, C=1.0).fit(parts_of((1.0,)), LABELS)
    with pytest.raises(BGCLError, match=r"The 'parts' parameter of BestPartClassifier must be a whole number of 1"):
        BestPartClassifier(parts=0).fit(parts_of((1.0,)), LABELS)
