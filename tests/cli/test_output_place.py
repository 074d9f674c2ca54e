"""A result is not written over a file that the command reads."""

import shutil
from pathlib import Path

import pytest

from command_line import FAST, check_refused
from data.people import EDGES, NODES


@pytest.fixture
def trained(run):
    folder = Path("g")
    folder.mkdir()
    (folder / "edges.csv").write_text(EDGES)
    (folder / "nodes.csv").write_text(NODES)
    assert run("train", "g", "--out", "r", *FAST)[0] == 0
    return run


OUTS = ["r/graph.json", "g/nodes.csv", "g/edges.csv", "./r/../g/nodes.csv", "g/nodes.parquet"]


@pytest.mark.parametrize("out", OUTS)
@pytest.mark.parametrize("command", [["embed"], ["rank", "--by", "astd", "--top", "1"]], ids=["embed", "rank"])
def test_a_file_of_the_run_or_of_its_graph_is_not_overwritten(trained, command, out):
    before = {path: path.read_bytes() for path in [*Path("r").iterdir(), *Path("g").iterdir()]}
    name, *options = command
    check_refused(trained(name, "r", "--out", out, "--samples", "4", *options), "this command reads it")
    assert {path: path.read_bytes() for path in [*Path("r").iterdir(), *Path("g").iterdir()]} == before


def test_a_file_of_another_graph_is_not_overwritten_and_a_new_file_beside_it_is_written(trained):
    shutil.copytree("g", "other")
    more = ["--graph", "other/edges.csv", "--nodes", "other/nodes.csv", "--samples", "4"]
    check_refused(trained("embed", "r", "--out", "other/nodes.csv", *more), "this command reads it")
    assert trained("embed", "r", "--out", "other/embeddings.csv", *more)[0] == 0


@pytest.mark.parametrize("out", ["apart/features.csv", "apart/target.csv", "elsewhere.csv"])
def test_attributes_and_labels_in_tables_of_their_own_are_not_overwritten(run, out):
    apart = Path("apart")
    apart.mkdir()
    (apart / "edges.csv").write_text("a,b\n1,2\n2,3\n3,4\n")
    (apart / "features.csv").write_text("id,age\n1,20\n2,31\n3,45\n4,50\n")
    labels = apart / "target.csv" if "target" in out else Path("elsewhere.csv")
    labels.write_text("id,kind\n1,x\n2,y\n3,x\n4,y\n")
    more = () if labels.parent == apart else ("--labels", "elsewhere.csv")
    assert run("train", "apart", "--out", "r", *FAST, *more)[0] == 0
    before = Path(out).read_bytes()
    check_refused(run("embed", "r", "--out", out, "--samples", "4"), "this command reads it")
    assert Path(out).read_bytes() == before


def test_an_edge_to_an_unknown_node_has_no_advice_that_a_command_cannot_follow(trained):
    shutil.copytree("g", "other")
    Path("other/edges.csv").write_text(EDGES + "ann,zoe,1\n")
    code, _, err = trained("embed", "r", "--out", "e.csv", "--graph", "other")
    assert (code, "--skip-unknown" in err, "remove the edge" in err) == (2, False, True)
    check_refused(trained("inspect", "other"), "skip such edges with --skip-unknown")


@pytest.mark.parametrize("name", ["encoder", "objective"])
def test_a_module_of_the_user_is_refused_by_the_command(run, name):
    check_refused(run("train", "cora", "--set", f"{name}=module"), f"An {name} of your own can be given only in Python")


def test_the_endings_of_embeddings_are_all_named(run):
    check_refused(run("embed", "r", "--out", "e.txt"), r"must end in .npz, .csv, .parquet or .json")
