"""A column of labels of any type as class numbers, with the names of the classes."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.ids import is_whole
from bgcl.data.tables import Table
from bgcl.data.values import coded
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


def encode_labels(
    table: Table, name: str, known: tuple[Any, ...] | None, notes: list[str], *, may_be_empty: bool
) -> tuple[Array | None, tuple[Any, ...] | None]:
    """Class numbers `(N,)`, -1 where the label is missing, and the classes in their order.

    Classes that are `known` keep their numbers; new ones come behind. Numbers with a fraction are no classes: they come
    as they are, float32 with NaN where missing, and without classes.
    """
    codes, values = _distinct(table, name)
    labelled = int(np.count_nonzero(codes >= 0))
    if not labelled:
        if may_be_empty:
            return None, known
        raise BGCLError(
            f"{table.at(None, name)}: all {len(codes):,} labels are missing. Fill in some, or pass --ignore {name}: "
            "training needs none."
        )
    if pa.types.is_floating(values.type):
        return np.append(values.to_numpy(), np.nan)[codes].astype(np.float32), None
    classes = sorted(set(values.to_pylist()))
    if known is not None:
        fresh = [value for value in classes if value not in known]
        if fresh:
            notes.append(
                f"{table.name}, column '{name}': {len(fresh):,} class(es) were not there at training, such as "
                f"{fresh[0]!r}."
            )
        classes = [*known, *fresh]
    elif len(classes) > 20 and 2 * len(classes) > labelled:
        notes.append(f"{table.name}, column '{name}': {len(classes):,} different labels. Are these classes?")
    kind = pa.string() if any(isinstance(value, str) for value in classes) else values.type
    wanted = pa.array([str(value) if pa.types.is_string(kind) else value for value in classes], type=kind)
    place = pc.index_in(values.cast(kind), value_set=wanted).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.append(place, -1)[codes].astype(np.int64), tuple(classes)


def _distinct(table: Table, name: str) -> tuple[Array, Any]:
    """Labels as numbers `(N,)` into their different values, -1 where missing. Values are whole numbers, text, true and
    false, or floats where one has a fraction.
    """
    column = table.columns[name]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind):
        raise BGCLError(f"{table.at(None, name)}: values of type {kind} are no labels.")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        codes, values = coded(table, name)
        return codes, _typed(values) if table.as_written and len(values) else values
    coded_column = column.cast(kind).combine_chunks().dictionary_encode()
    codes = coded_column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    values = coded_column.dictionary
    if pa.types.is_boolean(kind):
        return codes, values
    if pa.types.is_floating(kind):
        array = values.to_numpy(zero_copy_only=False)
        codes = np.append(np.where(np.isnan(array), -1, np.arange(len(array))), -1)[codes]
        if (array != np.floor(array))[~np.isnan(array)].any():
            return codes, values.cast(pa.float64())
        values = pc.if_else(pc.is_nan(values), 0, values)  # which no code points to
        used = np.unique(codes[codes >= 0])
        codes = np.append(np.searchsorted(used, np.arange(len(array))), -1)[codes]
        values = values.take(pa.array(used))
    return codes, values.cast(pa.int64())


def _typed(text: Any) -> Any:
    """The labels of a CSV, whose type is not known. `1.0` is a class, as pandas writes whole numbers where one is
    missing; `1.5` is a quantity; `007` is text.
    """
    if is_whole(text):
        return text.cast(pa.int64())
    try:
        numbers = text.cast(pa.float64())
    except pa.ArrowInvalid:
        return text
    array = numbers.to_numpy(zero_copy_only=False)
    if (array == np.floor(array)).all():
        return numbers.cast(pa.int64()) if pc.all(pc.match_substring(text, ".")).as_py() else text
    return numbers
