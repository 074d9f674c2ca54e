"""`bgcl embed`: arrays and tables of embeddings."""

import json
from pathlib import Path

import numpy as np
import pytest

from bgcl import BGCL
from command_line import FAST, check_refused, read_table, small_graph


@pytest.fixture(params=["gcn", "mlp"])
def run(request, run, tmp_path):
    how = ("--set", f"encoder={request.param}", *(("--set", "part_width=3") if request.param == "mlp" else ()))
    run("train", str(small_graph(tmp_path / "ring.npz")), "--out", "r", *how, *FAST)
    return run


def test_moments_are_those_of_the_draws(run):
    code, out, _ = run("embed", "r", "--samples", "6", "--out", "e.npz", "--json")
    assert code == 0
    assert json.loads(out)["arrays"]["draws"] == [6, 12, sum(BGCL.load("r").parts_)]
    arrays = np.load("e.npz")
    np.testing.assert_allclose(arrays["mean"], arrays["draws"].mean(0), atol=1e-6)
    np.testing.assert_allclose(arrays["std"], arrays["draws"].std(0, ddof=1), atol=1e-6)
    np.testing.assert_allclose(arrays["astd"], arrays["std"].mean(1), atol=1e-6)


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_a_table_has_a_row_for_each_node(run, ending):
    assert run("embed", "r", "--samples", "6", "--out", f"e.{ending}")[0] == 0
    run("embed", "r", "--samples", "6", "--out", "e.npz")
    table, arrays = read_table(Path(f"e.{ending}")), np.load("e.npz")
    assert table["node"] == list(range(12))
    np.testing.assert_allclose(table["astd"], arrays["astd"], rtol=1e-5)
    np.testing.assert_allclose(table["mean_3"], arrays["mean"][:, 3], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(table["std_3"], arrays["std"][:, 3], rtol=1e-5, atol=1e-7)


def test_without_draws_the_moments_are_the_same(run):
    run("embed", "r", "--samples", "6", "--out", "all.npz")
    run("embed", "r", "--samples", "6", "--no-draws", "--out", "few.npz")
    assert "draws" not in np.load("few.npz")
    np.testing.assert_allclose(np.load("few.npz")["std"], np.load("all.npz")["std"], atol=1e-6)


def test_bad_numbers_are_refused(run):
    check_refused(run("embed", "r", "--out", "e.csv", "--seed", str(2**70)), "The seed must be")
    check_refused(run("embed", "r", "--samples", "1", "--out", "e.csv"), "needs 2 samples")


def test_draws_are_refused_for_a_table(run):
    check_refused(run("embed", "r", "--out", "e.csv", "--draws"), "leave out --draws")
    check_refused(run("embed", "r", "--out", "e.npz", "--spreadsheet-safe"), "for .csv files")


def test_a_damaged_model_file_is_one_clear_line(run):
    Path("r/model.safetensors").write_bytes(b"\0" * 100)
    check_refused(run("embed", "r", "--out", "e.npz"), "model.safetensors is damaged")
