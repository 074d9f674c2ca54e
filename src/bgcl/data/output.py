"""Write results as CSV, Parquet or JSON, depending on the ending of the file."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from bgcl.errors import BGCLError
from bgcl.files import atomic_write

ENDINGS = (".csv", ".parquet", ".json")


def check_ending(path: Path) -> None:
    """Raise an error if the ending is not supported. Call it before any work is done."""
    if path.suffix not in ENDINGS:
        raise BGCLError(f"Cannot write {path}: the file must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.")


def write_table(path: Path, columns: dict[str, Any]) -> None:
    """Write columns of equal length, completely or not at all."""
    check_ending(path)
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
            else:
                csv.writer(file).writerows([list(columns), *rows])


def storable(ids: Any) -> Any:
    """Ids as an array that a .npz can store without pickling."""
    array = np.asarray(ids)
    return array.astype(str) if array.dtype == object else array
