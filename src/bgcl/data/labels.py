"""Class numbers from a column of labels of any type."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.csv_beginning import is_number
from bgcl.data.ids import is_whole
from bgcl.data.label_sets import suspect
from bgcl.data.missing_labels import LabelRules, missing_number, spell
from bgcl.data.tables import Table
from bgcl.data.tasks import FEW_CODES, MOST_CODES, as_task, task_of_labels
from bgcl.data.values import coded
from bgcl.data.written_numbers import find_writing, parse
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


def encode_labels(
    table: Table, name: str, known: tuple[Any, ...] | None, notes: list[str], *, may_be_empty: bool,
    rules: LabelRules | None = None,
) -> tuple[Array | None, tuple[Any, ...] | None]:  # fmt: skip
    """Encode labels as class numbers.

    Numbers to predict are not classes: they are returned as float32, NaN where missing, without classes.

    Args:
        table: the table of nodes.
        name: the column of labels.
        known: the classes at training, which keep their numbers. New classes are appended.
        notes: what looks wrong is added to this list.
        may_be_empty: if all labels are missing, return none instead of raising an error.
        rules: which labels mean "no label", and which are one class. What is not said is inferred.

    Returns:
        Class numbers `(N,)`, -1 where the label is missing, and the classes in the order of their numbers.
    """
    rules = rules or LabelRules()
    rules.as_written = table.as_written
    codes, values = _distinct(table, name, known or (), rules)
    labeled = int(np.count_nonzero(codes >= 0))
    if not labeled:
        if may_be_empty:
            return None, known
        raise BGCLError(
            f"{table.at(None, name)}: all {len(codes):,} labels are missing. Fill in some, or use --ignore {name}: "
            "training needs no labels."
        )
    as_known = known and not pa.types.is_floating(values.type)
    task = rules.task or ("classes" if as_known else task_of_labels(values, labeled, name, rules))
    values = as_task(values, task, table.at(None, name))
    if task == "numbers":
        numbers = np.append(values.to_numpy(), np.nan)[codes]
        great = np.flatnonzero(np.abs(numbers) > np.finfo(np.float32).max)
        if great.size:
            raise BGCLError(
                f"{table.at(int(great[0]), name)}: the label {numbers[great[0]]:.3g} is too great for 32 bits. Divide "
                "the labels by a constant."
            )
        return numbers.astype(np.float32), None
    classes = sorted(set(values.to_pylist()))
    if known is None and (note := suspect([value for value in classes if isinstance(value, str)])) is not None:
        rules.guesses.append(note)
    if known is not None:
        seen = set(map(str, known))  # one class that is a text makes all of them texts
        fresh = [value for value in classes if str(value) not in seen]
        if fresh:
            notes.append(
                f"{table.name}, column '{name}': {len(fresh):,} class(es), such as {fresh[0]!r}, were not seen at "
                "training."
            )
        classes = [*known, *fresh]
    elif len(classes) > FEW_CODES and 2 * len(classes) > labeled:
        notes.append(f"{table.name}, column '{name}': {len(classes):,} different labels. Are these classes?")
    kind = pa.string() if any(isinstance(value, str) for value in classes) else values.type
    wanted = pa.array([str(value) if pa.types.is_string(kind) else value for value in classes], type=kind)
    place = pc.index_in(values.cast(kind), value_set=wanted).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.append(place, -1)[codes].astype(np.int64), tuple(classes)


def _distinct(table: Table, name: str, known: tuple[Any, ...], rules: LabelRules) -> tuple[Array, Any]:
    """The labels as `_as_given` has them, without those that mean "no label"."""
    codes, values = _as_given(table, name, known, rules)
    if not pa.types.is_integer(values.type) and not (pa.types.is_floating(values.type) and rules.missing):
        return codes, values
    if pa.types.is_integer(values.type):
        used = values.to_pylist()
        gone = np.isin(values.to_numpy(), list(missing_number(used, rules, table.at(None, name))))
    else:
        tokens = {token: float(token) for token in rules.missing or () if is_number(token)}
        gone = np.isin(values.to_numpy(), list(tokens.values()))
        rules.seen |= {token for token, number in tokens.items() if number in values.to_numpy()}
    return _renumbered(codes, values, ~gone)


def _renumbered(codes: Array, values: Any, keep: Array) -> tuple[Array, Any]:
    """Codes and values of which only some are kept; the code of the others is -1."""
    number = np.where(keep, np.cumsum(keep) - 1, -1)
    return np.append(number, -1)[codes], values.filter(pa.array(keep))


def _as_given(table: Table, name: str, known: tuple[Any, ...], rules: LabelRules) -> tuple[Array, Any]:
    """For each node the index `(N,)` of its label among the different labels, -1 where missing; and these labels.

    The labels are whole numbers, text, or booleans; or floats, if one of them has a fraction.
    """
    column = table.columns[name]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind):
        raise BGCLError(
            f"{table.at(None, name)}: values of type {kind} cannot be labels. Give each node one, a text or a number"
            + (", or use --many-labels lists." if hasattr(kind, "value_type") else ".")
        )
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        codes, values = _spelled(table, name, known, rules)
        if len(values) and pc.all(pc.match_substring_regex(values, r"^[\[{(].*[\])}]$")).as_py():
            raise BGCLError(
                f"{table.at(None, name)}: a node has several labels, such as {values[0].as_py()}. Use --many-labels "
                "lists, or give each node one."
            )
        if not (table.as_written and len(values)):
            return codes, values
        return codes, _as_numbers(_typed(values), table.at(None, name), name, rules)
    coded_column = column.cast(kind).combine_chunks().dictionary_encode()
    codes = coded_column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    values = coded_column.dictionary
    if pa.types.is_boolean(kind):
        return codes, values
    if pa.types.is_floating(kind):
        values = values.cast(pa.float64())  # Arrow computes little with 16 bits
        array = values.to_numpy(zero_copy_only=False)
        if np.isinf(array).any():
            row = int(np.flatnonzero(np.append(np.isinf(array), False)[codes])[0])
            raise BGCLError(f"{table.at(row, name)}: the label is infinite. Correct it.")
        codes = np.append(np.where(np.isnan(array), -1, np.arange(len(array))), -1)[codes]
        if (array != np.floor(array))[~np.isnan(array)].any():
            return codes, values
        values = pc.if_else(pc.is_nan(values), 0, values)  # no code points to it
        used = np.unique(codes[codes >= 0])
        codes = np.append(np.searchsorted(used, np.arange(len(array))), -1)[codes]
        values = values.take(pa.array(used))
    try:
        return codes, values.cast(pa.int64())
    except pa.ArrowInvalid:  # greater than 2^63
        return codes, pa.array([str(int(value)) for value in values.to_pylist()], type=pa.string())


def _spelled(table: Table, name: str, known: tuple[Any, ...], rules: LabelRules) -> tuple[Array, Any]:
    """The different labels of a column of text, one for each class."""
    codes, values = coded(table, name, exact=True)
    counts = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
    classes = [each for each in known if isinstance(each, str)]
    names = spell(values.to_pylist(), counts, classes, rules, table.at(None, name))
    place = {each: i for i, each in enumerate(dict.fromkeys(each for each in names if each is not None))}
    number = np.array([-1 if each is None else place[each] for each in names] + [-1])
    return number[codes], pa.array(list(place), type=pa.string())


def _as_numbers(values: Any, where: str, name: str, rules: LabelRules) -> Any:
    """Numbers with decimal commas or a unit, unless they are whole and few, such as 10% and 20%. Others as they are."""
    if not pa.types.is_string(values.type) or rules.task == "classes" or is_whole(values):
        return values
    writing = find_writing(values, rules.decimal, where)
    if writing is None or not (writing.decimal == "," or writing.unit):
        return values
    numbers = parse(values, writing)
    array = numbers.to_numpy(zero_copy_only=False)
    if (array == np.floor(array)).all() and len(array) <= MOST_CODES and rules.task is None:
        return values
    rules.guesses.append(f"the label '{name}' is a number {writing.in_words()}")
    return numbers


def _typed(text: Any) -> Any:
    """Infer the type of the labels of a CSV. `1.5` is a number, `007` is text.

    `1.0` is a whole number: pandas writes whole numbers like this if one of them is missing.
    """
    if is_whole(text):
        return text.cast(pa.int64())
    try:
        numbers = text.cast(pa.float64())
        array = numbers.to_numpy(zero_copy_only=False)
        if (array == np.floor(array)).all():
            return numbers.cast(pa.int64()) if pc.all(pc.match_substring(text, ".")).as_py() else text
    except pa.ArrowInvalid:  # no number, or one that is greater than 2^63
        return text
    return numbers
