"""Other readers read tables back as they were written. A table that fails leaves nothing behind."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from bgcl import BGCLError
from bgcl.data.output import check_ending, write_table

COLUMNS = {
    "node": np.arange(3),
    "probability": np.array([0.1, 1 / 3, 1e-300]),
    "single": np.array([0.1, 0.2, 0.3], dtype=np.float32),
    "name": ["plain", 'with "quotes", commas', "ä\nß"],
    "wrong": np.array([True, False, True]),
}


def as_lists(columns) -> dict[str, list]:
    return {name: np.asarray(column).tolist() for name, column in columns.items()}


def test_csv_reads_back(tmp_path):
    write_table(tmp_path / "t.csv", COLUMNS)
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(COLUMNS)
    assert [int(row["node"]) for row in rows] == [0, 1, 2]
    assert [float(row["probability"]) for row in rows] == list(COLUMNS["probability"])
    assert [np.float32(row["single"]) for row in rows] == list(COLUMNS["single"])
    assert [row["name"] for row in rows] == COLUMNS["name"]


def test_json_reads_back(tmp_path):
    write_table(tmp_path / "t.json", COLUMNS)
    rows = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert {name: [row[name] for row in rows] for name in COLUMNS} == as_lists(COLUMNS)


def test_parquet_reads_back_with_its_types(tmp_path):
    write_table(tmp_path / "t.parquet", COLUMNS)
    table = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert table.to_pydict() == as_lists(COLUMNS)
    assert str(table.schema.field("node").type) == "int64"
    assert str(table.schema.field("single").type) == "float"


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_an_empty_table_keeps_its_columns_or_is_an_empty_list(tmp_path, ending):
    write_table(tmp_path / f"t.{ending}", {"node": np.array([], dtype=int)})
    assert (tmp_path / f"t.{ending}").exists()


def test_json_is_valid_even_if_a_number_is_missing(tmp_path):
    """NaN is not JSON: other readers refuse the whole file."""
    write_table(tmp_path / "t.json", {"node": [0, 1], "score": [np.nan, 0.5]})

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    rows = json.loads((tmp_path / "t.json").read_text(), parse_constant=refuse)
    assert [row["score"] for row in rows] == [None, 0.5]


FORMULAS = [
    "=1+1",
    "+1+1",
    "-x",
    "@you",
    "|x",
    "\tx",
    "\rx",
    "\nx",
    " =1",
    "\uff1d1",
    "=cmd|' /C calc'!A0",
    "-1-1",
    "+1e",
]
NO_FORMULAS = ["", "a=b", "-5", "+5.5e-3", "1-2", "'=1", "café", "x@y"]


def test_a_safe_csv_puts_a_quote_before_formulas_and_before_nothing_else(tmp_path):
    columns = {"=id": [*FORMULAS, *NO_FORMULAS], "number": -np.arange(len(FORMULAS + NO_FORMULAS))}
    write_table(tmp_path / "t.csv", columns, spreadsheet_safe=True)
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=id", "number"]
    assert [row[0] for row in rows] == [*(f"'{text}" for text in FORMULAS), *NO_FORMULAS]
    assert [int(row[1]) for row in rows] == columns["number"].tolist()


def test_by_default_text_is_written_as_it_is(tmp_path):
    write_table(tmp_path / "t.csv", {"id": FORMULAS})
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        assert [row["id"] for row in csv.DictReader(file)] == FORMULAS


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_only_a_csv_has_a_safe_form(tmp_path, ending):
    with pytest.raises(BGCLError, match=r"for .csv files"):
        write_table(tmp_path / f"t.{ending}", COLUMNS, spreadsheet_safe=True)


def test_a_folder_is_refused_before_any_work(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(BGCLError, match="it is a folder"):
        check_ending(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["t.txt", "t", "t.csv.gz", "csv"])
def test_an_unsupported_ending_is_an_error_before_any_work(tmp_path, name):
    for call in (check_ending, lambda path: write_table(path, COLUMNS)):
        with pytest.raises(BGCLError, match=r"must end in .csv, .parquet or .json"):
            call(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_a_table_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    write_table(path, COLUMNS)
    before = path.read_bytes()
    with pytest.raises(Exception):  # noqa: B017, PT011 -- whatever the writer raises
        write_table(path, {"a": [1, 2], "b": [1, 2, 3]})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    write_table(path, COLUMNS)
    before = path.read_bytes()

    def half(rows, file):
        file.write("[{")
        raise KeyboardInterrupt

    monkeypatch.setattr(json, "dump", half)
    with pytest.raises(KeyboardInterrupt):
        write_table(path, COLUMNS)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_cannot_be_written_is_a_one_line_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BGCLError, match="Cannot write"):
        write_table(tmp_path / "file" / "t.csv", COLUMNS)


def test_missing_folders_are_created(tmp_path: Path):
    write_table(tmp_path / "a" / "b" / "t.csv", COLUMNS)
    assert (tmp_path / "a" / "b" / "t.csv").exists()
