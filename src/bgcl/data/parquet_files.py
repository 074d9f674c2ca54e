"""Read Parquet files. Only the columns that are asked for are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from bgcl.data.border import readable
from bgcl.data.memory import check_unpacked
from bgcl.data.tables import Table, unique, with_rows

_GROWTH = 3  # bytes of memory needed to read one byte of a column
_VALUE_BYTES = 32  # bytes of memory that a value needs at least
_REMEDY = "Leave out columns with --ignore. Give attributes that are mostly zero as a .npz."


class ParquetFile:
    """A Parquet file that is open."""

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.inferred = path, str(path), list[str]()
        with readable(path):
            self._metadata = pyarrow.parquet.read_metadata(path)
            self._schema = self._metadata.schema.to_arrow_schema()
            self.names = unique(path, list(self._schema.names))

    def read(self, columns: Sequence[str], *, ids: Sequence[str] = (), texts: Sequence[str] = ()) -> Table:
        self.check_unpacked(columns)
        with readable(self.path):
            # Texts are read as dictionaries, which is how most Parquet files store them.
            coded = [name for name in columns if _is_text(self._schema.field(name).type)]
            table = pyarrow.parquet.read_table(self.path, columns=list(columns), read_dictionary=coded)
            table.validate(full=False)
            for name in ids:
                if name in coded:
                    table = table.set_column(table.column_names.index(name), name, self._spelled(table[name]))
            return with_rows(Table(self.name, table, 1, False))

    def check_unpacked(self, columns: Sequence[str]) -> None:
        """Raise an error if columns need more memory than is free, or than the size of the file can explain."""
        with readable(self.path):
            check_unpacked(self.path, self._needed(columns), _REMEDY)

    def _needed(self, columns: Sequence[str]) -> int:
        """Memory that the columns need, in bytes. The length of texts counts only if all columns are read.

        pyarrow knows the size of each column, but ends the process if the description of a column is damaged.
        """
        cells = _VALUE_BYTES * len(columns) * max(int(self._metadata.num_rows), 0)
        if not set(self.names) <= set(columns):
            return cells
        groups = (self._metadata.row_group(i) for i in range(self._metadata.num_row_groups))
        return max(cells, _GROWTH * sum(max(int(group.total_byte_size), 0) for group in groups))

    def _spelled(self, column: Any) -> Any:
        """A column of texts that was read as a dictionary, as plain text."""
        needed = sum(_letters(chunk) for chunk in column.chunks)
        check_unpacked(self.path, _GROWTH * needed, _REMEDY)
        return column.cast(column.type.value_type)


def _letters(chunk: Any) -> int:
    """The number of bytes of all texts in a dictionary array; an upper bound if it is small anyway."""
    lengths = pc.binary_length(chunk.dictionary)
    most = (pc.max(lengths).as_py() or 0) * len(chunk)
    return most if most < 1 << 24 else int(pc.sum(lengths.take(chunk.indices).cast(pa.int64())).as_py() or 0)


def _is_text(kind: Any) -> bool:
    return kind in (pa.string(), pa.large_string())
