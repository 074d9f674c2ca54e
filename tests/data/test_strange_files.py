"""Files that are strange but valid are read as they are meant; files that would need too much memory are not read."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from people import EDGES, NODES, dense, write

import bgcl
from bgcl import BGCLError
from bgcl.data import csv_files, memory

USUAL = {"edges": EDGES, "nodes": NODES}


@pytest.mark.parametrize("before", ["\n", "\n\n\n", "\r\n", "  \n", "\ufeff", "\ufeff\n"])
def test_blank_lines_before_the_header_are_no_rows(tmp_path, before):
    data = bgcl.load(write(tmp_path / "g", before + EDGES, before + NODES))
    assert data.ids.tolist() == ["ann", "bob", "eve", "dan"]
    assert data.num_edges == 8


def test_blank_lines_before_the_header_count_as_rows_in_an_error(tmp_path):
    folder = write(tmp_path / "g", "\n\nfrom,to\nann,zoe\n")
    with pytest.raises(BGCLError, match=r"edges.csv, row 4, column 'to': no node has the id 'zoe'"):
        bgcl.load(folder)


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_any_end_of_a_line_is_understood(tmp_path, end):
    data = bgcl.load(write(tmp_path / "g", EDGES.replace("\n", end), NODES.replace("\n", end)))
    assert np.array_equal(dense(data), dense(bgcl.load(write(tmp_path / "usual"))))


def test_a_name_with_a_line_break_is_read(tmp_path):
    data = bgcl.load(write(tmp_path / "g", nodes='id,"size\nin m"\nann,1\nbob,2\neve,3\ndan,5\n'))
    assert data.attribute_names == ["size\nin m"]


def nodes_with(folder, values):
    pyarrow.parquet.write_table(pa.table({"from": [0, 1, 2], "to": [1, 2, 3]}), folder / "edges.parquet")
    pyarrow.parquet.write_table(pa.table({"id": [0, 1, 2, 3], **values}), folder / "nodes.parquet")
    return bgcl.load(folder)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(np.array([1, 2, 3, 5], np.float16)),
        pa.array([1, 2, 3, 5], pa.int32()).cast(pa.time32("s")),
        pa.array([1, 2, 3, 5], pa.int64()).cast(pa.duration("us")),
        pa.array([1, 2, 3, 5], pa.uint64()),
        pa.array([1, 2, 3, 5], pa.decimal128(38, 2)),
    ],
    ids=lambda values: str(values.type),
)
def test_numbers_of_any_type_are_scaled_alike(tmp_path, values):
    found = dense(nodes_with(tmp_path, {"size": values}))[:, 0]
    expected = np.array([1.0, 2, 3, 5])
    assert np.allclose(found, (expected - expected.mean()) / expected.std())


def test_empty_lists_are_left_out(tmp_path):
    lists = pa.array([[], None, [], []], pa.list_(pa.float64()))
    assert nodes_with(tmp_path, {"size": [1, 2, 3, 5], "v": lists}).attribute_names == ["size"]


def test_labels_of_sixteen_bits_are_classes(tmp_path):
    data = nodes_with(tmp_path, {"size": [1, 2, 3, 5], "label": np.array([1, 2, np.nan, 2], np.float16)})
    assert data.classes == [1, 2]
    assert data.y.tolist() == [0, 1, -1, 1]


def test_ids_in_a_dictionary_are_ids(tmp_path):
    edges = {"from": pa.array(["a", "b"]).dictionary_encode(), "to": pa.array(["b", "c"], pa.large_string())}
    pyarrow.parquet.write_table(pa.table(edges), tmp_path / "edges.parquet")
    assert bgcl.load(tmp_path / "edges.parquet").ids.tolist() == ["a", "b", "c"]


# Memory


def test_a_gzipped_file_unpacks_to_no_more_than_its_size_explains(tmp_path, monkeypatch):
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(b"from,to\n" + b"ann,bob\n" * 300_000))
    assert bgcl.load(path).num_nodes == 2
    monkeypatch.setattr(memory, "PACKED_BYTES", 10**7)
    with pytest.raises(BGCLError, match=r"edges.csv.gz is .* kB large, but unpacks to more than its size can explain"):
        bgcl.load(path)


def test_a_gzipped_file_has_no_more_values_than_its_size_explains(tmp_path, monkeypatch):
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(b"from,to\n" + b"1,2\n" * 300_000))
    monkeypatch.setattr(csv_files, "_VALUES", 500_000)
    with pytest.raises(BGCLError, match=r"edges.csv.gz is .* kB large, but unpacks to more than its size can explain"):
        bgcl.load(path)


def test_a_limit_grows_with_the_size_of_a_file():
    assert memory.packed_limit(10) == 10**9
    assert memory.packed_limit(10**9) == 10**11
