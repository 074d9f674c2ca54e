"""The fixture that runs a command."""

import os
import signal
import sys
from pathlib import Path

import pytest

from bgcl.cli import main

if "BGCL_DATA" in os.environ:  # commands run in other folders, where a relative path would not work
    os.environ["BGCL_DATA"] = str(Path(os.environ["BGCL_DATA"]).resolve())
# A shell ignores Ctrl-C in what it runs in the background, and nohup ignores SIGHUP. Processes that tests start would
# ignore them too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """A function that runs a command in an empty folder and returns (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bgcl", *arguments])
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            with pytest.raises(SystemExit) as exit_:
                main()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        out, err = capsys.readouterr()
        return exit_.value.code, out, err

    return command
