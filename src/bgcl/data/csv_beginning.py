"""The beginning of a text file: what is before its rows, the delimiter, and whether the first row is a header."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from bgcl.data.border import readable
from bgcl.data.known_names import is_known
from bgcl.data.tables import Form, unique
from bgcl.errors import BGCLError

LINE = re.compile(r"\r\n|\r|\n")
_BLANK = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")
_COMMENTS = re.compile(r"(?:[ \t]*(?:[#%][^\r\n]*)?(?:\r\n|\r|\n))*")
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_SAMPLE = 1000  # rows that decide on the delimiter and the header
_FORMATS = (
    (b"PAR1", "a Parquet file. Rename it to .parquet."),
    (b"\x1f\x8b", "gzipped. Add .gz to its name."),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd. Add .zst to its name."),
    (b"PK\x03\x04", "a spreadsheet or another packed file. Save the table as CSV."),
)
_JSON = re.compile(r'\s*(\{\s*("|\})|\[\s*[\[{])')
_MARKUP = re.compile(r"(?i)\s*<(!doctype|html|\?xml|graphml|table)")


@dataclass
class Beginning:
    """How a text file is written.

    Attributes:
        delimiter: what separates two values.
        names: the names of the columns.
        has_header: whether the first row names the columns.
        before: number of lines before the first row of values.
        is_header_alone: whether there is nothing but a header.
        inferred: what was inferred and could be wrong, a line each.
    """

    delimiter: str
    names: list[str] = field(default_factory=list)
    has_header: bool = True
    before: int = 0
    is_header_alone: bool = False
    inferred: list[str] = field(default_factory=list)


def begin(path: Path, text: str, form: Form) -> Beginning:
    """Infer how a file is written from its first letters, which hold at least one row."""
    blank = cast(re.Match[str], _BLANK.match(text)).group()
    lead = cast(re.Match[str], _COMMENTS.match(text)).group()
    if not text[len(lead) :].strip():
        lead = blank  # every line begins with #, so these are values
    rows = text[len(lead) :]
    line = LINE.split(rows, maxsplit=1)[0]
    found = Beginning(form.delimiter or find_delimiter(path, rows, line))
    comments = [part.strip() for part in LINE.split(lead) if part.strip()]
    cells = read_row(path, rows, found.delimiter)
    names = _names_in(comments, found.delimiter, len(cells)) if comments else None
    if comments and names and comments[-1][0] == "%":  # the name of a column, such as `% of all`
        before = lead.rindex(comments[-1])
        lead, rows, names = lead[:before], lead[before:] + rows, None
        line, cells = LINE.split(rows, maxsplit=1)[0], read_row(path, rows, found.delimiter)
    found.has_header = _has_header(found, path, cells, rows, form, names is not None)
    if found.has_header:
        found.names = unique(path, [cell.strip() for cell in cells])
    elif names:
        found.names = unique(path, names)
        found.inferred.append(f"{path.name}: the comment before the rows names the columns")
    else:
        found.names = [f"column {i + 1}" for i in range(len(cells))]
    found.is_header_alone = found.has_header and rows == line
    found.before = len(LINE.findall(lead)) + found.has_header
    return found


def refuse_other_formats(path: Path, raw: bytes, text: str) -> None:
    """Raise an error if a file is no table of text, whatever its name says."""
    for mark, what in _FORMATS:
        if raw.startswith(mark):
            raise BGCLError(f"{path} is {what}")
    if _JSON.match(text):
        raise BGCLError(
            f"{path} is JSON, not a table. Convert it: pandas.read_json(file, lines=True).to_csv(file, index=False)."
        )
    if _MARKUP.match(text):
        raise BGCLError(f"{path} is a web page or XML, not a table. Save the table itself as CSV.")


def read_row(path: Path, text: str, delimiter: str) -> list[str]:
    """The cells of the first row."""
    with readable(f"{path}, row 1", "Correct the row. A quoted value must end with a quote."):
        return next(_rows(text, delimiter), [""])


def find_delimiter(path: Path, text: str, line: str) -> str:
    """The most frequent of comma, semicolon and tab in the first row; else a pipe, else spaces."""
    if ".tsv" in path.name.lower():
        return "\t"
    found = max(",;\t", key=line.count)
    if found in line:
        commas = found == "," and ";" in line and not re.search(r"(?<![0-9]),|,(?![0-9])", line)
        return ";" if commas and _is_even(text, ";") else found  # 0;1,5;2,5 has decimal commas
    if "|" in line:
        return "|"
    return " " if re.search(r"\S\s+\S", line) and _is_even(text, " ") else ","


def _is_even(text: str, delimiter: str) -> bool:
    """Whether the first rows have equally many cells, two or more."""
    with readable("The table"):
        sample = [len(row) for row in _some_rows(text, delimiter) if row]
        return len(set(sample)) == 1 and sample[0] > 1


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    if delimiter == " ":
        text = re.sub(r"[ \t]+", " ", re.sub(r"(?m)^[ \t]+|[ \t]+$", "", text[: 1 << 16]))
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)


def _some_rows(text: str, delimiter: str) -> list[list[str]]:
    """The first rows, without the last one, which may be cut off."""
    rows, reader = [], _rows(text, delimiter)
    try:
        for row in reader:
            rows.append(row)
            if len(rows) > _SAMPLE:
                break
    except csv.Error:  # the error is reported when the whole file is read
        pass
    return rows[:-1] if len(rows) > _SAMPLE or (len(rows) > 2 and len(text) >= 1 << 16) else rows


def _names_in(comments: list[str], delimiter: str, count: int) -> list[str] | None:
    """The names of the columns in the last comment, as in `# FromNodeId  ToNodeId`."""
    text = comments[-1] if comments[-1][0] == "%" else comments[-1].lstrip("#").strip()
    names = [cell.strip() for cell in next(_rows(text, delimiter), [])]
    return names if len(names) == count > 1 and all(names) and len(set(names)) == count else None


def _has_header(found: Beginning, path: Path, cells: list[str], text: str, form: Form, named: bool) -> bool:
    if form.header is not None:
        return form.header
    if all(is_number(cell) for cell in cells):
        found.inferred.append(f"{path.name} has no header (--header {form.table} if its first row names the columns)")
        return False
    if any(is_known(cell) for cell in cells):
        return True
    is_header = not named and not _looks_like_values(cells, _some_rows(text, found.delimiter)[1:], form)
    shown = ", ".join(repr(cell) for cell in cells[:3])
    if is_header and (form.table == "edges" or any(is_number(cell) for cell in cells)):
        found.inferred.append(
            f"the first row of {path.name} names the columns: {shown} (--no-header {form.table} if it holds values)"
        )
    elif not is_header:
        found.inferred.append(
            f"{path.name} has no header: its first row, {shown}, holds values (--header {form.table} if it names the "
            "columns)"
        )
    return is_header


def _looks_like_values(cells: list[str], rows: list[list[str]], form: Form) -> bool:
    """Whether the first row is like the others: an end of an edge occurs again, or it has numbers as they have."""
    if form.table == "edges" and all(cell.strip() for cell in cells):
        again = {cell.strip() for row in rows for cell in row[:2]}
        return any(is_number(cell) for cell in cells) or any(cell.strip() in again for cell in cells[:2])
    numbers = [(i, cell) for i, cell in enumerate(cells) if is_number(cell)]
    plain = [cell for _, cell in numbers]
    names = len(set(plain)) == len(plain) and all(re.fullmatch(r"[0-9]+", cell.strip()) for cell in plain)
    return bool(plain) and not names and all(is_number(row[i]) for row in rows for i, _ in numbers if i < len(row))


def is_number(text: str) -> bool:
    """Whether a text is a number, perhaps with a decimal comma."""
    try:
        float(text.replace(",", ".") if _COMMA.fullmatch(text.strip()) else text)
    except ValueError:
        return False
    return True
