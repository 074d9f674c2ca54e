"""The pool of heads: its weights against a loop and a grid, and the pooled head as the sum of its heads."""

import math
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from bgcl import BGCLError, MixtureClassifier
from bgcl.downstream.head_stack import HeadStack
from bgcl.downstream.pooling import (
    BIAS_PRIOR,
    GREATEST,
    LEAST,
    PRIOR,
    Stretch,
    cross_pooled,
    part_slices,
    part_widths,
    pool_weights,
)
from synthetic_draws import numerical_gradient

RANDOM = np.random.default_rng(0)
LABELS = np.arange(60) % 3


def loop_loss(weights: np.ndarray, logits: np.ndarray, y: np.ndarray) -> float:
    """`- sum_n log sum_k softmax(sum_p w_p l_p)_y`, number by number."""
    heads, samples, nodes, classes = logits.shape
    loss = 0.0
    for n in range(nodes):
        likelihood = 0.0
        for k in range(samples):
            exps = [math.exp(sum(weights[p] * logits[p, k, n, c] for p in range(heads))) for c in range(classes)]
            likelihood += exps[y[n]] / sum(exps)
        loss -= math.log(likelihood)
    return loss


def loop_stretch(logits: np.ndarray, stretch: Stretch) -> np.ndarray:
    """`factor r^power l + b` with r the root mean square of the centered logits, node by node."""
    biases = stretch.biases if len(stretch.biases) else np.zeros(logits.shape[2])
    found = np.empty_like(logits)
    for place in np.ndindex(logits.shape[:2]):
        own = logits[place] - sum(logits[place]) / len(logits[place])
        r = math.sqrt(sum(value**2 for value in own) / len(own))
        found[place] = [
            stretch.factor * r**stretch.power * value + bias for value, bias in zip(own, biases, strict=True)
        ]
    return found


def random_logits(strengths: tuple[float, ...], samples: int = 2, nodes: int = 30, seed: int = 0):
    """Logits of heads that know the class with the given strengths, and the classes."""
    random = np.random.default_rng(seed)
    y = np.arange(nodes) % 3
    signal = np.eye(3)[y]
    return np.stack([s * signal + random.normal(size=(samples, nodes, 3)) for s in strengths]), y


def parts_of(strengths: tuple[float, ...], *, samples: int = 3, width: int = 4, seed: int = 0) -> np.ndarray:
    """Draws of parts of equal width in which the class shows with the given strengths, `(samples, 60, d)`."""
    random = np.random.default_rng(seed)
    centers = random.normal(size=(3, width))
    noise = random.normal(size=(len(strengths), 60, width))
    parts = [s * centers[LABELS] + noise[i] for i, s in enumerate(strengths)]
    return np.concatenate(parts, axis=1) + 0.3 * random.normal(size=(samples, 60, width * len(strengths)))


# The weights


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("samples", [1, 3])
def test_no_weights_on_a_grid_are_better(samples, seed):
    logits, y = random_logits((1.5, 0.7), samples, seed=seed)
    found = pool_weights(logits, y)
    best = min(
        loop_loss(np.array([first, second]), logits, y)
        for first in np.exp(np.linspace(-4, 2, 25))
        for second in np.exp(np.linspace(-4, 2, 25))
    )
    assert loop_loss(found, logits, y) <= best + 1e-3


@pytest.mark.parametrize("strengths", [(1.0, 1.0), (1.0, 0.4, 0.7), (0.5, 0.5, 0.5, 0.5)])
def test_the_slope_at_the_weights_is_zero(strengths):
    logits, y = random_logits(strengths, nodes=60)
    found = pool_weights(logits, y)
    assert ((np.log(found) > LEAST) & (np.log(found) < GREATEST)).all()
    slope = numerical_gradient(lambda logs: loop_loss(np.exp(logs), logits, y), np.log(found))
    np.testing.assert_allclose(slope, 0, atol=0.05)  # of a loss of about 50


def test_a_head_that_knows_nothing_gets_a_small_weight():
    logits, y = random_logits((2.0, 0.0, 0.0), nodes=300)
    found = pool_weights(logits, y)
    assert found[0] > 0.5
    assert found[1:].max() < 0.1


