"""Read tables of nodes and edges as Arrow tables: CSV, TSV (either may be gzipped), Parquet, or frames in memory.

An error names the file and, if possible, the row and the column. Rows are counted as users see them: the header of a
CSV is row 1, the first row of a Parquet file is row 1, and the first row of a frame is row 0.
"""

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from bgcl.data.memory import check_fits, in_words
from bgcl.errors import BGCLError, nearest

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
MISSING = (
    "",
    "NA",
    "N/A",
    "#N/A",
    "NaN",
    "nan",
    "null",
    "NULL",
    "None",
)  # in a CSV; an id is missing only if it is empty
_GROWTH = {
    ".parquet": 3,
    ".csv": 3,
    ".gz": 10,
}  # bytes of memory needed to read one byte of the file (Parquet: uncompressed)


@dataclass(frozen=True)
class Table:
    """Columns that were read, and what errors need to name a row."""

    name: str
    columns: Any  # pyarrow.Table
    first: int  # the number of the first row
    as_written: bool  # ids and texts are from a CSV, which has no types
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)  # columns already converted

    @property
    def rows(self) -> int:
        return int(self.columns.num_rows)

    def at(self, row: int | None, column: str) -> str:
        """Table, row and column, the beginning of an error."""
        return f"{self.name}, " + ("" if row is None else f"row {self.first + row}, ") + f"column '{column}'"


class Source(Protocol):
    """A table that is not read yet. `names` are the names of its columns."""

    name: str
    names: list[str]

    def read(self, columns: Sequence[str], *, ids: Sequence[str] = (), texts: Sequence[str] = ()) -> Table:
        """Read some columns. In a CSV, `ids` and `texts` stay as they are written: `007` does not become `7`."""
        ...


def has_known_ending(path: str | Path) -> bool:
    """Whether the ending of a file is supported."""
    return str(path).lower().endswith(ENDINGS)


def open_table(path: Path) -> Source:
    """Open a file by its ending, and read the names of its columns."""
    if not path.exists():
        raise BGCLError(f"There is no file {path}.")
    if not has_known_ending(path):
        raise BGCLError(f"Cannot read {path}: a table must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.")
    if not path.is_file():
        raise BGCLError(f"{path} is not a file.")
    if path.stat().st_size == 0:
        raise _empty(path)
    return ParquetFile(path) if path.suffix.lower() == ".parquet" else CsvFile(path)


def check_column(source: Source, name: str) -> None:
    """Raise an error if a column does not exist, with the nearest names."""
    if name not in source.names:
        raise BGCLError(f"{source.name} has no column '{name}'. {nearest(name, source.names)}")


