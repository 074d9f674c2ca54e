"""Settings by the size of a graph, and what given settings and the reader of a graph have to say."""

import pytest
import torch
from torch_geometric.data import Data

import bgcl
from bgcl.automatic import describe, pick
from bgcl.settings import Settings


def graph_of(nodes: int, attributes: int, edges: int = 10, full: int = 0) -> Data:
    """A graph of which the first `full` attributes are not zero, in any node."""
    ends = torch.arange(edges) % (nodes - 1)
    pointer, columns = torch.arange(nodes + 1) * full, torch.arange(full).repeat(nodes)
    x = torch.sparse_csr_tensor(pointer, columns, torch.ones(nodes * full), (nodes, attributes))
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


def test_what_is_given_wins_and_is_said():
    data = graph_of(500, 8)
    settings = bgcl.BGCL("auto", epochs=3).settings_for(data)
    assert (settings.epochs, settings.widths) == (3, (128, 64))
    assert "3 epochs of 1 batch" in describe(data, settings)
    assert "\n" not in describe(data, settings)


def test_auto_is_settled_at_fit_and_kept_in_the_run(tmp_path):
    generator = torch.Generator().manual_seed(0)
    data = Data(x=torch.rand(20, 4, generator=generator), edge_index=torch.randint(20, (2, 60), generator=generator))
    model = bgcl.BGCL("auto", epochs=2).fit(data, progress=False, out=tmp_path / "r")
    assert model.settings.widths == (128, 64)
    assert bgcl.BGCL.load(tmp_path / "r").settings == model.settings
    assert model.get_params() == {"preset": "auto", "epochs": 2}


def test_rows_are_not_scaled_again_if_columns_were():
    edges, nodes = {"a": [0, 1], "b": [1, 2]}, {"id": [0, 1, 2], "x": [1.0, 2.0, 4.0]}
    data = bgcl.graph_from(edges, nodes)
    assert not bgcl.BGCL().settings_for(data).normalise_rows
    assert bgcl.BGCL(normalise_rows=True).settings_for(data).normalise_rows
    assert bgcl.BGCL().settings_for(graph_of(5, 2)).normalise_rows
