"""Bad tables: the error is one line with the file, the row and the column."""

import math

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from people import EDGES, NODES, dense, write
from scipy.sparse import csr_matrix
from torch_geometric.data import Data

import bgcl
from bgcl import BGCLError
from bgcl.data import check_graph, memory
from bgcl.data.clean import clean

BAD = {
    "a missing column": (dict(label="lable"), {}, ["nodes.csv has no column 'lable'", "Did you mean label?"]),
    "a missing column of the edges": (dict(source="form"), {},
        ["edges.csv has no column 'form'", "Did you mean from?"]),
    "a column to ignore": (dict(ignore=["agee"]), {}, ["nodes.csv has no column 'agee'", "Did you mean age?"]),
    "an unknown id": ({}, dict(edges=EDGES + "ann,zoe,1\n"),
        ["edges.csv, row 8, column 'to'", "no node has the id 'zoe'"]),
    "a duplicate id": ({}, dict(nodes=NODES + "bob,1,Ulm,x,true,x\n"),
        ["nodes.csv, row 6, column 'id'", "'bob'", "row 3"]),
    "a missing id": ({}, dict(nodes=NODES + ",1,Ulm,x,true,x\n"), ["nodes.csv, row 6, column 'id'", "missing"]),
    "mixed types": (
        {}, dict(nodes=NODES.replace("45", "old")),
        ["nodes.csv, row 3, column 'age'", "'old' is not a number", "--categorical"]),
    "an empty file": ({}, dict(nodes=""), ["nodes.csv is empty"]),
    "a header alone": ({}, dict(edges="from,to\n"), ["edges.csv has columns but no rows"]),
    "blank lines alone": ({}, dict(edges="\n\n"), ["edges.csv is empty"]),
    "a broken encoding": (
        {}, dict(nodes=NODES.encode().replace(b"Rome", b"M\xfcnchen")),
        ["nodes.csv, row 3, column 'city'", "0xfc is not UTF-8"]),
    "a broken id": ({}, dict(edges=EDGES.encode() + b"M\xfc,ann,1\n"),
        ["edges.csv, row 8, column 'from'", "not UTF-8"]),
    "UTF-16": ({}, dict(nodes=NODES.encode("utf-16")), ["nodes.csv is UTF-16"]),
    "no labels": (
        {}, dict(nodes="id,age,label\nann,1,\nbob,2,NA\neve,3,\ndan,4,\n"),
        ["nodes.csv, column 'label'", "all 4 labels are missing"]),
    "a row too long": ({}, dict(edges=EDGES + "ann,bob,1,2\n"), ["edges.csv, row 8", "expected 3 columns, got 4"]),
    "two columns of one name": ({}, dict(nodes="id,x,x\n1,2,3\n"), ["nodes.csv has two columns called 'x'"]),
    "an infinite value": ({}, dict(nodes=NODES.replace("45", "inf")), ["nodes.csv, row 3, column 'age'"]),
    "no edges": ({}, dict(edges="from,to\nann,ann\n"), ["edges.csv", "no edges between different nodes"]),
    "a single column": ({}, dict(edges="from\nann\n"), ["edges.csv has one column"]),
    "no file of edges": ({}, dict(edges=None), ["has no file of edges"]),
    "an unknown option": (dict(lable="label"), {}, ["Unknown option 'lable'", "Did you mean label"]),
    "an id that is the label": (dict(id="label", label="label"), {}, ["named by --id and by --label"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_one_line_error_with_file_row_and_column(tmp_path, name):
    options, files, messages = BAD[name]
    folder = tmp_path / "g"
    folder.mkdir()
    for part, text in ({"edges": EDGES, "nodes": NODES} | files).items():
        if text is not None:
            (folder / f"{part}.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(BGCLError) as error:
        bgcl.load(folder, **options)
    assert "\n" not in str(error.value)
    for message in messages:
        assert message in str(error.value)


def test_ids_of_two_types_are_an_error(tmp_path):
    pyarrow.parquet.write_table(pa.table({"a": ["1", "2"], "b": ["2", "3"]}), tmp_path / "edges.parquet")
    pyarrow.parquet.write_table(pa.table({"id": [1, 2, 3], "x": [1, 2, 4]}), tmp_path / "nodes.parquet")
    with pytest.raises(BGCLError, match=r"edges.parquet, row 1, column 'a': the id '1' is text.*nodes.parquet"):
        bgcl.load(tmp_path)
    with pytest.raises(BGCLError, match="a column mixes types"):
        bgcl.graph_from({"a": [1], "b": ["x"]}, {"id": [1, "x"]})
    with pytest.raises(BGCLError, match="several types"):
        bgcl.graph_from(networkx.Graph([(1, "x")]))


def test_a_damaged_parquet_file_is_an_error(tmp_path):
    (tmp_path / "edges.parquet").write_bytes(b"PAR1 not at all")
    with pytest.raises(BGCLError, match=r"edges.parquet cannot be read"):
        bgcl.load(tmp_path / "edges.parquet")


def test_a_file_too_large_for_memory_is_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr("bgcl.data.memory.free_memory", lambda: 100)
    with pytest.raises(
        BGCLError, match=r"edges.csv is 0.0\d+ kB large and would need about .* of memory, but .*--ignore"
    ):
        bgcl.load(write(tmp_path / "g"))


def test_ignored_columns_need_no_memory(tmp_path, monkeypatch):
    pyarrow.parquet.write_table(pa.table({"a": [0, 1], "b": [1, 2]}), tmp_path / "edges.parquet")
    wide = {"id": [0, 1, 2], "x": [1, 2, 4], "noise": [f"{i}" * 10_000 for i in range(3)]}
    pyarrow.parquet.write_table(pa.table(wide), tmp_path / "nodes.parquet", compression="zstd")
    assert (tmp_path / "nodes.parquet").stat().st_size < 5_000
    monkeypatch.setattr("bgcl.data.memory.free_memory", lambda: 20_000)
    with pytest.raises(
        BGCLError, match=r"nodes.parquet .* would need about 9\d\.?\d? kB of memory, but 20 kB are free"
    ):
        bgcl.load(tmp_path)
    assert bgcl.load(tmp_path, ignore="noise").attribute_names == ["x"]


CELL = st.one_of(st.just(""), st.integers(-5, 5).map(str), st.text("ab,\"'é\t;\n ", max_size=5), st.floats().map(str))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.lists(st.lists(CELL, min_size=2, max_size=3), max_size=6))
def test_any_file_gives_a_graph_or_a_one_line_error(tmp_path, content):
    text = content if isinstance(content, bytes) else "\n".join(",".join(row) for row in content).encode()
    for edges, nodes in ((text, None), (b"a,b\n1,2\n", text), (EDGES.encode(), b"id,x\n" + text)):
        folder = write(tmp_path / "g", edges, nodes)
        if nodes is None:
            (folder / "nodes.csv").unlink(missing_ok=True)
        try:
            data = check_graph(bgcl.load(folder))
        except BGCLError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- some files are valid
            continue
        assert len(data.ids) == data.num_nodes == len(dense(data))
        assert np.isfinite(dense(data)).all()


def test_the_limit_of_a_container_counts_as_free_memory(tmp_path, monkeypatch):
    (tmp_path / "limit").write_text("12345\n")
    (tmp_path / "no_limit").write_text("max\n")
    files = [str(tmp_path / name) for name in ("limit", "no_limit", "missing")]
    monkeypatch.setattr(memory, "_CONTAINER_LIMITS", files)
    assert memory.free_memory() == 12345
    monkeypatch.setattr(memory, "_CONTAINER_LIMITS", files[1:])
    assert memory.free_memory() > 1 << 20


def test_damaged_parquet_files_end_in_one_line_or_are_read(tmp_path):
    """Without an abort of the process, which pyarrow's description of single columns may cause."""
    random = np.random.default_rng(0)
    places = {
        "edges": pa.table({"from": random.integers(0, 30, 60), "to": random.integers(0, 30, 60)}),
        "nodes": pa.table({"id": np.arange(30), "age": random.random(30), "v": list(random.random((30, 2)))}),
    }
    for name, table in places.items():
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
    refused = 0
    for name in places:
        path = tmp_path / f"{name}.parquet"
        whole = path.read_bytes()
        for _ in range(60):
            damaged = bytearray(whole)
            for place in random.integers(len(whole) // 2, len(whole), 2):
                damaged[place] = random.integers(256)
            path.write_bytes(damaged)
            try:
                bgcl.load(tmp_path)
            except BGCLError as error:
                refused += 1
                message = str(error)
            else:
                message = ""
            assert "\n" not in message
        path.write_bytes(whole)
    assert refused > 60
    assert bgcl.load(tmp_path).num_nodes == 30


@pytest.mark.parametrize("edge", ['<edge source="a"/>', '<edge target="b"/>', "<edge/>"])
def test_a_graphml_edge_without_an_end_is_refused(tmp_path, edge):
    nodes = '<node id="a"/><node id="b"/><edge source="a" target="b"/>'
    namespace = "http://graphml.graphdrawing.org/xmlns"
    graph = f'<graph edgedefault="undirected">{nodes}{edge}</graph>'
    (tmp_path / "g.graphml").write_text(f'<graphml xmlns="{namespace}">{graph}</graphml>')
    with pytest.raises(BGCLError, match=r"g.graphml: an edge has no source or no target"):
        bgcl.load(tmp_path / "g.graphml")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["9223372036854775808", "1", "2", "2"], ["1", "2", "9223372036854775808"]),
        (["1.0e19", "2.0e19", "1.0e19", "1.0e19"], ["1.0e19", "2.0e19"]),
    ],
)
def test_labels_beyond_the_range_of_whole_numbers_are_names(tmp_path, labels, classes):
    (tmp_path / "edges.csv").write_text("from,to\n0,1\n1,2\n2,3\n")
    rows = "".join(f"{i},{i * 1.5},{label}\n" for i, label in enumerate(labels))
    (tmp_path / "nodes.csv").write_text(f"id,size,label\n{rows}")
    data = bgcl.load(tmp_path)
    assert data.classes == classes
    assert [classes[y] for y in data.y] == labels


def test_class_numbers_beyond_the_range_are_refused():
    labels = np.array([0, 2**63], dtype=np.uint64)
    with pytest.raises(BGCLError, match="labels must be class numbers from 0"):
        clean(np.array([[0], [1]]), csr_matrix(np.eye(2)), labels, {}, where="x")


def test_an_infinite_label_is_refused_with_its_row():
    nodes = {"id": [0, 1, 2], "size": [1.0, 2.0, 4.0], "label": [1.0, math.inf, 2.0]}
    with pytest.raises(BGCLError, match=r"row 1, column 'label': the label is infinite"):
        bgcl.graph_from({"from": [0, 1], "to": [1, 2]}, nodes, label="label")


@pytest.mark.parametrize("ids", [["a", "b", "a"], [1, 2, 1], [24, 5, "24"]])
def test_ids_that_are_not_unique_are_refused(ids):
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), ids=ids)
    with pytest.raises(BGCLError, match=r"data.ids has the id '\w+' more than once"):
        check_graph(data)
