"""`bgcl train`: what it writes and prints, how it resumes, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bgcl.cli.train import _preset, parse_setting
from command_line import FAST, check_refused, small_graph


def test_train_prints_the_drop_rates_as_json(run, tmp_path):
    code, out, _ = run("train", str(small_graph(tmp_path / "ring.npz")), "--drop", "edges at 0.2/0.4", "--json", *FAST)
    found = json.loads(out)
    assert code == 0
    assert found["epoch"] == 2
    assert found["drop_rates"]["t"][0] == {"mask": "edges at 0.2/0.4", "mean": [[pytest.approx(0.4)]], "std": [[0.0]]}


def test_train_prints_the_drop_rates_as_a_table(run, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    code, out, _ = run("train", graph, "--drop", "edges", "--drop", "entries at 0.2", *FAST)
    assert code == 0
    assert out.startswith("run: 2 epochs, loss ")
    rows = [line.split() for line in out.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["o", "edges"], ["o", "entries"], ["t", "edges"], ["t", "entries"]]
    assert [row[-1] == "fixed" for row in rows] == [False, True, False, True]


def test_resume_continues_as_an_uninterrupted_run(run, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    run("train", graph, "--out", "one", *FAST)
    assert run("train", graph, "--out", "one", "--resume", "--epochs", "4", "--quiet")[0] == 0
    run("train", graph, "--out", "two", "--epochs", "4", "--set", "widths=[8, 4]", "--quiet")
    run("embed", "one", "--out", "one.npz", "--samples", "2")
    run("embed", "two", "--out", "two.npz", "--samples", "2")
    assert np.array_equal(np.load("one.npz")["draws"], np.load("two.npz")["draws"])


def test_a_data_set_has_its_preset_in_any_spelling():
    assert _preset("Cora", None) == _preset("CORA", None) == "cora"
    assert _preset("amazon_photo", None) == "amazon-photo"
    assert _preset("some.npz", None) == "auto"
    assert _preset("pubmed", None) is None


def test_a_setting_is_parsed_as_toml_or_none_or_text():
    assert parse_setting("tau=0.5") == ("tau", 0.5)
    assert parse_setting("widths=[8, 4]") == ("widths", [8, 4])
    assert parse_setting("loss_nodes=none") == ("loss_nodes", None)
    assert parse_setting("row_norm=none") == ("row_norm", "none")
    assert parse_setting("device=cpu") == ("device", "cpu")


def test_a_run_is_not_overwritten_by_accident(run, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    run("train", graph, "--out", "r", *FAST)
    check_refused(run("train", graph, "--out", "r", *FAST), "--resume", "--overwrite")
    assert run("train", graph, "--out", "r", "--overwrite", *FAST)[0] == 0


def test_an_overwritten_run_stays_until_the_first_epoch_of_the_new_one(run, tmp_path, monkeypatch):
    graph = str(small_graph(tmp_path / "ring.npz"))
    run("train", graph, "--out", "r", *FAST)
    before = Path("r/model.safetensors").read_bytes()
    monkeypatch.setattr("bgcl.model.training.Training.step", interrupt)
    code, _, err = run("train", graph, "--out", "r", "--overwrite", *FAST)
    assert code == 130
    assert "Continue with" not in err
    assert Path("r/model.safetensors").read_bytes() == before


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_training_keeps_its_epochs_and_says_how_to_continue(tmp_path, sign):
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
    assert "Continue with: bgcl train cora --out r --resume" in errors
    kept = history.read_text().count("\n")
    again = [*command[:-2], "--resume", "--epochs", str(kept + 2), "--quiet", "--json"]
    done = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout)["epoch"] == kept + 2


NONE = np.zeros(0, int)
BROKEN = {
    "an empty graph": (
        dict(adj_shape=[0, 0], adj_indptr=[0], adj_data=NONE, adj_indices=NONE, attr_shape=[0, 6], attr_indptr=[0],
             attr_data=NONE, attr_indices=NONE, labels=NONE), "empty"),
    "an edge to a node that does not exist": (dict(adj_indices=np.full(12, 99)), "99"),
    "a NaN attribute": (dict(attr_data=np.full(24, np.nan)), "nan"),
    "an infinite attribute": (dict(attr_data=np.full(24, np.inf)), "inf"),
    "attributes of another length": (
        dict(attr_shape=[11, 6], attr_indptr=np.arange(12) * 2, attr_data=np.ones(22), attr_indices=np.arange(22) % 6),
        "11"),
    "a missing array": (dict(adj_indptr=None), "adj_indptr"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_graph_is_one_clear_line(run, tmp_path, name):
    change, word = BROKEN[name]
    check_refused(run("train", str(small_graph(tmp_path / "bad.npz", **change)), *FAST), "bad.npz", word)


def test_out_must_not_be_a_file(run, blobs):
    Path("file").write_text("")
    check_refused(run("train", blobs, "--out", "file", *FAST), "file")


def test_a_graph_must_not_be_a_folder_named_npz(run):
    Path("folder.npz").mkdir()
    check_refused(run("train", "folder.npz", "--out", "n", *FAST), "Cannot read folder.npz")
