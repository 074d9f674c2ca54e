"""Labels that come later: `--labels FILE`, and a new graph whose labels join those of the training graph."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

from cli.test_own_graphs import shop
from command_line import FAST, check_refused

TRUTH = np.array(["loyal", "new"])[np.arange(80) % 2]


@pytest.fixture
def trained(run, tmp_path):
    """The fixture `run`, in a folder with a run "r" on a shop of which half of the nodes have labels."""
    shop(tmp_path / "shop")
    run("train", "shop", "--label", "segment", "--out", "r", *FAST)
    return run


def later(rows: dict[str, str], path: str = "later.csv") -> str:
    Path(path).write_text("customer,segment\n" + "".join(f"{name},{label}\n" for name, label in rows.items()))
    return path


def labels_of_shop() -> pandas.Series:
    return pandas.read_csv("shop/nodes.csv").set_index("customer").segment


PREDICT = ("predict", "r", "--out", "p.csv", "--samples", "8")


def test_labels_of_the_file_replace_those_of_the_nodes_that_it_names(trained):
    before = labels_of_shop()
    other = {"loyal": "new", "new": "loyal"}
    named, empty = before.dropna().index[0], before[before.isna()].index[0]
    file = later({named: other[before[named]], empty: "loyal", before.dropna().index[1]: ""})
    code, out, err = trained(*PREDICT, "--labels", file, "--json")
    assert code == 0, err
    assert json.loads(out)["labels"] == {
        "file": file, "used": 2, "replaced": 1, "empty": 1, "unknown": 0, "kept": before.count() - 1
    }  # fmt: skip
    assert "Labels: 2 from the table, 1 of them other than before" in err
    found = pandas.read_csv("p.csv").set_index("id").label
    expected = before.copy()
    expected[named], expected[empty] = other[before[named]], "loyal"
    assert (found.fillna("-") == expected.fillna("-")).all()


def test_forgotten_labels_do_not_train(trained):
    chosen = {f"c-{i:03d}": TRUTH[i] for i in range(0, 40)}
    code, out, _ = trained(*PREDICT, "--labels", later(chosen), "--forget-labels", "--json")
    assert (code, json.loads(out)["labeled"], json.loads(out)["labels"]["kept"]) == (0, 40, 0)
    table = pandas.read_csv("p.csv")
    assert (table.predicted == TRUTH).mean() > 0.8


def test_new_classes_follow_those_of_training(trained):
    before = labels_of_shop()
    chosen = {name: "lost" for name in before[before.isna()].index[:6]}
    code, _, err = trained(*PREDICT, "--labels", later(chosen))
    assert (code, "1 class(es), such as 'lost', were not seen at training" in err) == (0, True)
    assert [name for name in pandas.read_csv("p.csv") if name.startswith("p_")] == ["p_loyal", "p_new", "p_lost"]


def test_every_command_takes_labels_and_says_how_many_it_used(trained):
    file = later({f"c-{i:03d}": TRUTH[i] for i in range(80)})
    for command in (
        ["evaluate", "r", "--protocol", "half", "--splits", "2", "--no-floors", "--samples", "8"],
        ["rank", "r", "--samples", "8"],
        ["report", "r", "--samples", "8"],
    ):
        code, _, err = trained(*command, "--labels", file)
        assert (code, "Labels: 80 from the table" in err) == (0, True), err
    assert "80, 2 classes" in Path("r/report.html").read_text()


def test_twelve_fresh_labels_join_those_of_the_training_graph(trained):
    """As `predict --graph edges.csv --nodes fresh.csv`: heads do not learn from the twelve alone."""
    nodes = pandas.read_csv("shop/nodes.csv")
    old, fresh = nodes.segment.copy(), nodes.segment.isna().to_numpy().nonzero()[0][:12]
    nodes["segment"] = None
    nodes.loc[fresh, "segment"] = "loyal"
    nodes.to_csv("fresh.csv", index=False)
    more = ("--graph", "shop/edges.csv", "--nodes", "fresh.csv")
    code, out, err = trained(*PREDICT, *more, "--json")
    assert code == 0, err
    assert json.loads(out)["labeled"] == old.count() + 12
    assert "and those of the training graph" in err
    found = pandas.read_csv("p.csv")
    assert {"p_loyal", "p_new"} <= {*found}
    assert (found.label[fresh] == "loyal").all()
    known = old.notna().to_numpy()
    assert (found.label[known] == old[known]).all()
    check_refused(trained(*PREDICT, *more, "--forget-labels", "--quiet"), "1 class")
    Path("shop").rename("moved")
    more = ("--graph", "moved/edges.csv", "--nodes", "fresh.csv", "--quiet")
    check_refused(trained(*PREDICT, *more), "is no longer at", "--forget-labels")


def test_labels_that_are_given_as_nodes_are_refused_with_the_option_for_them(run, tmp_path):
    shop(tmp_path / "shop")
    Path("shop/nodes.csv").unlink()
    run("train", "shop", "--out", "r", "--epochs", "1", "--set", "widths=[8, 4]", "--quiet")
    file = later({"c-001": "new"})
    more = ("--graph", "shop/edges.csv", "--nodes", file)
    check_refused(run(*PREDICT, *more), "without a table of nodes", "--labels")


BAD = {
    "no such file": (["--labels", "none.csv"], "There is no file none.csv"),
    "an unknown id": (["--labels", "strange.csv"], "row 3, column 'customer': no node of the graph has the id 'zoe'"),
    "no id at all": (["--labels", "alien.csv"], "no value of column 'customer' is the id of a node"),
    "an id twice": (["--labels", "twice.csv"], "has the same id 'c-001'. Give every node one label, or"),
    "a column that is not there": (["--labels", "later.csv", "--label", "x"], "has no column 'x'"),
    "an option without the file": (["--label", "segment"], "--label is about the table of --labels"),
    "nothing but forgetting": (["--forget-labels"], "--forget-labels needs other labels"),
    "over the labels": (["--labels", "later.csv", "--out", "later.csv"], "this command reads it"),
    "numbers beside classes": (["--labels", "numbers.csv"], "--forget-labels"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_right_is_refused(trained, name):
    later({"c-001": "new", "c-002": "loyal"})
    later({"c-001": "new", "zoe": "loyal"}, "strange.csv")
    later({"zoe": "new", "yan": "loyal"}, "alien.csv")
    later({"c-001": "1.5", "c-002": "2.25"}, "numbers.csv")
    Path("twice.csv").write_text("customer,segment\nc-001,new\nc-001,loyal\n")
    arguments, message = BAD[name]
    given = PREDICT if "--out" not in arguments else (*PREDICT[:2], *PREDICT[4:])
    check_refused(trained(*given, *arguments, "--quiet"), message)


def test_unknown_ids_can_be_skipped_and_are_counted(trained):
    file = later({"c-001": "new", "zoe": "loyal"})
    code, out, err = trained(*PREDICT, "--labels", file, "--skip-unknown", "--json")
    assert (code, json.loads(out)["labels"]["unknown"]) == (0, 1)
    assert "1 row(s) skipped, whose id is no node of the graph" in err


def test_a_graph_without_ids_is_labeled_by_the_numbers_of_its_nodes(run, blobs):
    run("train", blobs, "--out", "r", "--epochs", "2", "--set", "widths=[8, 4]", "--quiet")
    Path("later.csv").write_text("node,label\n5,1\n11,1\n0,1\n")
    code, out, _ = run(*PREDICT, "--labels", "later.csv", "--json")
    assert code == 0
    assert json.loads(out)["labeled"] == 102
    assert pandas.read_csv("p.csv").label[[0, 5, 11, 17]].tolist() == [1, 1, 1, -1]


def test_a_new_graph_in_another_unit_is_noticed(trained):
    nodes = pandas.read_csv("shop/nodes.csv")
    nodes["spent"] *= 1000
    nodes.to_csv("cents.csv", index=False)
    _, _, err = trained(*PREDICT, "--graph", "shop/edges.csv", "--nodes", "cents.csv")
    assert "column 'spent': the values are far from those at training" in err
    _, _, err = trained(*PREDICT, "--graph", "shop/edges.csv", "--nodes", "shop/nodes.csv")
    assert "far from" not in err


def test_a_new_run_has_no_report_of_the_older_one(trained):
    assert trained("report", "r", "--samples", "8")[0] == 0
    assert Path("r/report.html").exists()
    Path("r/mine.html").touch()
    again = ("train", "shop", "--label", "segment", "--out", "r", *FAST, "--overwrite")
    assert trained(*again)[0] == 0
    assert not Path("r/report.html").exists()
    assert Path("r/mine.html").exists()
