"""Labels that are numbers: every command predicts them, and `--task` settles what labels are."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

import bgcl
from cli.test_own_graphs import shop
from command_line import FAST, check_refused


@pytest.fixture
def trained(run, tmp_path):
    """The fixture `run`, in a folder with a run "r" on a shop whose label is a number for 60 of 80 people."""
    shop(tmp_path / "shop", labels=False)
    nodes = pandas.read_csv("shop/nodes.csv")
    nodes["label"] = (nodes.spent * 3 + np.arange(80) % 2 + 0.125).where(np.arange(80) % 4 > 0)
    nodes.to_csv("shop/nodes.csv", index=False)
    code, _, err = run("train", "shop", "--out", "r", *FAST[:-1])
    assert code == 0
    assert "the label 'label' is a number to predict (--task classes if not)" in err
    return run


def test_every_command_predicts_numbers(trained):
    code, out, _ = trained("inspect", "shop", "--json")
    found = json.loads(out)
    assert (code, found["labeled"], found["classes"]) == (0, 60, {})
    assert found["numbers"].keys() == {"mean", "deviation", "least", "greatest"}
    assert "to predict; mean" in trained("inspect", "shop")[1]
    code, out, err = trained("evaluate", "r", "--splits", "2", "--samples", "6", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert {"rmse", "mae", "r2", "crps", "coverage", "width", "calibration"} == found["scores"].keys()
    assert [row["prediction"] for row in found["floors"]][-1] == "this model"
    code, out, _ = trained("evaluate", "r", "--splits", "2", "--samples", "6")
    assert "RMSE (lower is better)" in out
    assert "CRPS of the model" in out or "does not pay" in out
    code, out, _ = trained("predict", "r", "--out", "p.csv", "--samples", "6", "--level", "0.8", "--json")
    found = json.loads(out)
    assert (code, found["task"], found["labeled"], found["level"]) == (0, "numbers", 60, 0.8)
    table = pandas.read_csv("p.csv")
    assert table.label.isna().sum() == 20
    assert (table.lower < table.upper).all()
    np.testing.assert_allclose(table.deviation**2, table.variance)
    for by in ([], ["--by", "epistemic"]):
        rows = json.loads(trained("rank", "r", "--samples", "6", "--top", "5", "--unlabeled", *by, "--json")[1])
        measure = by[-1] if by else "variance"
        values = [row[measure] for row in rows]
        assert values == sorted(values, reverse=True)
        assert all(row["label"] is None for row in rows)
    assert trained("report", "r", "--samples", "6")[0] == 0
    assert "Labels are numbers" in Path("r/report.html").read_text()


def test_numbers_have_novelty_and_a_note_if_they_are_too_few_for_their_intervals(trained):
    code, out, err = trained("predict", "r", "--out", "p.csv", "--samples", "6", "--level", "0.99", "--json")
    assert code == 0, err
    assert "intervals of 99 % need 199 nodes with a number or more, and 60 have one" in err
    assert json.loads(out)["drift"]["warns"] is False
    table = pandas.read_csv("p.csv")
    np.testing.assert_allclose(table["novelty"], bgcl.BGCL.load("r").novelty(bgcl.load("shop")))
    assert "Note: intervals" not in trained("predict", "r", "--out", "p.csv", "--samples", "6")[2]


WRONG = {
    "a level of each class": (["predict", "r", "--out", "p.csv", "--level", "0.9", "--by-class"], "--by-class is for"),
    "answers": (["predict", "r", "--out", "p.csv", "--abstain", "0.1"], "--abstain is for classes"),
    "a measure of classes": (["rank", "r", "--by", "entropy"], "does not fit labels that are numbers"),
    "plots": (["evaluate", "r", "--plots", "x"], "--appendix, --plots and --spread-labels are for classes"),
    "predict small": (["predict", "r", "--out", "p.csv", "--small-classes", "merge"], "--small-classes is for classes"),
    "rank small": (["rank", "r", "--small-classes", "merge"], "--small-classes is for classes"),
    "report small": (["report", "r", "--small-classes", "merge"], "--small-classes is for classes"),
    "evaluate small": (["evaluate", "r", "--small-classes", "merge"], "--small-classes is for classes"),
    "an unknown task": (["predict", "r", "--out", "p.csv", "--task", "clases"], "--task must be classes or numbers"),
    "a level": (["predict", "r", "--out", "p.csv", "--level", "2"], "between 0 and 1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused(trained, name):
    arguments, message = WRONG[name]
    check_refused(trained(*arguments, "--samples", "6", "--quiet"), message)


def table(path: Path, labels: list) -> Path:
    count = len(labels)
    path.mkdir()
    pandas.DataFrame({"from": range(count), "to": np.roll(range(count), 1)}).to_csv(path / "edges.csv", index=False)
    nodes = {"id": range(count), "a": np.random.default_rng(0).random(count), "label": labels}
    pandas.DataFrame(nodes).to_csv(path / "nodes.csv", index=False)
    return path


@pytest.mark.parametrize(
    ("labels", "task"),
    [
        ([i % 3 for i in range(300)], "classes"),
        ([i % 70 for i in range(300)], "classes"),  # 0, 1, 2, ... without a gap
        ([7 * i for i in range(300)], "numbers"),
        ([i % 3 + 0.5 for i in range(300)], "numbers"),
        (["a", "b", "c"] * 100, "classes"),
    ],
)
def test_what_labels_are_is_inferred_and_an_option_settles_it(tmp_path, labels, task):
    folder = table(tmp_path / "g", labels)
    data = bgcl.load(folder)
    assert (data.recipe.task, data.y.is_floating_point()) == (task, task == "numbers")
    other = {"classes": "numbers", "numbers": "classes"}[task]
    if isinstance(labels[0], str):
        with pytest.raises(bgcl.BGCLError, match="the label 'a' is not a number"):
            bgcl.load(folder, task=other)
        return
    settled = bgcl.load(folder, task=other)
    assert settled.recipe.task == other
    assert settled.y.is_floating_point() == (other == "numbers")


def test_classes_become_numbers_later(run, tmp_path):
    table(tmp_path / "g", [i % 9 for i in range(120)])
    run("train", "g", "--out", "r", *FAST)
    code, out, _ = run("predict", "r", "--out", "p.csv", "--samples", "6", "--task", "numbers", "--json")
    assert (code, json.loads(out)["task"]) == (0, "numbers")
    Path("later.csv").write_text("id,label\n3,7\n")
    code, out, _ = run(
        "predict", "r", "--out", "p.csv", "--samples", "6", "--task", "numbers", "--labels", "later.csv", "--json"
    )
    assert (code, pandas.read_csv("p.csv").label[3]) == (0, 7.0)


def test_several_labels_of_a_node_are_refused(tmp_path):
    folder = table(tmp_path / "g", ["[1, 2]", "[2]", "[]"] * 10)
    with pytest.raises(bgcl.BGCLError, match="column 'label': a node has several labels, such as"):
        bgcl.load(folder)