def test_a_head_that_is_always_wrong_gets_the_least_weight():
    logits, y = random_logits((2.0, -3.0), nodes=90)
    assert math.log(pool_weights(logits, y)[1]) == pytest.approx(LEAST, abs=0.5)


def test_heads_that_are_never_wrong_get_a_bounded_weight():
    logits, y = random_logits((50.0, 40.0))
    found = pool_weights(logits, y)
    assert np.isfinite(found).all()
    assert (np.log(found) <= GREATEST + 1e-9).all()


def test_underconfident_logits_are_sharpened():
    logits, y = random_logits((2.0,), nodes=200)
    (first,), (second,) = pool_weights(logits, y), pool_weights(logits / 4, y)
    assert second == pytest.approx(4 * first, rel=0.02)


def test_equal_heads_share_the_weight_of_one():
    logits, y = random_logits((1.5,), nodes=90)
    (alone,) = pool_weights(logits, y)
    together = pool_weights(np.concatenate([logits, logits, logits]), y)
    assert together.sum() == pytest.approx(alone, rel=1e-2)
    np.testing.assert_allclose(together, together.mean(), rtol=1e-2)


def test_the_order_of_heads_and_draws_does_not_matter():
    logits, y = random_logits((2.0, 0.5, 1.0), 4, nodes=60)
    found = pool_weights(logits, y)
    np.testing.assert_allclose(pool_weights(logits[[2, 0, 1]], y), found[[2, 0, 1]], rtol=2e-2)
    np.testing.assert_allclose(pool_weights(logits[:, ::-1], y), found, rtol=2e-2)


def test_float32_changes_little():
    logits, y = random_logits((2.0, 0.5, 1.0), nodes=60)
    np.testing.assert_allclose(pool_weights(logits.astype(np.float32), y), pool_weights(logits, y), rtol=2e-2)


# The confidence


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("samples", [1, 3])
def test_no_stretch_on_a_grid_is_likelier(samples, seed):
    logits, y = random_logits((1.5,), samples, nodes=90, seed=seed)
    logits, ones = 3 * logits[0], np.ones(1)

    def loss(stretch: Stretch) -> float:
        prior = PRIOR * stretch.power**2 + BIAS_PRIOR * sum(bias**2 for bias in stretch.biases)
        return loop_loss(ones, loop_stretch(logits, stretch)[None], y) + prior

    found = Stretch.fit(logits, y)
    best = min(
        loss(Stretch(factor, power, found.biases))
        for factor in np.exp(np.linspace(-2.5, 1, 15))
        for power in np.linspace(-0.8, 1.2, 11)
    )
    assert loss(found) <= best + 1e-3
    for bias in np.linspace(-0.6, 0.6, 7):
        for other in np.linspace(-0.6, 0.6, 7):
            assert loss(found) <= loss(Stretch(found.factor, found.power, np.array([bias, other, 0.0]))) + 1e-3


def test_a_stretch_is_found_again():
    """Labels that are drawn from stretched logits tell the stretch."""
    random = np.random.default_rng(3)
    logits, true = 2 * random.normal(size=(1, 20_000, 4)), Stretch(0.6, 0.5, np.array([0.5, 0.0, -0.2, -0.3]))
    stretched = loop_stretch(logits, true)[0]
    p = np.exp(stretched) / np.exp(stretched).sum(1, keepdims=True)
    y = (random.random((20_000, 1)) > p.cumsum(1)).sum(1).clip(0, 3)
    found = Stretch.fit(logits, y)
    assert (found.factor, found.power) == pytest.approx((0.6, 0.5), abs=0.06)
    np.testing.assert_allclose(found.biases, true.biases, atol=0.06)


def test_frequencies_that_two_heads_count_are_counted_once():
    """Heads that know nothing but the frequencies of the classes: their sum has them squared."""
    y = np.repeat([0, 1, 2], [600, 300, 100])
    logs = np.log([0.6, 0.3, 0.1])
    found = Stretch.fit(np.broadcast_to(2 * logs, (1, 1000, 3)), y)(2 * logs[None, None])
    p = np.exp(found) / np.exp(found).sum()
    np.testing.assert_allclose(p[0, 0], [0.6, 0.3, 0.1], atol=0.01)


