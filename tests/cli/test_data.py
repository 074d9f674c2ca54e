"""`bgcl data`: list and verify data sets."""

import json

import pytest

from command_line import check_refused


def test_list_has_the_data_sets_and_verify_compares_checksums(run):
    assert {row["name"] for row in json.loads(run("data", "list", "--json")[1])} >= {"cora", "wikics", "coauthor-cs"}
    assert "matches the published content" in run("data", "verify", "cora")[1]


def test_make_writes_a_graph_that_other_commands_read(run, tmp_path):
    out = str(tmp_path / "graph")
    made = json.loads(run("data", "make", out, "--nodes", "1e3", "--attributes", "4", "--classes", "3", "--json")[1])
    assert made["nodes"] == 1000
    assert "1,000" in run("inspect", out)[1]


def test_make_refuses_a_part_of_a_node_and_a_folder_with_a_graph(run, tmp_path):
    out = str(tmp_path / "graph")
    check_refused(run("data", "make", out, "--nodes", "100.5"), "--nodes must be a whole number")
    run("data", "make", out, "--nodes", "200", "--attributes", "2")
    check_refused(run("data", "make", out), "already holds edges.parquet")


@pytest.mark.parametrize("there", ["edges.csv", "labels.tsv.gz", "edges.parquet", "pack.json"])
def test_a_folder_with_a_graph_does_not_become_another_graph(run, tmp_path, there):
    """A pack beside tables would be read instead of them, and no command would say so."""
    made, taken = str(tmp_path / "made"), tmp_path / "taken"
    run("data", "make", made, "--nodes", "200", "--attributes", "2", "--classes", "2")
    taken.mkdir()
    (taken / there).write_text("a,b\n1,2\n")
    check_refused(run("data", "make", str(taken), "--nodes", "200"), f"taken already holds {there}")
    check_refused(run("data", "pack", made, "--out", str(taken)), f"taken already holds {there}")
    check_refused(run("data", "pack", made, "--out", made), "made already holds edges.parquet")
    assert [path.name for path in taken.iterdir()] == [there]
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["edges.parquet", "nodes.parquet"]
