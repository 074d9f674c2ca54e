"""Classes with few labeled nodes: no command ends at them, and `--small-classes` says what becomes of them."""

import json

import numpy as np
import pandas
import pytest

from cli.test_own_graphs import shop
from command_line import FAST, check_refused


def trained_on(run, tmp_path, rare: dict[str, int]):
    """A run "r" on a shop of 80 labeled people, of which a few are of other classes."""
    shop(tmp_path / "shop")
    nodes = pandas.read_csv("shop/nodes.csv")
    nodes["segment"] = np.array(["loyal", "new"])[np.arange(80) % 2]
    start = 10
    for name, count in rare.items():
        nodes.loc[range(start, start + count), "segment"] = name
        start += count
    nodes.to_csv("shop/nodes.csv", index=False)
    assert run("train", "shop", "--label", "segment", "--out", "r", *FAST)[0] == 0
    return nodes


EVERY = {
    "evaluate": ["evaluate", "r", "--protocol", "half", "--splits", "2", "--no-floors", "--samples", "6"],
    "predict": ["predict", "r", "--out", "p.csv", "--samples", "6"],
    "rank": ["rank", "r", "--samples", "6"],
    "report": ["report", "r", "--samples", "6"],
}


@pytest.mark.parametrize("way", [[], ["--small-classes", "merge"], ["--small-classes", "keep"]], ids=lambda w: w[-1:])
@pytest.mark.parametrize("command", EVERY)
def test_no_command_ends_at_a_class_with_one_or_two_labeled_nodes(run, tmp_path, command, way):
    trained_on(run, tmp_path, {"lost": 1, "rich": 2})
    code, _, err = run(*EVERY[command], *way)
    assert code == 0, err
    said = "left out" if not way else {"merge": "merged into (other)", "keep": "kept"}[way[-1]]
    assert "2 classes (lost, rich) have fewer than 3 labeled nodes" in err
    assert said in err


def test_a_tenth_of_the_labels_is_enough_if_a_class_has_three_nodes(run, tmp_path):
    trained_on(run, tmp_path, {"rich": 3})
    code, out, _ = run("evaluate", "r", "--protocol", "grace", "--splits", "3", "--samples", "6", "--json")
    assert (code, json.loads(out)["splits"]) == (0, 3)


def test_a_class_that_is_left_out_keeps_its_label_in_the_table_and_is_not_predicted(run, tmp_path):
    nodes = trained_on(run, tmp_path, {"lost": 1})
    code, out, _ = run(*EVERY["predict"], "--json")
    table = pandas.read_csv("p.csv")
    assert code == 0
    assert (table.label == nodes.segment).all()
    assert {*table.predicted} <= {"loyal", "new"}
    assert "Class lost has fewer than 3" in json.loads(out)["small_classes"]


def test_merged_classes_are_one(run, tmp_path):
    trained_on(run, tmp_path, {"lost": 2, "rich": 2})
    assert run(*EVERY["predict"], "--small-classes", "merge")[0] == 0
    assert [name for name in pandas.read_csv("p.csv") if name.startswith("p_")] == ["p_loyal", "p_new", "p_(other)"]


def test_all_classes_are_kept_if_fewer_than_two_would_be_left(run, tmp_path):
    trained_on(run, tmp_path, {})
    with open("four.csv", "w") as file:
        file.write("customer,segment\nc-001,a\nc-002,b\nc-003,a\nc-004,b\n")
    code, out, err = run(*EVERY["predict"], "--labels", "four.csv", "--forget-labels", "--json")
    assert (code, json.loads(out)["labeled"]) == (0, 4), err
    assert "are kept, because fewer than two classes would be left" in err


def test_an_unknown_way_is_refused(run, tmp_path):
    trained_on(run, tmp_path, {})
    check_refused(run(*EVERY["predict"], "--small-classes", "merg"), "Did you mean merge")
