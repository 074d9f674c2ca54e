"""`bgcl train`: what it writes and prints, how it resumes, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from bgcl.cli.train import parse_setting
from bgcl.settings import Settings
from command_line import FAST, check_refused, small_graph


def test_train_prints_the_drop_rates_as_json(run, tmp_path):
    code, out, _ = run("train", str(small_graph(tmp_path / "ring.npz")), "--drop", "edges at 0.2/0.4", "--json", *FAST)
    found = json.loads(out)
    assert code == 0
    assert found["epoch"] == 2
    assert found["drop_rates"]["t"][0] == {"mask": "edges at 0.2/0.4", "mean": [[pytest.approx(0.4)]], "std": [[0.0]]}


def test_train_prints_the_drop_rates_as_a_table(run, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    code, out, _ = run("train", graph, "--set", "encoder=gcn", "--drop", "edges", "--drop", "entries at 0.2", *FAST)
    assert code == 0
    assert out.startswith("run: epochs 2, loss ")
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


def settings_of(run: str) -> dict:
    groups = tomllib.loads(Path(run, "model.toml").read_text())["settings"]
    return {name: value for group in groups.values() for name, value in group.items()}


@pytest.mark.parametrize("name", ["cora", "CORA", "a file"])
def test_every_graph_has_the_default_settings_unless_a_preset_is_named(run, tmp_path, name):
    graph = str(small_graph(tmp_path / "ring.npz")) if name == "a file" else name
    few = ("--epochs", "1", "--set", "widths=[8, 4]", "--quiet")
    assert run("train", graph, "--out", "r", "--set", "part_width=4", *few)[0] == 0
    assert settings_of("r") == Settings(widths=[8, 4], part_width=4, epochs=1).to_json()
    assert run("train", graph, "--out", "p", "--preset", "paper-cora", *few)[0] == 0
    expected = {"encoder": "gcn", "drop": ["edges", "entries"], "activation": "relu", "widths": [8, 4], "epochs": 1}
    assert expected.items() <= settings_of("p").items()


def test_the_chosen_settings_are_shown_before_the_training(run, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    loud = [word for word in FAST if word != "--quiet"]
    _, _, err = run("train", graph, "--out", "r", *loud)
    assert "12 nodes with 6 attributes: encoder mlp, objective infonce; drop " in err
    assert "2 epochs, 2 steps" in err
    _, _, err = run("train", graph, "--out", "q", "--quiet", *loud)
    assert "encoder mlp" not in err


def test_without_epochs_there_are_300_steps(run, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    run("train", graph, "--out", "r", "--set", "batch_nodes=2", "--set", "widths=[4]", "--quiet")
    assert settings_of("r")["epochs"] == 50  # of six steps


@pytest.mark.parametrize("words", [(), ("--resume",), ("--overwrite",)])
def test_a_folder_in_which_another_process_trains_is_refused_at_once(run, tmp_path, words):
    graph = str(small_graph(tmp_path / "ring.npz"))
    run("train", graph, "--out", "r", *FAST)
    before = {path.name: path.read_bytes() for path in Path("r").iterdir()}
    code = "from bgcl.files import sole_use\nwith sole_use('r'): print('inside', flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as other:
        assert other.stdout.readline() == "inside\n"
        check_refused(run("train", "no such graph", "--out", "r", *words), f"r is in use by process {other.pid} on")
        other.communicate("\n")
    assert {path.name: path.read_bytes() for path in Path("r").iterdir()} == before


@pytest.mark.parametrize("encoder", ["gcn", "hops", "sage", "gin", "gat", "pyg:GraphConv"])
def test_an_encoder_is_chosen_by_its_name(run, tmp_path, encoder):
    graph = str(small_graph(tmp_path / "ring.npz"))
    assert run("train", graph, "--out", "r", "--set", f"encoder={encoder}", *FAST)[0] == 0
    assert settings_of("r")["encoder"] == encoder
    assert run("embed", "r", "--out", "r.npz", "--samples", "2")[0] == 0


@pytest.mark.parametrize("objective", ["decorrelation", "bootstrap", "infomax"])
def test_an_objective_is_chosen_by_its_name(run, tmp_path, objective):
    graph = str(small_graph(tmp_path / "ring.npz"))
    encoder = ("--set", "encoder=hops") if objective == "infomax" else ()  # which must see neighbors
    assert run("train", graph, "--out", "r", "--set", f"objective={objective}", *encoder, *FAST)[0] == 0
    assert settings_of("r")["objective"] == objective
    assert run("embed", "r", "--out", "r.npz", "--samples", "2")[0] == 0


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


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_training_keeps_its_epochs_and_says_how_to_continue(tmp_path, sign):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    small = ("--set", "part_width=8", "--set", "widths=[8, 4]")
    command = [sys.executable, "-m", "bgcl", "train", "cora", "--out=r", "--epochs", "3000", *small]
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
    again = [*command[:6], "--resume", "--epochs", str(kept + 2), *small, "--quiet", "--json"]
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
