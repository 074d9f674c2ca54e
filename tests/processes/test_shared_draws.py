"""Two processes that share the draws of a fitted model find what one finds."""

from pathlib import Path

import numpy as np
import pytest
import works

from bgcl.data.generator import GraphPlan, write_parquet
from bgcl.data.packing import pack_rows
from bgcl.data.packing_parquet import parquet_rows


@pytest.fixture(scope="module")
def pack(tmp_path_factory) -> str:
    """The folder of a packed graph."""
    folder: Path = tmp_path_factory.mktemp("large")
    write_parquet(GraphPlan(nodes=400, attributes=6, classes=3, noise=1.0), folder / "graph")
    pack_rows(parquet_rows(folder / "graph"), folder / "pack", parts=6)
    return str(folder / "pack")


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("nodes", [None, [3, 0]])
def test_draws_are_those_of_one_process_bit_for_bit_in_both(pair, count, nodes):
    alone = works.drawn(count, nodes, shared=False)
    for found in pair.run(works.drawn, count, nodes):
        assert np.array_equal(found, alone)


@pytest.mark.parametrize("splits", [1, 2, 3])
def test_an_evaluation_is_that_of_one_process(pair, splits):
    """With fewer splits than processes, both evaluate all of them."""
    alone = works.evaluated(splits, shared=False)
    assert len(alone) == splits
    for found in pair.run(works.evaluated, splits):
        assert len(found) == splits
        for one, other in zip(alone, found, strict=True):
            assert one.keys() == other.keys()
            for name in one:
                np.testing.assert_allclose(other[name], one[name], atol=1e-6, err_msg=name)


def test_predictions_are_those_of_one_process(pair):
    alone = works.predicted(shared=False)
    for found in pair.run(works.predicted):
        for name in alone:
            np.testing.assert_allclose(found[name], alone[name], atol=1e-6, err_msg=name)


def test_a_pack_is_classified_by_the_draws_of_both(pair, pack):
    alone = works.of_pack(pack, shared=False)
    for found in pair.run(works.of_pack, pack):
        for name in alone:
            np.testing.assert_allclose(found[name], alone[name], atol=1e-6, err_msg=name)


def test_the_moments_of_a_pack_are_those_of_all_draws(pair, pack, tmp_path):
    (alone,) = works.embedded(pack, str(tmp_path / "one"), 5, shared=False)
    assert pair.run(works.embedded, pack, str(tmp_path / "two"), 5) == [[alone], [{}]]
    for name in ("mean", "std", "astd", "fixed"):
        one, two = (np.load(tmp_path / folder / f"{name}.npy") for folder in ("one", "two"))
        assert one.std() > 0
        np.testing.assert_allclose(two, one, atol=1e-6, err_msg=name)
    assert not list((tmp_path / "two").glob(".*")), "a process left something behind"


def test_too_few_draws_for_all_processes_are_refused(pair, pack, tmp_path):
    found = pair.run(works.embedded, pack, str(tmp_path / "few"), 1)
    assert found == [("BGCLError", "2 processes need 2 draws or more. Got 1 instead: raise --samples.")] * 2


def test_a_folder_that_cannot_be_written_stops_both(pair, pack, tmp_path):
    (tmp_path / "taken").write_text("a file")
    found = pair.run(works.embedded, pack, str(tmp_path / "taken"), 3)
    assert [kind for kind, _ in found] == ["BGCLError", "SaidElsewhereError"]
    assert all("Cannot write" in text for _, text in found)
