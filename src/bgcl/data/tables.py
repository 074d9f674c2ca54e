"""Read tables of nodes and edges as Arrow tables: text (perhaps compressed), Parquet, or frames in memory.

An error names the file and, if possible, the row and the column. Rows are counted as users see them: the header of a
CSV is row 1, empty rows count, the first row of a Parquet file is row 1, and the first row of a frame is row 0.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bgcl.data.border import readable
from bgcl.errors import BGCLError, nearest

_TEXTS = (".csv", ".tsv", ".txt")
ENDINGS = (*_TEXTS, *(f"{text}{packed}" for text in _TEXTS for packed in (".gz", ".zst")), ".parquet")
ENDINGS_IN_WORDS = ".csv, .tsv or .txt (perhaps with .gz or .zst), or .parquet"
_NAMES_SHOWN = 1000  # names of columns that an error looks through


@dataclass(frozen=True)
class Table:
    """Columns that were read, and what errors need to name a row."""

    name: str
    columns: Any  # pyarrow.Table
    first: int  # the number of the first row
    as_written: bool  # ids and texts are from a CSV, which has no types
    number: Callable[[int], int] | None = None  # the number of a row, if it is not its place after the first row
    memo: dict[tuple[str, str], Any] = field(
        default_factory=dict, repr=False, compare=False
    )  # columns already converted

    @property
    def rows(self) -> int:
        return int(self.columns.num_rows)

    def at(self, row: int | None, column: str) -> str:
        """Table, row and column, the beginning of an error."""
        if row is None:
            return f"{self.name}, column '{column}'"
        return f"{self.name}, row {self.first + row if self.number is None else self.number(row)}, column '{column}'"


@dataclass(frozen=True)
class Form:
    """What the user says about how a file is written. What is None is inferred."""

    table: str = "nodes"  # edges, nodes or labels
    delimiter: str | None = None
    header: bool | None = None
    decimal: str | None = None


class Source(Protocol):
    """A table that is not read yet.

    Attributes:
        name: the file, or a name for errors.
        names: the names of its columns.
        inferred: how it is written, if that could be wrong; a line each.
    """

    name: str
    names: list[str]
    inferred: list[str]

    def read(self, columns: Sequence[str], *, ids: Sequence[str] = (), texts: Sequence[str] = ()) -> Table:
        """Read some columns. In a CSV, `ids` and `texts` stay as they are written: `007` does not become `7`.

        In `texts` the usual words for a missing value are missing, such as NA. In `ids` only an empty value is.
        """
        ...


@dataclass(frozen=True)
class Sources:
    """The tables of a graph. Attributes in long form are a table of their own, `features`."""

    edges: Source
    nodes: Source | None = None
    labels: Source | None = None
    features: Source | None = None

    def every(self) -> list[Source]:
        """All tables that there are."""
        return [table for table in (self.edges, self.nodes, self.features, self.labels) if table is not None]


def file_name(source: Source) -> str:
    """The name of a table without its folder."""
    return Path(source.name).name


def has_known_ending(path: str | Path) -> bool:
    """Whether the ending of a file is supported."""
    return str(path).lower().endswith(ENDINGS)


def open_table(path: Path, form: Form | None = None) -> Source:
    """Open a file by its ending, and read the names of its columns."""
    from bgcl.data.csv_files import CsvFile
    from bgcl.data.parquet_files import ParquetFile

    with readable(path):
        if not path.exists():
            raise BGCLError(f"There is no file {path}.")
        if not has_known_ending(path):
            raise BGCLError(f"Cannot read {path}: a table must end in {ENDINGS_IN_WORDS}.")
        if not path.is_file():
            raise BGCLError(f"{path} is not a file.")
        if path.stat().st_size == 0:
            raise empty(path)
        return ParquetFile(path) if path.suffix.lower() == ".parquet" else CsvFile(path, form or Form())


def check_column(source: Source, name: str) -> None:
    """Raise an error if a column does not exist, with the nearest names."""
    if name not in source.names:
        raise BGCLError(f"{source.name} has no column '{name}'. {nearest(name, source.names[:_NAMES_SHOWN])}")


class Frame:
    """A table in memory."""

    def __init__(self, name: str, table: Any) -> None:
        self.name, self.table, self.inferred = name, table, list[str]()
        self.names = unique(name, list(table.column_names))

    def read(self, columns: Sequence[str], *, ids: Sequence[str] = (), texts: Sequence[str] = ()) -> Table:
        return with_rows(Table(self.name, self.table.select(list(columns)), 0, False))


def with_rows(table: Table) -> Table:
    """The table. A table without rows is an error."""
    if table.rows == 0:
        raise BGCLError(f"{table.name} has columns but no rows. Give it a row for each node or edge.")
    return table


def unique(name: object, names: list[str]) -> list[str]:
    """The names of the columns. No columns, or two with the same name, are an error."""
    if not names:
        raise BGCLError(f"{name} has no columns. Give it a column for each value of a node or edge.")
    column, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise BGCLError(f"{name} has two columns called '{column}'. Rename one of them.")
    return names


def empty(path: Path) -> BGCLError:
    """The error for a file without rows."""
    return BGCLError(f"{path} is empty. Give it a header and a row for each node or edge.")
