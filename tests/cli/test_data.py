"""`bgcl data`: list and verify data sets."""

import json

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
    check_refused(run("data", "make", out), "already holds edges.parquet. Name another folder, or remove it")
