"""`bgcl evaluate`: scores over splits and seeds, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import FAST, LONGER, check_refused, read_table, small_graph


def test_scores_of_all_measures_over_splits_and_seeds(run, blobs):
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


def test_predictions_without_training_stand_next_to_the_model(run_trained):
    code, out, _ = run_trained("evaluate", "r", "--splits", "2", "--samples", "14", "--json")
    found = json.loads(out)
    assert code == 0
    assert [row["prediction"] for row in found["floors"]] == [
        "most frequent class", "vote of neighbors", "attributes alone", "propagated attributes, no training",
        "this model",
    ]  # fmt: skip
    assert found["floors"][-1]["accuracy"] == pytest.approx(found["scores"]["accuracy"]["mean"])
    assert found["floor_splits"] == 2
    best = max(row["accuracy"] for row in found["floors"][:-1])
    pays = found["floors"][-1]["accuracy"] >= best
    assert found["verdict"].startswith("The model is" if pays else "The model does not pay")
    _, out, _ = run_trained("evaluate", "r", "--splits", "2", "--samples", "14", "--no-floors", "--quiet")
    assert "vote of neighbors" not in out


def test_the_appendix_draws_500_samples_in_sets_of_10(run_trained):
    found = json.loads(run_trained("evaluate", "r", "--appendix", "--splits", "2", "--json")[1])
    assert (found["samples"], found["training_draws"], found["set_size"]) == (500, 10, 10)


def test_scores_as_a_table_and_undefined_standard_deviations_as_null(run_trained):
    code, out, _ = run_trained("evaluate", "r", "--splits", "2", "--samples", "14", "--json", "--out", "scores.csv")
    assert code == 0
    assert json.loads(out, parse_constant=pytest.fail)["scores"]["accuracy"]["over_seeds"] is None
    table = read_table(Path("scores.csv"))
    assert table["mean"][table["score"].index("ece")] == pytest.approx(json.loads(out)["scores"]["ece"]["mean"])


def test_runs_with_different_settings_are_refused(run_trained, blobs):
    run_trained("train", blobs, "--out", "other", "--set", "tau=0.7", *FAST)
    check_refused(run_trained("evaluate", "r", "other"), "must differ only in their seed")


def test_runs_on_different_graphs_are_refused(run_trained, tmp_path):
    run_trained("train", str(small_graph(tmp_path / "ring.npz")), "--out", "other", *FAST)
    check_refused(run_trained("evaluate", "r", "other"), "trained on another graph")


def test_another_graph_than_the_training_graph_is_refused(run_trained, tmp_path):
    other = str(small_graph(tmp_path / "ring.npz"))
    check_refused(run_trained("evaluate", "r", "--graph", other), "trained on another graph (120 nodes")


def test_bad_options_are_refused(run_trained):
    check_refused(run_trained("evaluate", "r", "--appendix", "--samples", "20"), "leave out --samples")
    unknown = run_trained("evaluate", "r", "--protocol", "grcae")
    check_refused(unknown, "Unknown protocol 'grcae'. Did you mean grace?")
    check_refused(run_trained("evaluate", "r", "--protocol", "public"), "no published masks")
    check_refused(run_trained("evaluate", "r", "--samples", "1"), "too few are left to predict with")


def test_facts_of_another_type_are_refused(run_trained):
    text = Path("r/model.toml").read_text()
    assert "num_attributes = 8" in text
    Path("r/model.toml").write_text(text.replace("num_attributes = 8", 'num_attributes = "x"'))
    check_refused(run_trained("evaluate", "r"), "model.toml is damaged")


def test_a_graph_without_a_labeled_node_is_refused(run, tmp_path):
    run("train", str(small_graph(tmp_path / "ring.npz", labels=np.full(12, -1))), "--out", "n", *FAST)
    check_refused(run("evaluate", "n"), "No node is labeled")


def test_every_class_has_its_figures_and_the_confusion_matrix_is_shown(run_trained):
    arguments = ("evaluate", "r", "--protocol", "half", "--splits", "2", "--samples", "6", "--no-floors")
    found = json.loads(run_trained(*arguments, "--json")[1])
    assert [row["class"] for row in found["classes"]] == found["confusion"]["classes"] == ["0", "1"]
    matrix = np.array(found["confusion"]["matrix"])
    assert matrix.sum() == pytest.approx(50)
    assert [row["support"] for row in found["classes"]] == matrix.sum(1).tolist()
    assert matrix.trace() / matrix.sum() == pytest.approx(found["scores"]["accuracy"]["mean"])
    out = run_trained(*arguments)[1]
    assert "precision" in out
    assert "as 0" in out


@pytest.mark.parametrize("shift", ["popularity", "normal", "rewired"])
def test_scores_by_the_level_of_a_shift(run_trained, shift):
    how = ["--shift", shift, "--splits", "2", "--samples", "4"]
    code, out, _ = run_trained("evaluate", "r", *how, "--json", "--out", "levels.csv")
    found = json.loads(out)
    assert code == 0
    levels = [row["level"] for row in found["levels"]]
    assert levels[0] == ("known kind" if shift == "popularity" else "0 %")
    assert read_table(Path("levels.csv"))["level"] == levels
    assert ("protocol" in found) == (shift != "popularity")
    code, out, _ = run_trained("evaluate", "r", *how)
    assert code == 0
    assert levels[-1] in out
    assert "AUROC of errors" in out
