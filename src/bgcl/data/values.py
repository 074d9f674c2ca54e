"""Convert a column of a table to numbers, vectors, codes or text. Values that cannot be converted are an error."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data import written_dates, written_numbers
from bgcl.data.spelling import is_untidy, tidy
from bgcl.data.tables import Table
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"


def numbers(table: Table, name: str, writing: str = "") -> Array:
    """A column as float64 `(N,)`, NaN where a value is missing. Dates become seconds.

    `writing` says how texts are written: as `str` of a `Writing`, or the order of a date, such as "dmy".
    """
    if ("numbers", name) in table.memo:
        return np.asarray(table.memo["numbers", name])
    values = table.columns[name]
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if is_text(kind):
        values = _numbers_in(as_text(table, name), table, name, writing)
        kind = values.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    elif pa.types.is_time(kind) or pa.types.is_duration(kind):
        values = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64(), safe=False)
    array = np.asarray(values.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        suspicious = not np.isfinite(array.sum())
    if suspicious and np.isinf(array).any():
        row = int(np.flatnonzero(np.isinf(array))[0])
        raise BGCLError(f"{table.at(row, name)}: the value is infinite. Correct it, or leave it empty.")
    table.memo["numbers", name] = array
    return array


def _numbers_in(texts: Any, table: Table, name: str, writing: str) -> Any:
    """Texts as Arrow numbers. A text that is not a number is an error with its row."""
    if writing in written_dates.ORDERS:
        found = written_dates.parse(texts, writing)
    elif writing:
        found = written_numbers.parse(texts, written_numbers.Writing.of(writing))
    else:
        is_number = pc.match_substring_regex(texts, NUMBER)
        found = pc.if_else(is_number, pc.utf8_trim_whitespace(texts), None)
    row = pc.index(pc.and_(found.is_null(), texts.is_valid()), True).as_py()
    if row >= 0:
        raise BGCLError(
            f"{table.at(row, name)}: {texts[row].as_py()!r} is not a number, but all values were at training."
        )
    return found


def vectors(table: Table, name: str) -> Array:
    """A column of lists as a matrix `(N, length)`, NaN in the row of a missing list."""
    values = table.columns[name].combine_chunks()
    if is_text(values.type):
        values = _lists_in(as_text(table, name).combine_chunks(), table, name)
    lengths = pc.list_value_length(values)
    width = pc.max(lengths).as_py() or 0
    uneven = pc.index(pc.not_equal(lengths, width), True).as_py()
    if uneven >= 0:
        raise BGCLError(
            f"{table.at(uneven, name)}: the list has {lengths[uneven].as_py()} numbers, but others have {width}. "
            "Give all lists the same length."
        )
    matrix = np.full((len(values), width), np.nan)
    if width == 0:
        return matrix
    matrix[values.is_valid().to_numpy(zero_copy_only=False)] = (
        pc.list_flatten(values).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).reshape(-1, width)
    )
    if np.isinf(matrix).any():
        row = int(np.flatnonzero(np.isinf(matrix).any(1))[0])
        raise BGCLError(f"{table.at(row, name)}: a value is infinite. Correct it.")
    return matrix


def _lists_in(texts: Any, table: Table, name: str) -> Any:
    """Texts as Arrow lists of numbers. A text that is no list is an error with its row."""
    row = pc.index(written_numbers.are_lists(texts), False).as_py()
    if row >= 0:
        raise BGCLError(f"{table.at(row, name)}: {texts[row].as_py()[:40]!r} is not a list of numbers, as others are.")
    return written_numbers.parse_lists(texts)


def power_of_two(values: Array) -> Array:
    """The power of two below the greatest absolute value, by column; 1 for a column of zeros, or without values.

    Numbers that are divided by it have the same digits, and their squares are neither too great nor too small.
    """
    greatest = np.max(np.abs(values), axis=0, initial=0, where=~np.isnan(values))
    exponent = np.frexp(greatest)[1].clip(-1021, 1023)
    return np.asarray(np.where(greatest > 0, np.ldexp(1.0, exponent - 1), 1.0))


def coded(table: Table, name: str, *, exact: bool = False) -> tuple[Array, Any]:
    """For each row the index `(N,)` of its value among the column's different values, and these values as text.

    The index is -1 where the value is missing or empty. Unless `exact`, blanks around a value do not count.
    """
    if ("codes", name) in table.memo:
        codes, values = table.memo["codes", name]
        return codes, values
    column = table.columns[name]
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    indices = column.indices if isinstance(column, pa.DictionaryArray) else column.chunk(0).indices
    values = column.dictionary if isinstance(column, pa.DictionaryArray) else column.chunk(0).dictionary
    values = values.cast(pa.string())
    codes = indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    blank = pc.equal(pc.utf8_trim_whitespace(values), "").fill_null(True).to_numpy(zero_copy_only=False)
    used = np.bincount(codes[codes >= 0], minlength=len(values)) > 0
    keep = used & ~blank
    if not keep.all():  # number the rest again
        number = np.where(keep, np.cumsum(keep) - 1, -1)
        codes, values = np.append(number, -1)[codes], values.filter(pa.array(keep))
    if not exact and is_untidy(values):
        plain = tidy(values).dictionary_encode()
        codes = np.append(plain.indices.to_numpy(zero_copy_only=False).astype(np.int64), -1)[codes]
        values = plain.dictionary
    table.memo["codes", name] = codes, values
    return codes, values


def as_text(table: Table, name: str) -> Any:
    """A column as text. An empty text is a missing value."""
    values = table.columns[name]
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    text = values.cast(pa.string())
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(text), ""), None, text)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in (*tests, pa.types.is_string_view))


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is a list of numbers."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in lists) and (
        pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)
    )
