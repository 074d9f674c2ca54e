"""A column of labels of any type as class numbers, with the names of the classes."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.ids import is_whole
from bgcl.data.tables import Table
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


def encode_labels(
    table: Table, name: str, known: tuple[Any, ...] | None, notes: list[str], *, may_be_empty: bool
) -> tuple[Array | None, tuple[Any, ...] | None]:
    """Class numbers `(N,)`, -1 where the label is missing, and the classes in their order.

    Classes that are `known` keep their numbers; new ones come behind. Numbers with a fraction are no classes: they come
    as they are, float32 with NaN where missing, and without classes.
    """
    values = _plain(table, name)
    if values.null_count == len(values):
        if may_be_empty:
            return None, known
        raise BGCLError(
            f"{table.at(None, name)}: all {len(values):,} labels are missing. Fill in some, or pass --ignore {name}: "
            "training needs none."
        )
    if pa.types.is_floating(values.type):
        return values.to_numpy().astype(np.float32), None
    found = pc.unique(values.drop_null())
    classes = sorted(found.to_pylist())
    if known is not None:
        fresh = [value for value in classes if value not in known]
        if fresh and not may_be_empty:
            raise BGCLError(f"{table.at(None, name)}: unknown classes {fresh}.")
        if fresh:
            notes.append(
                f"{table.name}, column '{name}': {len(fresh):,} class(es) were not there at training, such as "
                f"{fresh[0]!r}."
            )
        classes = [*known, *fresh]
    kind = pa.string() if any(isinstance(value, str) for value in classes) else values.type
    place = pc.index_in(values.cast(kind), value_set=pa.array([_like(v, kind) for v in classes], type=kind))
    y = np.asarray(place.fill_null(-1).to_numpy(), dtype=np.int64)
    if known is None and len(classes) > 20 and 2 * len(classes) > len(values) - values.null_count:
        notes.append(f"{table.name}, column '{name}': {len(classes):,} different labels. Are these classes?")
    return y, tuple(classes)


def _like(value: Any, kind: Any) -> Any:
    return str(value) if pa.types.is_string(kind) else value


def _plain(table: Table, name: str) -> Any:
    """Labels as whole numbers, text, true and false, or floats where they have fractions."""
    values = table.columns[name]
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        values = pc.if_else(pc.is_nan(values), None, values)
        array = values.drop_null().to_numpy()
        return values.cast(pa.int64()) if (array == np.floor(array)).all() else values.cast(pa.float64())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return values.cast(pa.int64()) if pa.types.is_integer(kind) else values
    if pa.types.is_nested(kind):
        raise BGCLError(f"{table.at(None, name)}: values of type {kind} are no labels.")
    text = values.cast(pa.string())
    text = pc.if_else(pc.equal(pc.utf8_trim_whitespace(text), ""), None, text)
    if not table.as_written or text.null_count == len(text):
        return text
    known = text.drop_null()
    if is_whole(known):
        return text.cast(pa.int64())
    try:
        numbers = text.cast(pa.float64())
    except pa.ArrowInvalid:
        return text
    # `1.0` is a class, as pandas writes whole numbers where one is missing; `1.5` is a quantity; `007` is text.
    array = numbers.drop_null().to_numpy()
    if (array == np.floor(array)).all():
        return numbers.cast(pa.int64()) if pc.all(pc.match_substring(known, ".")).as_py() else text
    return numbers
