"""Node ids: whole numbers or text, and the fast lookup of the node that has an id."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.border import readable
from bgcl.data.spelling import count_different, is_untidy, tidy
from bgcl.data.tables import Table
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"  # without leading zeros or plus sign, so that the number prints as it was written
_WITH_POINT = r"^(0|-?[1-9][0-9]{0,17})\.0+$"  # pandas writes 24.0 for 24 if an id of the column was missing
_DIFFERENT = "Give every node a different id. If each row is a feature of a node, use --feature."
_ROOM = 4  # a lookup table with at most this many entries for each id is faster than a binary search


@dataclass(frozen=True)
class IdColumn:
    """A column of ids and its table."""

    table: Table
    name: str
    values: Any  # pyarrow, int64 or string

    @property
    def is_text(self) -> bool:
        return bool(pa.types.is_string(self.values.type))


def id_columns(*columns: tuple[Table, str], exact: bool = False, guesses: list[str] | None = None) -> list[IdColumn]:
    """Convert columns to ids of one type: all whole numbers, or all text.

    A CSV has no types: its ids are whole numbers if every value in all columns is a whole number, else text. Columns of
    other tables have types, which must agree.

    Args:
        *columns: tables, each with the name of a column of ids.
        exact: compare ids letter by letter. Otherwise blanks around an id do not count, and 24.0 is 24, if the columns
            would not agree without that.
        guesses: a line is added to this list if ids are not compared letter by letter.
    """
    found = [IdColumn(table, name, _plain(table, name)) for table, name in columns]
    if not any(column.is_text for column in found):
        return found
    whole = _are_whole(found)
    if not exact and not all(whole):
        found = _without_points(_without_blanks(found, guesses), guesses)
        whole = _are_whole(found)
    if all(whole):
        return [IdColumn(c.table, c.name, c.values.cast(pa.int64())) for c in found]
    if all(column.is_text for column in found):
        return found
    text = next(c for c, ok in zip(found, whole, strict=True) if not ok)
    number = next(c for c in found if not c.is_text)
    row = 0
    if text.table.as_written:
        row = pc.index(_matches_whole(text.values), False).as_py()
    raise BGCLError(
        f"{text.table.at(row, text.name)}: the id {text.values[row].as_py()!r} is text, but column '{number.name}' of "
        f"{number.table.name} holds whole numbers. Use one type for all ids."
    )


def _are_whole(found: list[IdColumn]) -> list[bool]:
    """For each column whether its ids are whole numbers, or can be read as such."""
    return [is_whole(c.values) if c.is_text and c.table.as_written else not c.is_text for c in found]


def _without_blanks(found: list[IdColumn], guesses: list[str] | None) -> list[IdColumn]:
    """Ids without blanks around them, if some ids differ only in these, or if all are whole numbers then."""
    texts = [column.values for column in found if column.is_text]
    if not any(is_untidy(values) for values in texts):
        return found
    plain = [tidy(values) for values in texts]
    written = all(column.table.as_written for column in found if column.is_text)
    if count_different(plain) == count_different(texts) and not (written and all(is_whole(v) for v in plain)):
        return found
    if guesses is not None:
        guesses.append("blanks around ids do not count (--exact if they do)")
    return _with_texts(found, plain)


def _without_points(found: list[IdColumn], guesses: list[str] | None) -> list[IdColumn]:
    """Ids such as 24.0 as 24, if other ids are written like 24 and all are whole numbers."""
    if not all(column.table.as_written for column in found if column.is_text):
        return found
    texts = [column.values for column in found if column.is_text]
    whole = [_matches_whole(values) for values in texts]
    with_point = [pc.match_substring_regex(values, _WITH_POINT) for values in texts]
    if not all(pc.all(pc.or_(a, b)).as_py() for a, b in zip(whole, with_point, strict=True)):
        return found
    some_plain = len(texts) < len(found) or any(pc.any(each).as_py() for each in whole)
    if not some_plain or not any(pc.any(each).as_py() for each in with_point):
        return found
    if guesses is not None:
        guesses.append("an id such as 24.0 is the id 24 (--exact if these are two nodes)")
    return _with_texts(found, [pc.replace_substring_regex(values, r"\.0+$", "") for values in texts])


def _with_texts(found: list[IdColumn], texts: list[Any]) -> list[IdColumn]:
    """The columns, of which those of text have other values."""
    new = iter(texts)
    return [IdColumn(c.table, c.name, next(new)) if c.is_text else c for c in found]


def _plain(table: Table, name: str) -> Any:
    """A column as int64 or text. A missing id is an error."""
    with readable(table.at(None, name), "Ids must be whole numbers or text."):
        return _checked(table, name, table.columns[name])


def _checked(table: Table, name: str, values: Any) -> Any:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if values.null_count or pa.types.is_null(kind):
        row = pc.index(values.is_null(), True).as_py()
        raise BGCLError(f"{table.at(row, name)}: the id is missing. Give every node an id, and every edge two.")
    if pa.types.is_floating(kind):  # pandas has whole numbers as floats if one of them was missing
        array = values.to_numpy().astype(np.float64)
        broken = np.flatnonzero((array != np.floor(array)) | (np.abs(array) >= 2.0**63))
        if broken.size:
            raise BGCLError(
                f"{table.at(int(broken[0]), name)}: {values[int(broken[0])].as_py()} cannot be an id. "
                "Use whole numbers or text."
            )
        return values.cast(pa.float64()).cast(pa.int64())
    if pa.types.is_integer(kind):
        return values if kind == pa.int64() else values.cast(pa.int64())
    if pa.types.is_nested(kind) or pa.types.is_boolean(kind):
        raise BGCLError(
            f"{table.at(None, name)}: values of type {kind} cannot be ids. Ids must be whole numbers or text."
        )
    values = values if kind == pa.string() else values.cast(pa.string())
    empty = pc.index(values, "").as_py()
    if empty >= 0:
        raise BGCLError(f"{table.at(empty, name)}: the id is missing. Give every node an id, and every edge two.")
    return values


def _matches_whole(values: Any) -> Any:
    return pc.match_substring_regex(values, _WHOLE)


def is_whole(values: Any) -> bool:
    """Whether every text is a whole number."""
    return bool(pc.all(_matches_whole(values)).as_py())


class IdError(BGCLError):
    """An id occurs twice or is unknown. Perhaps another column has the ids."""


class Lookup:
    """Finds the number of the node that has an id. Nodes are numbered in the order of their table."""

    def __init__(self, column: IdColumn, remedy: str = _DIFFERENT) -> None:
        self.column = column
        self.is_text = column.is_text
        values = column.values.combine_chunks() if isinstance(column.values, pa.ChunkedArray) else column.values
        self.values = values
        if self.is_text:
            first = _numpy(pc.index_in(values, value_set=values))
        else:
            self._keys = _numpy(values)
            self._low, high = int(self._keys.min()), int(self._keys.max())
            self._direct = high - self._low < max(_ROOM * len(self._keys), 1 << 16)
            if self._direct:
                self._number = np.full(high - self._low + 2, -1, dtype=np.int64)  # the last is for unknown ids
                self._number[self._keys - self._low] = np.arange(len(self._keys))
            else:
                self._order = np.argsort(self._keys, kind="stable")
                self._sorted = self._keys[self._order]
            first = self.numbers(values)
        duplicates = np.flatnonzero(first != np.arange(len(first)))
        if duplicates.size:
            row = int(duplicates[0])
            other = int(first[row])
            raise IdError(
                f"{column.table.at(max(row, other), column.name)}: row {column.table.first + min(row, other)} has the "
                f"same id {values[row].as_py()!r}. {remedy}"
            )

    def numbers(self, values: Any) -> Array:
        """The number of the node with each id, -1 if no node has it."""
        if self.is_text:
            found = pc.index_in(values, value_set=self.values)
            return np.asarray(_numpy(found.fill_null(-1)), dtype=np.int64)
        wanted = _numpy(values)
        if self._direct:
            shifted = wanted - self._low if self._low else wanted
            last = len(self._number) - 1
            if shifted.view(np.uint64).max() >= last:  # as unsigned, a negative number is huge
                shifted = np.where((shifted < 0) | (shifted > last), last, shifted)
            return np.asarray(self._number[shifted])
        place = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        return np.asarray(np.where(self._sorted[place] == wanted, self._order[place], -1))

    def as_array(self) -> Array:
        """The ids `(N,)` as a NumPy array of int64, or of Python strings."""
        return _numpy(self.values)


def _numpy(values: Any) -> Array:
    if isinstance(values, pa.ChunkedArray):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def of_two_kinds(ends: list[IdColumn]) -> list[IdColumn]:
    """Ids as texts with the name of their column, so that user_id:3 and item_id:3 are two nodes."""
    found = []
    for end in ends:
        texts = end.values if end.is_text else end.values.cast(pa.string())
        values = pc.binary_join_element_wise(pa.scalar(f"{end.name}"), texts, ":")
        found.append(IdColumn(end.table, end.name, values))
    return found


def id_texts(ids: Any) -> list[str]:
    """Ids in a tensor, an array or a list as text. The id 24 is the same as a number and as a text."""
    return [str(each) for each in (ids.tolist() if hasattr(ids, "tolist") else ids)]
