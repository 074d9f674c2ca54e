"""A user's own tables: what each column becomes, ids of any type, and one clear line for whatever is wrong."""

import gzip
import math
from pathlib import Path

import networkx
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import bgcl
from bgcl import BGCLError
from bgcl.data.clean import both_directions, clean_edges, undirected
from bgcl.data.own import read_again, read_files
from bgcl.data.recipe import Options, Recipe
from bgcl.data.structure import hashes

EDGES = "from,to,weight\nann,bob,1\nbob,eve,2\neve,ann,1\ndan,ann,3\ndan,dan,1\nbob,ann,1\n"
NODES = """id,age,city,bio,active,label
ann,31,Ulm,likes graphs and cats,true,x
bob,45,Rome,likes dogs,false,y
eve,,Ulm,paints dogs,true,
dan,27,Rome,"reads, writes graphs",,x
"""


def write(folder: Path, edges: str | bytes = EDGES, nodes: str | bytes | None = NODES, ending: str = "csv") -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in (("edges", edges), ("nodes", nodes)):
        if content is not None:
            (folder / f"{name}.{ending}").write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def dense(data: Data) -> np.ndarray:
    return data.x.to_dense().numpy()


def test_each_kind_of_column_becomes_what_the_documentation_says(tmp_path):
    data = bgcl.load(write(tmp_path / "g"))
    x = dict(zip(data.attributes, dense(data).T, strict=True))
    ages = np.array([31, 45, 27])
    np.testing.assert_allclose(x["age"][[0, 1, 3]], (ages - ages.mean()) / ages.std(), rtol=1e-6)
    assert x["age"][2] == 0
    assert x["age is missing"].tolist() == [0, 0, 1, 0]
    assert x["city = Ulm"].tolist() == [1, 0, 1, 0]
    assert x["active"].tolist() == [1, 0, 1, 0]
    assert x["active is missing"].tolist() == [0, 0, 0, 1]
    assert [name for name in x if name.startswith("bio")] == ["bio: dogs", "bio: graphs", "bio: likes"]
    np.testing.assert_allclose(x["bio: graphs"], [1 / math.sqrt(2), 0, 0, 1], rtol=1e-6)
    assert data.ids.tolist() == ["ann", "bob", "eve", "dan"]
    assert (data.classes, data.y.tolist()) == (["x", "y"], [0, 1, -1, 0])
    pairs = {(data.ids[a], data.ids[b]) for a, b in data.edge_index.T.tolist()}
    assert pairs == {p for a, b in ["ab", "be", "ea", "da"] for p in (named(a, b), named(b, a))}


def named(*letters: str) -> tuple[str, ...]:
    return tuple({"a": "ann", "b": "bob", "e": "eve", "d": "dan"}[letter] for letter in letters)


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet"])
def test_every_format_gives_the_same_graph(tmp_path, ending):
    expected = bgcl.load(write(tmp_path / "plain"))
    folder = tmp_path / "other"
    folder.mkdir()
    for name, text in (("edges", EDGES), ("nodes", NODES)):
        frame = pandas.read_csv(tmp_path / "plain" / f"{name}.csv", dtype={"active": "boolean"})
        path = folder / f"{name}.{ending}"
        if ending == "parquet":
            frame.to_parquet(path)
        elif ending == "tsv":
            frame.to_csv(path, sep="\t", index=False)
        else:
            path.write_bytes(gzip.compress(text.encode()) if ending == "csv.gz" else text.encode())
    data = bgcl.load(folder)
    np.testing.assert_allclose(dense(data), dense(expected), atol=1e-6)
    assert data.attributes == expected.attributes
    assert torch.equal(data.edge_index, expected.edge_index)
    assert (data.ids.tolist(), data.y.tolist(), data.classes) == (
        expected.ids.tolist(), expected.y.tolist(), expected.classes)  # fmt: skip


def test_frames_networkx_and_matrices_give_the_same_graph(tmp_path):
    expected = bgcl.load(write(tmp_path / "g"))
    edges, nodes = (pandas.read_csv(tmp_path / "g" / f"{name}.csv") for name in ("edges", "nodes"))
    nodes["active"] = nodes["active"].astype("boolean")
    network = networkx.Graph()
    for row in nodes.to_dict("records"):
        network.add_node(row.pop("id"), **{k: None if pandas.isna(v) else v for k, v in row.items()})
    network.add_edges_from(edges[["from", "to"]].itertuples(index=False))
    adjacency = scipy.sparse.csr_matrix(networkx.to_scipy_sparse_array(network))
    for given_ in (
        (edges, nodes), (polars.from_pandas(edges), polars.from_pandas(nodes)), (edges, nodes.set_index("id")),
        (pa.Table.from_pandas(edges), pa.Table.from_pandas(nodes)), (network,), (adjacency, nodes.drop(columns="id")),
    ):  # fmt: skip
        data = bgcl.graph_from(*given_)
        np.testing.assert_allclose(dense(data), dense(expected), atol=1e-6)
        assert torch.equal(data.edge_index, expected.edge_index)
        assert data.y.tolist() == expected.y.tolist()
        assert data.ids.tolist() == (
            [0, 1, 2, 3] if len(given_) == 2 and given_[0] is adjacency else expected.ids.tolist()
        )


