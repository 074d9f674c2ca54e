"""Partitions are kept, and a file in the cache that is damaged or of another graph is not used."""

from pathlib import Path

import numpy as np
import pytest
import torch

import bgcl
from bgcl.data import partition as module
from bgcl.data.partition import partition
from bgcl.data.pyg import check_graph
from bgcl.graph.prepared import prepare


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(module, "WORTH_KEEPING", 0)
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path)
    return prepare(check_graph(bgcl.example_graph(nodes=200)), row_norm="none")


def test_a_partition_is_computed_once(graph, monkeypatch: pytest.MonkeyPatch):
    first = partition(graph, 4)
    monkeypatch.setattr(module, "membership", lambda *_: pytest.fail("it was computed again"))
    assert torch.equal(partition(graph, 4), first)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-9]),
        lambda path: path.write_bytes(b""),
        lambda path: np.save(path, np.zeros(199, np.int32)),
        lambda path: np.save(path, np.full(200, 4, np.int32)),
        lambda path: np.save(path, np.zeros(200)),
    ],
)
def test_a_file_that_is_damaged_or_of_another_graph_is_replaced(graph, tmp_path: Path, damage):
    first = partition(graph, 4)
    (path,) = (tmp_path / "partitions").iterdir()
    whole = path.read_bytes()
    damage(path)
    assert torch.equal(partition(graph, 4), first)
    assert path.read_bytes() == whole


def test_a_partition_that_cannot_be_kept_is_used(graph, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "partitions").write_text("no folder")
    assert len(partition(graph, 4).unique()) == 4
    assert "could not be kept, so the next run finds them again" in caplog.text


def test_the_clusters_of_a_pack_are_joined_and_not_found_again(graph, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "membership", lambda *_: torch.zeros(200, dtype=torch.int64))
    known = np.repeat(np.arange(10), 20)
    assert partition(graph, 5, known).tolist() == np.repeat(np.arange(5), 40).tolist()
    assert torch.bincount(partition(graph, 4, known)).tolist() == [60, 40, 60, 40]
    assert partition(graph, 11, known).max() == 0  # too few are known
