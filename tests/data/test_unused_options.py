"""Options for tables that have nothing to act on are refused, and what --missing-label names in vain is told."""

import logging

import pyarrow.csv
import pyarrow.parquet
import pytest

import bgcl
from bgcl import BGCLError
from data.people import EDGES, NODES


@pytest.fixture
def people(tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value": "age"}, "No table has a row for each node and feature: leave out --value"),
        ({"dates": "dmy"}, "No column has dates that could be read in several ways: leave out --dates"),
        ({"header": "labels"}, "There is no file of labels: leave out --header labels"),
        ({"no_header": "labels"}, "There is no file of labels: leave out --no-header labels"),
    ],
    ids=str,
)
def test_an_option_with_nothing_to_act_on_is_refused(people, options, message):
    with pytest.raises(BGCLError, match=message):
        bgcl.load(people, **options)


@pytest.mark.parametrize("options", [{"delimiter": ","}, {"decimal": ","}, {"header": "edges"}], ids=str)
def test_parquet_says_itself_how_it_is_written(people, options):
    for name in ("edges", "nodes"):
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(people / f"{name}.csv"), people / f"{name}.parquet")
        (people / f"{name}.csv").unlink()
    with pytest.raises(BGCLError, match=r"No table is written as text|names its columns itself"):
        bgcl.load(people, **options)


@pytest.mark.parametrize("name", ["delimiter", "header", "no_header"])
def test_frames_are_no_files(name):
    with pytest.raises(BGCLError, match=rf"Only a file is written in one way or another: leave out '{name}'"):
        bgcl.graph_from({"a": [1, 2], "b": [2, 3]}, **{name: "," if name == "delimiter" else "edges"})


def test_missing_labels_need_labels(tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    with pytest.raises(BGCLError, match="The nodes have no labels: leave out --missing-label"):
        bgcl.load(tmp_path / "edges.csv", missing_label="NA")


@pytest.mark.parametrize(("given", "told"), [("blue", ""), ("bleu", "'bleu'"), (["blue", "NA"], "'NA'")])
@pytest.mark.parametrize("values", ["red green blue", "-1 -2 blue", "0.5 1.5 blue"])
def test_a_missing_label_that_no_node_has_is_told(tmp_path, caplog, given, told, values):
    code = {"-1 -2 blue": "-7", "0.5 1.5 blue": "9.5"}.get(values, "blue")  # a number among numbers
    one, other, gone = values.replace("blue", code).split()
    (tmp_path / "edges.csv").write_text("a,b\n1,2\n2,3\n3,4\n")
    (tmp_path / "nodes.csv").write_text(f"id,age,label\n1,3,{one}\n2,4,{other}\n3,5,{gone}\n4,6,{one}\n")
    chosen = [code if each == "blue" else each for each in ([given] if isinstance(given, str) else given)]
    with caplog.at_level(logging.WARNING):
        bgcl.load(tmp_path, missing_label=chosen)
    assert (f"no label is {told}, as --missing-label says" in caplog.text) == bool(told)


def test_other_columns_of_a_table_in_long_form_are_named(people):
    from bgcl.data.options import Options
    from bgcl.data.own import read_files

    found = read_files(people / "edges.csv", people / "nodes.csv", Options(feature="city", id="id"))
    assert "not used: " in " ".join(found.guesses)
