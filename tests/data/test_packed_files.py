"""A pack from somebody else: a forger may write right checksums, and the numbers must still make a graph."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_geometric.data import Data

import bgcl
from bgcl.data.on_disk import DiskArray
from bgcl.data.packed_files import PackedFile
from bgcl.data.packing import pack_data
from bgcl.errors import BGCLError

NODES, WIDTH = 40, 24


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example graph, packed."""
    data = bgcl.example_graph(NODES)
    data.classes = ["x", "y"]
    return pack_data(data, tmp_path_factory.mktemp("packed") / "pack", 4).folder


def forged(packed: Path, folder: Path, change: dict[str, Any], name: str = "", array: Any = None) -> Path:
    """A copy with other entries in `pack.json`, or another array, and the checksums that fit it."""
    shutil.copytree(packed, folder)
    about = json.loads((folder / "pack.json").read_text())
    if isinstance(array, bytes):
        (folder / name).write_bytes(array)
    elif array is not None:
        np.save(folder / name, array)
    if name:
        about["pack"]["files"][name] = asdict(PackedFile.of(folder / name))
    about["pack"] |= change
    about["sha256"] = sha256(json.dumps(about["pack"], indent=1).encode()).hexdigest()
    (folder / "pack.json").write_text(json.dumps(about))
    return folder


def refused(packed: Path, folder: Path, line: str, *given: Any) -> None:
    with pytest.raises(BGCLError, match=line) as error:
        bgcl.load(forged(packed, folder, *given))
    assert len(str(error.value).splitlines()) == 1
    assert "Pack the graph again" in str(error.value)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"nodes": "many"}, "nodes: Input should be a valid integer"),
        ({"nodes": 10**30}, r"attributes.npy is of another graph: its shape does not fit"),
        ({"edges": None}, "edges: Input should be a valid integer"),
        ({"edges": -1}, "edges: Input should be greater than or equal to 1"),
        ({"parts": []}, "parts: Input should be a valid integer"),
        ({"fingerprint": "x"}, "fingerprint: String should match"),
        ({"classes": 5}, "classes: Input should be a valid list"),
        ({"classes": ["x"]}, r"labels.npy is no file of a pack: a class has a number that is not between -1 and 0"),
        ({"attribute_names": ["x"]}, "it names 1 attributes of"),
        ({"files": {}}, "it names the files"),
        ({"files": {"../x": {"size": 1, "digest": "", "ends": ""}}}, r"it names the files \.\./x"),
        ({"files": {"ids.npy": {"size": "long", "digest": "", "ends": ""}}}, "size: Input should be a valid integer"),
    ],
)
def test_a_forged_description_is_refused(packed, tmp_path, change, line):
    refused(packed, tmp_path / "pack", line, change)


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def whole(shape: str) -> bytes:
    return header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n")


@pytest.mark.parametrize(
    ("name", "array", "line"),
    [
        ("ids.npy", np.array([{}] * NODES, dtype=object), "it holds the type object"),
        ("ids.npy", np.zeros(NODES, "V0"), "it holds the type"),
        ("ids.npy", np.zeros(NODES, [("a", "i4")]), "its values have the type"),
        ("attributes.npy", np.zeros((NODES, WIDTH)), "its values have the type float64"),
        ("attributes.npy", np.zeros((NODES, WIDTH), ">f4"), "its values have the type >f4"),
        ("attributes.npy", np.asfortranarray(np.zeros((NODES, WIDTH), np.float32)), "it is in the order of columns"),
        ("attributes.npy", whole("(99999999999999, 8)"), "it is not as long as its header says"),
        ("attributes.npy", whole("(-1, 8)"), "it is not as long as its header says"),
        ("attributes.npy", whole(f"({'9' * 5000}, 8)"), "is damaged"),
        ("attributes.npy", whole(f"({NODES}, {WIDTH})") + bytes(40), "it is not as long as its header says"),
        ("attributes.npy", header("__import__('os')\n"), "is damaged"),
        ("attributes.npy", header("(" * 9000 + "\n"), "is damaged"),
        ("attributes.npy", b"\x93NUMPY\x09\x00" + bytes(100), "its format is of another version"),
        ("attributes.npy", b"", "is damaged"),
        ("edges.npy", np.zeros((2, 4), np.int64), "its shape does not fit"),
        ("starts.npy", np.array([0, 30, 20, 35, NODES]), "its clusters do not follow each other"),
        ("starts.npy", np.array([0, 10, 20, 30, 99]), "its clusters do not follow each other"),
        ("starts.npy", np.array([0.0, 10, 20, 30, NODES]), "its values have the type float64"),
        ("labels.npy", np.full(NODES, -2), "a class has a number that is not between -1 and 1"),
    ],
)
def test_an_array_that_is_no_part_of_a_pack_is_refused(packed, tmp_path, name, array, line):
    refused(packed, tmp_path / "pack", line, {}, name, array)