def test_a_stretch_takes_any_axis_and_without_biases_keeps_the_order_of_the_classes():
    logits, _ = random_logits((1.0,), 3)
    for stretch in (Stretch(1.7, 0.4), Stretch(1.7, 0.4, np.array([0.3, -0.1, -0.2]))):
        expected = loop_stretch(logits[0], stretch)
        np.testing.assert_allclose(stretch(logits[0].copy()), expected)
        np.testing.assert_allclose(stretch(np.moveaxis(logits[0], 2, 0).copy(), axis=0).transpose(1, 2, 0), expected)
    np.testing.assert_array_equal(loop_stretch(logits[0], Stretch(1.7, 0.4)).argsort(2), logits[0].argsort(2))


def test_equal_logits_stay_equal_and_finite():
    for power in (-0.9, 0.0, 3.0):
        assert np.abs(Stretch(2.0, power)(np.full((1, 4, 3), 5.0))).max() == 0
    assert Stretch.fit(np.full((1, 4, 3), 5.0), np.array([0, 1, 2, 0])).power == pytest.approx(0, abs=1e-6)


def test_the_weights_of_a_node_are_chosen_by_nodes_of_other_folds():
    logits, y = random_logits((1.5, 0.5), 2, nodes=60)
    folds = list(StratifiedKFold(3).split(y, y))
    found = cross_pooled(logits, y, folds)
    for others, held_out in folds:
        weights = pool_weights(logits[:, :, others], y[others])
        expected = sum(weight * head[:, held_out] for weight, head in zip(weights, logits, strict=True))
        np.testing.assert_allclose(found[:, held_out], expected)
    changed = y.copy()
    changed[folds[0][1]] = (changed[folds[0][1]] + 1) % 3  # labels of a fold have no effect on its own logits
    np.testing.assert_array_equal(cross_pooled(logits, changed, folds)[:, folds[0][1]], found[:, folds[0][1]])


# Widths


def test_parts_are_widths_a_number_of_equal_parts_or_none():
    assert part_widths(None, 7) == [7]
    assert part_widths(3, 12) == [4, 4, 4]
    assert part_widths((2, 5), 7) == [2, 5]
    assert part_slices([2, 5, 1]) == [slice(0, 2), slice(2, 7), slice(7, 8), slice(0, 8)]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (5, "The embeddings have 12 columns, which cannot be cut into 5 equal parts."),
        ((4, 4), "The parts have 8 columns together, but the embeddings have 12."),
        ((4, 9), "The parts have 13 columns together, but the embeddings have 12."),
        (0, "The 'parts' parameter of MixtureClassifier must be"),
        ((12, 0), "The 'parts' parameter of MixtureClassifier must be"),
        ((2.5, 9.5), "The 'parts' parameter of MixtureClassifier must be"),
        ("two", "The 'parts' parameter of MixtureClassifier must be"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, message):
    with pytest.raises(BGCLError, match=re.escape(message)):
        MixtureClassifier(parts=parts).fit(parts_of((1.0, 1.0, 1.0)), LABELS)


def test_a_given_c_is_refused_with_several_parts():
    with pytest.raises(BGCLError, match=r'held-out training nodes, which needs C="cv"'):
        MixtureClassifier(1.0, parts=3).fit(parts_of((1.0, 1.0, 1.0)), LABELS)


# The pooled head


def separate_heads(draws: np.ndarray, slices: list[slice]) -> list[MixtureClassifier]:
    """A head for each part and one for all columns, without their sharpness."""
    heads = []
    for columns in slices:
        head = MixtureClassifier(normalize=False)
        head.path_draws, head.wide = 1, 0
        head.fit(draws[:, :, columns], LABELS)
        head.coefficients_ = head.coefficients_ / head.sharpness_
        heads.append(head)
    return heads


def logits_of(head: MixtureClassifier, draws: np.ndarray) -> np.ndarray:
    W = head.coefficients_[:-3].reshape(-1, 3)
    return draws @ W + head.coefficients_[-3:]


