"""Every example runs, with two epochs, and ends by printing something."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("sys.argv", [str(path), "2"])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 1
    assert list(tmp_path.iterdir()) == []  # what an example writes, it writes elsewhere
