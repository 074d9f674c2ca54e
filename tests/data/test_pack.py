"""A pack is the graph that was packed, in the order of clusters, and damage to it is noticed."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import bgcl
from bgcl.data import memory, on_disk
from bgcl.data.facts import GraphFacts
from bgcl.data.generator import GraphPlan, write_parquet
from bgcl.data.on_disk import DiskArray
from bgcl.data.pack import open_pack
from bgcl.data.packing import pack_data, pack_rows
from bgcl.data.packing_parquet import parquet_rows
from bgcl.errors import BGCLError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated graph in Parquet files."""
    made = tmp_path_factory.mktemp("made") / "graph"
    write_parquet(GraphPlan(nodes=900, attributes=6, classes=4), made)
    return made


@pytest.fixture(scope="module")
def packed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same graph, packed."""
    return pack_rows(parquet_rows(folder), tmp_path_factory.mktemp("packed") / "pack", 9).folder


def test_a_pack_is_the_same_graph_as_its_tables(folder: Path, packed: Path):
    import pyarrow.parquet as pq

    nodes, edges = pq.read_table(folder / "nodes.parquet"), pq.read_table(folder / "edges.parquet")
    data = bgcl.load(packed)
    row = {number: i for i, number in enumerate(nodes["id"].to_pylist())}
    order = [row[number] for number in data.ids.tolist()]
    expected = np.stack([nodes[f"a{i}"].to_numpy() for i in range(6)], 1)[order]
    np.testing.assert_array_equal(data.x.numpy(), expected)
    names = [nodes["label"].to_pylist()[i] for i in order]
    assert [data.classes[number] for number in data.y.tolist()] == names
    pairs = {frozenset(pair) for pair in zip(edges["source"].to_pylist(), edges["target"].to_pylist(), strict=True)}
    pairs = {pair for pair in pairs if len(pair) == 2}
    found = {frozenset((int(data.ids[a]), int(data.ids[b]))) for a, b in data.edge_index.T.tolist()}
    assert found == pairs
    assert data.edge_index.shape[1] == 2 * len(pairs)


def test_its_fingerprint_is_that_of_the_graph_in_memory(packed: Path):
    pack = open_pack(packed)
    assert GraphFacts.of(pack.data()).fingerprint == pack.fingerprint


def test_nodes_of_a_cluster_are_next_to_each_other(packed: Path):
    data = bgcl.load(packed)
    starts = np.load(packed / "starts.npy")
    part = np.searchsorted(starts, data.edge_index.numpy(), side="right")
    inside = (part[0] == part[1]).mean()
    shuffled = np.random.default_rng(0).permutation(part.ravel()).reshape(part.shape)
    assert inside > 3 * (shuffled[0] == shuffled[1]).mean()


@pytest.mark.parametrize("name", ["attributes.npy", "edges.npy", "ids.npy", "labels.npy", "starts.npy"])
def test_a_file_that_is_cut_off_or_of_another_graph_is_refused(name: str, packed: Path, tmp_path: Path):
    copy = tmp_path / "pack"
    shutil.copytree(packed, copy)
    whole = (copy / name).read_bytes()
    (copy / name).write_bytes(whole[:-8])
    with pytest.raises(BGCLError, match=rf"{name} was cut off: it has [\d,]+ bytes instead of"):
        bgcl.load(copy)
    (copy / name).write_bytes(whole[:-8] + b"12345678")
    with pytest.raises(BGCLError, match=rf"{name} is of another graph, or was changed"):
        bgcl.load(copy)
    (copy / name).unlink()
    with pytest.raises(BGCLError, match=rf"{name} is missing"):
        bgcl.load(copy)


def test_a_changed_description_is_refused(packed: Path, tmp_path: Path):
    copy = tmp_path / "pack"
    shutil.copytree(packed, copy)
    about = json.loads((copy / "pack.json").read_text())
    about["pack"]["nodes"] += 1
    (copy / "pack.json").write_text(json.dumps(about))
    with pytest.raises(BGCLError, match="its checksum is wrong"):
        bgcl.load(copy)
    (copy / "pack.json").write_text("{")
    with pytest.raises(BGCLError, match=r"pack.json is damaged .* Pack the graph again"):
        bgcl.load(copy)


def test_too_little_room_or_too_many_parts_are_one_line(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(BGCLError, match="--parts must be between 1 and the number of nodes, 900"):
        pack_rows(parquet_rows(folder), tmp_path / "a", 901)
    monkeypatch.setattr(on_disk.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(BGCLError, match=r"900 nodes with 6 attributes need .* on the disk of"):
        pack_rows(parquet_rows(folder), tmp_path / "b")


def test_an_edge_to_an_unknown_node_and_a_column_of_text_are_refused(tmp_path: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    nodes = {"id": [5, 7, 9], "label": ["a", "b", "a"], "size": [1.0, 2.0, 3.0]}
    pq.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    pq.write_table(pa.table({"source": [5, 7], "target": [7, 8]}), tmp_path / "edges.parquet")
    with pytest.raises(BGCLError, match="row 1, column 'target': no node has the id 8"):
        parquet_rows(tmp_path)
    pq.write_table(pa.table(nodes | {"kind": ["x", "y", "z"]}), tmp_path / "nodes.parquet")
    with pytest.raises(BGCLError, match="column 'kind': attributes of a pack must be numbers"):
        parquet_rows(tmp_path)


def test_ids_that_would_wrap_and_labels_that_are_missing_are_not_taken_for_others(tmp_path: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    nodes = {"id": [5, 7, -5], "label": ["a", "", None], "size": [1.0, 2.0, 3.0]}
    pq.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    target = pa.array([7, 2**64 - 5], pa.uint64())
    pq.write_table(pa.table({"source": [5, 7], "target": target}), tmp_path / "edges.parquet")
    with pytest.raises(BGCLError, match="the id 18446744073709551611 is too large"):
        parquet_rows(tmp_path)
    pq.write_table(pa.table({"source": [5, 7], "target": [7, -5]}), tmp_path / "edges.parquet")
    rows = parquet_rows(tmp_path)
    assert rows.labels is not None
    assert rows.labels.tolist() == [0, -1, -1]
    assert rows.classes == ["a"] == bgcl.load(tmp_path).classes


def test_a_pack_is_not_written_over_another_one(folder: Path, packed: Path):
    before = {path.name: path.read_bytes() for path in packed.iterdir()}
    with pytest.raises(BGCLError, match=r"already holds pack\.json"):
        pack_rows(parquet_rows(folder), packed)
    assert {path.name: path.read_bytes() for path in packed.iterdir()} == before


def test_a_graph_in_memory_is_packed_with_sparse_attributes(tmp_path: Path):
    data = bgcl.load("cora")
    found = pack_data(data, tmp_path / "cora").data()
    order = torch.tensor(np.array(found.ids))
    assert torch.equal(found.x, data.x.to_dense()[order])
    assert torch.equal(found.y, data.y[order])
    assert found.edge_index.shape == data.edge_index.shape


def test_rows_of_an_array_on_disk_are_scattered_to_their_places(tmp_path: Path):
    array = DiskArray.create(tmp_path / "a.npy", (9, 2), np.float32)
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    array.scatter(np.array([8, 2, 3, 0, 4]), rows)
    expected = np.zeros((9, 2))
    expected[[8, 2, 3, 0, 4]] = rows
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), expected)
    np.testing.assert_array_equal(array.read(2, 5), expected[2:5])
    array.write(3, np.empty((0, 2)))


def test_metis_that_does_not_fit_is_replaced_by_a_search_and_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    from bgcl.data import partition

    assert memory.free_memory() > 0
    monkeypatch.setattr(partition, "free_memory", lambda: 10**5)
    starts = np.load(pack_rows(parquet_rows(folder), tmp_path / "pack", 9).folder / "starts.npy")
    assert np.diff(starts).tolist() == [100] * 9
    assert "METIS would need about" in caplog.text
    assert "84 bytes" in caplog.text
