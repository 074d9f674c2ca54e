"""Build the files of a case of the catalogue of bad inputs, and the call that must refuse them."""

import gzip
import hashlib
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch
from people import EDGES, NODES, write
from releases import python2_pickle, write_release, write_wikics
from torch_geometric.data import Data

import bgcl
from bgcl.data import check_graph, planetoid, wikics
from bgcl.data.packed_files import PackedFile
from bgcl.data.packing import pack_data, pack_rows
from bgcl.data.packing_parquet import parquet_rows

Case = dict[str, Any]
Call = Callable[[], object]
ROWS = {"from": [0, 1, 2], "to": [1, 2, 3]}
GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}
<graph edgedefault="undirected">{graph}</graph></graphml>"""


def build(case: Case, folder: Path) -> tuple[Call, Path | None]:
    """Write the files of a case. Returns the call that reads them, and their path if `bgcl inspect` can read them."""
    return BUILDERS[case.get("make", "tables")](case, folder)


def loading(path: Path, case: Case) -> tuple[Call, Path]:
    return lambda: bgcl.load(path, **case.get("options", {})), path


def encoded(case: Case, text: str) -> bytes:
    return text.encode(case.get("encoding", "utf-8"))


def tables(case: Case, folder: Path) -> tuple[Call, Path]:
    """`edges` and `nodes` are texts, false if there is no such file. `repeat` multiplies a text."""
    parts = {name: case.get(name, whole) for name, whole in (("edges", EDGES), ("nodes", NODES))}
    texts = {name: None if text is False else encoded(case, text) for name, text in parts.items()}
    return loading(write(folder / "g", **texts, ending=case.get("ending", "csv")), case)


def one_file(case: Case, folder: Path) -> tuple[Call, Path]:
    """A file with `name` and `text`, or nothing at all."""
    path = folder / case["name"]
    if case.get("folder"):
        path.mkdir()
    elif "text" in case:
        path.write_bytes(encoded(case, case["text"]) * case.get("repeat", 1))
    return loading(path, case)


def whole_folder(case: Case, folder: Path) -> tuple[Call, Path]:
    """Any `files` by their names."""
    for name, text in case["files"].items():
        (folder / name).write_bytes(encoded(case, text))
    return loading(folder, case)


def packed(case: Case, folder: Path) -> tuple[Call, Path]:
    """A gzipped table of `repeat` times `text` after `first`. `cut` and `flip` damage it."""
    path = folder / case.get("name", "edges.csv.gz")
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(encoded(case, case.get("first", "")))
        block = encoded(case, case["text"]) * 1000
        for _ in range(case.get("repeat", 1000) // 1000):
            file.write(block)
    return loading(damaged(path, case), case)


def damaged(path: Path, case: Case) -> Path:
    """Cut a file off, or change the byte at a place; places from the end are negative."""
    raw = bytearray(path.read_bytes())
    if "flip" in case:
        raw[case["flip"]] ^= 0xFF
    path.write_bytes(raw[: case.get("cut", len(raw))])
    return path


def long_header(case: Case, folder: Path) -> tuple[Call, Path]:
    """A table whose first row has `count` cells."""
    names = [case["cell"].format(i=i) for i in range(case["count"])]
    return loading(write(folder / "g", ",".join(names) + case.get("rest", "\n"), None), case)


# Parquet


def arrow_type(text: str) -> Any:
    """`list<double>`, `dictionary<string>`, `struct`, or a name that pyarrow knows."""
    if text.startswith("list<"):
        return pa.list_(arrow_type(text[5:-1]))
    if text.startswith("dictionary<"):
        return pa.dictionary(pa.int32(), arrow_type(text[11:-1]))
    special = {"struct": pa.struct([("a", pa.int64())]), "decimal": pa.decimal128(38, 2), "null": pa.null()}
    return special[text] if text in special else pa.type_for_alias(text)


def column(value: Any) -> Any:
    """An Arrow array of a list of values, or of `{type = ..., values = ...}`; "null" is a missing value."""
    kind, values = (arrow_type(value["type"]), value["values"]) if isinstance(value, dict) else (None, value)
    values = [None if each == "null" else each for each in values]
    if kind == pa.float16():
        return pa.array(np.array(values, dtype=np.float16))
    if kind is not None and (pa.types.is_time(kind) or pa.types.is_duration(kind)):
        return pa.array(values, type=pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return pa.array([v.encode("latin1") for v in values] if kind == pa.binary() else values, type=kind)


def parquet(case: Case, folder: Path) -> tuple[Call, Path]:
    """`edges` and `nodes` are columns. `cut` and `flip` damage the nodes."""
    for name in ("edges", "nodes"):
        columns = case.get(name, ROWS if name == "edges" else {"id": [0, 1, 2, 3], "size": [1.0, 2.0, 4.0, 3.0]})
        if columns is not False:
            table = pa.table([column(values) for values in columns.values()], names=list(columns))
            pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    if "nodes" in case or "cut" in case or "flip" in case:
        damaged(folder / "nodes.parquet", case)
    return loading(folder, case)


def parquet_bomb(case: Case, folder: Path) -> tuple[Call, Path]:
    """Edges of `rows` rows with the same ids, which take a few kilobytes in the file."""
    values = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(case["rows"], np.int32)), pa.array([case["value"] * case.get("times", 1)])
    )
    table = pa.table({"from": values, "to": values})
    pyarrow.parquet.write_table(table, folder / "edges.parquet", compression="zstd", store_schema=False)
    return loading(folder / "edges.parquet", case)


def parquet_name(case: Case, folder: Path) -> tuple[Call, Path]:
    """A column whose name is not UTF-8."""
    parquet(case | {"nodes": {"id": [0, 1, 2, 3], "zzzzzz": [1, 2, 3, 5]}}, folder)
    path = folder / "nodes.parquet"
    path.write_bytes(path.read_bytes().replace(b"zzzzzz", b"zz\xff\xfezz"))
    return loading(folder, case)


# .npz


def arrays(case: Case, folder: Path) -> tuple[Call, Path]:
    """A graph of three nodes. `change` replaces arrays, or removes them with false. `cut` and `flip` damage it."""
    whole = {
        "adj_data": np.ones(3, np.float32), "adj_indices": np.array([1, 2, 2]), "adj_indptr": np.array([0, 1, 2, 3]),
        "adj_shape": np.array([3, 3]), "attr_data": np.array([1.5, 3.0]), "attr_indices": np.array([0, 1]),
        "attr_indptr": np.array([0, 1, 1, 2]), "attr_shape": np.array([3, 2]), "labels": np.array([0, 1, 0]),
    }  # fmt: skip
    for name, value in case.get("change", {}).items():
        whole[name] = np.array(value["values"], dtype=value["type"]) if isinstance(value, dict) else value
    path = folder / "g.npz"
    kept = {name: np.asarray(value) for name, value in whole.items() if value is not False}
    (np.savez_compressed if case.get("compressed") else np.savez)(path, **kept)
    return loading(damaged(path, case), case)


def npz_member(case: Case, folder: Path) -> tuple[Call, Path]:
    """An array whose header says something else: `shape`, `type`, or `header` for the whole line."""
    call, path = arrays(case, folder)
    header = case.get(
        "header",
        f"{{'descr': '{case.get('type', '<i8')}', 'fortran_order': False, 'shape': {case.get('shape', '(3,)')}, }}",
    )
    text = header.encode() + b"\n"
    content = (
        b"\x93NUMPY"
        + bytes(case.get("version", [1, 0]))
        + struct.pack("<H", len(text))
        + text
        + bytes(case.get("bytes", 24))
    )
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, raw in (members | {f"{case['array']}.npy": content}).items():
            new.writestr(name, raw)
    return call, path


def npz_encrypted(case: Case, folder: Path) -> tuple[Call, Path]:
    call, path = arrays(case, folder)
    raw = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = raw.find(mark)
        while start >= 0:
            raw[start + place] |= 1
            start = raw.find(mark, start + 4)
    path.write_bytes(raw)
    return call, path


def one_array(case: Case, folder: Path) -> tuple[Call, Path]:
    with (folder / "g.npz").open("wb") as file:
        np.save(file, np.eye(3))
    return loading(folder / "g.npz", case)


# Packs


def pack(case: Case, folder: Path) -> tuple[Call, Path]:
    """The example graph, packed. `file` is removed, or has another `text`, `cut`, `flip` or `array` of a type.

    `change` replaces entries of pack.json. The checksums are right again after `array` and `change`.
    """
    place = folder / "pack"
    pack_data(bgcl.example_graph(40), place, 4)
    file = place / case.get("file", "pack.json")
    about = json.loads((place / "pack.json").read_text())
    if "text" in case:
        file.write_bytes(encoded(case, case["text"]) * case.get("repeat", 1))
    elif "cut" in case or "flip" in case:
        damaged(file, case)
    elif "array" in case:
        np.save(file, np.full(case["array"]["shape"], case["array"]["value"], dtype=case["array"]["type"]))
        about["pack"]["files"][file.name] = vars(PackedFile.of(file))
    elif "change" not in case:
        file.unlink()
    if "array" in case or "change" in case:
        about["pack"] |= case.get("change", {})
        about["sha256"] = hashlib.sha256(json.dumps(about["pack"], indent=1).encode()).hexdigest()
        (place / "pack.json").write_text(json.dumps(about))
    return loading(place, case)


def packing(case: Case, folder: Path) -> tuple[Call, None]:
    """Parquet files that are packed: `edges` and `nodes` as for "parquet"."""
    nodes = {"id": [0, 1, 2, 3], "size": [1.0, 2.0, 4.0, 3.0]} | case.get("more", {})
    edges = {"source": [0, 1, 2], "target": [1, 2, 3]}
    parquet({"nodes": nodes, "edges": edges} | case, folder)
    if case.get("taken"):
        (folder / "out").mkdir()
        (folder / "out" / case["taken"]).write_text("")
    return lambda: pack_rows(parquet_rows(folder), folder / "out", case.get("parts")), None


# Other files


def graphml(case: Case, folder: Path) -> tuple[Call, Path]:
    """`graph` is what is inside the graph, `keys` is before it; `text` is a whole file."""
    path = folder / "g.graphml"
    text = case.get("text") or GRAPHML.format(keys=case.get("keys", ""), graph=case.get("graph", ""))
    path.write_bytes(encoded(case, case.get("head", "") + text))
    return loading(path, case)


def release(case: Case, folder: Path) -> tuple[Call, None]:
    """Planetoid's files. `part` is replaced by the bytes `hex`, the text `text`, or the pickle of `value`."""
    write_release(folder)
    path = folder / f"ind.tiny.{case['part']}"
    if case.get("missing"):
        path.unlink()
    elif "hex" in case:
        path.write_bytes(bytes.fromhex(case["hex"]))
    elif "array" in case:
        path.write_bytes(python2_pickle(np.array(case["array"]["values"], dtype=case["array"]["type"])))
    elif "value" in case:
        value = case["value"]
        numbered = {int(key): each for key, each in value.items()} if isinstance(value, dict) else value
        path.write_bytes(python2_pickle(numbered))
    elif "function" in case:
        module, name = case["function"].split(" ")
        path.write_bytes(f"c{module}\n{name}\n(tR.".encode())
    else:
        path.write_bytes(encoded(case, case["text"]))
    return lambda: planetoid.read("tiny", folder), None