@pytest.mark.parametrize("parts", [3, (4, 4, 4), (2, 10)])
def test_the_logits_of_the_pool_are_the_weighted_sum_of_the_heads(parts):
    draws = parts_of((1.0, 0.5, 0.2))
    pooled = MixtureClassifier(normalize=False, parts=parts, kernel=False).fit(draws, LABELS)
    slices = part_slices(part_widths(parts, 12))
    heads = separate_heads(draws, slices)
    assert len(pooled.weights_) == len(heads)
    expected = sum(
        weight * logits_of(head, draws[:, :, columns])
        for weight, head, columns in zip(pooled.weights_, heads, slices, strict=True)
    )
    np.testing.assert_allclose(logits_of(pooled, draws), expected, atol=2e-3)  # heads of a pool are fitted in float32
    stretched = loop_stretch(expected, pooled.stretch_)
    exps = np.exp(stretched - stretched.max(2, keepdims=True))
    np.testing.assert_allclose(pooled.predict_samples(draws), exps / exps.sum(2, keepdims=True), atol=1e-3)
    assert pooled.sharpness_ == 1


def test_the_weights_maximize_the_likelihood_of_held_out_nodes():
    """A loop fits each head to each fold again, with the C that it chose."""
    draws = parts_of((1.0, 0.3))
    pooled = MixtureClassifier(normalize=False, parts=2, kernel=False).fit(draws, LABELS)
    slices = part_slices([4, 4])
    held_out = np.zeros((3, 3, 60, 3))
    for p, (columns, head) in enumerate(zip(slices, separate_heads(draws, slices), strict=True)):
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(LABELS, LABELS):
            fold = MixtureClassifier(head.C_, normalize=False).fit(draws[:1, train][:, :, columns], LABELS[train])
            held_out[p, :, test] = np.moveaxis(logits_of(fold, draws[:, test][:, :, columns]), 0, 1)
    best = loop_loss(pool_weights(held_out, LABELS), held_out, LABELS)
    assert loop_loss(pooled.weights_, held_out, LABELS) <= best + 0.2  # the folds are fitted with low precision


def test_a_part_of_noise_gets_a_smaller_weight_than_a_part_with_the_class():
    pooled = MixtureClassifier(normalize=False, parts=3).fit(parts_of((0.0, 1.5, 0.0), width=20), LABELS)
    assert pooled.weights_[1] > 3 * max(pooled.weights_[0], pooled.weights_[2])


def test_the_pool_is_better_than_one_head_if_noise_is_loud():
    train, test = parts_of((1.0, 0.0), width=20, seed=1), parts_of((1.0, 0.0), width=20, seed=1)
    fresh = np.random.default_rng(5).normal(size=test.shape) * 0.3
    for draws in (train, test):
        draws[:, :, 20:] *= 10
    test = test + fresh
    heads = [MixtureClassifier(normalize=False, parts=parts).fit(train, LABELS) for parts in (None, 2)]
    assert heads[1].score(test, LABELS) >= heads[0].score(test, LABELS)


def test_kernels_are_in_the_pool_if_there_are_several_parts_or_if_they_are_asked_for():
    draws = parts_of((1.0, 0.5, 0.2))
    for given, heads in (({"parts": 3}, 6), ({"parts": 3, "kernel": False}, 4), ({"kernel": True}, 3)):
        head = MixtureClassifier(**given).fit(draws, LABELS)
        assert len(head.weights_) == heads
        assert hasattr(head, "kernel_") == (given.get("kernel") is not False)


def test_kernels_see_what_no_linear_head_can():
    """Two classes, one around the other."""
    random = np.random.default_rng(0)
    angle, inside = random.uniform(0, 2 * np.pi, 400), np.arange(400) % 2
    ring = (1 - 0.7 * inside)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1) + 0.05 * random.normal(
        size=(400, 2)
    )
    train, test = np.arange(200), np.arange(200, 400)
    plain, ours = (MixtureClassifier(kernel=kernel, normalize=False).fit(ring[train], inside[train])
                   for kernel in (False, True))  # fmt: skip
    assert plain.score(ring[test], inside[test]) < 0.7
    assert ours.score(ring[test], inside[test]) > 0.95


