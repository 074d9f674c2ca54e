"""Novelty: uniform on exchangeable nodes, small for planted ones, and blind to the labels of what it scores."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import bgcl
from bgcl import BGCLError, Novelty
from bgcl.downstream.node_predictions import NodePredictions
from bgcl.measures.uncertainty import uncertainty
from bgcl.novelty.measured import LABELED, MEASURED
from trained import small_model

DATA = bgcl.example_graph()
MODEL = small_model(DATA, "default")
NODES = DATA.num_nodes


def predictions(labels: np.ndarray, seed: int = 0) -> NodePredictions:
    """Random predictions of 3 classes."""
    probability = np.random.default_rng(seed).dirichlet(np.ones(3), (2, NODES))
    return NodePredictions(labels, np.arange(3), uncertainty(probability), np.zeros(NODES))


def test_novelty_is_uniform_on_exchangeable_nodes():
    """Known nodes are drawn at random, so a share of about a of the other nodes has a novelty of a or less."""
    random, found = np.random.default_rng(0), []
    for _ in range(30):
        scores = {"mine": random.normal(size=NODES), "other": random.normal(size=NODES)}
        known = random.permutation(NODES)[:99]
        novelty = Novelty(MODEL, [["mine", "other"], ["mine"]]).fit(DATA, scores, known=known)
        found.append(np.delete(novelty.score(DATA, scores).novelty, known))
    for level in (0.05, 0.1, 0.5, 0.9):
        assert np.mean(np.concatenate(found) <= level) == pytest.approx(level, abs=0.02)


def test_one_score_in_one_group_is_the_exact_share():
    scores = {"mine": np.random.default_rng(0).normal(size=NODES)}
    known = np.arange(50)
    found = Novelty(MODEL, [["mine"]]).fit(DATA, scores, known=known).score(DATA, scores)
    for v in range(50, NODES):
        assert found.novelty[v] == pytest.approx((1 + (scores["mine"][:50] >= scores["mine"][v]).sum()) / 51)


def test_nodes_of_the_known_graph_have_each_share_once():
    assert np.sort(MODEL.novelty(DATA)) == pytest.approx(np.arange(1, NODES + 1) / NODES, abs=2 / NODES)


def test_planted_nodes_are_strange_and_the_reason_is_told():
    changed = copy(DATA)
    changed.x = DATA.x.clone()
    generator = torch.Generator().manual_seed(0)
    changed.x[:5] = (torch.rand(5, DATA.x.shape[1], generator=generator) < 0.9).float() * 7
    found = Novelty(MODEL).fit(DATA).score(changed)
    assert (found.novelty[:5] <= 3 / NODES).all()
    assert set(found.reason[:5]) <= {"residual", "spread", "count"}
    assert MODEL.novelty(changed, known=DATA).tolist() == found.novelty.tolist()


def test_nodes_with_random_edges_are_strange():
    changed = copy(DATA)
    changed.edge_index = torch.randint(NODES, (2, DATA.num_edges), generator=torch.Generator().manual_seed(0))
    novelty = Novelty(MODEL).fit(DATA)
    assert np.median(novelty.score(changed).novelty) < 0.1
    assert np.median(novelty.score(DATA).novelty) == pytest.approx(0.5, abs=0.01)


def test_new_nodes_are_not_strange_because_they_have_no_position():
    """A graph of which the model knows no node: its edges are as usual, and only their ends are new."""
    one, two = copy(DATA), copy(DATA)
    one.ids, two.ids = [f"a{i}" for i in range(NODES)], [f"b{i}" for i in range(NODES)]
    two.x = DATA.x + 1
    model = small_model(one, "default")
    groups = [["edges by position propagated"]]
    assert (Novelty(model, groups).fit(one).score(two).novelty > 0.9).all()


def test_with_predictions_nodes_that_the_head_does_not_know_are_strange():
    labels = np.where(np.arange(NODES) % 2, -1, DATA.y.numpy())
    scores = predictions(labels)
    scores.uncertainty.predictive_entropy[:] = 0.1 * np.random.default_rng(0).random(NODES)
    scores.uncertainty.predictive_entropy[1] = 9.0
    found = Novelty(MODEL, [["predictive_entropy"]]).fit(DATA, scores).score(DATA, scores)
    assert found.novelty.argmin() == 1


@pytest.mark.parametrize("score", [score for score in MEASURED if score != LABELED])
def test_every_score_needs_no_labels(score):
    without = copy(DATA)
    without.y = None
    found = Novelty(MODEL, [[score]], samples=4).fit(without).score(without)
    assert np.isfinite(found.scores[score]).all()
    assert found.novelty.min() == pytest.approx(1 / NODES, abs=0.1)


def test_scoring_does_not_look_at_labels():
    """No rule can learn from the labels of unknown nodes: other labels of the scored graph change nothing."""
    labels = np.where(np.arange(NODES) < 120, DATA.y.numpy(), -1)
    given = predictions(labels)
    novelty = Novelty(MODEL).fit(DATA, given)
    changed, every = copy(DATA), predictions(np.zeros(NODES, int))
    changed.y = DATA.y.flip(0)
    assert novelty.score(changed, every).novelty.tolist() == novelty.score(DATA, given).novelty.tolist()


def test_a_model_without_parts_has_novelty_too():
    model = small_model(DATA, "paper")
    assert np.unique(model.novelty(DATA)).size > 200


def test_the_same_seed_gives_the_same_novelty():
    one, two = (Novelty(MODEL, [["nearest"], ["disagreement"]], samples=4, seed=3).fit(DATA) for _ in range(2))
    assert one.score(DATA).strangeness.tolist() == two.score(DATA).strangeness.tolist()


HALF = np.where(np.arange(NODES) < 120, 0, -1)
NAN = {"mine": np.full(NODES, np.nan)}
FITTED = Novelty(MODEL, [["mine"]]).fit(DATA, {"mine": np.ones(NODES)})
OTHER = copy(DATA)
OTHER.x = DATA.x * 2
NONE = copy(DATA)
NONE.y = None

SEEN = predictions(DATA.y.numpy())
SEEN = replace(SEEN, held_out=np.arange(NODES) != 7)

BAD = {
    "a known node whose label is known to its head": (
        lambda: Novelty(MODEL).fit(DATA, SEEN, known=[3, 7]), "predicts node 7 has seen its label"),
    "one known node for a density": (
        lambda: Novelty(MODEL, [["mixture"]], samples=4).fit(DATA, known=[3]), "needs 2 known nodes or more. Got 1"),
    "an unlabeled known node": (
        lambda: Novelty(MODEL).fit(DATA, predictions(HALF), known=[3, 200]), "Node 200 has no label"),
    "no labeled node": (lambda: Novelty(MODEL).fit(DATA, predictions(np.full(NODES, -1))), "No node is labeled"),
    "no labels at all": (lambda: Novelty(MODEL).fit(NONE, {"mine": np.ones(NODES)}), "name the known nodes"),
    "no known nodes": (lambda: Novelty(MODEL).fit(DATA, known=np.empty(0, int)), "'known' names no node"),
    "NaN scores": (lambda: Novelty(MODEL).fit(DATA, NAN), "'mine' of node 0 is NaN"),
    "NaN scores of new nodes": (lambda: FITTED.score(DATA, NAN), "'mine' of node 0 is NaN"),
    "scores of other nodes": (lambda: Novelty(MODEL).fit(DATA, {"mine": np.ones(3)}), "each of the 240 nodes"),
    "no predictions": (lambda: FITTED.score(DATA), "'fit' had the score 'mine'"),
    "predictions of another kind": (lambda: Novelty(MODEL).fit(DATA, 5), "'predicted' must be"),
    "an unknown score": (lambda: Novelty(MODEL, [["residul"]]).fit(DATA), "Did you mean residual"),
    "a group that is empty": (lambda: Novelty(MODEL, [[]]).fit(DATA), "groups of one score or more"),
    "no labeled nodes": (lambda: Novelty(MODEL, [[LABELED]]).fit(DATA), "needs labeled nodes"),
    "known twice": (lambda: Novelty(MODEL).fit(DATA, known=[1, 1]), "'known' must hold the number of each node once"),
    "known beyond": (lambda: Novelty(MODEL).fit(DATA, known=[240]), "between 0 and 239"),
    "not fitted": (lambda: Novelty(MODEL).score(DATA), "call fit"),
    "no model": (lambda: Novelty(5), "must be a fitted bgcl.BGCL"),
    "few samples": (lambda: Novelty(MODEL, samples=2), "must be 4 or more"),
    "not the training graph": (lambda: MODEL.novelty(OTHER), "Give the graph whose nodes are known"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(BGCLError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
