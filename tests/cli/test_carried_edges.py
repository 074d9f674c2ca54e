"""What edges carry pays from tables to accuracy, by commands alone."""

import json
from functools import partial

import pytest

from carried import directed_graph, typed_graph, weighted_graph, write_tables

FAST = ["--epochs", "20", "--set", "widths=[64, 32]", "--set", "part_width=32", "--set", "batch_nodes=128", "--quiet"]


@pytest.mark.parametrize(
    ("graph", "column", "options"),
    [
        (weighted_graph, "edge_weight", ["--weight", "carried"]),
        (typed_graph, "edge_type", ["--edge-type", "carried"]),
        (partial(directed_graph, 480), None, ["--directed"]),  # with 240, a split trains on 24 nodes
    ],
    ids=["weights", "types", "directions"],
)
def test_a_command_that_uses_what_edges_carry_is_five_points_better(run, tmp_path, graph, column, options):
    write_tables(graph(), tmp_path / "g", column)
    accuracy = []
    for i, given in enumerate((options, [])):
        assert run("train", "g", "--out", f"r{i}", *given, *FAST)[0] == 0
        code, out, _ = run("evaluate", f"r{i}", "--samples", "8", "--splits", "3", "--json")
        assert code == 0
        accuracy.append(json.loads(out)["scores"]["accuracy"]["mean"])
    assert accuracy[0] > accuracy[1] + 0.05


def test_inspect_and_train_say_what_edges_carry(run, tmp_path):
    write_tables(typed_graph(60), tmp_path / "g", "edge_type")
    code, out, _ = run("inspect", "g", "--edge-type", "carried", "--json")
    assert (code, list(json.loads(out)["relations"])) == (0, ["0", "1"])
    _, _, err = run("train", "g", "--edge-type", "carried", "--directed", *FAST[:-1])
    assert "4 relations (0 out, 0 in, 1 out, 1 in)" in err
    _, _, err = run("train", "g", "--out", "plain", *FAST[:-1])
    assert "These columns of the edges are not used: carried" in err


def test_a_new_graph_is_predicted_with_the_types_of_the_training_graph(run, tmp_path):
    write_tables(typed_graph(60), tmp_path / "g", "edge_type")
    write_tables(typed_graph(72, seed=1), tmp_path / "new", "edge_type")
    run("train", "g", "--edge-type", "carried", "--out", "r", *FAST)
    assert run("predict", "r", "--graph", "new", "--out", "p.csv", "--samples", "8", "--quiet")[0] == 0
    (tmp_path / "new" / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    code, _, err = run("predict", "r", "--graph", "new", "--out", "p2.csv", "--samples", "8", "--quiet")
    assert code == 2
    assert "has no column 'carried'" in err
