"""The bar, and the name of what is being done."""

import io

import pytest
from rich.console import Console

from bgcl import progress
from bgcl.progress import current_stage, stage, with_progress


@pytest.fixture
def terminal(monkeypatch):
    """What is printed on a terminal."""
    text = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=text, force_terminal=True, width=100))
    return text


@pytest.mark.parametrize("form", [list, iter, lambda items: lambda: items])
def test_items_pass_by_unchanged(terminal, form):
    assert list(with_progress(form([3, 1, 2]), 3, "numbers")) == [3, 1, 2]
    assert "numbers" in terminal.getvalue()


def test_nothing_is_shown_without_a_terminal_or_if_nobody_wants_it(terminal, capsys, monkeypatch):
    assert list(with_progress([1], 1, "numbers", show=False)) == [1]
    monkeypatch.undo()
    assert list(with_progress([1], 1, "numbers")) == [1]
    assert terminal.getvalue() == capsys.readouterr().err == ""


def test_a_bar_shows_the_stage_and_then_its_own_text_again(terminal):
    for _ in with_progress([1], 1, "numbers"):
        (bar, _), *_ = progress._bars
        with stage("counting"):
            assert bar.tasks[0].description == "counting"
            with stage("adding"):
                assert bar.tasks[0].description == "adding"
            assert bar.tasks[0].description == "counting"
        assert bar.tasks[0].description == "numbers"
    assert not progress._bars


def test_a_bar_is_there_while_its_stream_is_made(terminal):
    def make():
        assert progress._bars[0][0].tasks[0].description == "preparing the graph"
        return [1]

    assert list(with_progress(make, 1, "numbers")) == [1]


def test_a_bar_that_is_left_early_or_by_an_error_is_gone(terminal):
    for _ in with_progress([1, 2], 2, "numbers"):
        break
    with pytest.raises(ZeroDivisionError):
        list(with_progress((1 // n for n in (1, 0)), 2, "numbers"))
    assert not progress._bars


def test_the_innermost_stage_is_the_current_one():
    assert current_stage() is None
    with stage("one"):
        with stage("two"):
            assert current_stage() == "two"
        assert current_stage() == "one"
    assert current_stage() is None