class ParquetFile:
    """A Parquet file. Only the columns that are asked for are read."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        try:
            self._metadata = pyarrow.parquet.read_metadata(path)
            schema = self._metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error
        self.names = _unique(path, list(schema.names))
        kinds = (pa.string(), pa.large_string())
        self._texts = [field.name for field in schema if field.type in kinds]

    def read(self, columns: Sequence[str], *, ids: Sequence[str] = (), texts: Sequence[str] = ()) -> Table:
        _check_memory(self.path, self._unpacked(columns), _GROWTH[".parquet"])
        try:
            # Texts are read as dictionaries, which is how most Parquet files store them.
            coded = [name for name in self._texts if name in columns and name not in ids]
            table = pyarrow.parquet.read_table(self.path, columns=list(columns), read_dictionary=coded)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.path, error) from error
        return _with_rows(Table(self.name, table, 1, False))

    def _unpacked(self, columns: Sequence[str]) -> int:
        """Size of the columns without compression, in bytes."""
        groups = [self._metadata.row_group(i) for i in range(self._metadata.num_row_groups)]
        parts = [group.column(i) for group in groups for i in range(group.num_columns)]
        return sum(p.total_uncompressed_size for p in parts if p.path_in_schema.split(".")[0] in columns)


class CsvFile:
    """A CSV or TSV file, perhaps gzipped.

    The delimiter of a .tsv is a tab. For other files it is the most frequent of comma, semicolon and tab in the first
    row. If the first row has only numbers, it is not a header, and the columns are called `column 1`, `column 2`, ...
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        first = self._first_row()
        self.delimiter = "\t" if ".tsv" in path.name.lower() else max(",;\t", key=first.count)
        cells = next(csv.reader(io.StringIO(first, newline=""), delimiter=self.delimiter), [])
        self.has_header = not (cells and all(_is_number(cell) for cell in cells))
        self.names = [f"column {i + 1}" for i in range(len(cells))]
        if self.has_header:
            self.names = _unique(path, [cell.strip() for cell in cells])

    def _first_row(self) -> str:
        try:
            with (gzip.open if self.path.suffix == ".gz" else open)(self.path, "rb") as file:
                raw = file.readline()
                while raw and not raw.strip():
                    raw = file.readline()
        except (OSError, EOFError) as error:
            raise _unreadable(self.path, error) from error
        if not raw.strip():
            raise _empty(self.path)
        try:
            return raw.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise self._broken_encoding() from None

    def read(self, columns: Sequence[str], *, ids: Sequence[str] = (), texts: Sequence[str] = ()) -> Table:
        growth = _GROWTH[".gz" if self.path.suffix == ".gz" else ".csv"]
        _check_memory(self.path, self.path.stat().st_size, growth)
        table = self._read(columns, [*ids, *texts], MISSING)
        if any(table[name].null_count for name in ids):  # `NA` may be an id, such as the code of Namibia
            again = self._read(ids, ids, ("",))
            for name in ids:
                table = table.set_column(table.column_names.index(name), name, again[name])
        for kind in table.schema.types:
            if pa.types.is_binary(kind):  # Arrow reads text that is not UTF-8 as binary
                raise self._broken_encoding()
        return _with_rows(Table(self.name, table, 2 if self.has_header else 1, True))

    def _read(self, columns: Sequence[str], exact: Sequence[str], missing: Sequence[str], threads: bool = True) -> Any:
        try:
            return pyarrow.csv.read_csv(
                self.path,
                # The header is skipped, because `self.names` has the names without surrounding blanks.
                read_options=pyarrow.csv.ReadOptions(
                    use_threads=threads, column_names=self.names, skip_rows_after_names=int(self.has_header)
                ),
                parse_options=pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=list(columns), column_types=dict.fromkeys(exact, pa.string()),
                    null_values=list(missing), strings_can_be_null=True,
                ),
            )  # fmt: skip
        except pa.ArrowInvalid as error:
            if "UTF8" in str(error):
                raise self._broken_encoding() from None
            if threads:
                return self._read(columns, exact, missing, threads=False)  # its errors have the row
            raise self._bad_row(str(error)) from error
        except (pa.ArrowException, OSError, EOFError) as error:
            raise _unreadable(self.path, error) from error

    def _bad_row(self, text: str) -> BGCLError:
        reason = " ".join(text.removeprefix("CSV parse error: ").split())
        row, colon, rest = reason.partition(": ")
        if row.startswith("Row #") and colon:
            return BGCLError(
                f"{self.path}, row {row.removeprefix('Row #')}: {rest[:1].lower()}{rest[1:120]}. "
                f"Correct the row. A value that contains the delimiter '{self.delimiter}' must be quoted."
            )
        return BGCLError(f"{self.path} cannot be read as a table ({reason[:160]}).")

    def _broken_encoding(self) -> BGCLError:
        """An error with the row and the column of the first byte that is not UTF-8."""
        with (gzip.open if self.path.suffix == ".gz" else open)(self.path, "rb") as file:
            head = file.read(2)
            if head in (b"\xff\xfe", b"\xfe\xff"):
                return BGCLError(f"{self.path} is UTF-16 text. Save it as UTF-8.")
            file.seek(0)
            for number, line in enumerate(file, start=1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    column = line[: error.start].count(getattr(self, "delimiter", ",").encode())
                    names = getattr(self, "names", [])
                    where = f", column '{names[column]}'" if column < len(names) else ""
                    return BGCLError(
                        f"{self.path}, row {number}{where}: the byte 0x{line[error.start]:02x} is not UTF-8. "
                        "Save the file as UTF-8, or convert it: iconv -f latin1 -t utf-8."
                    )
        return BGCLError(f"{self.path} is not UTF-8 text. Save it as UTF-8.")


class Frame:
    """A table in memory."""

    def __init__(self, name: str, table: Any) -> None:
        self.name, self.table = name, table
        self.names = _unique(name, list(table.column_names))

    def read(self, columns: Sequence[str], *, ids: Sequence[str] = (), texts: Sequence[str] = ()) -> Table:
        return _with_rows(Table(self.name, self.table.select(list(columns)), 0, False))


def _check_memory(path: Path, size: int, growth: int) -> None:
    what = f"{path} is {in_words(path.stat().st_size)} large and"  # "would need ..."
    check_fits(size * growth, what, "Leave out columns with --ignore, or write the file as Parquet without them.")


def _with_rows(table: Table) -> Table:
    if table.rows == 0:
        raise BGCLError(f"{table.name} has columns but no rows. Give it a row for each node or edge.")
    return table


def _unique(name: object, names: list[str]) -> list[str]:
    for column in names:
        if names.count(column) > 1:
            raise BGCLError(f"{name} has two columns called '{column}'. Rename one of them.")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _empty(path: Path) -> BGCLError:
    return BGCLError(f"{path} is empty. Give it a header and a row for each node or edge.")


def _unreadable(path: Path, error: BaseException) -> BGCLError:
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    return BGCLError(f"{path} cannot be read ({reason}). Is it damaged, or does its ending name another format?")
