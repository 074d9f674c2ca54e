"""What `bgcl predict` and `bgcl rank` say about novelty, sets and answers."""

import json
from pathlib import Path

import numpy as np
import pytest

from bgcl import BGCL, Novelty, load, predict
from bgcl.conformal import node_sets
from command_line import FAST, LONGER, check_refused, read_table, small_graph

FEW = ("--samples", "8", "--no-floors")


def test_novelty_and_sets_are_those_of_the_library(run, blobs):
    run("train", blobs, "--out", "r", *LONGER)
    code, out, _ = run("predict", "r", "--out", "p.json", "--level", "0.8", "--json", *FEW)
    assert code == 0
    table, facts = read_table(Path("p.json")), json.loads(out)
    model, data = BGCL.load("r"), load(blobs)
    found = predict(model, data, samples=8)
    novelty = Novelty(model).fit(data, found).score(data, found)
    np.testing.assert_allclose(table["novelty"], novelty.novelty)
    assert table["strange_by"] == novelty.reason.tolist()
    sets = node_sets(found, 0.8)
    assert table["set"] == sets.columns()["set"].tolist()
    assert table["set_size"] == sets.size.tolist()
    assert facts["sets"]["calibration_nodes"] == 100
    assert facts["sets"]["one_class"] == (sets.size == 1).sum()
    assert facts["drift"]["warns"] is False


def test_what_is_promised_is_said_in_words(run_trained):
    code, out, _ = run_trained("predict", "r", "--out", "p.csv", "--level", "0.9", "--abstain", "sets", *FEW)
    assert code == 0
    assert "Sets with the true class for 90 % of the nodes, by 100 labeled nodes" in out
    table = read_table(Path("p.csv"))
    size, answer = np.array(table["set_size"]), table["answer"]
    assert [given not in (None, "") for given in answer] == (size == 1).tolist()
    assert f"Answers for {(size == 1).sum()} of 120 nodes, whose set has one class" in out


def test_answers_at_a_risk_are_the_certain_ones(run, blobs):
    run("train", blobs, "--out", "r", *LONGER)
    code, out, _ = run("predict", "r", "--out", "p.json", "--abstain", "0.2", "--json", *FEW)
    facts, table = json.loads(out)["abstention"], read_table(Path("p.json"))
    assert code == 0
    assert (facts["risk"], facts["calibration_nodes"]) == (0.2, 100)
    assert facts["bound"] <= 0.2
    certain = np.array(table["least_confidence"]) <= facts["threshold"]
    answers = [
        predicted if is_certain else None for predicted, is_certain in zip(table["predicted"], certain, strict=True)
    ]
    assert table["answer"] == answers
    assert facts["answered"] == certain.sum() > 0


def test_the_level_of_each_class_takes_the_labels_of_each_class(run, blobs):
    run("train", blobs, "--out", "r", *LONGER)
    run("predict", "r", "--out", "p.json", "--level", "0.9", "--by-class", *FEW)
    found = predict(BGCL.load("r"), load(blobs), samples=8)
    assert read_table(Path("p.json"))["set_size"] == node_sets(found, 0.9, by_class=True).size.tolist()


def test_novelty_can_be_left_out(run_trained):
    run_trained("predict", "r", "--out", "p.csv", "--no-novelty", *FEW)
    assert "novelty" not in read_table(Path("p.csv"))


def test_a_new_graph_is_compared_with_the_training_graph_and_a_drift_is_said(run, blobs, tmp_path):
    """The same graph without labels is as it was; with random attributes it is not."""
    run("train", blobs, "--out", "r", *LONGER)
    arrays = {**np.load(blobs)}
    np.savez(tmp_path / "same.npz", **{name: array for name, array in arrays.items() if name != "labels"})
    rows = np.repeat(np.arange(120), 8)
    changed = {"attr_data": np.full(960, 3.0), "attr_indices": np.tile(np.arange(8), 120),
               "attr_indptr": np.bincount(rows, minlength=120).cumsum() * 1}  # fmt: skip
    changed["attr_indptr"] = np.concatenate([[0], changed["attr_indptr"]])
    np.savez(tmp_path / "new.npz", **{n: a for n, a in (arrays | changed).items() if n != "labels"})
    options = ("--level", "0.9", "--json", *FEW)
    code, out, err = run("predict", "r", "--graph", str(tmp_path / "new.npz"), "--out", "n.json", *options)
    assert code == 0
    assert json.loads(out)["drift"]["warns"] is True
    assert "Warning: nodes without a label are not like those with one" in err
    assert np.mean(read_table(Path("n.json"))["novelty"]) < 0.1
    code, out, err = run("predict", "r", "--graph", str(tmp_path / "same.npz"), "--out", "s.json", *options)
    assert (code, "Warning" in err) == (0, False)
    assert json.loads(out).get("drift", {}).get("warns", False) is False
    assert np.mean(read_table(Path("s.json"))["novelty"]) > 0.3


def test_without_the_training_graph_there_is_no_novelty_and_a_note(run, blobs, tmp_path):
    run("train", blobs, "--out", "r", *FAST)
    Path(blobs).rename(tmp_path / "moved.npz")
    arguments = ("predict", "r", "--graph", str(tmp_path / "moved.npz"), "--forget-labels", "--out", "p.csv", *FEW)
    code, _, err = run(*arguments)
    assert (code, "Note: there is no novelty." in err) == (0, True)
    assert "novelty" not in read_table(Path("p.csv"))
    check_refused(run(*arguments, "--novelty"), "There is no file")


@pytest.mark.parametrize("labels", [None, np.arange(12) % 2], ids=["without labels", "with labels"])
def test_rank_by_novelty_lists_the_strangest_nodes_with_the_reason(run, tmp_path, labels):
    run("train", str(small_graph(tmp_path / "ring.npz", labels=labels)), "--out", "r", *FAST)
    code, out, _ = run("rank", "r", "--by", "novelty", "--top", "12", "--samples", "6", "--json")
    rows = json.loads(out)
    assert code == 0
    novelty = [row["novelty"] for row in rows]
    assert novelty == sorted(novelty)
    assert all(row["strange_by"] for row in rows)
    assert ("predicted" in rows[0]) == (labels is not None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--level", "0.999"], "A level of 0.999 needs 999 calibration nodes or more. Got 100"),
        (["--level", "0.98", "--by-class"], "needs 49 calibration nodes of class"),
        (["--abstain", "0.01"], "A risk of 0.01 needs 597 labeled nodes or more. Got 100"),
    ],
)
def test_too_few_labels_are_refused_before_anything_is_drawn(run_trained, monkeypatch, options, message):
    def never(*args, **kwargs):
        raise AssertionError("it was drawn")

    monkeypatch.setattr(BGCL, "draws", never)
    check_refused(run_trained("predict", "r", "--out", "p.csv", *FEW, *options), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--by-class"], "--by-class is about the sets of --level"),
        (["--abstain", "sets"], "--abstain sets needs sets"),
        (["--abstain", "never"], "--abstain must be 'sets', or the share of answers that may be wrong"),
        (["--abstain", "5"], "The risk must be a share between 0 and 1"),
        (["--abstain", "0.01"], "A risk of 0.01 needs 597 labeled nodes or more. Got 100"),
        (["--level", "95"], "The level must be a share between 0 and 1"),
        (["--level", "0.999"], "A level of 0.999 needs 999 calibration nodes or more. Got 100"),
    ],
)
def test_promises_that_cannot_be_kept_are_refused(run_trained, options, message):
    check_refused(run_trained("predict", "r", "--out", "p.csv", *FEW, *options), message)
    assert not Path("p.csv").exists()
