"""Options that a packed graph cannot have are refused before anything is computed."""

import pytest

from bgcl.downstream import prediction
from command_line import FAST, check_refused


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A folder with tables "made", their pack "pack", and a run "r" on it."""
    from typer.testing import CliRunner

    from bgcl.cli import app

    folder = tmp_path_factory.mktemp("packed")
    for command in (
        ["data", "make", str(folder / "made"), "--nodes", "150", "--attributes", "3", "--classes", "2"],
        ["data", "pack", str(folder / "made"), "--out", str(folder / "pack")],
        ["train", str(folder / "pack"), "--out", str(folder / "r"), "--set", "part_width=4", *FAST],
    ):
        found = CliRunner().invoke(app, command)
        assert found.exit_code == 0, found.output
    return folder


@pytest.mark.parametrize("option", ["--novelty", "--floors", "--spread-labels"])
def test_predict_refuses_what_needs_the_whole_graph(packed, run, monkeypatch, option):
    monkeypatch.setattr(prediction, "draws_of", None)  # nothing is drawn
    found = run("predict", str(packed / "r"), "--out", "p.csv", "--samples", "3", option)
    check_refused(found, "needs the whole graph in memory, and this one is a pack: leave it out")


def test_rank_refuses_novelty_and_evaluate_floors(packed, run, monkeypatch):
    monkeypatch.setattr(prediction, "draws_of", None)
    found = run("rank", str(packed / "r"), "--by", "novelty", "--samples", "3")
    check_refused(found, "Novelty needs the whole graph in memory")
    check_refused(run("evaluate", str(packed / "r"), "--floors"), "--floors needs the whole graph in memory")


def test_a_graph_in_memory_is_predicted_by_a_run_on_a_pack(packed, run):
    """The labels of the pack train the heads, so its draws are made in turn with those of the other graph."""
    code, out, err = run(
        "predict",
        str(packed / "r"),
        "--graph",
        str(packed / "made"),
        "--out",
        "p.csv",
        "--samples",
        "3",
        "--no-novelty",
    )
    assert code == 0, err
    assert "150 nodes" in out
    assert not list((packed / "pack").glob(".*"))
