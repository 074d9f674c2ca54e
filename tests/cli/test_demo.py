"""`bgcl demo`: scores, plots and a report of Cora."""

import json
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import bgcl
from command_line import check_refused


@pytest.fixture
def part_of_cora(monkeypatch) -> Data:
    """The demo sees 500 nodes of Cora in three classes, so that its classifiers and its report take seconds."""
    cora = bgcl.load("cora")
    cora.x = cora.x.to_dense()
    part = cora.subgraph(torch.arange(500))
    part.y = part.y % 3
    monkeypatch.setattr("bgcl.data.store.load", lambda name: part if name == "cora" else pytest.fail(name))
    return part


def test_demo_prints_scores_and_writes_plots_and_a_report(run, part_of_cora):
    code, out, _ = run("demo", "--epochs", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert 0.2 < found["scores"]["accuracy"]["mean"] < 1
    assert found.keys() == {"scores", "drop_rates", "most_certain", "least_certain", "pictures", "report"}
    assert Path(found["report"]).read_text().startswith("<!doctype html>")
    assert len(found["pictures"]) == 6
    assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in found["pictures"])
    model = bgcl.BGCL.load("run")
    assert model.settings_ == bgcl.Settings(epochs=2)
    assert model.graph_.nodes == 500


def test_demo_replaces_an_older_demo_and_no_other_run(run, part_of_cora, monkeypatch):
    from bgcl.cli import demo

    bgcl.BGCL(epochs=1, widths=(4,), part_width=4).fit(part_of_cora, progress=False, out="run")
    before = Path("run/model.toml").read_text()
    check_refused(run("demo", "--epochs", "1"), "run holds a run that is no demo", "--overwrite")
    assert Path("run/model.toml").read_text() == before
    bgcl.BGCL(epochs=1).fit(part_of_cora, progress=False, out="run2")
    with pytest.raises(bgcl.BGCLError, match="no demo"):
        demo._check_replaceable(Path("run2"))
    Path("run2/report.html").touch()
    demo._check_replaceable(Path("run2"))
