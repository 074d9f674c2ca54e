"""`bgcl rank`: the most uncertain nodes first."""

import json
from pathlib import Path

import numpy as np
import pytest

from bgcl import progress
from command_line import FAST, check_refused, read_table, small_graph


def test_the_most_uncertain_nodes_come_first(run_trained):
    run_trained("predict", "r", "--out", "p.json", "--samples", "14")
    entropy = np.array(read_table(Path("p.json"))["predictive_entropy"])
    rows = json.loads(run_trained("rank", "r", "--by", "entropy", "--top", "5", "--samples", "14", "--json")[1])
    assert [row["node"] for row in rows] == np.argsort(-entropy)[:5].tolist()
    rows = json.loads(run_trained("rank", "r", "--unlabeled", "--top", "20", "--samples", "14", "--json")[1])
    assert {row["node"] for row in rows} == {node for node in range(120) if node % 6 == 5}


@pytest.mark.parametrize("by", ["astd", "disagreement"])
def test_measures_of_the_embedding_need_no_labels(run, tmp_path, by):
    run("train", str(small_graph(tmp_path / "ring.npz", labels=None)), "--out", "r", *FAST)
    rows = json.loads(run("rank", "r", "--by", by, "--top", "12", "--samples", "8", "--diverse", "--json")[1])
    assert sorted(row["node"] for row in rows) == list(range(12))
    assert run("rank", "r", "--by", by, "--top", "3", "--samples", "8", "--out", "rank.csv")[0] == 0
    assert read_table(Path("rank.csv"))["rank"] == [1, 2, 3]


def test_bad_options_are_refused(run_trained):
    check_refused(run_trained("rank", "r", "--by", "entropi"), "Unknown measure 'entropi'")
    check_refused(run_trained("rank", "r", "--top", "500"), "--top must be between 1")


def test_unlabeled_is_refused_if_every_node_has_a_label(run, tmp_path):
    run("train", str(small_graph(tmp_path / "ring.npz")), "--out", "r", *FAST)
    check_refused(run("rank", "r", "--by", "astd", "--unlabeled", "--samples", "8"), "leave out --unlabeled")


@pytest.mark.parametrize(("by", "what", "total"), [("astd", "draws", 8), ("disagreement", "pairs of draws", 4)])
def test_the_progress_of_measures_without_labels_moves(run_trained, monkeypatch, by, what, total):
    """On a terminal there is a bar of all draws, or pairs of draws, that is full at the end."""
    shown = []

    class Bar(progress.Progress):
        def add_task(self, description, total):
            shown.append([description, total, self.disable, 0])
            return super().add_task(description, total=total)

        def advance(self, task):
            shown[-1][3] += 1
            super().advance(task)

    monkeypatch.setattr(progress, "Progress", Bar)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    code, _, err = run_trained("rank", "r", "--by", by, "--top", "3", "--samples", "8")
    assert code == 0
    assert shown == [[what, total, False, total]]
    assert what in err
    run_trained("rank", "r", "--by", by, "--top", "3", "--samples", "8", "--quiet", "--no-keep")
    assert shown[1][2]
