"""`preset="auto"`: the documented rules, and which settings come first."""

import pytest
import torch
from torch_geometric.data import Data

import bgcl
from bgcl.auto_preset import describe, pick
from bgcl.graph.csr import without_beta_warning
from bgcl.settings import Settings


def graph_of(nodes: int, attributes: int, edges: int = 10, full: int = 0) -> Data:
    """A graph whose first `full` attributes are nonzero in every node, and the others zero."""
    ends = torch.arange(edges) % (nodes - 1)
    pointer, columns = torch.arange(nodes + 1) * full, torch.arange(full).repeat(nodes)
    size = (nodes, attributes)
    x = without_beta_warning(torch.sparse_csr_tensor, pointer, columns, torch.ones(nodes * full), size)
    return Data(x=x, edge_index=torch.stack([ends, ends + 1]))


@pytest.mark.parametrize(
    ("graph", "widths", "batches", "epochs", "drop"),
    [
        (graph_of(500, 8, 1_000, full=8), (128, 64), 1, 300, ("edges",)),
        (graph_of(2_708, 1_433, 10_556), (256, 128), 1, 300, ("edges", "entries")),
        (graph_of(20_000, 64, 60_000, full=6), (256, 128), 5, 60, ("edges", "entries")),
        (graph_of(20_000, 64, 60_000, full=7), (256, 128), 5, 60, ("connections shared",)),
        (graph_of(20_000, 64, 59_999, full=7), (256, 128), 5, 60, ("edges",)),
        (graph_of(400_000, 32, 4_000_000), (256, 128), 100, 10, ("edges", "entries")),
    ],
)
def test_the_documented_rule(graph, widths, batches, epochs, drop):
    picked = pick(graph)
    assert picked == {"widths": widths, "batches": batches, "epochs": epochs, "drop": drop}
    Settings(**picked)


def test_given_settings_come_first_and_are_described():
    data = graph_of(500, 8)
    settings = bgcl.BGCL("auto", epochs=3).settings_for(data)
    assert (settings.epochs, settings.widths) == (3, (128, 64))
    assert "3 epochs of 1 batch" in describe(data, settings)
    assert "\n" not in describe(data, settings)


def test_fit_picks_the_settings_and_saves_them_but_does_not_change_the_parameters(tmp_path):
    generator = torch.Generator().manual_seed(0)
    data = Data(x=torch.rand(20, 4, generator=generator), edge_index=torch.randint(20, (2, 60), generator=generator))
    model = bgcl.BGCL("auto", epochs=2).fit(data, progress=False, out=tmp_path / "r")
    assert model.settings_.widths == (128, 64)
    assert bgcl.BGCL.load(tmp_path / "r").settings_ == model.settings_
    assert (model.preset, model.given()) == ("auto", {"epochs": 2})


def test_fit_picks_the_settings_for_the_checked_graph():
    """The edges are given in one direction, 2 per node. In both directions there are 4 per node, which is not few."""
    nodes = torch.arange(12)
    edges = torch.cat([torch.stack([nodes, (nodes + step) % 12]) for step in (1, 2)], dim=1)
    model = bgcl.BGCL("auto", epochs=1).fit(Data(x=torch.rand(12, 3) + 1, edge_index=edges), progress=False)
    assert model.settings_.drop == ("connections shared",)


@pytest.mark.parametrize("data", [None, Data(edge_index=torch.tensor([[0], [1]]))], ids=["no graph", "no attributes"])
def test_fit_checks_the_graph_before_it_picks_settings(data):
    with pytest.raises(bgcl.BGCLError, match="The graph "):
        bgcl.BGCL("auto").fit(data, progress=False)


def test_rows_are_not_scaled_if_the_columns_of_a_table_were():
    edges, nodes = {"a": [0, 1], "b": [1, 2]}, {"id": [0, 1, 2], "x": [1.0, 2.0, 4.0]}
    data = bgcl.graph_from(edges, nodes)
    assert bgcl.BGCL().settings_for(data).row_norm == "none"
    assert bgcl.BGCL(row_norm="sum").settings_for(data).row_norm == "sum"
    assert bgcl.BGCL().settings_for(graph_of(5, 2)).row_norm == "length"
