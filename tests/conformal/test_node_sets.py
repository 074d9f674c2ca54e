"""Sets of all nodes from held-out predictions: a plain loop, the level on hidden labels, and other graphs."""

import math

import numpy as np
import pytest
import torch

import bgcl
from bgcl import BGCLError
from bgcl.conformal import node_sets
from bgcl.downstream import NodePredictions
from bgcl.measures.uncertainty import uncertainty
from communities import communities


def predictions(probability: np.ndarray, label: np.ndarray, **others) -> NodePredictions:
    classes = np.arange(probability.shape[1])
    return NodePredictions(label, classes, uncertainty(probability[None]), np.zeros(len(label)), **others)


def some_predictions(count: int = 80, classes: int = 4, seed: int = 0, **others) -> NodePredictions:
    """Random predictions; a third of the nodes has no label."""
    random = np.random.default_rng(seed)
    label = np.where(np.arange(count) % 3 == 2, -1, random.integers(classes, size=count))
    return predictions(random.dirichlet(np.ones(classes), count), label, **others)


@pytest.mark.parametrize("by_class", [False, True])
def test_sets_equal_a_plain_loop(by_class):
    found = some_predictions()
    sets = node_sets(found, 0.8, by_class=by_class)
    p = found.uncertainty.probability
    for c in range(4):
        own = sorted(
            1 - p[v, found.label[v]] for v in range(80) if found.label[v] >= 0 and (not by_class or found.label[v] == c)
        )
        q = own[math.ceil((len(own) + 1) * 0.8) - 1]
        assert sets.sets[:, c].tolist() == [1 - p[v, c] <= q for v in range(80)]
    assert sets.n_calibration == 54


def test_nodes_whose_label_their_head_has_seen_do_not_calibrate():
    given = some_predictions()
    held_out = (given.label >= 0) & (np.arange(80) < 40)
    found = some_predictions(held_out=held_out)
    assert found.calibrates.tolist() == np.flatnonzero(held_out).tolist()
    own = 1 - found.uncertainty.probability[held_out, found.label[held_out]]
    sets = node_sets(found, 0.7)
    assert sets.n_calibration == held_out.sum()
    assert sets.thresholds[0] == np.sort(own)[math.ceil((held_out.sum() + 1) * 0.7) - 1]


def test_predictions_say_which_labels_their_heads_have_not_seen():
    """A class with one labeled node cannot be held out, and unlabeled nodes have no label to hold out."""
    data = bgcl.example_graph()
    data.y[::5] = -1
    data.y[data.y == 2] = -1
    data.y[1] = 2
    model = bgcl.BGCL(widths=(8, 4), epochs=2).fit(data, progress=False)
    found = bgcl.predict(model, data, samples=4)
    assert found.held_out.tolist() == ((data.y >= 0) & (data.y != 2)).tolist()


def test_the_level_holds_for_labels_that_nobody_saw():
    """Over splits of the labels of one graph, the mean coverage of hidden labels is the level or a little more."""
    data, random = communities(300, 3, seed=4), np.random.default_rng(0)
    data.y = torch.as_tensor(np.where(random.random(300) < 0.4, random.integers(3, size=300), data.y))
    model = bgcl.BGCL(widths=(16, 8), part_width=8, epochs=10).fit(data, progress=False)
    truth, covered, sizes = data.y.clone(), [], []
    for seed in range(12):
        hidden = np.random.default_rng((1, seed)).random(300) < 0.5  # not the numbers that made labels wrong
        data.y = truth.clone()
        data.y[hidden] = -1
        found = bgcl.predict(model, data, samples=6, seed=seed)
        sets = node_sets(found, 0.8)
        covered.append(sets.sets[hidden, truth.numpy()[hidden]].mean())
        sizes.append(sets.size.mean())
    assert 0.77 < np.mean(covered) < 0.86
    assert np.mean(sizes) < 2.9


def test_labeled_nodes_of_another_graph_calibrate_by_the_names_of_classes():
    known = some_predictions(90, seed=1, names=["a", "b", "c", "d"])
    shuffled = [2, 0, 3, 1]
    random = np.random.default_rng(2)
    new = predictions(random.dirichlet(np.ones(4), 50), np.full(50, -1), names=[known.names[c] for c in shuffled])
    for by_class in (False, True):
        own = node_sets(known, 0.8, by_class=by_class)
        found = node_sets(new, 0.8, by_class=by_class, calibration=known)
        assert found.thresholds.tolist() == own.thresholds[shuffled].tolist()
        assert found.classes.tolist() == ["c", "a", "d", "b"]


def test_sets_are_written_as_text_that_can_be_split_again():
    found = predictions(np.full((12, 3), 1 / 3), np.arange(12) % 3, names=["a|b", "c\\", "d"])
    sets = node_sets(found, 0.9)
    assert sets.columns()["set"][0] == "a\\|b|c\\\\|d"
    assert sets.columns()["set_size"].tolist() == [3] * 12


def test_the_quality_is_that_of_held_out_nodes():
    found = some_predictions(300)
    sets = node_sets(found, 0.8)
    quality = sets.quality(found)
    rank = math.ceil((len(found.calibrates) + 1) * 0.8)
    assert quality.coverage == pytest.approx(rank / len(found.calibrates))


NAN = some_predictions()
NAN.uncertainty.probability[7] = math.nan
BAD = {
    "a level above one": (lambda: node_sets(some_predictions(), 90), "level must be a share"),
    "too few": (lambda: node_sets(some_predictions(), 0.99), "needs 99 calibration nodes or more. Got 54"),
    "too few of a class": (
        lambda: node_sets(some_predictions(), 0.95, by_class=True), "needs 19 calibration nodes of class"),
    "no label": (lambda: node_sets(predictions(np.full((9, 2), 0.5), np.full(9, -1))), "Got 0 instead"),
    "NaN": (lambda: node_sets(NAN, 0.8), "of node 7 hold NaN"),
    "random scores": (lambda: node_sets(some_predictions(), 0.8, score="aps-randomized"), "'lac' or 'aps'"),
    "an unknown score": (lambda: node_sets(some_predictions(), 0.8, score="lak"), "Did you mean lac"),
    "a class that does not calibrate": (
        lambda: node_sets(some_predictions(names=["a", "b", "c", "e"]), 0.8, by_class=True,
                          calibration=some_predictions(seed=1, names=["a", "b", "c", "d"])),
        "No calibration node has the class e"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(BGCLError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
