"""The measures of uncertainty against loops over their definitions, at their extremes, and as streams."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bgcl import BGCLError, uncertainty
from bgcl.measures.uncertainty import MEASURES, RECOMMENDED, Accumulator, entropy


def random_probabilities(samples: int = 6, nodes: int = 9, classes: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.4), size=(samples, nodes))


@st.composite
def probabilities(draw) -> np.ndarray:
    """Draws of probabilities, some of them exactly 0 or 1."""
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(2, 4)))
    weights = draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 1e-9, 0.1, 0.5, 1.0, 3.0])))
    weights[..., 0] += weights.sum(-1) == 0
    return weights / weights.sum(-1, keepdims=True)


def loop_entropy(p) -> float:
    return -sum(x * math.log(x) for x in p if x > 0)


def loop_measures(samples: np.ndarray, node: int) -> dict[str, float]:
    draws = [list(map(float, draw[node])) for draw in samples]
    mean = [sum(values) / len(draws) for values in zip(*draws, strict=True)]
    votes = [draw.index(max(draw)) for draw in draws]
    expected = sum(map(loop_entropy, draws)) / len(draws)
    greatest, second = sorted(mean, reverse=True)[:2]
    return {
        "predictive_entropy": loop_entropy(mean),
        "expected_entropy": expected,
        "mutual_information": loop_entropy(mean) - expected,
        "variation_ratio": 1 - max(votes.count(c) for c in votes) / len(votes),
        "margin": 1 - (greatest - second),
        "least_confidence": 1 - greatest,
    }


def test_every_measure_equals_its_definition():
    samples = random_probabilities()
    found = uncertainty(samples)
    np.testing.assert_allclose(found.probability, samples.mean(0))
    for node in range(9):
        expected = loop_measures(samples, node)
        for name, measure in found.measures().items():
            assert measure[node] == pytest.approx(expected[name], abs=1e-12), name


def test_every_measure_has_a_name_and_the_recommended_one_is_among_them():
    assert tuple(uncertainty(random_probabilities()).measures()) == MEASURES
    assert RECOMMENDED in MEASURES


@settings(max_examples=80, deadline=None)
@given(probabilities())
def test_mutual_information_is_never_negative_nor_more_than_the_entropy(samples):
    found = uncertainty(samples)
    assert (found.mutual_information >= 0).all()
    assert (found.mutual_information <= found.predictive_entropy + 1e-12).all()
    assert (found.predictive_entropy <= math.log(samples.shape[2]) + 1e-12).all()
    for measure in found.measures().values():
        assert np.isfinite(measure).all()


@settings(max_examples=30, deadline=None)
@given(probabilities())
def test_a_stream_equals_all_at_once_and_the_order_does_not_matter(samples):
    found = uncertainty(samples)
    for other in (uncertainty(iter(samples)), uncertainty(draw for draw in samples), uncertainty(samples[::-1])):
        np.testing.assert_allclose(other.probability, found.probability, atol=1e-14)
        for name, measure in found.measures().items():
            np.testing.assert_allclose(getattr(other, name), measure, atol=1e-12, err_msg=name)


@settings(max_examples=30, deadline=None)
@given(probabilities(), st.integers(1, 6))
def test_draws_that_agree_have_no_mutual_information_and_no_variation(samples, count):
    found = uncertainty(np.repeat(samples[:1], count, axis=0))
    np.testing.assert_allclose(found.mutual_information, 0, atol=1e-12)
    np.testing.assert_array_equal(found.variation_ratio, 0)
    np.testing.assert_allclose(found.predictive_entropy, entropy(samples[0]), atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_draws_that_are_certain_of_different_classes_disagree_the_most(classes):
    found = uncertainty(np.eye(classes)[:, None, :])
    assert found.mutual_information[0] == pytest.approx(math.log(classes))
    assert found.predictive_entropy[0] == pytest.approx(math.log(classes))
    assert found.expected_entropy[0] == 0
    assert found.variation_ratio[0] == pytest.approx(1 - 1 / classes)
    assert found.margin[0] == pytest.approx(1)
    assert found.least_confidence[0] == pytest.approx(1 - 1 / classes)


def test_a_certain_node_has_all_measures_zero():
    for name, measure in uncertainty(np.array([[[0.0, 1.0]]] * 3)).measures().items():
        assert measure[0] == 0, name


def test_entropy_is_in_nats():
    assert entropy(np.array([0.5, 0.5])) == pytest.approx(0.6931471805599453)
    assert entropy(np.array([1.0, 0.0])) == 0


def test_rounding_below_zero_does_not_make_nan():
    """The check accepts such values, so the measures must handle them."""
    found = uncertainty(np.array([[[1 + 1e-7, -1e-7]]]))
    for name, measure in found.measures().items():
        assert np.isfinite(measure).all(), name
        assert measure[0] == pytest.approx(0, abs=1e-5), name


def test_selecting_nodes_equals_measuring_their_draws():
    samples, nodes = random_probabilities(), np.array([4, 1])
    some, expected = uncertainty(samples).of(nodes), uncertainty(samples[:, nodes])
    np.testing.assert_allclose(some.probability, expected.probability)
    for name, measure in expected.measures().items():
        np.testing.assert_allclose(getattr(some, name), measure, atol=1e-14)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([[[0.5, 0.4]]], "must sum to 1. For node 0 they sum to 0.9"),
        ([[[0.5, 0.5], [0.7, 0.7]]], "For node 1 they sum to 1.4"),
        ([[[np.nan, 1.0]]], "NaN or infinity"),
        ([[[np.inf, 0.0]]], "NaN or infinity"),
        ([[[1.1, -0.1]]], "must not be negative. The smallest is -0.1"),
        ([[[1.0]]], "2 classes or more"),
        ([[0.5, 0.5]], "2 classes or more"),
        ([[[0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]], r"differ in shape: \(2, 2\) after \(1, 2\)"),
        ([[[0.5, 0.5]], [[0.5, 0.5, 0.0]]], "differ in shape"),
        ([], "There are no draws"),
        (np.zeros((0, 3, 2)), "There are no draws"),
    ],
)
def test_bad_probabilities_are_refused(samples, message):
    with pytest.raises(BGCLError, match=message):
        uncertainty(samples)


def test_an_accumulator_without_draws_has_no_result():
    with pytest.raises(BGCLError, match="no draws"):
        Accumulator(2, 3).result()
