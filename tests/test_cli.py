"""The command line: what each command prints and writes, one clear line for bad input, and interruption."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bgcl.cli import main

FAST = ["--epochs", "2", "--set", "widths=[8, 4]", "--quiet"]


@pytest.fixture
def bgcl(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; gives (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bgcl", *arguments])
        handler = signal.getsignal(signal.SIGTERM)
        try:
            with pytest.raises(SystemExit) as exit_:
                main()
        finally:
            signal.signal(signal.SIGTERM, handler)
        out, err = capsys.readouterr()
        return exit_.value.code, out, err

    return run


def small_graph(path: Path, **change) -> Path:
    """A .npz of a ring of 12 nodes with 6 attributes; `change` replaces or (None) removes arrays."""
    ring = np.arange(12)
    arrays = {
        "adj_data": np.ones(12), "adj_indices": (ring + 1) % 12, "adj_indptr": np.arange(13), "adj_shape": [12, 12],
        "attr_data": np.ones(24), "attr_indices": np.concatenate([(ring % 6)[:, None], (ring % 5)[:, None] + 1], 1).ravel() % 6,
        "attr_indptr": np.arange(13) * 2, "attr_shape": [12, 6], "labels": ring % 2,
    }  # fmt: skip
    np.savez(path, **{name: array for name, array in (arrays | change).items() if array is not None})
    return path


def test_train_then_embed_round_trip(bgcl, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    assert bgcl("train", graph, "--out", "r", *FAST)[0] == 0
    code, out, _ = bgcl("embed", "r", "--samples", "6", "--out", "e.npz", "--json")
    assert code == 0
    assert json.loads(out)["arrays"]["draws"] == [6, 12, 4]
    arrays = np.load("e.npz")
    np.testing.assert_allclose(arrays["mean"], arrays["draws"].mean(0), atol=1e-6)
    np.testing.assert_allclose(arrays["deviation"], arrays["draws"].std(0, ddof=1), atol=1e-6)
    np.testing.assert_allclose(arrays["astd"], arrays["deviation"].mean(1), atol=1e-6)


def test_embed_without_draws_gives_the_same_moments(bgcl, tmp_path):
    bgcl("train", str(small_graph(tmp_path / "ring.npz")), "--out", "r", *FAST)
    bgcl("embed", "r", "--samples", "6", "--out", "all.npz")
    bgcl("embed", "r", "--samples", "6", "--no-draws", "--out", "few.npz")
    assert "draws" not in np.load("few.npz")
    np.testing.assert_allclose(np.load("few.npz")["deviation"], np.load("all.npz")["deviation"], atol=1e-6)


def test_train_prints_the_drop_rates_as_json(bgcl, tmp_path):
    code, out, _ = bgcl("train", str(small_graph(tmp_path / "ring.npz")), "--drop", "edges at 0.2/0.4", "--json", *FAST)
    found = json.loads(out)
    assert code == 0
    assert found["epoch"] == 2
    assert found["drop_rates"]["t"][0] == {"mask": "edges at 0.2/0.4", "mean": [[pytest.approx(0.4)]], "deviation": [[0.0]]}


def test_resume_from_the_command_line_continues(bgcl, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    bgcl("train", graph, "--out", "one", *FAST)
    assert bgcl("train", graph, "--out", "one", "--resume", "--epochs", "4", "--quiet")[0] == 0
    bgcl("train", graph, "--out", "two", "--epochs", "4", "--set", "widths=[8, 4]", "--quiet")
    bgcl("embed", "one", "--out", "one.npz", "--samples", "2")
    bgcl("embed", "two", "--out", "two.npz", "--samples", "2")
    assert np.array_equal(np.load("one.npz")["draws"], np.load("two.npz")["draws"])


def test_demo_shows_accuracy_rates_and_certainty_and_saves_pictures(bgcl):
    code, out, _ = bgcl("demo", "--epochs", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert 0.2 < found["accuracy"]["mean"] < 1
    assert found.keys() == {"accuracy", "drop_rates", "most_certain", "least_certain", "pictures"}
    assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in found["pictures"].values())


def test_data_list_and_verify(bgcl):
    assert {row["name"] for row in json.loads(bgcl("data", "list", "--json")[1])} >= {"cora", "wikics", "coauthor-cs"}
    assert "matches the published content" in bgcl("data", "verify", "cora")[1]


BROKEN = {
    "an empty graph": (dict(adj_shape=[0, 0], adj_indptr=[0], adj_data=[], adj_indices=np.zeros(0, int), attr_shape=[0, 6],
                            attr_indptr=[0], attr_data=[], attr_indices=np.zeros(0, int), labels=np.zeros(0, int)), "empty"),
    "an edge to a node that does not exist": (dict(adj_indices=np.full(12, 99)), "99"),
    "a NaN attribute": (dict(attr_data=np.full(24, np.nan)), "nan"),
    "an infinite attribute": (dict(attr_data=np.full(24, np.inf)), "inf"),
    "attributes of another length": (
        dict(attr_shape=[11, 6], attr_indptr=np.arange(12) * 2, attr_data=np.ones(22), attr_indices=np.arange(22) % 6), "11"),
    "a missing array": (dict(adj_indptr=None), "adj_indptr"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_graph_is_one_clear_line(bgcl, tmp_path, name):
    change, word = BROKEN[name]
    check_refused(bgcl("train", str(small_graph(tmp_path / "bad.npz", **change)), *FAST), "bad.npz", word)


BAD = {
    "unknown data set": (["train", "coar"], "Unknown data set 'coar'. Did you mean cora?"),
    "unknown preset": (["train", "cora", "--preset", "corra"], "Unknown preset 'corra'. Did you mean cora?"),
    "setting out of range": (["train", "cora", "--set", "tau=0"], "'tau' must be a number between 0.02 and 100. Got 0"),
    "epochs out of range": (["train", "cora", "--epochs", "-1"], "'epochs' must be a whole number between 1 and 1e+06"),
    "unknown setting": (["train", "cora", "--set", "tua=1"], "Unknown setting 'tua'. Did you mean tau?"),
    "no equals sign": (["train", "cora", "--set", "tau"], "write NAME=VALUE"),
    "unknown mask": (["train", "cora", "--drop", "edgse at 0.1"], "Unknown mask 'edgse'"),
    "rate out of range": (["train", "cora", "--drop", "edges at 1.5"], "must be between 0 and 1"),
    "not a run": (["embed", "nowhere", "--out", "e.npz"], "nowhere is not a run"),
    "resume of nothing": (["train", "cora", "--resume", "--out", "nowhere"], "nowhere is not a run"),
    "wrong ending": (["embed", "nowhere", "--out", "e.txt"], "must end in .npz"),
    "unknown command": (["trian"], "No such command 'trian'"),
    "unknown option": (["train", "cora", "--bogus"], "No such option"),
    "missing argument": (["train"], "Missing argument"),
    "a file that is no graph": (["train", "missing.npz"], "missing.npz"),
    "a device that is not there": (["train", "cora", "--set", "device=moon"], "device"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(bgcl, name):
    arguments, message = BAD[name]
    check_refused(bgcl(*arguments), message)


def check_refused(result: tuple[int, str, str], *messages: str) -> None:
    code, _, err = result
    assert code == 2
    assert err.startswith("bgcl: ")
    assert err.count("\n") == 1, err
    assert all(message in err for message in messages), err
    assert "Traceback" not in err


def test_a_run_is_not_overwritten_by_accident(bgcl, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    bgcl("train", graph, "--out", "r", *FAST)
    check_refused(bgcl("train", graph, "--out", "r", *FAST), "--resume", "--overwrite")
    assert bgcl("train", graph, "--out", "r", "--overwrite", *FAST)[0] == 0


def test_a_damaged_model_file_is_one_clear_line(bgcl, tmp_path):
    bgcl("train", str(small_graph(tmp_path / "ring.npz")), "--out", "r", *FAST)
    Path("r/model.safetensors").write_bytes(b"\0" * 100)
    check_refused(bgcl("embed", "r", "--out", "e.npz"), "model.safetensors is damaged")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_training_keeps_its_epochs_and_says_how_to_go_on(tmp_path, sign):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bgcl", "train", "cora", "--out", "r", "--set", "widths=[8, 4]"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment)
    history = tmp_path / "r" / "history.jsonl"
    deadline = time.monotonic() + 120
    while not (history.is_file() and history.read_text().count("\n") >= 3):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(sign)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "Go on with: bgcl train cora --out r --resume" in errors
    kept = history.read_text().count("\n")
    again = [*command[:-2], "--resume", "--epochs", str(kept + 2), "--quiet", "--json"]
    done = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout)["epoch"] == kept + 2
