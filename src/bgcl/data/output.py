"""Write results as CSV, Parquet or JSON, depending on the ending of the file."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bgcl.errors import BGCLError
from bgcl.files import atomic_write

ENDINGS = (".csv", ".parquet", ".json")
# A spreadsheet takes text that begins so for a formula, or for a command; also after the wide forms of the signs.
FORMULA = ("=", "+", "-", "@", "|", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def check_ending(path: Path, *, spreadsheet_safe: bool = False, endings: Sequence[str] = ENDINGS) -> None:
    """Raise an error if the ending is not supported. Call it before any work is done."""
    if path.suffix not in endings:
        raise BGCLError(f"Cannot write {path}: the file must end in {', '.join(endings[:-1])} or {endings[-1]}.")
    if path.is_dir():
        raise BGCLError(f"Cannot write {path}: it is a folder. Name a file.")
    if spreadsheet_safe and path.suffix != ".csv":
        raise BGCLError(f"--spreadsheet-safe is for .csv files, not for {path}: leave it out.")


def write_table(path: Path, columns: dict[str, Any], *, spreadsheet_safe: bool = False) -> None:
    """Write columns of equal length, completely or not at all.

    Args:
        path: the file.
        columns: the columns by name.
        spreadsheet_safe: in a CSV, put `'` before text that a spreadsheet would take for a formula.
    """
    check_ending(path, spreadsheet_safe=spreadsheet_safe)
    with atomic_write(path) as part:
        if path.suffix == ".parquet":
            import pyarrow
            import pyarrow.parquet

            table = pyarrow.table({name: np.asarray(column) for name, column in columns.items()})
            pyarrow.parquet.write_table(table, part)
            return
        rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
        with part.open("w", newline="", encoding="utf-8") as file:
            if path.suffix == ".json":
                json.dump([{n: None if v != v else v for n, v in zip(columns, row, strict=True)} for row in rows], file)
                return
            written = ([list(columns), *rows] if not spreadsheet_safe else
                       [[as_text(cell) for cell in row] for row in (columns, *rows)])  # fmt: skip
            csv.writer(file).writerows(written)


def as_text(cell: Any) -> Any:
    """A cell that no spreadsheet computes: text that looks like a formula gets `'` in front. Numbers stay numbers.

    >>> as_text("=1+1"), as_text("-5"), as_text(-5), as_text("a=b")
    ("'=1+1", '-5', -5, 'a=b')
    """
    formula = isinstance(cell, str) and cell.lstrip(" ").startswith(FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if formula else cell


def storable(ids: Any) -> Any:
    """Ids as an array that a .npz can store without pickling."""
    array = np.asarray(ids)
    return array.astype(str) if array.dtype == object else array
