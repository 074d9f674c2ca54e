"""Progress during training: the line in a notebook, the lines in a file, and functions of the user."""

import io
import logging

import pytest
from rich.console import Console
from synthetic_report import make_history

import bgcl
from bgcl.reporting.progress import _Log, _Notebook, describe_rates, reporter


def test_a_notebook_has_one_output_that_is_updated(monkeypatch):
    shown = []

    class Handle:
        def update(self, what):
            shown.append(what.data)

    display = pytest.importorskip("IPython.display")
    monkeypatch.setattr(display, "display", lambda what, display_id: Handle())
    line = _Notebook(1000)
    for record in make_history(1000):
        line(record)
    assert 2 <= len(shown) < 100
    assert "epoch 1000/1000" in shown[-1]


@pytest.mark.parametrize(("epochs", "lines"), [(1000, 10), (25, 13), (3, 3)])
def test_a_file_has_about_ten_lines(epochs, lines):
    file = io.StringIO()
    log = _Log(epochs, Console(file=file, width=200))
    for record in make_history(epochs):
        log(record)
    written = file.getvalue().splitlines()
    assert len(written) == lines
    assert written[-1].startswith(f"epoch {epochs}/{epochs}  loss 7.0")


def test_rates_are_described_by_the_average_of_each_mask():
    (record,) = make_history(1)
    assert describe_rates(record.rates) == "o 0.50 0.30, t 0.50 0.40"


def test_a_list_of_functions_gets_every_epoch():
    first, second = [], []
    history = make_history(3)
    with reporter([False, first.append, second.append], 3, 0) as report:
        for record in history:
            report(record)
    assert first == second == history


def test_fit_logs_epochs_and_calls_every_function(caplog):
    first, second = [], []
    with caplog.at_level(logging.DEBUG, "bgcl"):
        bgcl.BGCL(widths=(8,), epochs=2).fit(bgcl.example_graph(), progress=[False, first.append, second.append])
    assert [found.epoch for found in first] == [1, 2]
    assert first == second
    assert [r.message.split(":")[0] for r in caplog.records if r.levelno == logging.DEBUG] == [
        "epoch 1 of 2", "epoch 2 of 2",
    ]  # fmt: skip
