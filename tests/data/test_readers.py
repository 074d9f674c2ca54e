"""Readers of plain arrays, Planetoid's pickles and WikiCS's JSON: correct, damaged and malicious files."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from releases import RELEASE_EDGES, python2_pickle, write_release, write_wikics

from bgcl.data import npz, planetoid, read_npz, wikics
from bgcl.data.clean import content_digest
from bgcl.errors import BGCLError


def pairs(edges: np.ndarray) -> set[tuple[int, int]]:
    return {(int(u), int(v)) for u, v in edges.T}


def write_arrays(path: Path, **changes: np.ndarray | None) -> Path:
    """Write a directed path 0 -> 1 -> 2 with a self-loop at 2, and the attributes 1.5 of node 0 and 3 of node 2."""
    arrays = {
        "adj_data": np.ones(3, dtype=np.float32),
        "adj_indices": np.array([1, 2, 2]),
        "adj_indptr": np.array([0, 1, 2, 3]),
        "adj_shape": np.array([3, 3]),
        "attr_data": np.array([1.5, 3.0], dtype=np.float32),
        "attr_indices": np.array([0, 1]),
        "attr_indptr": np.array([0, 1, 1, 2]),
        "attr_shape": np.array([3, 2]),
        "labels": np.array([0, 1, 0]),
    }
    np.savez(path, **{key: value for key, value in (arrays | changes).items() if value is not None})
    return path


# Plain arrays


def test_npz_is_read_as_written_by_hand(tmp_path: Path):
    data = read_npz(write_arrays(tmp_path / "graph.npz"))
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.x.to_dense().tolist() == [[1.5, 0], [0, 0], [0, 3]]
    assert data.y.tolist() == [0, 1, 0]


def test_npz_without_labels_is_a_graph_too(tmp_path: Path):
    data = read_npz(write_arrays(tmp_path / "graph.npz", labels=None))
    assert data.y is None


def test_zero_in_the_adjacency_matrix_is_not_an_edge(tmp_path: Path):
    graph = npz.read(write_arrays(tmp_path / "graph.npz", adj_data=np.array([1.0, 0, 1])))
    assert pairs(graph.edges) == {(0, 1)}


def test_written_graph_reads_back_with_the_same_digest_and_the_same_bytes(tmp_path: Path):
    write_release(tmp_path / "release")
    graph = planetoid.read("tiny", tmp_path / "release")
    npz.write(tmp_path / "a.npz", graph)
    npz.write(tmp_path / "b.npz", graph)
    assert content_digest(npz.read(tmp_path / "a.npz")) == content_digest(graph)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_pickled_objects_in_other_keys_are_not_read(tmp_path: Path):
    mark = tmp_path / "executed"
    path = write_arrays(tmp_path / "graph.npz", node_names=np.array([Exploit(mark)], dtype=object))
    npz.read(path)
    assert not mark.exists()


def test_pickled_objects_in_needed_keys_are_an_error(tmp_path: Path):
    mark = tmp_path / "executed"
    path = write_arrays(tmp_path / "graph.npz", labels=np.array([Exploit(mark)], dtype=object))
    with pytest.raises(BGCLError, match=r"labels must hold numbers. Got values of type object instead"):
        npz.read(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"adj_indices": np.array([1, 2, 3])}, "an edge ends at node 3, which does not exist: there are 3 nodes"),
        ({"attr_data": np.array([1.5, np.nan])}, "attribute 1 of node 2 is nan"),
        ({"attr_data": np.array([-np.inf, 1])}, "attribute 0 of node 0 is -inf"),
        ({"attr_data": np.array(["a", "b"])}, "attr_data must hold numbers"),
        ({"attr_shape": np.array([2, 2]), "attr_indptr": np.array([0, 1, 2])}, "3 nodes, but 2 rows of attributes"),
        ({"attr_indices": np.array([0, 2])}, "a column of attr_indices is outside attr_shape"),
        ({"attr_indptr": np.array([0, 2, 1, 2])}, "attr_indptr does not fit"),
        ({"adj_indptr": np.array([0, 1, 2])}, "adj_indptr does not fit"),
        ({"adj_shape": np.array([3, 4])}, "the adjacency matrix must be square"),
        ({"adj_indices": np.array([1.0, 2, 2])}, "must hold whole numbers"),
        ({"adj_data": np.zeros(3)}, "empty, it has no edges"),
        ({"labels": np.array([0, 1])}, r"labels must have the shape \(3,\)"),
        ({"attr_data": None, "attr_shape": None}, "lacks attr_data, attr_shape"),
    ],
)
def test_bad_npz_is_a_one_line_error(tmp_path: Path, changes: dict[str, np.ndarray], says: str):
    path = write_arrays(tmp_path / "graph.npz", **changes)
    with pytest.raises(BGCLError, match=says) as error:
        read_npz(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_npz_without_nodes_is_an_error(tmp_path: Path):
    nothing = np.zeros(0, dtype=np.int64)
    sizes = {"adj_shape": np.array([0, 0]), "attr_shape": np.array([0, 2]), "labels": None}
    starts = {"adj_indptr": np.array([0]), "attr_indptr": np.array([0])}
    entries = {key: nothing for key in ("adj_data", "adj_indices", "attr_data", "attr_indices")}
    with pytest.raises(BGCLError, match="empty, it has no nodes"):
        npz.read(write_arrays(tmp_path / "graph.npz", **sizes, **starts, **entries))


@pytest.mark.parametrize("keep", [0, 10, 400, 1500])
def test_npz_cut_off_at_any_length_is_damaged(tmp_path: Path, keep: int):
    path = write_arrays(tmp_path / "graph.npz")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BGCLError, match=r"is damaged \(.*Delete it and make or download it again"):
        npz.read(path)


def test_npz_with_flipped_bytes_is_damaged(tmp_path: Path):
    path = write_arrays(tmp_path / "graph.npz")
    raw = bytearray(path.read_bytes())
    raw[200:210] = bytes(byte ^ 0xFF for byte in raw[200:210])
    path.write_bytes(raw)
    with pytest.raises(BGCLError, match=r"graph.npz, array adj_data cannot be read \(.*Delete it"):
        npz.read(path)


def test_single_array_is_not_a_graph(tmp_path: Path):
    path = tmp_path / "graph.npz"
    with path.open("wb") as file:
        np.save(file, np.eye(3))
    with pytest.raises(BGCLError, match="one array, not a graph"):
        npz.read(path)


def test_missing_file_is_a_one_line_error(tmp_path: Path):
    with pytest.raises(BGCLError, match="There is no file"):
        npz.read(tmp_path / "graph.npz")


# Planetoid


def test_planetoid_release_is_assembled_as_written_by_hand(tmp_path: Path):
    write_release(tmp_path)
    graph = planetoid.read("tiny", tmp_path)
    assert pairs(graph.edges) == RELEASE_EDGES
    expected = [[1, 0, 0], [0, 0.5, 0], [0, 0, 2], [0, 3, 0], [0, 0, 0], [0, 0, 5], [6, 0, 0]]
    assert graph.attributes.toarray().tolist() == expected
    assert graph.labels is not None
    assert graph.labels.tolist() == [1, 0, 1, 1, 0, 0, 1]
    assert np.flatnonzero(graph.masks["train_mask"]).tolist() == [0, 1]
    assert np.flatnonzero(graph.masks["test_mask"]).tolist() == [3, 5, 6]


class Exploit:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> object:
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("part", ["allx", "graph", "ty"])
def test_pickle_that_runs_a_command_is_an_error_and_runs_nothing(tmp_path: Path, part: str):
    write_release(tmp_path)
    mark = tmp_path / "executed"
    hostile = pickle.dumps(Exploit(mark))
    (tmp_path / f"ind.tiny.{part}").write_bytes(hostile)
    with pytest.raises(BGCLError, match=r"loads (posix|nt)\.system, which is not allowed"):
        planetoid.read("tiny", tmp_path)
    assert not mark.exists()
    pickle.loads(hostile)  # without restrictions, the same bytes run the command
    assert mark.exists()


@pytest.mark.parametrize("value", [eval, print, os.path.join, np.frombuffer, pickle.loads])
def test_every_other_name_in_a_pickle_is_an_error(tmp_path: Path, value: object):
    write_release(tmp_path)
    (tmp_path / "ind.tiny.x").write_bytes(python2_pickle(value))
    with pytest.raises(BGCLError, match="which is not allowed"):
        planetoid.read("tiny", tmp_path)


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("allx", b""),
        ("graph", b"<html>not found</html>"),
        ("tx", python2_pickle([1, 2])),
        ("graph", python2_pickle([1, 2])),
        ("test.index", b"6\n3\n"),
        ("test.index", b"0\n3\n5\n"),
        ("test.index", b"one\n"),
    ],
)
def test_damaged_planetoid_file_is_a_one_line_error(tmp_path: Path, part: str, content: bytes):
    write_release(tmp_path)
    (tmp_path / f"ind.tiny.{part}").write_bytes(content)
    with pytest.raises(BGCLError, match=r"(is damaged|cannot be read) .*Delete it and download it again") as error:
        planetoid.read("tiny", tmp_path)
    assert "\n" not in str(error.value)


def test_error_names_the_missing_planetoid_file(tmp_path: Path):
    write_release(tmp_path)
    (tmp_path / "ind.tiny.ally").unlink()
    with pytest.raises(BGCLError, match=r"no file .*ind\.tiny\.ally"):
        planetoid.read("tiny", tmp_path)


# WikiCS


def test_wikics_is_read_as_written_by_hand(tmp_path: Path):
    write_wikics(tmp_path / "data.json")
    graph = wikics.read(tmp_path / "data.json")
    assert pairs(graph.edges) == {(0, 1), (0, 3), (1, 2)}
    assert graph.attributes.toarray().tolist() == [[0.5, -1], [1.5, 2], [0.25, 3], [-4, 1]]
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, 1, 2]
    assert graph.masks["train_mask"].shape == graph.masks["stopping_mask"].shape == (4, 3)
    assert graph.masks["train_mask"][:, 1].tolist() == [False, True, False, False]
    assert graph.masks["val_mask"][:, 0].tolist() == [False, False, True, False]
    assert graph.masks["test_mask"].tolist() == [False, False, False, True]


def test_wikics_equals_pygs_reading_of_the_same_file(tmp_path: Path):
    from torch_geometric.datasets import WikiCS

    from bgcl.data.pyg import to_data

    (tmp_path / "raw").mkdir()
    write_wikics(tmp_path / "raw" / "data.json")
    theirs = WikiCS(str(tmp_path), is_undirected=True)[0]
    ours = to_data(wikics.read(tmp_path / "raw" / "data.json"))
    for field in ("x", "y", "train_mask", "val_mask", "stopping_mask", "test_mask"):
        assert torch.equal(ours[field], theirs[field])
    proper = theirs.edge_index[0] != theirs.edge_index[1]  # PyG keeps self-loops
    assert torch.equal(ours.edge_index, theirs.edge_index[:, proper])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"features": [[1.0, 2.0], [1.0], [0.0, 1.0], [0.0, 1.0]]}, "is damaged"),
        ({"features": [1.0, 2.0]}, r"features\[0\]: Input should be a valid array"),
        ({"features": [[1.0]] * 3}, "labels must have|does not exist"),
        ({"links": [[9], [], [], []]}, "node 9, which does not exist"),
        ({"links": [[], [], [], []]}, "empty, it has no edges"),
        ({"test_mask": [True]}, "test_mask must have 4 rows, one for each node"),
        ({"features": [[float("nan"), 0.0]] * 4}, "attribute 0 of node 0 is nan"),
    ],
)
def test_bad_wikics_is_a_one_line_error(tmp_path: Path, change: dict[str, object], says: str):
    path = tmp_path / "data.json"
    write_wikics(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BGCLError, match=says) as error:
        wikics.read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("text", "says"), [("{", "is damaged"), ("{}", "lacks 'features'"), ("[]", "is damaged")])
def test_damaged_wikics_is_a_one_line_error(tmp_path: Path, text: str, says: str):
    path = tmp_path / "data.json"
    path.write_text(text)
    with pytest.raises(BGCLError, match=says):
        wikics.read(path)
