"""Batches of a packed graph are those of the graph in memory, and are read ahead."""

from pathlib import Path

import numpy as np
import pytest
import torch

import bgcl
from bgcl.data.on_disk import DiskArray
from bgcl.data.pyg import check_graph
from bgcl.graph.node_batches import NodeBatches
from bgcl.graph.prepared import PreparedGraph, prepare
from bgcl.packed.batches import BatchesAhead


@pytest.fixture
def graph() -> PreparedGraph:
    data = bgcl.example_graph(nodes=300)
    data.x = torch.randn(300, 6, generator=torch.Generator().manual_seed(0))
    return prepare(check_graph(data), row_norm="none")


@pytest.fixture
def on_disk(graph: PreparedGraph, tmp_path: Path) -> DiskArray:
    array = DiskArray.create(tmp_path / "x.npy", tuple(graph.features.shape), np.float32)
    array.write(0, graph.features.numpy())
    return array


def test_a_batch_from_disk_is_that_of_the_graph_in_memory(graph, on_disk):
    nodes = torch.randperm(300)[:40]
    one, other = (
        batches.batch(nodes, torch.Generator().manual_seed(1))
        for batches in (NodeBatches(graph, 40), BatchesAhead(graph, 40, on_disk))
    )
    assert torch.equal(one.features, other.features)
    assert torch.equal(one.connections.column, other.connections.column)


def test_an_epoch_has_every_node_once_and_does_not_depend_on_what_else_takes_random_numbers(graph, on_disk):
    def epoch(taken: int):
        generator = torch.Generator().manual_seed(2)
        found = []
        for batch in BatchesAhead(graph, 40, on_disk).epoch(generator):
            torch.rand(taken, generator=generator)  # as a step of the training does
            found.append(batch.numbers)
        return found

    one, other = epoch(0), epoch(7)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert len(one) == 8
    plain = NodeBatches(graph, 40)
    sizes = [len(nodes) for nodes in torch.arange(300).tensor_split(plain.count)]
    seeds = torch.cat([numbers[:size] for numbers, size in zip(one, sizes, strict=True)])
    assert seeds.sort().values.tolist() == list(range(300))


def test_the_next_batch_is_read_while_one_is_in_use(graph, on_disk, monkeypatch: pytest.MonkeyPatch):
    read = []
    monkeypatch.setattr(BatchesAhead, "rows", lambda self, nodes: read.append(len(nodes)) or self.graph.features[nodes])
    batches = BatchesAhead(graph, 40, on_disk).epoch(torch.Generator().manual_seed(0))
    next(batches), next(batches)
    assert len(read) >= 2
    batches.close()
    assert len(read) <= 4


def test_rows_are_gathered_in_any_order_and_a_file_that_is_cut_off_is_one_line(on_disk):
    whole = np.load(on_disk.path)
    places = np.array([5, 3, 4, 5, 299, 0])
    np.testing.assert_array_equal(on_disk.gather(places), whole[places])
    with on_disk.path.open("r+b") as file:
        file.truncate(on_disk.offset + 290 * on_disk.row_bytes)
    with pytest.raises(bgcl.BGCLError, match=r"x.npy was cut off while it was read"):
        on_disk.gather(places)
