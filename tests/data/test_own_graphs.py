"""Users' tables, frames and matrices as graphs: what each column becomes, ids of any type, and labels."""

import datetime
import gzip
import math

import networkx
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from people import EDGES, NODES, dense, write

import bgcl
from bgcl import BGCLError
from bgcl.data.options import Options
from bgcl.data.own import read_files
from bgcl.data.structure import COLUMNS, DEGREES


def test_each_kind_of_column_becomes_what_the_documentation_says(tmp_path):
    data = bgcl.load(write(tmp_path / "g"))
    x = dict(zip(data.attribute_names, dense(data).T, strict=True))
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
    assert data.attribute_names == expected.attribute_names
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


def test_labels_beside_a_matrix_of_attributes_may_be_names():
    adjacency = scipy.sparse.csr_matrix(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    data = bgcl.graph_from(adjacency, np.eye(3), labels=["b", None, "a"])
    assert (data.classes, data.y.tolist()) == (["a", "b"], [1, -1, 0])
    np.testing.assert_array_equal(dense(data), np.eye(3))
    assert bgcl.graph_from(adjacency).x.shape == (3, COLUMNS + DEGREES)


def test_graphml_keeps_its_ids(tmp_path):
    network = networkx.Graph([("a", "b"), ("b", "c")])
    networkx.set_node_attributes(network, {"a": 1.5, "b": 2.5, "c": 0.5}, "size")
    networkx.write_graphml(network, tmp_path / "g.graphml")
    data = bgcl.load(tmp_path / "g.graphml")
    assert data.ids.tolist() == ["a", "b", "c"]
    assert data.attribute_names == ["size"]
    (tmp_path / "bad.graphml").write_text("<graphml")
    with pytest.raises(BGCLError, match=r"bad.graphml cannot be read \(unclosed token"):
        bgcl.load(tmp_path / "bad.graphml")


def test_ids_stay_as_they_were_written(tmp_path):
    data = bgcl.load(write(tmp_path / "g", "a,b\n007,7\n7,NA\n", "id,x\n007,1\n7,2\nNA,3\n"))
    assert data.ids.tolist() == ["007", "7", "NA"]
    data = bgcl.load(write(tmp_path / "h", "a,b\n-5,900000000000\n7,-5\n", "id,x\n900000000000,1\n7,2\n-5,4\n"))
    assert data.ids.tolist() == [900000000000, 7, -5]
    assert data.edge_index.tolist() == [[0, 1, 2, 2], [2, 2, 0, 1]]


def test_a_file_of_edges_needs_no_nodes_and_no_header(tmp_path):
    (tmp_path / "e.csv").write_text("5,9\n9,11\n11,5\n")
    data = bgcl.load(tmp_path / "e.csv")
    assert sorted(data.ids.tolist()) == [5, 9, 11]
    assert data.num_edges == 6


def test_rare_categories_share_one_attribute(tmp_path):
    random = np.random.default_rng(0)
    names = [f"c{i}" for i in range(70)] * 3 + [f"rare{i}" for i in range(10)]
    nodes = "id,code,kind\n" + "".join(f"{i},{random.integers(3)},{n}\n" for i, n in enumerate(names))
    folder = write(tmp_path / "g", "a,b\n0,1\n1,2\n", nodes)
    data = bgcl.load(folder, categorical="code")
    assert {"code = 0", "code = 1", "code = 2", "kind = c69", "kind = (other)"} <= set(data.attribute_names)
    assert data.x.layout == torch.sparse_csr
    x = dict(zip(data.attribute_names, dense(data).T, strict=True))
    assert x["kind = (other)"].sum() == 10
    assert np.all(dense(data).sum(1) == 2)


def test_dates_and_lists_are_numbers(tmp_path):
    table = pa.table({
        "id": [1, 2, 3], "born": [datetime.date(2000, 1, 1), datetime.date(2000, 1, 3), None],
        "vector": [[1.0, 5.0], [3.0, 5.0], None],
    })  # fmt: skip
    data = bgcl.graph_from({"a": [1, 2], "b": [2, 3]}, table)
    x = dict(zip(data.attribute_names, dense(data).T, strict=True))
    np.testing.assert_allclose(x["born"], [-1, 1, 0])
    np.testing.assert_allclose(x["vector[0]"], [-1 / math.sqrt(2), 1 / math.sqrt(2), 0], rtol=1e-6)


def test_labels_of_any_type_keep_their_names(tmp_path):
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


def test_a_constant_column_is_left_out_and_reported(tmp_path, caplog):
    nodes = "id,same,none,key,x\na,5,,k1,1\nb,5,,k2,2\nc,5,,k3,3\n"
    data = bgcl.load(write(tmp_path / "g", "a,b\na,b\nb,c\n", nodes))
    assert data.attribute_names == ["x"]
    for text in (
        "'same' is left out: it is constant",
        "'none' is left out: it has no",
        "'key' is left out: every value",
    ):
        assert text in caplog.text


def test_a_graph_without_attributes_reports_what_is_used_instead(tmp_path, caplog):
    data = bgcl.load(write(tmp_path / "g", "a,b\na,b\nb,c\n", "id,label\na,1\nb,2\nc,1\n"))
    assert data.x.shape == (3, COLUMNS + DEGREES)
    assert "neighborhoods and degrees are used instead" in caplog.text


def test_unknown_ids_can_be_skipped(tmp_path):
    folder = write(tmp_path / "g", EDGES + "ann,zoe,1\n")
    assert read_files(folder, options=Options(skip_unknown=True)).unknown == 1


@pytest.mark.parametrize("factor", [1e-300, 1e-150, 1.0, 1e150, 1e200, 1e307])
@pytest.mark.parametrize("as_list", [False, True])
def test_a_column_of_any_size_is_scaled_alike(factor, as_list):
    values = np.random.default_rng(0).normal(size=12)
    edges = {"from": list(range(11)), "to": list(range(1, 12))}

    def column(factor):
        numbers = values * factor
        cells = [[number, 2 * number] for number in numbers.tolist()] if as_list else numbers
        return bgcl.graph_from(edges, {"id": list(range(12)), "size": cells}).x.to_dense()

    torch.testing.assert_close(column(factor), column(1.0), rtol=1e-5, atol=1e-6)
    assert float(column(factor).std()) > 0.5 / (1 + as_list)
