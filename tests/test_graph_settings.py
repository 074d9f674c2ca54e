"""What depends on the graph: the number of epochs, and whether rows are scaled; and which settings come first."""

import pytest
import torch
from torch_geometric.data import Data

import bgcl
from bgcl.graph_settings import describe, fit_to_graph, steps_per_epoch
from bgcl.settings import make_settings, presets


def graph_of(nodes: int, attributes: int = 4) -> Data:
    """A path."""
    ends = torch.arange(nodes - 1)
    return Data(x=torch.eye(nodes, attributes), edge_index=torch.stack([ends, ends + 1]))


@pytest.mark.parametrize(
    ("nodes", "given", "steps", "epochs"),
    [
        (10, {}, 1, 300),
        (512, {}, 1, 300),
        (513, {}, 2, 150),
        (2708, {}, 6, 50),
        (5196, {}, 11, 28),
        (6700, {}, 14, 22),
        (200_000, {}, 391, 1),
        (2708, {"batch_nodes": 100}, 28, 11),
        (2708, {"batch_nodes": None}, 1, 300),
        (2708, {"batch_nodes": None, "batches": 7}, 7, 43),
        (2708, {"encoder": "gcn", "epochs": None}, 1, 300),
        (2708, {"encoder": "gcn", "epochs": None, "batches": 20}, 20, 15),
    ],
)
def test_without_a_number_of_epochs_there_are_as_many_as_make_300_steps(nodes, given, steps, epochs):
    data, settings = graph_of(nodes), make_settings(**given)
    assert settings.epochs is None
    assert steps_per_epoch(data, settings) == steps
    found = fit_to_graph(data, settings, given)
    assert found.epochs == epochs
    assert epochs * steps >= 300
    assert (epochs - 1) * steps < 300
    assert found == settings.with_changes(epochs=epochs)
    assert bgcl.BGCL(**given).settings_for(data) == found


@pytest.mark.parametrize("preset", [None, *presets()])
@pytest.mark.parametrize("nodes", [20, 5000])
def test_given_epochs_come_first_then_those_of_the_preset(preset, nodes):
    data = graph_of(nodes)
    assert bgcl.BGCL(preset, epochs=3).settings_for(data).epochs == 3
    if preset is not None:
        settings = bgcl.BGCL(preset).settings_for(data)
        assert settings == make_settings(preset)
        assert settings.epochs == presets()[preset]["epochs"]


@pytest.fixture
def short(monkeypatch) -> None:
    """Trainings of 20 steps."""
    monkeypatch.setattr("bgcl.graph_settings.STEPS", 20)


def test_the_number_of_steps_of_a_training_is_the_number_that_was_meant(short):
    model = bgcl.BGCL(widths=(4,), part_width=2, batch_nodes=5, drop="entries at 0.1").fit(graph_of(23), progress=False)
    assert model.settings_.epochs == len(model.history_) == 4  # of five steps


def test_settings_are_described_in_one_line():
    data = graph_of(2708)
    line = describe(data, bgcl.BGCL().settings_for(data))
    assert line.startswith("2,708 nodes with 4 attributes: encoder mlp, objective infonce; drop ")
    assert line.endswith("50 epochs, 300 steps")
    paper = describe(data, bgcl.BGCL("paper-cora", epochs=3, batches=2).settings_for(data))
    assert "encoder gcn" in paper
    assert "drop edges and entries" in paper
    assert paper.endswith("3 epochs, 6 steps")
    assert "\n" not in line + paper


def test_fit_chooses_the_epochs_and_saves_them_but_does_not_change_the_parameters(tmp_path, short):
    generator = torch.Generator().manual_seed(0)
    data = Data(x=torch.rand(20, 4, generator=generator), edge_index=torch.randint(20, (2, 60), generator=generator))
    model = bgcl.BGCL(widths=(4,), part_width=2, batch_nodes=2)
    model.fit(data, progress=False, out=tmp_path / "r")
    assert model.settings_.epochs == 2
    assert bgcl.BGCL.load(tmp_path / "r").settings_ == model.settings_
    assert (model.preset, model.given()) == (None, {"widths": (4,), "part_width": 2, "batch_nodes": 2})
    assert model.settings_for(data) == model.settings_


@pytest.mark.parametrize("data", [None, Data(edge_index=torch.tensor([[0], [1]]))], ids=["no graph", "no attributes"])
def test_the_graph_is_checked_before_settings_are_chosen(data):
    for method in (bgcl.BGCL().fit, bgcl.BGCL().settings_for):
        with pytest.raises(bgcl.BGCLError, match="The graph "):
            method(data)


def test_rows_are_not_scaled_if_the_columns_of_a_table_were():
    edges, nodes = {"a": [0, 1], "b": [1, 2]}, {"id": [0, 1, 2], "x": [1.0, 2.0, 4.0]}
    data = bgcl.graph_from(edges, nodes)
    assert bgcl.BGCL(encoder="gcn").settings_for(data).row_norm == "none"
    assert bgcl.BGCL("paper-cora").settings_for(data).row_norm == "none"
    assert bgcl.BGCL(encoder="gcn", row_norm="sum").settings_for(data).row_norm == "sum"
    assert bgcl.BGCL(encoder="gcn", row_norm="length").settings_for(data).row_norm == "length"
    assert bgcl.BGCL(encoder="gcn").settings_for(graph_of(5)).row_norm == "length"


def test_the_default_scales_columns_of_a_table_by_itself():
    edges, nodes = {"a": [0, 1], "b": [1, 2]}, {"id": [0, 1, 2], "x": [1.0, 2.0, 4.0]}
    data = bgcl.graph_from(edges, nodes)
    assert bgcl.BGCL().settings_for(data).row_norm == bgcl.BGCL().settings_for(graph_of(5)).row_norm == "auto"
    assert bgcl.BGCL(row_norm="sum").settings_for(data).row_norm == "sum"


def test_there_is_no_preset_auto():
    with pytest.raises(bgcl.BGCLError, match=r"Unknown preset 'auto'. Known: paper-cora, "):
        bgcl.BGCL("auto").settings_for(graph_of(5))
