"""Ctrl-C ends a command in one line and exit code 130, also while it imports its packages."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bgcl.cli import interrupt

COMMAND = [sys.executable, "-c", "from bgcl.cli import main; print('on', flush=True); main()"]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3, 0.8])
def test_an_interruption_of_the_imports_is_one_line(tmp_path, seconds, sign):
    command = [*COMMAND, "train", "cora", "--out", "r", "--epochs", "3000", "--quiet"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        process.stdout.readline()
        time.sleep(0.05 + seconds)  # until the handler is there
        process.send_signal(sign)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.startswith("bgcl: interrupted")
    assert err.count("\n") == 1


def test_a_signal_during_an_import_waits_for_its_end(tmp_path, monkeypatch):
    (tmp_path / "slow_module.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.2)\ndone = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = {name: signal.getsignal(getattr(signal, name)) for name in (*interrupt.SIGNALS, "SIGALRM")}
    try:
        interrupt.listen()
        with pytest.raises(KeyboardInterrupt):
            _import_and_wait()
        assert sys.modules["slow_module"].done
        assert interrupt.was_asked()
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


def _import_and_wait() -> None:
    import slow_module  # noqa: F401

    time.sleep(5)


def test_a_signal_during_the_last_import_does_not_end_the_process_after_its_error(tmp_path):
    (tmp_path / "late.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    code = """
import sys, time
import bgcl.cli
from bgcl.errors import BGCLError
def run():
    import late
    bgcl.cli._fail("the reason", 2)
bgcl.cli._run = run
try:
    bgcl.cli.main()
finally:
    time.sleep(0.3)
"""
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (2, "bgcl: the reason\n")
