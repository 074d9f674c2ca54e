"""Nodes with several labels in every command."""

import json

import numpy as np
import pandas
import pytest

import bgcl
from command_line import FAST, check_refused


@pytest.fixture
def trained(run, tmp_path):
    """The fixture `run`, in a folder with a run "r" on 90 nodes, of which 70 have some of three labels, in rows."""
    random = np.random.default_rng(0)
    sets = random.random((90, 3)) < [0.5, 0.3, 0.3]
    sets[~sets.any(1), 0] = True
    folder = tmp_path / "groups"
    folder.mkdir()
    rows = [f"{i},{j}" for i in range(90) for j in random.integers(0, 90, 3) if i != j]
    (folder / "edges.csv").write_text("from,to\n" + "\n".join(rows) + "\n")
    values = sets @ np.eye(3) + 0.3 * random.normal(size=(90, 3))
    lines = [",".join(map(str, [i, *row.round(3)])) for i, row in enumerate(values)]
    (folder / "nodes.csv").write_text("id,u,v,w\n" + "\n".join(lines) + "\n")
    named = [f"{i},{'abc'[k]}" for i in range(70) for k in range(3) if sets[i, k]]
    (folder / "labels.csv").write_text("node,group\n" + "\n".join(named) + "\n")
    code, _, err = run("train", "groups", "--out", "r", "--many-labels", "rows", *FAST[:-1])
    assert code == 0, err
    return run


def test_every_command_knows_several_labels(trained):
    code, out, _ = trained("inspect", "groups", "--many-labels", "rows", "--json")
    found = json.loads(out)
    assert (code, found["labeled"], list(found["classes"])) == (0, 70, ["a", "b", "c"])
    assert found["labels_per_node"] > 1
    assert "such a node has" in trained("inspect", "groups", "--many-labels", "rows")[1]
    code, out, err = trained("evaluate", "r", "--splits", "2", "--samples", "6", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["scores"].keys() == {"micro_f1", "macro_f1", "average_precision", "ece", "right_sets", "auroc"}
    assert found["each_label"][0]["label"] == "a"
    assert [row["prediction"] for row in found["floors"]][-1] == "this model"
    out = trained("evaluate", "r", "--splits", "2", "--samples", "6")[1]
    assert "micro F1 (all labels together)" in out
    assert "average precision of the model" in out or "does not pay" in out
    code, out, err = trained("predict", "r", "--out", "p.csv", "--samples", "6")
    assert code == 0, err
    assert "90 nodes, each with the labels whose probability is at least one half; micro F1 on the 70 labeled" in out
    table = pandas.read_csv("p.csv")
    assert table.label.isna().sum() == 20
    sets = [{name for name in "abc" if row[f"p_{name}"] >= 0.5} for _, row in table.iterrows()]
    assert [set(text.split(";")) - {""} for text in table.predicted.fillna("")] == sets
    np.testing.assert_allclose(table["novelty"], bgcl.BGCL.load("r").novelty(bgcl.load("groups", many_labels="rows")))
    rows = json.loads(trained("rank", "r", "--samples", "6", "--top", "5", "--unlabeled", "--json")[1])
    doubt = [row["least_confidence"] for row in rows]
    assert doubt == sorted(doubt, reverse=True)
    assert all(row["label"] is None for row in rows)
    np.testing.assert_allclose(doubt[0], table.least_confidence[table.label.isna()].max())


def test_another_graph_is_predicted_with_the_labels_of_the_training_graph(trained, tmp_path):
    new = tmp_path / "new"
    new.mkdir()
    nodes = pandas.read_csv("groups/nodes.csv")
    nodes["id"] += 1000
    nodes.to_csv(new / "nodes.csv", index=False)
    edges = pandas.read_csv("groups/edges.csv") + 1000
    edges.to_csv(new / "edges.csv", index=False)
    code, _, err = trained("predict", "r", "--graph", "new", "--out", "p.csv", "--samples", "6")
    assert code == 0, err
    table = pandas.read_csv("p.csv")
    assert table.label.isna().all()
    assert table.p_a.std() > 0.05


WRONG = {
    "a report": (["report", "r"], "The page shows one label per node"),
    "a level": (["predict", "r", "--out", "p.csv", "--level", "0.9"], "--level is for one label per node"),
    "answers": (["predict", "r", "--out", "p.csv", "--abstain", "0.1"], "--abstain is for one label per node"),
    "small": (["predict", "r", "--out", "p.csv", "--small-classes", "keep"], "--small-classes is for one label"),
    "a measure": (["rank", "r", "--by", "margin"], "--by margin does not fit nodes with several labels"),
    "plots": (["evaluate", "r", "--plots", "x"], "--plots is for one label per node"),
    "a shift": (["evaluate", "r", "--shift", "density"], "--shift is for one label per node"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_for_one_label_is_refused(name, trained):
    arguments, message = WRONG[name]
    check_refused(trained(*arguments), message)


def test_later_labels_may_be_several_and_replace_those_of_their_nodes(trained):
    with open("later.csv", "w") as file:
        file.write("id,label\n3,a;d\n80,c\n")
    check_refused(trained("predict", "r", "--out", "p.csv", "--samples", "4", "--labels", "later.csv", "--many-labels",
                          "several"), "--many-labels must be")  # fmt: skip
    check_refused(
        trained("predict", "r", "--out", "p.csv", "--many-labels", "rows"), "--many-labels is about the table"
    )
    code, _, err = trained(
        "predict", "r", "--out", "p.csv", "--samples", "4", "--labels", "later.csv", "--many-labels", ";"
    )
    assert code == 0, err
    assert "2 from the table, 1 of them other than before; 69 that the graph has" in err
    table = pandas.read_csv("p.csv")
    assert table.label[[3, 80]].tolist() == ["a;d", "c"]
    assert table.label.notna().sum() == 71
    assert (table.p_d < 0.1).all()


def test_one_label_and_several_do_not_mix(run, tmp_path):
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "edges.csv").write_text("from,to\n" + "\n".join(f"{i},{(i + 1) % 20}" for i in range(20)) + "\n")
    (folder / "nodes.csv").write_text(
        "id,u,label\n" + "\n".join(f"{i},{i % 3},{'ab'[i % 2]}" for i in range(20)) + "\n"
    )
    assert run("train", "one", "--out", "r", *FAST)[0] == 0
    (tmp_path / "later.csv").write_text("id,label\n3,a;b\n4,b\n")
    later = ("predict", "r", "--out", "p.csv", "--samples", "4", "--labels", "later.csv", "--many-labels", ";")
    check_refused(run(*later), "a node may have several labels here, and has one in the other")
    code, _, err = run(*later, "--forget-labels")
    assert code == 2
    assert "Only 2 nodes have labels" in err
