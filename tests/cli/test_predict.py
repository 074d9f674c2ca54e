"""`bgcl predict`: a table with the class, probability and uncertainty of every node."""

import json
from pathlib import Path

import numpy as np
import pytest

from bgcl import BGCL
from bgcl.reporting.report.node_map import CLOUD
from command_line import FAST, LONGER, check_refused, read_table, small_graph


def test_a_row_has_label_class_probability_and_uncertainty(run, blobs):
    run("train", blobs, "--out", "r", *LONGER)
    code, out, _ = run("predict", "r", "--out", "p.csv", "--samples", "14", "--json")
    assert code == 0
    table = read_table(Path("p.csv"))
    assert json.loads(out)["labeled"] == 100
    assert table["node"] == list(range(120))
    np.testing.assert_allclose(np.array(table["p_0"]) + table["p_1"], 1)
    unlabeled = np.array(table["label"]) < 0
    assert unlabeled.sum() == 20
    assert (np.array(table["predicted"]) == np.arange(120) % 2).mean() > 0.8


@pytest.mark.parametrize("command", [["evaluate", "n"], ["predict", "n", "--out", "p.csv"], ["rank", "n"]])
def test_a_graph_without_labels_is_refused(run, tmp_path, command):
    run("train", str(small_graph(tmp_path / "ring.npz", labels=None)), "--out", "n", *FAST)
    check_refused(run(*command), "no labels")


def test_a_class_with_one_labeled_node_is_left_out_and_named(run, tmp_path):
    labels = np.where(np.arange(12) == 3, 7, np.arange(12) % 2)
    run("train", str(small_graph(tmp_path / "ring.npz", labels=labels)), "--out", "n", *FAST)
    code, _, err = run("predict", "n", "--out", "p.csv", "--samples", "6")
    assert (code, "Class 7 has fewer than 3 labeled nodes and is left out" in err) == (0, True)
    assert {*read_table(Path("p.csv"))["predicted"]} <= {0, 1}


def test_a_file_of_an_unknown_format_is_refused(run_trained):
    check_refused(run_trained("predict", "r", "--out", "p.xls"), "must end in .csv, .parquet or .json")


def test_predictions_are_kept_in_the_run_and_used_again_and_shared(run_trained, monkeypatch):
    """The commands after the first one make no draws, besides those that the map of the page shows."""
    run, samples = run_trained, ("--samples", "14")
    assert run("evaluate", "r", "--splits", "1", "--no-floors", *samples)[0] == 0
    assert len(list(Path("r", "kept").iterdir())) == 2
    made = []
    draws = BGCL.draws
    monkeypatch.setattr(BGCL, "draws", lambda *given, **how: (made.append(d) or d for d in draws(*given, **how)))
    for command in (["predict", "r", "--out", "p.csv"], ["rank", "r", "--json"], ["rank", "r", "--by", "astd"],
                    ["embed", "r", "--out", "e.csv"], ["embed", "r", "--out", "e.npz", "--no-draws"]):  # fmt: skip
        assert run(*command, *samples)[0] == 0
    assert not made
    assert run("report", "r", *samples)[0] == 0
    assert len(made) == CLOUD
    assert run("predict", "r", "--out", "fresh.csv", "--no-keep", *samples)[0] == 0
    assert Path("p.csv").read_bytes() == Path("fresh.csv").read_bytes()
    assert len(made) == CLOUD + 14


def test_nothing_is_kept_if_the_user_does_not_want_it(run_trained):
    for command in (["evaluate", "r", "--splits", "1", "--no-floors"], ["predict", "r", "--out", "p.csv"],
                    ["rank", "r"], ["embed", "r", "--out", "e.csv"], ["report", "r"]):  # fmt: skip
        assert run_trained(*command, "--no-keep", "--samples", "4")[0] == 0
    assert not Path("r", "kept").exists()


def test_a_run_that_cannot_be_written_still_predicts_and_says_so(run_trained):
    Path("r", "kept").write_text("in the way")
    code, _, err = run_trained("predict", "r", "--out", "p.csv", "--samples", "4")
    assert code == 0
    assert "Note: The predictions are not kept: Cannot write r/kept" in err


def test_predictions_that_need_no_training_are_shown_and_kept_with_the_run(run_trained, monkeypatch):
    arguments = ("predict", "r", "--out", "p.csv", "--samples", "6")
    found = json.loads(run_trained(*arguments, "--json")[1])
    assert [row["prediction"] for row in found["floors"]] == [
        "most frequent class", "vote of neighbors", "attributes alone", "propagated attributes, no training",
        "this model",
    ]  # fmt: skip
    assert found["floor_nodes"] == 20
    assert "The model" in found["verdict"]

    def fail(*_):
        raise AssertionError("the floors were kept")

    monkeypatch.setattr("bgcl.baselines.floors.floors", fail)
    out = run_trained(*arguments)[1]
    assert "Predictions that need no training, on 20 labeled nodes:" in out
    assert json.loads(run_trained(*arguments, "--json")[1]) == found
    assert "floors" not in json.loads(run_trained(*arguments, "--no-floors", "--json")[1])
