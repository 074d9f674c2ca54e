"""`inspect` reports what is counted by hand."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import bgcl
from bgcl.data.inspection import inspect
from bgcl.data.options import Options
from bgcl.data.own import read_files


def test_counts_of_a_small_graph():
    edges = torch.tensor([[0, 1, 3], [1, 2, 4]])  # a path of three nodes, a pair, and an isolated node
    found = inspect(Data(x=torch.eye(6), edge_index=edges, y=torch.tensor([0, 0, 1, 1, -1, 0])))
    assert (found.nodes, found.edges, found.components, found.largest_component, found.isolated) == (6, 3, 3, 3, 1)
    assert found.degree == {"mean": 1.0, "median": 1.0, "greatest": 2}
    assert (found.labeled, found.classes) == (5, {"0": 3, "1": 2})
    assert found.homophily == 0.5  # 0-1 joins the same class, 1-2 does not
    assert found.homophily_by_chance == pytest.approx((3 / 4) ** 2 + (1 / 4) ** 2)
    assert any("Class 1 has 2 labeled" in warning for warning in found.warnings)
    assert bgcl.inspect(Data(x=torch.eye(3), edge_index=edges[:, :2])).classes == {}


@pytest.fixture
def suspicious(tmp_path):
    """The inspection of a graph with a column of row numbers, one that leaks the label, and one of codes."""
    random = np.random.default_rng(0)
    label = random.integers(2, size=200)
    rows = ["id,row,leak,code,size,label"]
    rows += [f"n{i},{i},{'yes' if y else 'no'},{random.integers(4)},{random.normal()},{y}" for i, y in enumerate(label)]
    (tmp_path / "nodes.csv").write_text("\n".join(rows))
    pairs = random.integers(100, size=(300, 2))
    (tmp_path / "edges.csv").write_text("a,b,w\n" + "n0,n0,1\n" + "\n".join(f"n{a},n{b},1" for a, b in pairs if a != b))
    return inspect(read_files(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        "Column 'row' counts the rows", "'leak' alone determines the label of 100%", "'code' has 4 whole numbers",
        "Heterophily", "have no edge", "1 edge(s) lead from a node to itself", "repeat an edge", "not used: w",
    ],
)  # fmt: skip
def test_warnings_name_what_looks_wrong(suspicious, text):
    assert any(text in warning for warning in suspicious.warnings), suspicious.warnings
    assert not any("'size'" in warning for warning in suspicious.warnings)


def test_inspection_has_the_kind_of_each_column(suspicious):
    assert suspicious.columns == {"row": "number", "leak": "2 categories", "code": "number", "size": "number"}


@pytest.mark.parametrize(
    ("more", "options", "text"),
    [
        ("", {}, "Each edge counts once."),
        (",1", {"weight": "w"}, "Each edge counts once."),
        (",{i}", {"weight": "w"}, "Their weights are added"),
        ("", {"directed": True}, "Both directions of an edge count."),
    ],
)
def test_what_a_repeated_edge_counts_is_said_as_it_is(tmp_path, more, options, text):
    rows = [f"{pair}{more.format(i=i + 1)}" for i, pair in enumerate(("a,b", "b,a", "b,c", "c,d"))]
    (tmp_path / "edges.csv").write_text("\n".join(["from,to" + ",w" * bool(more), *rows]))
    found = inspect(read_files(tmp_path, options=Options(**options)))
    assert [warning for warning in found.warnings if "1 row(s) repeat an edge" in warning and text in warning]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "are used instead."),
        ({"weight": "w", "directed": True}, "are used instead, without weights and directions of the edges."),
        ({"edge_type": "kind"}, "are used instead, without types of the edges."),
    ],
)
def test_attributes_made_from_edges_name_what_they_do_not_use(tmp_path, options, text):
    (tmp_path / "edges.csv").write_text("from,to,w,kind\na,b,1,x\nb,c,2,y\nc,d,3,x\nd,a,1,y\n")
    options = {"weight": "", "edge_type": "", **options}
    reading = read_files(tmp_path, options=Options(**options))
    assert any(note.endswith(text) for note in reading.notes), reading.notes
