"""Resuming a run: bit for bit where it stopped, after a kill too, and what is refused."""

import json
from dataclasses import replace

import pytest
from torch_geometric.data import Data

from bgcl import BGCLError, checkpoint
from training import DEFAULT, PAPER, assert_equal, both, fit, make, tiny_graph


@pytest.fixture
def graph() -> Data:
    return tiny_graph()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (PAPER, {"mask_values": "relaxed", "rate_draw": "sample"}),
        (PAPER, {"mask_values": "hard"}),
        (PAPER, {"rate_nodes": 7, "loss_nodes": 11}),
        (PAPER, {"batches": 3, "clusters_per_batch": 1}),
        (PAPER, {"batches": 3, "clusters_per_batch": 4, "rate_nodes": 7}),
        (DEFAULT, {}),
        (DEFAULT, {"mask_values": "relaxed", "rate_nodes": 7, "loss_nodes": 9}),
        (DEFAULT, {"batch_nodes": None, "batches": 3}),
        (DEFAULT, {"objective": "bootstrap", "drop": "entries"}),
        (DEFAULT, {"objective": "decorrelation", "drop": "entries"}),
        (PAPER, {"objective": "infomax", "drop": "entries"}),
    ],
    ids=str,
)
def test_resume_equals_an_uninterrupted_run(graph, tmp_path, kind, change):
    uninterrupted = fit(graph, kind, epochs=6, **change)
    make(kind, **change, epochs=3).fit(graph, out=tmp_path, progress=False)
    resumed = make(kind, **change, epochs=6).fit(graph, out=tmp_path, resume=True, progress=False)
    assert_equal(uninterrupted, resumed)
    without_time = [[replace(record, seconds=0.0) for record in m.history_] for m in (uninterrupted, resumed)]
    assert without_time[0] == without_time[1]
    lines = (tmp_path / checkpoint.HISTORY).read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3, 4, 5, 6]


class KilledError(Exception):
    pass


@both
@pytest.mark.parametrize("epoch", [1, 3])
def test_a_run_that_is_killed_loses_no_finished_epoch(graph, tmp_path, epoch, kind):
    def kill(record):
        if record.epoch == epoch:
            raise KilledError

    with pytest.raises(KilledError):
        make(kind).fit(graph, out=tmp_path, progress=kill)
    assert int(checkpoint.read(tmp_path).training["epoch"]) == epoch
    resumed = make(kind).fit(graph, out=tmp_path, resume=True, progress=False)
    assert_equal(fit(graph, kind), resumed)


@both
def test_history_after_the_last_complete_epoch_is_cut_off_on_resuming(graph, tmp_path, kind):
    model = make(kind, epochs=2).fit(graph, out=tmp_path, progress=False)
    unfinished = json.dumps(replace(model.history_[-1], epoch=3).to_dict())
    with (tmp_path / checkpoint.HISTORY).open("a") as history:
        history.write(unfinished + '\n{"epoch": 4, "lo')
    resumed = make(kind).fit(graph, out=tmp_path, resume=True, progress=False)
    assert [record.epoch for record in resumed.history_] == [1, 2, 3, 4]
    assert checkpoint.read(tmp_path).history == resumed.history_


@both
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tau": 0.5}, "other settings \\(tau\\)"),
        ({"epochs": 1}, "is at epoch 2 already"),
    ],
)
def test_resuming_with_other_settings_is_refused(graph, tmp_path, change, message, kind):
    make(kind, epochs=2).fit(graph, out=tmp_path, progress=False)
    with pytest.raises(BGCLError, match=message):
        make(kind, **change).fit(graph, out=tmp_path, resume=True, progress=False)


@both
def test_resuming_on_another_graph_is_refused(graph, tmp_path, kind):
    make(kind).fit(graph, out=tmp_path, progress=False)
    graph.x = graph.x.flip(0)
    with pytest.raises(BGCLError, match="trained on another graph"):
        make(kind).fit(graph, out=tmp_path, resume=True, progress=False)
