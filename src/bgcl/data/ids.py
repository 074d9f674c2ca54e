"""Node ids: whole numbers or text, and the fast lookup of the node that has an id."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.border import readable
from bgcl.data.tables import Table
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"  # without leading zeros or plus sign, so that the number prints as it was written
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


def id_columns(*columns: tuple[Table, str]) -> list[IdColumn]:
    """Convert columns to ids of one type: all whole numbers, or all text.

    A CSV has no types: its ids are whole numbers if every value in all columns is a whole number, else text. Columns of
    other tables have types, which must agree.
    """
    found = [IdColumn(table, name, _plain(table, name)) for table, name in columns]
    if not any(column.is_text for column in found):
        return found
    whole = [is_whole(c.values) if c.is_text and c.table.as_written else not c.is_text for c in found]
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


class Lookup:
    """Finds the number of the node that has an id. Nodes are numbered in the order of their table."""

    def __init__(self, column: IdColumn) -> None:
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
            raise BGCLError(
                f"{column.table.at(max(row, other), column.name)}: row {column.table.first + min(row, other)} has the "
                f"same id {values[row].as_py()!r}. Give every node a different id."
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


def id_texts(ids: Any) -> list[str]:
    """Ids in a tensor, an array or a list as text. The id 24 is the same as a number and as a text."""
    return [str(each) for each in (ids.tolist() if hasattr(ids, "tolist") else ids)]
