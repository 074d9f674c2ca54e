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

FAST = ["--epochs", "2", "--set", "widths=[8, 4]", "--quiet"]
LONGER = ["--epochs", "40", "--set", "widths=[32, 16]", "--set", "lr_weights=0.01", "--quiet"]


def small_graph(path: Path, **change) -> Path:
    """A .npz of a ring of 12 nodes with 6 attributes; `change` replaces or (None) removes arrays."""
    ring = np.arange(12)
    arrays = {
        "adj_data": np.ones(12), "adj_indices": (ring + 1) % 12, "adj_indptr": np.arange(13), "adj_shape": [12, 12],
        "attr_data": np.ones(24), "attr_indices": np.stack([ring % 6, (ring % 5 + 1) % 6], 1).ravel(),
        "attr_indptr": np.arange(13) * 2, "attr_shape": [12, 6], "labels": ring % 2,
    }  # fmt: skip
    np.savez(path, **{name: array for name, array in (arrays | change).items() if array is not None})
    return path


def test_train_then_embed_round_trip(run, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    assert run("train", graph, "--out", "r", *FAST)[0] == 0
    code, out, _ = run("embed", "r", "--samples", "6", "--out", "e.npz", "--json")
    assert code == 0
    assert json.loads(out)["arrays"]["draws"] == [6, 12, 4]
    arrays = np.load("e.npz")
    np.testing.assert_allclose(arrays["mean"], arrays["draws"].mean(0), atol=1e-6)
    np.testing.assert_allclose(arrays["deviation"], arrays["draws"].std(0, ddof=1), atol=1e-6)
    np.testing.assert_allclose(arrays["astd"], arrays["deviation"].mean(1), atol=1e-6)


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_embed_writes_a_row_for_each_node(run, tmp_path, ending):
    run("train", str(small_graph(tmp_path / "ring.npz")), "--out", "r", *FAST)
    assert run("embed", "r", "--samples", "6", "--out", f"e.{ending}")[0] == 0
    run("embed", "r", "--samples", "6", "--out", "e.npz")
    table, arrays = read_table(Path(f"e.{ending}")), np.load("e.npz")
    assert table["node"] == list(range(12))
    np.testing.assert_allclose(table["astd"], arrays["astd"], rtol=1e-5)
    np.testing.assert_allclose(table["mean_3"], arrays["mean"][:, 3], rtol=1e-5, atol=1e-7)


def read_table(path: Path) -> dict[str, list]:
    """The columns of a file, by a reader of its format that this project has no part in."""
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".json":
        rows = json.loads(path.read_text())
        return {name: [row[name] for row in rows] for name in rows[0]}
    return (pyarrow.parquet.read_table if path.suffix == ".parquet" else pyarrow.csv.read_csv)(path).to_pydict()


def test_embed_without_draws_gives_the_same_moments(run, tmp_path):
    run("train", str(small_graph(tmp_path / "ring.npz")), "--out", "r", *FAST)
    run("embed", "r", "--samples", "6", "--out", "all.npz")
    run("embed", "r", "--samples", "6", "--no-draws", "--out", "few.npz")
    assert "draws" not in np.load("few.npz")
    np.testing.assert_allclose(np.load("few.npz")["deviation"], np.load("all.npz")["deviation"], atol=1e-6)


def test_train_prints_the_drop_rates_as_json(run, tmp_path):
    code, out, _ = run("train", str(small_graph(tmp_path / "ring.npz")), "--drop", "edges at 0.2/0.4", "--json", *FAST)
    found = json.loads(out)
    assert code == 0
    assert found["epoch"] == 2
    assert found["drop_rates"]["t"][0] == {
        "mask": "edges at 0.2/0.4",
        "mean": [[pytest.approx(0.4)]],
        "deviation": [[0.0]],
    }


def test_resume_from_the_command_line_continues(run, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    run("train", graph, "--out", "one", *FAST)
    assert run("train", graph, "--out", "one", "--resume", "--epochs", "4", "--quiet")[0] == 0
    run("train", graph, "--out", "two", "--epochs", "4", "--set", "widths=[8, 4]", "--quiet")
    run("embed", "one", "--out", "one.npz", "--samples", "2")
    run("embed", "two", "--out", "two.npz", "--samples", "2")
    assert np.array_equal(np.load("one.npz")["draws"], np.load("two.npz")["draws"])


def test_demo_shows_how_far_to_trust_and_saves_pictures(run):
    code, out, _ = run("demo", "--epochs", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert 0.2 < found["scores"]["accuracy"]["mean"] < 1
    assert found.keys() == {"scores", "drop_rates", "most_certain", "least_certain", "pictures", "report"}
    assert Path(found["report"]).read_text().startswith("<!doctype html>")
    assert len(found["pictures"]) == 6
    assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in found["pictures"])


@pytest.fixture
def blobs(tmp_path) -> str:
    """A .npz of 120 nodes in two classes that attributes and edges both tell apart; a sixth is unlabelled."""
    random = np.random.default_rng(0)
    label = np.arange(120) % 2
    attributes = (random.random((120, 8)) < np.where(label[:, None] == (np.arange(8) % 2), 0.8, 0.2)).astype(float)
    source = np.repeat(np.arange(120), 3)
    target = (source + 2 * random.integers(1, 60, 360)) % 120  # an even step stays in the class
    order = np.lexsort((target, source))
    pairs = np.unique(np.stack([source[order], target[order]]), axis=1)
    row, column = np.nonzero(attributes)
    np.savez(
        tmp_path / "blobs.npz", adj_data=np.ones(pairs.shape[1]), adj_indices=pairs[1], adj_shape=[120, 120],
        adj_indptr=np.concatenate([[0], np.bincount(pairs[0], minlength=120).cumsum()]), attr_data=np.ones(len(row)),
        attr_indices=column, attr_indptr=np.concatenate([[0], np.bincount(row, minlength=120).cumsum()]),
        attr_shape=[120, 8], labels=np.where(np.arange(120) % 6 == 5, -1, label),
    )  # fmt: skip
    return str(tmp_path / "blobs.npz")


def test_evaluate_reports_scores_of_all_measures_over_splits_and_seeds(run, blobs):
    for seed in ("0", "1"):
        run("train", blobs, "--out", f"r{seed}", "--seed", seed, *LONGER)
    code, out, _ = run("evaluate", "r0", "r1", "--splits", "3", "--samples", "14", "--json", "--plots", "p")
    found = json.loads(out)
    assert code == 0
    assert found["protocol"] == "grace"
    assert found["scores"]["accuracy"]["mean"] > 0.8
    assert found["scores"]["accuracy"]["over_seeds"] >= 0
    assert {"ece", "nll", "brier", "auroc:mutual_information", "pavpu:predictive_entropy"} < found["scores"].keys()
    assert [Path(path).name for path in found["plots"]] == [
        "pavpu.png", "reliability.png", "risk_coverage.png", "uncertainty_by_class.png"
    ]  # fmt: skip
    code, out, _ = run("evaluate", "r0", "--splits", "2", "--samples", "14", "--quiet")
    assert code == 0
    assert "least confidence *" in out


def test_evaluate_by_the_papers_appendix(run, blobs):
    run("train", blobs, "--out", "r", *FAST)
    found = json.loads(run("evaluate", "r", "--appendix", "--splits", "2", "--json")[1])
    assert (found["samples"], found["training_draws"], found["set_size"]) == (500, 10, 10)


def test_predict_writes_label_class_probability_and_uncertainty(run, blobs):
    run("train", blobs, "--out", "r", *LONGER)
    code, out, _ = run("predict", "r", "--out", "p.csv", "--samples", "14", "--json")
    assert code == 0
    table = read_table(Path("p.csv"))
    assert json.loads(out)["labelled"] == 100
    assert table["node"] == list(range(120))
    np.testing.assert_allclose(np.array(table["p_0"]) + table["p_1"], 1)
    unlabelled = np.array(table["label"]) < 0
    assert unlabelled.sum() == 20
    assert (np.array(table["predicted"]) == np.arange(120) % 2).mean() > 0.8


def test_scores_as_a_table_and_undefined_spreads_as_null(run, blobs):
    run("train", blobs, "--out", "r", *FAST)
    code, out, _ = run("evaluate", "r", "--splits", "2", "--samples", "14", "--json", "--out", "scores.csv")
    assert code == 0
    assert json.loads(out, parse_constant=pytest.fail)["scores"]["accuracy"]["over_seeds"] is None
    table = read_table(Path("scores.csv"))
    assert table["mean"][table["score"].index("ece")] == pytest.approx(json.loads(out)["scores"]["ece"]["mean"])


@pytest.mark.parametrize("name", ["Cora", "CORA"])
def test_a_data_set_brings_its_preset_however_it_is_spelt(run, name):
    from bgcl.cli.training import _preset

    assert _preset(name, None) == "cora"
    assert _preset("amazon_photo", None) == "amazon-photo"
    assert _preset("some.npz", None) == "auto"
    assert _preset("pubmed", None) is None


def test_a_run_that_is_overwritten_stays_until_the_first_epoch_of_the_new_one(run, tmp_path, monkeypatch):
    graph = str(small_graph(tmp_path / "ring.npz"))
    run("train", graph, "--out", "r", *FAST)
    before = Path("r/model.safetensors").read_bytes()
    monkeypatch.setattr("bgcl.model.training.Training.step", interrupted)
    code, _, err = run("train", graph, "--out", "r", "--overwrite", *FAST)
    assert code == 130
    assert "Go on with" not in err
    assert Path("r/model.safetensors").read_bytes() == before


def interrupted(*_):
    raise KeyboardInterrupt


def test_rank_lists_the_most_uncertain_nodes_first(run, blobs):
    run("train", blobs, "--out", "r", *FAST)
    run("predict", "r", "--out", "p.json", "--samples", "14")
    entropy = np.array(read_table(Path("p.json"))["predictive_entropy"])
    rows = json.loads(run("rank", "r", "--by", "entropy", "--top", "5", "--samples", "14", "--json")[1])
    assert [row["node"] for row in rows] == np.argsort(-entropy)[:5].tolist()
    rows = json.loads(run("rank", "r", "--unlabelled", "--top", "20", "--samples", "14", "--json")[1])
    assert {row["node"] for row in rows} == {node for node in range(120) if node % 6 == 5}


@pytest.mark.parametrize("by", ["astd", "disagreement"])
def test_rank_needs_no_labels_for_measures_of_the_embedding(run, tmp_path, by):
    run("train", str(small_graph(tmp_path / "ring.npz", labels=None)), "--out", "r", *FAST)
    rows = json.loads(run("rank", "r", "--by", by, "--top", "12", "--samples", "8", "--diverse", "--json")[1])
    assert sorted(row["node"] for row in rows) == list(range(12))
    assert run("rank", "r", "--by", by, "--top", "3", "--samples", "8", "--out", "rank.csv")[0] == 0
    assert read_table(Path("rank.csv"))["rank"] == [1, 2, 3]


class TestBadInputDownstream:
    """Each one clear line and exit code 2."""

    @pytest.fixture
    def run(self, run, blobs):
        run("train", blobs, "--out", "r", *FAST)
        return run

    def test_runs_of_different_settings_are_not_pooled(self, run, blobs):
        run("train", blobs, "--out", "other", "--set", "tau=0.7", *FAST)
        check_refused(run("evaluate", "r", "other"), "must differ by seed alone")

    def test_runs_of_different_graphs_are_not_pooled(self, run, tmp_path):
        run("train", str(small_graph(tmp_path / "ring.npz")), "--out", "other", *FAST)
        check_refused(run("evaluate", "r", "other"), "trained on another graph")

    def test_samples_with_the_appendix(self, run):
        check_refused(run("evaluate", "r", "--appendix", "--samples", "20"), "leave out --samples")

    def test_a_seed_out_of_range(self, run):
        check_refused(run("embed", "r", "--out", "e.csv", "--seed", str(2**70)), "The seed must be")

    def test_out_that_is_a_file(self, run, blobs):
        Path("file").write_text("")
        check_refused(run("train", blobs, "--out", "file", *FAST), "file")

    def test_a_graph_that_is_a_folder(self, run):
        Path("folder.npz").mkdir()
        check_refused(run("train", "folder.npz", "--out", "n", *FAST), "Cannot read folder.npz")

    def test_facts_of_another_type(self, run):
        text = Path("r/model.toml").read_text()
        Path("r/model.toml").write_text(text.replace("attributes = 8", 'attributes = "x"'))
        check_refused(run("evaluate", "r"), "model.toml is damaged")

    def test_unknown_measure(self, run):
        check_refused(run("rank", "r", "--by", "entropi"), "Unknown measure 'entropi'")

    def test_unknown_protocol(self, run):
        check_refused(run("evaluate", "r", "--protocol", "grcae"), "Unknown protocol 'grcae'. Did you mean grace?")

    def test_no_published_masks(self, run):
        check_refused(run("evaluate", "r", "--protocol", "public"), "no published masks")

    def test_a_run_trained_on_another_graph(self, run, tmp_path):
        other = str(small_graph(tmp_path / "ring.npz"))
        check_refused(run("evaluate", "r", "--graph", other), "trained on another graph (120 nodes")

    def test_no_labels(self, run, tmp_path):
        run("train", str(small_graph(tmp_path / "ring.npz", labels=None)), "--out", "n", *FAST)
        for command in (["evaluate", "n"], ["predict", "n", "--out", "p.csv"], ["rank", "n"]):
            check_refused(run(*command), "no labels")

    def test_no_labelled_node(self, run, tmp_path):
        run("train", str(small_graph(tmp_path / "ring.npz", labels=np.full(12, -1))), "--out", "n", *FAST)
        check_refused(run("evaluate", "n"), "No node is labelled")

    def test_a_class_with_one_labelled_node(self, run, tmp_path):
        labels = np.where(np.arange(12) == 3, 7, np.arange(12) % 2)
        run("train", str(small_graph(tmp_path / "ring.npz", labels=labels)), "--out", "n", *FAST)
        check_refused(run("predict", "n", "--out", "p.csv"), "Class 7 has 1 labelled nodes")

    def test_too_few_samples(self, run):
        check_refused(run("evaluate", "r", "--samples", "1"), "too few are left to predict with")
        check_refused(run("embed", "r", "--samples", "1", "--out", "e.csv"), "needs 2 samples")

    def test_a_file_of_no_known_format(self, run):
        check_refused(run("predict", "r", "--out", "p.xls"), "must end in .csv, .parquet or .json")

    def test_more_nodes_than_there_are(self, run):
        check_refused(run("rank", "r", "--top", "500"), "--top must be between 1")


def test_data_list_and_verify(run):
    assert {row["name"] for row in json.loads(run("data", "list", "--json")[1])} >= {"cora", "wikics", "coauthor-cs"}
    assert "matches the published content" in run("data", "verify", "cora")[1]


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
    "wrong ending": (["embed", "nowhere", "--out", "e.txt"], "must end in .csv, .parquet or .json"),
    "unknown command": (["trian"], "No such command 'trian'"),
    "unknown option": (["train", "cora", "--bogus"], "No such option"),
    "missing argument": (["train"], "Missing argument"),
    "a file that is no graph": (["train", "missing.npz"], "missing.npz"),
    "no epochs": (["train", "cora", "--epochs", "0"], "'epochs' must be a whole number between 1 and"),
    "nothing to drop": (["train", "cora", "--set", "drop=[]"], "'drop' must be"),
    "a preset as a setting": (["train", "cora", "--set", "preset=cora"], "Name a preset with --preset"),
    "resume with a preset": (["train", "cora", "--resume", "--preset", "cora"], "leave out --preset and --overwrite"),
    "a name that is far too long": (["train", "x" * 5000], "x"),
    "a device that is not there": (["train", "cora", "--set", "device=moon"], "device"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(run, name):
    arguments, message = BAD[name]
    check_refused(run(*arguments), message)


def check_refused(result: tuple[int, str, str], *messages: str) -> None:
    code, _, err = result
    assert code == 2
    assert err.startswith("bgcl: ")
    assert err.count("\n") == 1, err
    assert all(message in err for message in messages), err
    assert "Traceback" not in err


def test_a_run_is_not_overwritten_by_accident(run, tmp_path):
    graph = str(small_graph(tmp_path / "ring.npz"))
    run("train", graph, "--out", "r", *FAST)
    check_refused(run("train", graph, "--out", "r", *FAST), "--resume", "--overwrite")
    assert run("train", graph, "--out", "r", "--overwrite", *FAST)[0] == 0


def test_a_damaged_model_file_is_one_clear_line(run, tmp_path):
    run("train", str(small_graph(tmp_path / "ring.npz")), "--out", "r", *FAST)
    Path("r/model.safetensors").write_bytes(b"\0" * 100)
    check_refused(run("embed", "r", "--out", "e.npz"), "model.safetensors is damaged")


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


def test_report_writes_one_page_beside_the_run_or_where_it_is_told(run, blobs):
    run("train", blobs, "--out", "r", *FAST)
    code, out, _ = run("report", "r", "--samples", "12", "--json")
    assert code == 0
    assert json.loads(out) == {
        "file": str(Path("r/report.html")), "nodes": 120, "bytes": Path("r/report.html").stat().st_size
    }  # fmt: skip
    code, out, _ = run("report", "r", "--samples", "12", "--out", "page.html", "--quiet")
    assert code == 0
    assert "120 nodes" in out
    assert Path("page.html").read_bytes() == Path("r/report.html").read_bytes()
    code, _, err = run("report", "r", "--out", "page.txt")
    assert code == 2
    assert "must end in .html" in err