def one_way(edges: np.ndarray) -> np.ndarray:
    """Another end for one edge, so that edges are still sorted."""
    free = next(i for i in range(edges.shape[1] - 1) if edges[0, i] == edges[0, i + 1] and
                edges[1, i + 1] - edges[1, i] > 1 and edges[1, i] + 1 != edges[0, i])  # fmt: skip
    edges[1, free] += 1
    return edges


def with_end(end: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(edges: np.ndarray) -> np.ndarray:
        edges[1, -1] = end
        return edges

    return change


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (with_end(-1), "an edge ends at a node that is not between 0 and 39"),
        (with_end(NODES), "an edge ends at a node that is not between 0 and 39"),
        (with_end(2**40), "an edge ends at a node that is not between 0 and 39"),
        (with_end(39), "an edge leads from a node to itself"),
        (lambda edges: edges[:, ::-1], "its edges are not sorted, or one is there twice"),
        (lambda edges: edges[:, np.r_[0, 0, 2 : edges.shape[1]]], "its edges are not sorted, or one is there twice"),
        (one_way, "an edge is there in one direction only"),
        (lambda edges: edges.astype(np.int32), "its values have the type int32"),
    ],
)
def test_edges_that_make_no_graph_are_refused(packed, tmp_path, change, line):
    edges = np.load(packed / "edges.npy")
    assert edges[0, -1] == NODES - 1
    refused(packed, tmp_path / "pack", line, {}, "edges.npy", np.ascontiguousarray(change(edges)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_attribute_that_is_not_finite_is_refused(packed, tmp_path, value):
    attributes = np.load(packed / "attributes.npy")
    attributes[7, 3] = value
    line = "attributes.npy is no file of a pack: an attribute is not a finite number"
    refused(packed, tmp_path / "pack", line, {}, "attributes.npy", attributes)


def test_every_flipped_bit_in_an_array_is_noticed(packed, tmp_path):
    """Also one in the middle of a file of several MiB, whose ends alone are compared first."""
    rng = np.random.default_rng(0)
    data = Data(x=bgcl.example_graph(40).x.to_dense(), edge_index=bgcl.example_graph(40).edge_index)
    data.x = data.x.repeat(1, 1 + (3 << 20) // (4 * data.x.numel()))
    folder = pack_data(data, tmp_path / "large").folder
    assert (folder / "attributes.npy").stat().st_size > 3 << 20
    for name in ("attributes.npy", "edges.npy", "starts.npy", "ids.npy"):
        before = (folder / name).read_bytes()
        for place in [len(before) // 2, *rng.integers(len(before), size=6)]:
            flipped = bytearray(before)
            flipped[place] ^= 1 << int(rng.integers(8))
            (folder / name).write_bytes(flipped)
            with pytest.raises(BGCLError, match=f"{name} "):
                bgcl.load(folder)
        (folder / name).write_bytes(before)
    bgcl.load(folder)


def test_a_description_that_is_deep_or_huge_is_one_line(packed, tmp_path):
    shutil.copytree(packed, tmp_path / "pack")
    about = tmp_path / "pack" / "pack.json"
    for text in (
        "[" * 100_000,
        '{"format": ' + "9" * 5000 + "}",
        '{"format": "1\\n2"}',
        "null",
        "[]",
        "",
        '{"a": NaN}',
    ):
        about.write_text(text)
        with pytest.raises(BGCLError, match=r"pack.json is damaged \(.*\). Pack the graph again") as error:
            bgcl.load(tmp_path / "pack")
        assert len(str(error.value).splitlines()) == 1
    with about.open("r+b") as file:
        file.truncate(65 << 20)
    with pytest.raises(BGCLError, match="it is too large"):
        bgcl.load(tmp_path / "pack")


def test_an_array_that_is_longer_than_it_says_is_refused(tmp_path):
    DiskArray.create(tmp_path / "a.npy", (3, 2), np.float32)
    with (tmp_path / "a.npy").open("ab") as file:
        file.write(b"x")
    with pytest.raises(BGCLError, match="it is not as long as its header says"):
        DiskArray.open(tmp_path / "a.npy")