def json_release(case: Case, folder: Path) -> tuple[Call, None]:
    """WikiCS's file: `change` replaces entries, or removes them with "null"; `text` replaces all."""
    path = folder / "data.json"
    write_wikics(path)
    if "change" in case:
        values = json.loads(path.read_text()) | case["change"]
        path.write_text(json.dumps({name: value for name, value in values.items() if value != "null"}))
    elif "text" in case:
        path.write_bytes(encoded(case, case["text"]) * case.get("repeat", 1))
    else:
        path.unlink()
    return lambda: wikics.read(path), None


# Objects in memory


def frames(case: Case, folder: Path) -> tuple[Call, None]:
    """Frames from dictionaries of columns."""
    ends = case.get("edges", {"from": ["a", "b"], "to": ["b", "c"]})
    return lambda: bgcl.graph_from(ends, case.get("nodes"), **case.get("options", {})), None


def network(case: Case, folder: Path) -> tuple[Call, None]:
    graph = networkx.Graph()
    graph.add_nodes_from(tuple(node) if isinstance(node, list) else node for node in case.get("nodes", []))
    graph.add_edges_from(case.get("edges", []))
    return lambda: bgcl.graph_from(graph), None


def matrix(case: Case, folder: Path) -> tuple[Call, None]:
    attributes = np.array(case["attributes"]) if "attributes" in case else None
    return lambda: bgcl.graph_from(np.array(case["matrix"]), attributes, labels=case.get("labels")), None


def tensors(case: Case, folder: Path) -> tuple[Call, None]:
    """A Data of three nodes, of which some tensors are replaced, or removed with false."""
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
    for name, value in case["change"].items():
        if isinstance(value, dict):
            data[name] = torch.tensor(value["values"], dtype=getattr(torch, value["type"]))
        else:
            data[name] = None if value is False else value
    return lambda: check_graph(data), None


BUILDERS: dict[str, Callable[[Case, Path], tuple[Call, Path | None]]] = {
    "tables": tables, "file": one_file, "folder": whole_folder, "gzip": packed, "long header": long_header,
    "parquet": parquet, "pack": pack, "packing": packing,
    "parquet bomb": parquet_bomb, "parquet name": parquet_name, "npz": arrays, "npz member": npz_member,
    "npz encrypted": npz_encrypted, "one array": one_array, "graphml": graphml, "planetoid": release,
    "wikics": json_release, "frames": frames, "networkx": network, "matrix": matrix, "data": tensors,
}  # fmt: skip
