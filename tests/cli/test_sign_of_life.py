"""The line that says what a command is doing while it prints nothing. Time is a fake clock."""

import io
import sys
import time

import pytest

from bgcl.cli import sign_of_life
from bgcl.cli.sign_of_life import ERASE, SILENCE, SignOfLife
from bgcl.progress import stage


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(sign_of_life, "STEP", 1e6)  # the test calls `tick`, not the thread
    return Clock()


def terminal_in(monkeypatch) -> Terminal:
    """A terminal in the place of both streams. It is made in the test, because pytest replaces them before."""
    found = Terminal()
    monkeypatch.setattr(sys, "stdout", found)
    monkeypatch.setattr(sys, "stderr", found)
    return found


def test_the_line_appears_after_a_silence_and_counts_the_seconds(monkeypatch, clock):
    terminal = terminal_in(monkeypatch)
    with SignOfLife("predict", clock=clock) as sign:
        sign.tick()
        assert terminal.getvalue() == ""
        clock.now += SILENCE + 0.1
        sign.tick()
        assert terminal.getvalue() == f"{ERASE}bgcl predict: starting, 1 s"
        clock.now += 4
        sign.tick()
        assert terminal.getvalue().endswith(f"{ERASE}bgcl predict: starting, 5 s")
    assert terminal.getvalue().endswith(ERASE)


def test_it_names_the_stage_and_counts_anew_for_each(monkeypatch, clock):
    terminal = terminal_in(monkeypatch)
    with SignOfLife("train", clock=clock) as sign:
        for text, seconds in (("reading the tables", 5), ("inspecting the graph", 2)):
            with stage(text):
                clock.now += 3
                sign.tick()
                clock.now += 2
                sign.tick()
                assert terminal.getvalue().endswith(f"bgcl train: {text}, {seconds} s")
        clock.now += 3
        sign.tick()
        assert terminal.getvalue().endswith("bgcl train: working, 0 s")


def test_it_is_erased_before_anything_else_is_printed(monkeypatch, clock):
    terminal = terminal_in(monkeypatch)
    with SignOfLife("rank", clock=clock) as sign:
        clock.now += 2
        sign.tick()
        print("a result")
        assert terminal.getvalue().endswith(f"2 s{ERASE}a result\n")
        sign.tick()
        assert terminal.getvalue().endswith("a result\n"), "there was output just now"
        clock.now += 2
        sign.tick()
        print("a note", file=sys.stderr)
        assert terminal.getvalue().endswith(f"2 s{ERASE}a note\n")


@pytest.mark.parametrize("how", ["no terminal", "not wanted"])
def test_nothing_is_touched_without_a_terminal_or_if_nobody_wants_it(monkeypatch, clock, how):
    out, err = io.StringIO(), io.StringIO() if how == "no terminal" else Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with SignOfLife("rank", wanted=how == "no terminal", clock=clock):
        assert (sys.stdout, sys.stderr) == (out, err)


def test_an_error_leaves_the_streams_as_they_were(monkeypatch, clock):
    terminal = terminal_in(monkeypatch)

    def work():
        with SignOfLife("rank", clock=clock) as sign:
            clock.now += 2
            sign.tick()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert sys.stdout is sys.stderr is terminal
    assert terminal.getvalue().endswith(ERASE)


def test_what_is_not_printing_is_that_of_the_stream(monkeypatch, clock):
    terminal = terminal_in(monkeypatch)
    with SignOfLife("rank", clock=clock):
        assert sys.stderr.isatty()
        sys.stdout.writelines(["a\n", "b\n"])
    assert terminal.getvalue() == "a\nb\n"


def test_its_thread_shows_it_without_a_tick(monkeypatch):
    terminal = terminal_in(monkeypatch)
    monkeypatch.setattr(sign_of_life, "STEP", 0.01)
    monkeypatch.setattr(sign_of_life, "SILENCE", 0.0)
    with SignOfLife("rank") as sign:
        deadline = time.monotonic() + 20
        while not sign.shown and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "bgcl rank: starting" in terminal.getvalue()
