"""Prediction sets: they hold their level on exchangeable nodes, and equal a plain loop."""

import math

import numpy as np
import pytest
from scipy.stats import betabinom, chisquare
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from bgcl import BGCLError, ConformalClassifier, MixtureClassifier
from bgcl.conformal import ScoreDiffusion
from bgcl.conformal.class_scores import SCORES, class_scores
from bgcl.conformal.thresholds import thresholds
from bgcl.measures.levels import fewest, rank_of_level
from small import random_graph


class Probabilities(ClassifierMixin, BaseEstimator):
    """A fitted head whose draws are class probabilities already, `(N, C)`."""

    def __init__(self, classes):
        self.classes = classes
        self.classes_ = np.asarray(classes)

    def fit(self, X, y):
        return self

    def predict_proba(self, draws):
        return np.asarray(draws)

    def predict(self, draws):
        return self.classes_[np.asarray(draws).argmax(1)]


def some_nodes(count: int, classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Class probabilities that are wrong on purpose, and true classes."""
    random = np.random.default_rng(seed)
    logits = 2 * random.normal(size=(count, classes))
    true = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    y = (true.cumsum(1) < random.random((count, 1))).sum(1)
    sharp = np.exp(3 * logits)
    return sharp / sharp.sum(1, keepdims=True), y


def conformal(classes: int = 4, **settings) -> ConformalClassifier:
    return ConformalClassifier(Probabilities(range(classes)), **settings)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_sets_equal_a_plain_loop(score, level):
    probability, y = some_nodes(60)
    found = conformal(level=level, score=score, random_state=3).fit(probability[:40], y[:40])
    sets = found.predict_set(probability[40:])
    u = [np.random.default_rng((3, place)).random(count) for place, count in ((0, 40), (1, 20))]

    def score_of(p, c, u):
        before = sum(other for other in p if other > p[c])
        return {"lac": 1 - p[c], "aps": before, "aps-randomized": before + u * p[c]}[score]

    own = sorted(score_of(probability[i], y[i], u[0][i]) for i in range(40))
    q = own[math.ceil(41 * level) - 1]
    for i in range(20):
        for c in range(4):
            distance = score_of(probability[40 + i], c, u[1][i]) - q
            assert sets[i, c] == (distance <= 0) or abs(distance) < 1e-12


@pytest.mark.parametrize("score", ["lac", "aps-randomized"])
@pytest.mark.parametrize(("level", "calibrating"), [(0.9, 29), (0.8, 50)])
def test_coverage_follows_the_beta_binomial_law(score, level, calibrating):
    """With n calibration nodes, the number of m covered new nodes is beta-binomial with k and n + 1 - k."""
    tested, trials = 12, 4000
    probability, y = some_nodes(trials * (calibrating + tested), seed=1)
    scores = class_scores(probability, score, np.random.default_rng(0))
    own = scores[np.arange(len(y)), y].reshape(trials, -1)
    counts = np.zeros(tested + 1)
    for i in range(trials):
        part = own[i, :calibrating, None]
        q = thresholds(part, np.zeros(calibrating, dtype=int), level)[0]
        counts[(own[i, calibrating:] <= q).sum()] += 1
    k = rank_of_level(calibrating, level)
    expected = trials * betabinom(tested, k, calibrating + 1 - k).pmf(np.arange(tested + 1))
    few = np.cumsum(expected) < 10  # a chi-square test needs some of each
    merged = [np.array([part[few].sum(), *part[~few]]) for part in (counts, expected)]
    assert chisquare(*merged).pvalue > 1e-3
    mean = (counts @ np.arange(tested + 1)) / (trials * tested)
    assert mean == pytest.approx(k / (calibrating + 1), abs=4 * math.sqrt(0.25 / (trials * 4)))


def test_a_level_in_each_class_holds_in_each_class():
    """The head confuses class 0 with class 1, so one threshold for all covers it too rarely."""
    random = np.random.default_rng(0)
    y = (random.random(40_000) < 0.95).astype(int)
    p = np.clip(np.where(y == 1, 0.9, 0.6) + 0.1 * random.normal(size=len(y)), 0.01, 0.99)
    probability = np.stack([1 - p, p], 1)
    coverage = {}
    for by_class in (False, True):
        sets = conformal(2, level=0.9, by_class=by_class).fit(probability[:20_000], y[:20_000])
        covered = sets.predict_set(probability[20_000:])[np.arange(20_000), y[20_000:]]
        coverage[by_class] = [covered[y[20_000:] == c].mean() for c in range(2)]
    assert coverage[False][0] < 0.3
    assert coverage[True] == pytest.approx([0.9, 0.9], abs=0.04)


def test_without_randomness_no_set_is_empty():
    probability, y = some_nodes(300)
    sets = conformal(level=0.3, score="aps").fit(probability[:100], y[:100]).predict_set(probability[100:])
    assert sets.sum(1).min() == 1


def test_sets_grow_with_the_level():
    probability, y = some_nodes(400)
    found = [conformal(level=level).fit(probability[:200], y[:200]).predict_set(probability) for level in (0.7, 0.9)]
    assert (found[0] <= found[1]).all()
    assert found[1].sum() > found[0].sum()


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99, 2 / 3])
def test_the_fewest_nodes_are_the_fewest_whose_rank_exists(level):
    n = fewest(level)
    assert rank_of_level(n, level) <= n
    assert n == 1 or rank_of_level(n - 1, level) > n - 1
    assert n == math.ceil(round(1 / (1 - level), 9)) - 1


def test_nodes_that_are_not_exchangeable_are_warned_about_and_others_are_not(caplog):
    """A graph in which the head is much less sure: without a word, coverage would be far from the level."""
    probability, y = some_nodes(3000)
    found = conformal(level=0.9).fit(probability[:1000], y[:1000])
    found.predict_set(probability[1000:])
    found.predict_set(probability[:0])
    assert not caplog.records
    blurred = probability[1000:] ** 0.2
    sets = found.predict_set(blurred / blurred.sum(1, keepdims=True))
    assert abs(sets[np.arange(2000), y[1000:]].mean() - 0.9) > 0.05
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "not like the 1000 calibration nodes" in caplog.text
    found.predict_set(blurred[:5] / blurred[:5].sum(1, keepdims=True))  # five nodes tell nothing
    assert len(caplog.records) == 1


def test_names_of_classes_and_a_real_head():
    random = np.random.default_rng(0)
    names = np.array(["no", "yes"])[random.integers(2, size=120)]
    draws = random.normal(size=(3, 120, 2)) + 3 * (names == "yes")[:, None]
    head = MixtureClassifier(C=1.0).fit(draws[:, :40], names[:40])
    found = ConformalClassifier(head, 0.8).fit(draws[:, 40:80], names[40:80])
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.n_calibration_.sum() == 40
    sets = found.predict_set(draws[:, 80:])
    assert sets[np.arange(40), (names[80:] == "yes").astype(int)].mean() > 0.6
    np.testing.assert_array_equal(found.predict(draws), head.predict(draws))


class TestDiffusion:
    def test_diffused_scores_equal_their_definition(self):
        graph = random_graph(12, seed=2)
        dense = np.zeros((12, 12))
        dense[graph.connections.row.numpy(), graph.connections.column.numpy()] = 1
        scores = np.random.default_rng(0).random((12, 3))
        found = ScoreDiffusion([graph], [0.4])(scores)
        for v in range(12):
            near = [u for u in range(12) if dense[v, u] and u != v]
            for c in range(3):
                mean = sum(scores[u, c] for u in near) / len(near) if near else scores[v, c]
                assert found[v, c] == pytest.approx(0.6 * scores[v, c] + 0.4 * mean)

    def test_no_share_changes_nothing_and_constant_scores_stay(self):
        graph, scores = random_graph(9), np.random.default_rng(0).random((9, 2))
        np.testing.assert_array_equal(ScoreDiffusion([graph], [0.0])(scores), scores)
        np.testing.assert_allclose(ScoreDiffusion([graph, graph], [0.3, 0.7])(np.full((9, 2), 0.4)), 0.4)

    def test_calibration_nodes_are_named_among_all_nodes(self):
        graph = random_graph(40, seed=1)
        probability, y = some_nodes(40)
        nodes = np.arange(0, 40, 2)
        diffusion = ScoreDiffusion([graph], [0.5])
        found = conformal(level=0.8, diffusion=diffusion).fit(probability, y[nodes], nodes)
        scores = diffusion(1 - probability)
        q = np.sort(scores[nodes, y[nodes]])[math.ceil(21 * 0.8) - 1]
        np.testing.assert_array_equal(found.predict_set(probability), scores <= q)

    def test_randomized_scores_of_a_node_are_the_same_in_fit_and_prediction(self):
        """Otherwise calibration nodes would not be exchangeable with the others."""
        probability, y = some_nodes(40)
        diffusion = ScoreDiffusion([random_graph(40, seed=1)], [0.5])
        found = conformal(level=0.8, score="aps-randomized", diffusion=diffusion).fit(probability, y, np.arange(40))
        covered = found.predict_set(probability)[np.arange(40), y]
        assert covered.sum() == math.ceil(41 * 0.8)

    @pytest.mark.parametrize("shares", [[0.5, 0.6], [-0.1, 0.2], [0.5], [math.nan, 0.1]])
    def test_shares_that_do_not_fit_are_refused(self, shares):
        with pytest.raises(BGCLError, match="a share between 0 and 1 for each graph"):
            ScoreDiffusion([random_graph(5), random_graph(5)], shares)


PROBABILITY, Y = some_nodes(30)
WRONG = {
    "level 0": (lambda: conformal(level=0).fit(PROBABILITY, Y), "level must be a share between 0 and 1"),
    "level 90": (lambda: conformal(level=90).fit(PROBABILITY, Y), "Got 90 instead"),
    "level nan": (lambda: conformal(level=math.nan).fit(PROBABILITY, Y), "level must be a share"),
    "level text": (lambda: conformal(level="0.9").fit(PROBABILITY, Y), "Got '0.9' instead"),
    "score": (lambda: conformal(score="app").fit(PROBABILITY, Y), "Unknown score 'app'.*aps"),
    "by_class": (lambda: conformal(by_class="no").fit(PROBABILITY, Y), "'by_class' must be True or False"),
    "random_state": (lambda: conformal(random_state=-1).fit(PROBABILITY, Y), "'random_state'"),
    "head": (lambda: ConformalClassifier(3).fit(PROBABILITY, Y), "'head' must be a fitted classifier"),
    "a class as head": (lambda: ConformalClassifier(MixtureClassifier).fit(PROBABILITY, Y), "'head' must be"),
    "too few": (lambda: conformal(level=0.99).fit(PROBABILITY, Y), "needs 99 calibration nodes or more. Got 30"),
    "too few of a class": (
        lambda: conformal(level=0.7, by_class=True).fit(PROBABILITY, np.where(np.arange(30) < 2, 3, Y % 3)),
        "needs 3 calibration nodes of class 3 or more. Got 2"),
    "none of a class": (
        lambda: conformal(level=0.5, by_class=True).fit(PROBABILITY, Y % 3), "of class 3 or more. Got 0"),
    "none": (lambda: conformal().fit(PROBABILITY[:0], Y[:0]), "needs 9 calibration nodes or more. Got 0"),
    "an unknown class": (lambda: conformal().fit(PROBABILITY, Y + 1), "class 4, which the head has not seen"),
    "labels of others": (lambda: conformal().fit(PROBABILITY, Y[:20]), "30 nodes, but 20 labels"),
    "nan": (lambda: conformal().fit(np.where(np.eye(30, 4) > 0, math.nan, PROBABILITY), Y), "of node 0 hold NaN"),
    "nodes twice": (lambda: conformal().fit(PROBABILITY, Y[:2], [0, 0]), "number of each node once"),
    "nodes out of range": (lambda: conformal().fit(PROBABILITY, Y[:1], [30]), "between 0 and 29. Got 30 to 30"),
    "nodes of a diffusion": (
        lambda: conformal(diffusion=ScoreDiffusion([random_graph(5)], [0.5])).fit(PROBABILITY, Y), "say in 'nodes'"),
    "draws of some nodes": (
        lambda: conformal(diffusion=ScoreDiffusion([random_graph(5)], [0.5])).fit(PROBABILITY, Y, np.arange(30)),
        "all 5 nodes of the graph. Got draws of 30"),
    "a diffusion of another kind": (lambda: conformal(diffusion=0.5).fit(PROBABILITY, Y), "must be a ScoreDiffusion"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_one_clear_line(name):
    call, message = WRONG[name]
    with pytest.raises(BGCLError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_head_or_sets_that_are_not_fitted_are_refused():
    with pytest.raises(NotFittedError):
        ConformalClassifier(MixtureClassifier()).fit(PROBABILITY, Y)
    with pytest.raises(NotFittedError):
        conformal().predict_set(PROBABILITY)


def test_settings_are_read_and_set_as_scikit_learn_does():
    found = conformal(level=0.8)
    assert found.get_params(deep=False).keys() == {"head", "level", "score", "by_class", "diffusion", "random_state"}
    assert found.set_params(level=0.7).level == 0.7
