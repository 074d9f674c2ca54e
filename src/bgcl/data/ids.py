"""Node ids of any type: whole numbers or text, found again among the nodes without a loop in Python."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.tables import Table
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"  # a whole number in the one way to write it, so that it comes back as it was
_ROOM = 4  # a table of that many entries for each id is quicker than a search


@dataclass(frozen=True)
class IdColumn:
    """A column of ids, and where it stands."""

    table: Table
    name: str
    values: Any  # pyarrow, int64 or string

    @property
    def is_text(self) -> bool:
        return bool(pa.types.is_string(self.values.type))


def id_columns(*columns: tuple[Table, str]) -> list[IdColumn]:
    """The columns as ids of one type: all whole numbers, or all text.

    Text of a CSV is whole numbers if all of it is, in all columns; other files say themselves what they hold.
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
        f"{number.table.name} holds whole numbers. Make all ids one type."
    )


def _plain(table: Table, name: str) -> Any:
    """A column as int64 or text, none of it missing."""
    values = table.columns[name]
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if values.null_count or pa.types.is_null(kind):
        row = pc.index(values.is_null(), True).as_py()
        raise BGCLError(f"{table.at(row, name)}: the id is missing. Give every node an id, and every edge two.")
    if pa.types.is_floating(kind):  # as pandas has whole numbers where one was missing
        broken = np.flatnonzero(values.to_numpy() != np.floor(values.to_numpy()))
        if broken.size:
            raise BGCLError(
                f"{table.at(int(broken[0]), name)}: {values[int(broken[0])].as_py()} is no id. "
                "Ids are whole numbers or text."
            )
        return values.cast(pa.int64())
    if pa.types.is_integer(kind):
        return values if kind == pa.int64() else _cast(values, pa.int64(), table, name)
    if pa.types.is_nested(kind) or pa.types.is_boolean(kind):
        raise BGCLError(f"{table.at(None, name)}: values of type {kind} are no ids. Ids are whole numbers or text.")
    values = values if kind == pa.string() else _cast(values, pa.string(), table, name)
    empty = pc.index(values, "").as_py()
    if empty >= 0:
        raise BGCLError(f"{table.at(empty, name)}: the id is missing. Give every node an id, and every edge two.")
    return values


def _cast(values: Any, kind: Any, table: Table, name: str) -> Any:
    try:
        return values.cast(kind)
    except pa.ArrowException as error:
        raise BGCLError(f"{table.at(None, name)}: the ids cannot be read ({error}).") from error


def _matches_whole(values: Any) -> Any:
    return pc.match_substring_regex(values, _WHOLE)


def is_whole(values: Any) -> bool:
    return bool(pc.all(_matches_whole(values)).as_py())


class Lookup:
    """From ids to the numbers of their nodes, in the order of the nodes' table."""

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
                self._number = np.full(high - self._low + 2, -1, dtype=np.int64)  # the last entry is for all others
                self._number[self._keys - self._low] = np.arange(len(self._keys))
            else:
                self._order = np.argsort(self._keys, kind="stable")
                self._sorted = self._keys[self._order]
            first = self.numbers(values)
        again = np.flatnonzero(first != np.arange(len(first)))
        if again.size:
            row = int(again[0])
            other = int(first[row])
            raise BGCLError(
                f"{column.table.at(max(row, other), column.name)}: the id {values[row].as_py()!r} is that of row "
                f"{column.table.first + min(row, other)} too. Give every node an id of its own."
            )

    def numbers(self, values: Any) -> Array:
        """The number of each id's node, -1 where no node has it."""
        if self.is_text:
            found = pc.index_in(values, value_set=self.values)
            return np.asarray(_numpy(found.fill_null(-1)), dtype=np.int64)
        wanted = _numpy(values)
        if self._direct:
            shifted = wanted - self._low if self._low else wanted
            last = len(self._number) - 1
            if shifted.view(np.uint64).max() >= last:  # a number below the lowest is huge without its sign
                shifted = np.where((shifted < 0) | (shifted > last), last, shifted)
            return np.asarray(self._number[shifted])
        place = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        return np.asarray(np.where(self._sorted[place] == wanted, self._order[place], -1))

    def as_array(self) -> Array:
        """The ids as NumPy has them: int64, or Python's strings."""
        return _numpy(self.values)


def _numpy(values: Any) -> Array:
    if isinstance(values, pa.ChunkedArray):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_numpy(zero_copy_only=False))
