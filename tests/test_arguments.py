"""Arguments of a wrong type or shape end in one clear line: never in a wrong result, never in a traceback of torch."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import bgcl
from bgcl import BGCL, BGCLError, MixtureClassifier, MixtureRegressor
from bgcl.arguments import whole
from bgcl.measures import acquire
from bgcl.measures.metrics import brier, negative_log_likelihood, pavpu, reliability
from trained import small_data, small_model

NAN = float("nan")
P = np.full((3, 5, 2), 0.5)
DRAWS, Y = np.random.default_rng(0).normal(size=(3, 20, 4)), np.arange(20) % 2
EDGES, NODES = {"a": [1], "b": [2]}, {"id": [1, 2]}
Case = tuple[Callable[[Any], object], str]


@pytest.fixture(scope="module")
def known() -> SimpleNamespace:
    data = small_data()
    return SimpleNamespace(data=data, model=small_model(data, "default"))


# What is called with a model and its graph, and what the error says.
MODEL: dict[str, Case] = {
    **{f"samples {value!r}": (lambda k, value=value: k.model.sample(k.data, value), "samples must be a whole number")
       for value in (2.5, 2.0, "3", True, None, NAN, [2])},
    "samples 0": (lambda k: k.model.sample(k.data, 0), "samples must be 1 or more"),
    **{f"seed {value!r}": (lambda k, value=value: k.model.sample(k.data, 2, seed=value), "seed must be a whole number")
       for value in (True, 1.5, "1", -1, 2**63)},
    **{f"scale {value!r}": (lambda k, value=value: k.model.sample(k.data, 2, scale=value), "'draw_scale' must be")
       for value in ("x", True, [], NAN, 2, 0)},
    "hard": (lambda k: k.model.sample(k.data, 2, hard="no"), "'hard' must be True or False"),
    "sample of nothing": (lambda k: k.model.sample(None, 2), "must be a torch_geometric.data.Data"),
    "draws": (lambda k: k.model.draws(k.data, 2.5), "must be a whole number. Got 2.5"),
    "moments": (lambda k: k.model.moments(k.data, "4"), "must be a whole number. Got '4'"),
    "disagreement": (lambda k: k.model.disagreement(k.data, 4.5), "must be a whole number. Got 4.5"),
    "disagreement seed": (lambda k: k.model.disagreement(k.data, 4, seed=-1), "seed must be .* Got -1"),
    "embed": (lambda k: k.model.embed(np.eye(3)), "Data. Got ndarray"),
    "fit": (lambda k: BGCL().fit(None), "Data. Got NoneType"),
    "fit out": (lambda k: BGCL().fit(k.data, out=5), "'out' must be a text or a path. Got 5"),
    "fit resume": (lambda k: BGCL().fit(k.data, resume="no"), "'resume' must be True or False"),
    "fit progress": (lambda k: BGCL().fit(k.data, progress="yes"), "'progress' must be .* Got 'yes'"),
    "fit progress list": (lambda k: BGCL().fit(k.data, progress=[5]), "'progress' must be .* Got 5"),
    "preset": (lambda k: BGCL([]).fit(k.data), "Unknown preset"),
    "save": (lambda k: k.model.save(None), "folder must be a text or a path"),
    "load a model": (lambda k: BGCL.load(5), "folder must be a text or a path. Got 5"),
    "check": (lambda k: k.model.check_trained_on(None), "Data. Got NoneType"),
    **{f"protocol {value!r}": (lambda k, value=value: bgcl.splits(k.data, value), "Unknown protocol")
       for value in (3, None, [])},
    "splits count": (lambda k: bgcl.splits(k.data, "half", 2.5), "splits must be a whole number"),
    "splits flag": (lambda k: bgcl.splits(k.data, "half", True), "splits must be a whole number"),
    "splits seed": (lambda k: bgcl.splits(k.data, "half", 1, -1), "seed must be .* Got -1"),
    "splits seed text": (lambda k: bgcl.splits(k.data, "half", 1, "x"), "seed must be a whole number"),
    "splits of nothing": (lambda k: bgcl.splits(None), "Data. Got None"),
    "evaluate nothing": (lambda k: bgcl.evaluate("run", k.data), "model must be a fitted bgcl.BGCL. Got 'run'"),
    "evaluate a class": (lambda k: bgcl.evaluate(BGCL, k.data), "model must be a fitted bgcl.BGCL"),
    "evaluate samples": (lambda k: bgcl.evaluate(k.model, k.data, "half", 1, samples=8.5), "must be a whole number"),
    "evaluate set": (lambda k: bgcl.evaluate(k.model, k.data, "half", 1, set_size=0), "'set_size' must be 1 or more"),
    "evaluate training": (lambda k: bgcl.evaluate(k.model, k.data, "half", 1, training_draws=0), "must be 1 or more"),
    "evaluate head": (lambda k: bgcl.evaluate(k.model, k.data, "half", head=MixtureClassifier()), "'head' must be"),
    "predict": (lambda k: bgcl.predict(None, k.data), "model must be a fitted bgcl.BGCL"),
    "predict data": (lambda k: bgcl.predict(k.model, None, samples=8), "Data. Got None"),
    "predict samples": (lambda k: bgcl.predict(k.model, k.data, samples="x"), "must be a whole number"),
    "predict folds": (lambda k: bgcl.predict(k.model, k.data, samples=8, folds=2.5), "'folds' must be a whole number"),
    "predict labels": (lambda k: bgcl.predict(k.model, k.data, samples=8, labels_from=5), "Data. Got"),
    "report": (lambda k: bgcl.report(None, k.data), "model must be a fitted bgcl.BGCL"),
    "report out": (lambda k: bgcl.report(k.model, k.data, 5), "'out' must be a text or a path"),
    "report samples": (lambda k: bgcl.report(k.model, k.data, "x.html", samples=2.5), "must be a whole number"),
}  # fmt: skip

GRAPHS: dict[str, Case] = {
    **{f"load {value!r}": (lambda _, value=value: bgcl.load(value), "graph must be a text or a path")
       for value in (5, None, b"cora", ["cora"])},
    "id": (lambda _: bgcl.graph_from(EDGES, NODES, id=5), "'id' must be the name of a column. Got 5"),
    "ignore": (lambda _: bgcl.graph_from(EDGES, NODES, ignore=[5]), "'ignore' must be .* list of names"),
    "text": (lambda _: bgcl.graph_from(EDGES, NODES, text=5), "'text' must be the name of a column"),
    "words": (lambda _: bgcl.graph_from(EDGES, NODES, words=2.5), "words must be a whole number"),
    "skip unknown": (lambda _: bgcl.graph_from(EDGES, NODES, skip_unknown="no"), "'skip_unknown' must be True"),
    "graph from a number": (lambda _: bgcl.graph_from(5), "Cannot make a graph from int"),
    "labels": (lambda _: bgcl.graph_from(np.ones((3, 3)), np.eye(3), labels=5), "The graph|labels"),
    "inspect": (lambda _: bgcl.inspect(5), "Got|Cannot"),
    "example": (lambda _: bgcl.example_graph("x"), "nodes must be a whole number"),
    "example seed": (lambda _: bgcl.example_graph(seed=-1), "seed must be"),
}  # fmt: skip

MEASURES: dict[str, Case] = {
    **{f"rank {value!r}": (lambda _, value=value: bgcl.rank(value), "uncertainty must be one number for each node")
       for value in ("abc", None, 5, np.ones((3, 2)), ["a"], [1, None], [1j], [[1], [1, 2]])},
    "rank nan": (lambda _: bgcl.rank([0.1, NAN]), "must not have NaN"),
    "rank among": (lambda _: bgcl.rank(np.ones(3), [5]), "'among' must be numbers between 0 and 2. Got 5 to 5"),
    "rank among -1": (lambda _: bgcl.rank(np.ones(3), [-1]), "'among' must be numbers between 0 and 2"),
    "rank among mask": (lambda _: bgcl.rank(np.ones(3), [True]), "'among' must be .* a mask of all 3 nodes"),
    "rank among halves": (lambda _: bgcl.rank(np.ones(3), [0.5]), "'among' must be numbers of nodes"),
    "rank among twice": (lambda _: bgcl.rank(np.ones(3), [1, 1]), "a node more than once"),
    "acquire": (lambda _: acquire(np.ones(3), np.eye(3), 1.5), "to choose must be a whole number"),
    "acquire nan": (lambda _: acquire([1, NAN, 2], np.eye(3), 2), "must not have NaN"),
    "acquire vectors": (lambda _: acquire(np.ones(3), np.ones(3), 2), "embeddings must be an array .* 2 axes"),
    **{f"uncertainty {value!r}": (lambda _, value=value: bgcl.uncertainty(value), "must .* Got")
       for value in (5, None, "abc", {"a": 1}, P[0], P[None], [None], [[[0.5, 0.5], [1]]], P.astype(complex))},
    "thresholds": (lambda _: pavpu([True], [1.0], 1), "thresholds must be 2 or more"),
    "bins": (lambda _: reliability(P[0], np.zeros(5, int), 0), "bins must be 1 or more"),
    "label": (lambda _: reliability(P[0], "abc"), "class of each of 5 nodes"),
    "labels are few": (lambda _: negative_log_likelihood(P[0], np.zeros(3, int)), "class of each of 5 nodes"),
    "label beyond": (lambda _: negative_log_likelihood(P[0], np.full(5, 7)), "between 0 and 1. Got 7 to 7"),
    "label -1": (lambda _: brier(P[0], np.full(5, -1)), "between 0 and 1. Got -1 to -1"),
}  # fmt: skip

HEADS: dict[str, Case] = {
    **{f"draws {name}": (lambda _, value=value: MixtureClassifier().fit(value, Y), "Expected 2D array|dim")
       for name, value in (("text", "abc"), ("None", None), ("1d", np.ones(20)), ("4d", DRAWS[None]))},
    "draws of several widths": (
        lambda _: MixtureClassifier().fit([np.ones((20, 4)), np.ones((20, 3))], Y), "same shape"),
    "draws of objects": (lambda _: MixtureClassifier().fit(DRAWS.astype(object), Y), "must be real numbers"),
    "y of two columns": (lambda _: MixtureClassifier().fit(DRAWS, np.ones((20, 2))), "1d array"),
    "y too short": (lambda _: MixtureClassifier().fit(DRAWS, Y[:5]), "20 nodes, but 5 labels"),
    "y None": (lambda _: MixtureClassifier().fit(DRAWS, None), "y is None"),
    "y with None": (lambda _: MixtureClassifier().fit(DRAWS, [1, None] * 10), "labels hold None"),
    "y of two types": (
        lambda _: MixtureClassifier().fit(DRAWS, np.array([1, "a"] * 10, dtype=object)), "several types: int, str"),
    **{f"{name}={value!r}": (
        lambda _, name=name, value=value: MixtureClassifier(**{name: value}).fit(DRAWS, Y), f"'{name}' parameter")
       for name, value in (("C", True), ("C", "x"), ("folds", 1), ("normalize", "no"), ("kernel", "no"), ("parts", 0))},
    "targets of None": (lambda _: MixtureRegressor().fit(DRAWS, [None] * 20), "targets .* must be numbers"),
    "targets of text": (lambda _: MixtureRegressor().fit(DRAWS, ["a"] * 20), "targets must be one number"),
    "level": (lambda _: MixtureRegressor(C=1.0).fit(DRAWS, Y).predict_interval(DRAWS, "x"), "such as 0.9. Got 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("call", MODEL | GRAPHS | MEASURES)
def test_a_wrong_argument_is_one_clear_line(known, call):
    wrong, says = (MODEL | GRAPHS | MEASURES)[call]
    with pytest.raises(BGCLError) as error:
        wrong(known)
    assert re.search(says, str(error.value)), str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("call", HEADS)
def test_a_wrong_argument_of_a_head_is_a_value_error_as_in_scikit_learn(call):
    wrong, says = HEADS[call]
    with pytest.raises(ValueError, match=says):
        wrong(None)


def test_numbers_of_numpy_and_torch_are_accepted(known):
    model, data = known.model, known.data
    expected = model.sample(data, 2, seed=3)
    for two, three in ((np.int64(2), np.uint8(3)), (torch.tensor(2), torch.tensor(3))):
        assert torch.equal(model.sample(data, two, seed=three), expected)
    assert whole("n", np.int8(4)) == 4
    assert bgcl.rank(torch.tensor([0.1, 0.9])).tolist() == [1, 0]
    MixtureClassifier(C=1.0).fit(torch.tensor(DRAWS, requires_grad=True), Y)


def test_unsigned_numbers_are_ranked_by_their_value():
    """The negative of an unsigned number is another unsigned number: 0 would be the most uncertain."""
    assert bgcl.rank(np.array([0, 3, 1], dtype=np.uint8)).tolist() == [1, 2, 0]
