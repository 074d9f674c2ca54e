"""The border of reading: any error becomes one line, a warning none, and Ctrl-C passes through."""

import os
import warnings
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from people import write

import bgcl
from bgcl import BGCLError
from bgcl.data.border import readable
from bgcl.errors import CannotWriteError

ERRORS = [
    ValueError("bad\nvalue"), OverflowError("too large"), pa.ArrowInvalid("broken"), pa.ArrowNotImplementedError("no"),
    zipfile.BadZipFile("no zip"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), KeyError("x"), EOFError(),
    AttributeError("no attribute"), NotImplementedError(), OSError("damaged"), RuntimeError("x" * 10_000),
    RecursionError("deep"), MemoryError(), pa.ArrowMemoryError("huge"), StopIteration(), AssertionError(),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_any_error_becomes_one_line_that_names_the_place(error):
    with (
        pytest.raises(BGCLError, match=r"^g.csv, row 3 cannot be read.*Correct it\.$") as found,
        readable("g.csv, row 3", "Correct it."),
    ):
        raise error
    assert found.value.__cause__ is error
    assert len(str(found.value)) < 250


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_a_program_passes_through(error):
    with pytest.raises(error), readable("g.csv"):
        raise error


def test_the_innermost_place_is_named():
    with pytest.raises(BGCLError, match=r"^inside cannot be read \(x\)"), readable("outside"), readable("inside"):
        raise ValueError("x")
    with pytest.raises(CannotWriteError, match=r"^as it is$"), readable("outside"):
        raise CannotWriteError("as it is")


def test_names_with_several_lines_or_without_an_end_are_one_short_line():
    with pytest.raises(BGCLError) as error, readable("g.csv"):
        raise BGCLError(f"column 'a\nb\u2028c{'x' * 100_000}' is missing. Add it.")
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 2100
    assert str(error.value).endswith("Add it.")


def test_warnings_are_not_shown():
    with warnings.catch_warnings(record=True) as shown, readable("g.csv"):
        warnings.warn("look", stacklevel=1)
    assert not shown


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may read everything")
def test_a_file_without_permission_is_not_called_damaged(tmp_path: Path):
    folder = write(tmp_path / "g")
    for path in (folder / "edges.csv", folder):
        path.chmod(0)
        with pytest.raises(BGCLError, match=r"Cannot read .*: you have no permission"):
            bgcl.load(folder)
        path.chmod(0o700)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "graphml", "csv.gz"])
def test_no_permission_is_not_called_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str):
    """As an administrator cannot be refused, the system's answer is imitated."""
    path = tmp_path / f"g.{ending}"
    path.write_bytes(b"content")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    for place in ("pathlib.Path.open", "gzip.open", "pyarrow.parquet.read_metadata", "xml.etree.ElementTree.iterparse"):
        monkeypatch.setattr(place, refuse)
    with pytest.raises(BGCLError, match=rf"^Cannot read .*g.{ending}: you have no permission\. Change its permissions"):
        bgcl.load(path)
