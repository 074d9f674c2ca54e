"""Read tables of text, CSV, TSV and the like, which may be compressed with gzip or zstd."""

import gzip
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv

from bgcl.data.border import readable
from bgcl.data.csv_beginning import LINE, begin, refuse_other_formats
from bgcl.data.csv_rows import number_of_row
from bgcl.data.memory import check_fits, check_unpacked, in_words, packed_limit
from bgcl.data.tables import Form, Table, empty, with_rows
from bgcl.errors import BGCLError

# What is a missing value. An id is missing only if it is empty.
MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None")
LONGEST_HEADER = 1 << 20  # bytes. pyarrow reads no longer rows
_GROWTH, _GROWTH_PACKED = 3, 10  # bytes of memory needed to read one byte of text, or of a compressed file
_GROWTH_UNPACKED = 5  # and one byte of the text in a compressed file
_VALUES, _VALUES_FOR_BYTE = 2 * 10**7, 4  # that a compressed file may hold: so many, or so many for each of its bytes
_COLUMN_BYTES = 14_000  # what pyarrow needs for a column, however short
_REMEDY = "Leave out columns with --ignore, or write the file as Parquet without them."
_PACKED = {".gz": ("gzip", "gunzip"), ".zst": ("zstd", "unzstd")}


class CsvFile:
    """A table of text, perhaps compressed.

    The delimiter of a .tsv is a tab. For other files it is the most frequent of comma, semicolon and tab in the first
    row, or a pipe or spaces if there is none of these. Lines before the first row that begin with # are comments. If
    the first row is not a header, the columns are called `column 1`, `column 2`, ...
    """

    def __init__(self, path: Path, form: Form) -> None:
        self.path, self.name = path, str(path)
        self.delimiter, self.names, self.inferred = ",", list[str](), list[str]()
        self._packed, self._unpack = _PACKED.get(path.suffix.lower(), ("", ""))
        self._decimal = form.decimal or "."
        with readable(path):
            found = begin(path, self._beginning(), form)
            self.delimiter, self.names, self.inferred = found.delimiter, found.names, found.inferred
            if any("\udc80" <= letter <= "\udcff" for name in self.names for letter in name):
                raise self._broken_encoding()
            self.has_header, self._is_header_alone = found.has_header, found.is_header_alone
            self._before = found.before  # rows before the first row of values

    def _open(self) -> BinaryIO:
        if self._packed == "gzip":
            return cast(BinaryIO, gzip.open(self.path, "rb"))
        if self._packed:
            return cast(BinaryIO, io.BufferedReader(pa.input_stream(str(self.path), compression=self._packed)))
        return self.path.open("rb")

    def _beginning(self) -> str:
        """The text at the beginning of the file, with the first row."""
        with self._open() as file:
            raw = file.read(LONGEST_HEADER)
            more = bool(file.read(1))
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise self._broken_encoding()
        # Bytes that are not UTF-8 may be far behind the first row.
        text = raw.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")
        refuse_other_formats(self.path, raw, text)
        if not text.strip() and not more:
            raise empty(self.path)
        if more and not LINE.search(text.lstrip()):
            raise BGCLError(
                f"{self.path}, row 1: there is no end of the row in the first {in_words(LONGEST_HEADER)}. "
                "Write each node or edge in a row of its own."
            )
        return text

    def read(self, columns: Sequence[str], *, ids: Sequence[str] = (), texts: Sequence[str] = ()) -> Table:
        with readable(self.path):
            self._check_memory()
            if self._packed:
                self._check_unpacked()
            if self._is_header_alone:
                return with_rows(Table(self.name, pa.table({name: [] for name in columns}), 2, True))
            table = self._read(columns, [*ids, *texts], MISSING)
            if any(table[name].null_count for name in ids):  # `NA` may be an id, such as the code of Namibia
                again = self._read(ids, ids, ("",))
                for name in ids:
                    table = table.set_column(table.column_names.index(name), name, again[name])
            for kind in table.schema.types:
                if pa.types.is_binary(kind):  # Arrow reads text that is not UTF-8 as binary
                    raise self._broken_encoding()
            self._check_last_quote(len(table))
            return with_rows(Table(self.name, table, 1 + self._before, True, self._number))

    def _number(self, row: int) -> int:
        """The number of a row of values in the file. Arrow does not count empty rows."""
        with self._open() as file:
            return number_of_row(file, self.delimiter, self._before, row)

    def _check_last_quote(self, rows: int) -> None:
        """Raise an error if a quoted value at the end of a row does not end: it would hold all rows after it."""
        with self._open() as file:
            quotes = sum(piece.count(b'"') for piece in iter(lambda: file.read(1 << 20), b""))
        if quotes % 2 == 0 or not rows:
            return
        name = self.names[-1]
        last = self._read([name], [name], ("",))[name][-1].as_py() or ""
        if LINE.search(last):
            raise BGCLError(
                f"{self.path}, row {self._number(rows - 1)}, column '{name}': a quote does not end, so the rows after "
                "it would be lost. Correct the row."
            )

    def _check_memory(self) -> None:
        size = self.path.stat().st_size
        growth = _GROWTH_PACKED if self._packed else _GROWTH
        check_fits(growth * size, f"{self.path} is {in_words(size)} large and", _REMEDY)
        check_unpacked(
            self.path, _COLUMN_BYTES * len(self.names), f"It has {len(self.names):,} columns. Write it as Parquet."
        )

    def _check_unpacked(self) -> None:
        """Unpack a compressed file piece by piece, and raise an error if it holds more than its size can explain."""
        size = self.path.stat().st_size
        length, values = packed_limit(size) // _GROWTH_UNPACKED, max(_VALUES, _VALUES_FOR_BYTE * size)
        with self._open() as file:
            while piece := file.read(1 << 20):
                length -= len(piece)
                values -= piece.count(b"\n") + piece.count(self.delimiter.encode())
                if length < 0 or values < 0:
                    raise BGCLError(
                        f"{self.path} is {in_words(size)} large, but unpacks to more than its size can explain. If it "
                        f"is in order, unpack it first: {self._unpack}."
                    )

    def _read(self, columns: Sequence[str], exact: Sequence[str], missing: Sequence[str], threads: bool = True) -> Any:
        try:
            return pyarrow.csv.read_csv(
                self._stream(),
                # The header is skipped, because `self.names` has the names without surrounding blanks.
                read_options=pyarrow.csv.ReadOptions(
                    use_threads=threads, column_names=self.names, skip_rows_after_names=self._before
                ),
                parse_options=pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=list(columns), column_types=dict.fromkeys(exact, pa.string()),
                    null_values=list(missing), strings_can_be_null=True, decimal_point=self._decimal,
                ),
            )  # fmt: skip
        except pa.ArrowInvalid as error:
            if "UTF8" in str(error):
                raise self._broken_encoding() from None
            if threads:
                return self._read(columns, exact, missing, threads=False)  # its errors have the row
            raise self._bad_row(str(error)) from error

    def _stream(self) -> Any:
        if self.delimiter == " ":  # several blanks separate two values, like one
            with self._open() as file:
                text = re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", file.read())
            return pa.BufferReader(re.sub(rb"[ \t]+", b" ", text))
        return pa.input_stream(str(self.path), compression=self._packed) if self._packed else self.path

    def _bad_row(self, text: str) -> BGCLError:
        reason = " ".join(text.removeprefix("CSV parse error: ").split())
        row, colon, rest = reason.partition(": ")
        if row.startswith("Row #") and colon:
            number = self._number(int(row.removeprefix("Row #")) - 1 - self._before)
            return BGCLError(
                f"{self.path}, row {number}: {rest[:1].lower()}{rest[1:120]}. "
                f"Correct the row. A value that contains the delimiter '{self.delimiter}' must be quoted."
            )
        if "straddling" in reason:
            return BGCLError(
                f"{self.path}: a row is longer than {in_words(LONGEST_HEADER)}. Does a quote not end, or is an end of "
                "a row missing?"
            )
        return BGCLError(f"{self.path} cannot be read as a table ({reason[:160]}). Correct it, or write it anew.")

    def _broken_encoding(self) -> BGCLError:
        """An error with the row and the column of the first byte that is not UTF-8."""
        with self._open() as file:
            number = 0
            while line := file.readline(LONGEST_HEADER):
                number += 1
                if number == 1 and line[:2] in (b"\xff\xfe", b"\xfe\xff"):
                    return BGCLError(f"{self.path} is UTF-16 text. Save it as UTF-8.")
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    column = line[: error.start].count(self.delimiter.encode())
                    where = f", column '{self.names[column]}'" if column < len(self.names) else ""
                    return BGCLError(
                        f"{self.path}, row {number}{where}: the byte 0x{line[error.start]:02x} is not UTF-8. "
                        "Save the file as UTF-8, or convert it: iconv -f latin1 -t utf-8."
                    )
        return BGCLError(f"{self.path} is not UTF-8 text. Save it as UTF-8.")