def test_a_stack_of_pooled_heads_predicts_what_each_head_predicts():
    draws = parts_of((1.0, 0.5, 0.2))
    heads = [MixtureClassifier(**given).fit(draws, LABELS) for given in ({"parts": 3}, {"parts": (4, 8)}, {})]
    nodes = [np.arange(len(LABELS)), np.array([3, 1]), np.arange(5, len(LABELS))]  # all, few, most
    found = HeadStack(heads).predict_proba(draws, nodes)  # (C, n_1 + n_2 + n_3)
    parts = np.split(found, np.cumsum([len(own) for own in nodes])[:-1], axis=1)
    for head, own, part in zip(heads, nodes, parts, strict=True):
        np.testing.assert_allclose(part.T, head.predict_proba(draws[:, own]), atol=1e-5)


@pytest.mark.parametrize("parts", [None, 1, (12,)])
def test_a_single_part_is_the_plain_head(parts):
    draws = parts_of((1.0, 0.5, 0.2))
    plain, ours = (MixtureClassifier(parts=each).fit(draws, LABELS) for each in (None, parts))
    np.testing.assert_array_equal(plain.coefficients_, ours.coefficients_)
    assert plain.sharpness_ == ours.sharpness_
    assert not hasattr(ours, "weights_")


def test_a_clone_keeps_the_parts_and_the_fit_is_deterministic():
    draws = parts_of((1.0, 0.5, 0.2))
    head = MixtureClassifier(parts=(4, 8)).fit(draws, LABELS)
    again = clone(head).fit(draws, LABELS)
    assert again.get_params() == head.get_params()
    np.testing.assert_array_equal(again.coefficients_, head.coefficients_)


def test_a_pooled_head_that_is_fitted_again_without_parts_is_a_plain_one():
    draws = parts_of((1.0, 0.5, 0.2), samples=6)
    head = MixtureClassifier(parts=3).fit(draws, LABELS)
    head.set_params(parts=None).fit(draws, LABELS)
    assert not {"weights_", "stretch_", "kernel_"} & set(vars(head))
    np.testing.assert_array_equal(head.coefficients_, MixtureClassifier().fit(draws, LABELS).coefficients_)


def test_fit_adds_only_attributes_that_end_in_an_underscore():
    head = MixtureClassifier(parts=3)
    before = set(vars(head))
    head.fit(parts_of((1.0, 0.5, 0.2)), LABELS)
    added = {name for name in set(vars(head)) - before if not name.startswith("_")}
    assert all(name.endswith("_") for name in added), added


def test_labels_may_be_strings_and_draws_float32():
    draws = parts_of((1.0, 0.5, 0.2))
    named = MixtureClassifier(parts=3).fit(draws.astype(np.float32), np.array(["b", "a", "c"])[LABELS])
    numbered = MixtureClassifier(parts=3).fit(draws, np.array([1, 0, 2])[LABELS])
    assert list(named.classes_) == ["a", "b", "c"]
    np.testing.assert_allclose(named.predict_proba(draws), numbered.predict_proba(draws), atol=1e-2)


def test_rows_of_zeros_in_a_part_are_accepted():
    draws = parts_of((1.0, 0.5, 0.2))
    draws[:, 5, 4:8] = 0
    draws[:, :, 8:] = 0  # a part in which no node differs
    head = MixtureClassifier(parts=3).fit(draws, LABELS)
    assert np.isfinite(head.predict_proba(draws)).all()
    assert head.score(draws, LABELS) > 0.5


def test_a_part_that_is_constant_among_training_nodes_is_not_amplified():
    draws = parts_of((2.0,))[0].astype(np.float32)
    constant = np.full((60, 7), 0.3, dtype=np.float32)
    head = MixtureClassifier(normalize=False, parts=(4, 7), kernel=False).fit(np.hstack([draws, constant]), LABELS)
    alone = MixtureClassifier(normalize=False).fit(draws, LABELS)
    other = head.score(np.hstack([draws, constant + 0.2]), LABELS)
    assert other >= alone.score(draws, LABELS) - 0.05
