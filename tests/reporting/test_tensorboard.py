"""Training curves for TensorBoard."""

import sys
from dataclasses import replace

import pytest
from synthetic_report import make_history

import bgcl
from bgcl.augmentation import RatePosterior
from bgcl.reporting import TensorBoard
from bgcl.reporting.tensorboard import scalars


def test_tensorboard_reads_what_was_written(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with TensorBoard(tmp_path) as board:
        model = bgcl.BGCL(widths=(8,), epochs=3).fit(bgcl.example_graph(), progress=board)
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    losses = [event.value for event in found.Scalars("training/loss")]
    assert losses == pytest.approx([record.loss for record in model.history_], rel=1e-6)


def test_the_error_says_how_to_install_tensorboard(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(bgcl.BGCLError, match=r"bgcl\[tensorboard\]"):
        TensorBoard(tmp_path)


def test_scalars_have_the_mean_rate_of_each_mask():
    rate = RatePosterior("<edges>", mean=((0.25,), (0.75,)), std=((0.0,), (0.0,)))
    record = replace(make_history(1)[0], rates={view: [rate] for view in "ot"})
    assert scalars(record)["drop rate/o/1 <edges>"] == 0.5
    assert "training/objective" not in scalars(record)
    assert scalars(replace(record, objective=1.5))["training/objective"] == 1.5
