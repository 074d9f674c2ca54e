"""`bgcl predict`: a table with the class, probability and uncertainty of every node."""

import json
from pathlib import Path

import numpy as np
import pytest

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


def test_a_class_with_one_labeled_node_is_refused(run, tmp_path):
    labels = np.where(np.arange(12) == 3, 7, np.arange(12) % 2)
    run("train", str(small_graph(tmp_path / "ring.npz", labels=labels)), "--out", "n", *FAST)
    check_refused(run("predict", "n", "--out", "p.csv"), "Class 7 has 1 labeled nodes")


def test_a_file_of_an_unknown_format_is_refused(run_trained):
    check_refused(run_trained("predict", "r", "--out", "p.xls"), "must end in .csv, .parquet or .json")