def test_a_matrix_of_attributes_with_labels_by_name():
    adjacency = scipy.sparse.csr_matrix(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    data = bgcl.graph_from(adjacency, np.eye(3), labels=["b", None, "a"])
    assert (data.classes, data.y.tolist()) == (["a", "b"], [1, -1, 0])
    np.testing.assert_array_equal(dense(data), np.eye(3))
    assert bgcl.graph_from(adjacency).x.shape == (3, 80)


def test_graphml_reads_with_its_ids(tmp_path):
    network = networkx.Graph([("a", "b"), ("b", "c")])
    networkx.set_node_attributes(network, {"a": 1.5, "b": 2.5, "c": 0.5}, "size")
    networkx.write_graphml(network, tmp_path / "g.graphml")
    data = bgcl.load(tmp_path / "g.graphml")
    assert data.ids.tolist() == ["a", "b", "c"]
    assert data.attributes == ["size"]
    (tmp_path / "bad.graphml").write_text("<graphml")
    with pytest.raises(BGCLError, match="is not GraphML"):
        bgcl.load(tmp_path / "bad.graphml")


def test_ids_come_back_as_they_were_written(tmp_path):
    data = bgcl.load(write(tmp_path / "g", "a,b\n007,7\n7,NA\n", "id,x\n007,1\n7,2\nNA,3\n"))
    assert data.ids.tolist() == ["007", "7", "NA"]
    data = bgcl.load(write(tmp_path / "h", "a,b\n-5,900000000000\n7,-5\n", "id,x\n900000000000,1\n7,2\n-5,4\n"))
    assert data.ids.tolist() == [900000000000, 7, -5]
    assert data.edge_index.tolist() == [[0, 1, 2, 2], [2, 2, 0, 1]]


def test_a_file_of_edges_alone_without_a_header(tmp_path):
    (tmp_path / "e.csv").write_text("5,9\n9,11\n11,5\n")
    data = bgcl.load(tmp_path / "e.csv")
    assert sorted(data.ids.tolist()) == [5, 9, 11]
    assert data.num_edges == 6


def test_structural_attributes_by_a_plain_loop(tmp_path):
    (tmp_path / "e.csv").write_text("a,b\nann,bob\nbob,eve\nbob,dan\n")
    data = bgcl.load(tmp_path / "e.csv")
    neighbours = {i: data.edge_index[1][data.edge_index[0] == i].tolist() for i in range(4)}
    signs = np.array([[1.0 if (int(h) >> (8 * (j // 8) + 7 - j % 8)) & 1 else -1.0 for j in range(64)]
                      for h in hashes(pa.array(data.ids.tolist()))])  # fmt: skip
    total = np.zeros((4, 64))
    for _ in range(3):
        signs = np.stack([np.mean([signs[n] for n in neighbours[i]], axis=0) for i in range(4)])
        total += signs / np.linalg.norm(signs, axis=1, keepdims=True)
    np.testing.assert_allclose(dense(data)[:, :64], total, atol=1e-5)
    degree = {0: 1, 1: 3, 2: 1, 3: 1}
    at = [data.attributes[64 + int(row.argmax())] for row in dense(data)[:, 64:]]
    assert [degree[i] for i in range(4)] == [3 if "2 to 3" in name else 1 for name in at] or sorted(at) == [
        "degree 1", "degree 1", "degree 1", "degree 2 to 3"]  # fmt: skip


def test_hashes_of_text_by_a_plain_loop():
    def plain(text: str) -> int:
        value, power, bits = 0, 1, (1 << 64) - 1
        for byte in text.encode():
            power = power * 0x100000001B3 & bits
            value = value + (byte + 1) * power & bits
        value = value + 0x9E3779B97F4A7C15 & bits
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & bits
        value = (value ^ value >> 27) * 0x94D049BB133111EB & bits
        return value ^ value >> 31

    names = ["ann", "a", "übermaß", "x" * 40]
    assert hashes(pa.array(names)).tolist() == [plain(name) for name in names]
    assert hashes(pa.array(["-", *names]).slice(1)).tolist() == [plain(name) for name in names]


@settings(deadline=None)
@given(st.integers(1, 12).flatmap(lambda n: st.tuples(
    st.just(n + 1), st.lists(st.tuples(st.integers(0, n), st.integers(0, n)), min_size=1, max_size=40))))  # fmt: skip
def test_undirected_equals_the_plain_way(drawn):
    nodes, pairs = drawn
    edges = np.array([*pairs, (0, 1)]).T
    expected = both_directions(clean_edges(edges, nodes, where=""), nodes)
    np.testing.assert_array_equal(undirected(edges[0], edges[1], nodes), expected)


def test_the_recipe_reads_the_same_graph_and_new_nodes(tmp_path):
    reading = read_files(write(tmp_path / "g"))
    recipe = Recipe.from_json(reading.recipe.to_json(), "graph.json")
    assert recipe == reading.recipe
    again = read_again(recipe).data
    torch.testing.assert_close(again.x.to_dense(), reading.data.x.to_dense())
    new = NODES + "joe,99,Oslo,knits dogs,false,x\nzoe,1,Ulm,,,\n"
    found = read_again(recipe, str(write(tmp_path / "h", EDGES + "joe,ann,1\nzoe,joe,1\n", new)))
    np.testing.assert_allclose(dense(found.data)[:4], dense(reading.data))
    x = dict(zip(found.data.attributes, dense(found.data)[4], strict=True))
    assert (x["city = Ulm"], x["city = Rome"], x["bio: dogs"]) == (0, 0, 1)
    assert x["age"] == pytest.approx((99 - np.mean([31, 45, 27])) / np.std([31, 45, 27]))
    assert any("'Oslo'" in note for note in found.notes)


def test_categories_and_words_that_are_rare_or_unseen(tmp_path):
    random = np.random.default_rng(0)
    names = [f"c{i}" for i in range(70)] * 3 + [f"rare{i}" for i in range(10)]
    nodes = "id,code,kind\n" + "".join(f"{i},{random.integers(3)},{n}\n" for i, n in enumerate(names))
    folder = write(tmp_path / "g", "a,b\n0,1\n1,2\n", nodes)
    data = bgcl.load(folder, categorical="code")
    assert {"code = 0", "code = 1", "code = 2", "kind = c69", "kind = (other)"} <= set(data.attributes)
    assert data.x.layout == torch.sparse_csr
    x = dict(zip(data.attributes, dense(data).T, strict=True))
    assert x["kind = (other)"].sum() == 10
    assert np.all(dense(data).sum(1) == 2)


def test_dates_and_lists_are_numbers(tmp_path):
    import datetime

    table = pa.table({
        "id": [1, 2, 3], "born": [datetime.date(2000, 1, 1), datetime.date(2000, 1, 3), None],
        "vector": [[1.0, 5.0], [3.0, 5.0], None],
    })  # fmt: skip
    data = bgcl.graph_from({"a": [1, 2], "b": [2, 3]}, table)
    x = dict(zip(data.attributes, dense(data).T, strict=True))
    np.testing.assert_allclose(x["born"], [-1, 1, 0])
    np.testing.assert_allclose(x["vector[0]"], [-1 / math.sqrt(2), 1 / math.sqrt(2), 0], rtol=1e-6)


def test_labels_of_any_type_come_back_by_name(tmp_path):
    for cells, classes, y in (
        (["3", "1", ""], [1, 3], [1, 0, -1]), (["1.0", "", "2.0"], [1, 2], [0, -1, 1]),
        (["01", "1", ""], ["01", "1"], [0, 1, -1]), (["true", "false", "NA"], ["false", "true"], [1, 0, -1]),
    ):  # fmt: skip
        nodes = "id,x,label\n" + "".join(f"{i},{i * i},{cell}\n" for i, cell in enumerate(cells))
        data = bgcl.load(write(tmp_path / "g", "a,b\n0,1\n1,2\n", nodes))
        assert (data.classes, data.y.tolist()) == (classes, y)
    data = bgcl.load(write(tmp_path / "g", "a,b\n0,1\n1,2\n", "id,x,label\n0,1,0.5\n1,2,\n2,5,1\n"))
    assert "classes" not in data
    np.testing.assert_array_equal(data.y, [0.5, np.nan, 1])


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
    "an unknown option": (dict(labels="label"), {}, ["Unknown option 'labels'", "Did you mean label"]),
    "an id that is the label": (dict(id="label", label="label"), {}, ["cannot be both the id and the label"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_with_file_row_and_column(tmp_path, name):
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


def test_ids_of_two_types_in_parquet(tmp_path):
    pyarrow.parquet.write_table(pa.table({"a": ["1", "2"], "b": ["2", "3"]}), tmp_path / "edges.parquet")
    pyarrow.parquet.write_table(pa.table({"id": [1, 2, 3], "x": [1, 2, 4]}), tmp_path / "nodes.parquet")
    with pytest.raises(BGCLError, match=r"edges.parquet, row 1, column 'a': the id '1' is text.*nodes.parquet"):
        bgcl.load(tmp_path)
    with pytest.raises(BGCLError, match="a column mixes types"):
        bgcl.graph_from({"a": [1], "b": ["x"]}, {"id": [1, "x"]})
    with pytest.raises(BGCLError, match="several types"):
        bgcl.graph_from(networkx.Graph([(1, "x")]))


def test_a_damaged_parquet_file(tmp_path):
    (tmp_path / "edges.parquet").write_bytes(b"PAR1 not at all")
    with pytest.raises(BGCLError, match=r"edges.parquet cannot be read"):
        bgcl.load(tmp_path / "edges.parquet")


def test_a_file_too_large_for_memory_says_how_large_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr("bgcl.data.memory.free_memory", lambda: 100)
    with pytest.raises(BGCLError, match=r"edges.csv is 0.0\d+ kB large and would need about .* of memory; .*--ignore"):
        bgcl.load(write(tmp_path / "g"))


def test_columns_that_are_ignored_need_no_memory(tmp_path, monkeypatch):
    pyarrow.parquet.write_table(pa.table({"a": [0, 1], "b": [1, 2]}), tmp_path / "edges.parquet")
    wide = {"id": [0, 1, 2], "x": [1, 2, 4], "noise": [f"{i}" * 10_000 for i in range(3)]}
    pyarrow.parquet.write_table(pa.table(wide), tmp_path / "nodes.parquet", compression="zstd")
    assert (tmp_path / "nodes.parquet").stat().st_size < 5_000
    monkeypatch.setattr("bgcl.data.memory.free_memory", lambda: 20_000)
    with pytest.raises(BGCLError, match=r"nodes.parquet .* would need about 9\d\.?\d? kB of memory; 20 kB are free"):
        bgcl.load(tmp_path)
    assert bgcl.load(tmp_path, ignore="noise").attributes == ["x"]


def test_a_constant_column_is_left_out_and_told(tmp_path, caplog):
    nodes = "id,same,none,key,x\na,5,,k1,1\nb,5,,k2,2\nc,5,,k3,3\n"
    data = bgcl.load(write(tmp_path / "g", "a,b\na,b\nb,c\n", nodes))
    assert data.attributes == ["x"]
    for text in (
        "'same' is left out: it is constant",
        "'none' is left out: it has no",
        "'key' is left out: every value",
    ):
        assert text in caplog.text


def test_a_graph_without_attributes_says_what_is_taken_instead(tmp_path, caplog):
    data = bgcl.load(write(tmp_path / "g", "a,b\na,b\nb,c\n", "id,label\na,1\nb,2\nc,1\n"))
    assert data.x.shape == (3, 80)
    assert "neighbourhoods and degrees are taken instead" in caplog.text


def test_unknown_ids_can_be_skipped(tmp_path):
    folder = write(tmp_path / "g", EDGES + "ann,zoe,1\n")
    assert read_files(folder, options=Options(skip_unknown=True)).unknown == 1


CELL = st.one_of(st.just(""), st.integers(-5, 5).map(str), st.text("ab,\"'é\t;\n ", max_size=5), st.floats().map(str))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.lists(st.lists(CELL, min_size=2, max_size=3), max_size=6))
def test_whatever_a_file_holds_it_is_a_graph_or_one_line(tmp_path, content):
    """Never a traceback, whatever the bytes."""
    text = content if isinstance(content, bytes) else "\n".join(",".join(row) for row in content).encode()
    for edges, nodes in ((text, None), (b"a,b\n1,2\n", text), (EDGES.encode(), b"id,x\n" + text)):
        folder = write(tmp_path / "g", edges, nodes)
        if nodes is None:
            (folder / "nodes.csv").unlink(missing_ok=True)
        try:
            data = bgcl.check_graph(bgcl.load(folder))
        except BGCLError as error:
            assert "\n" not in str(error)  # noqa: PT017 - it need not be raised
            continue
        assert len(data.ids) == data.num_nodes == len(dense(data))
        assert np.isfinite(dense(data)).all()
