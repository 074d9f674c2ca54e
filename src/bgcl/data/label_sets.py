"""Several labels of a node: in one cell, in a list, or in several rows."""

import re
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.ids import is_whole
from bgcl.data.missing_labels import LabelRules, missing_number, spell
from bgcl.data.options import LISTS, ROWS
from bgcl.data.spelling import comparable
from bgcl.data.tables import Table
from bgcl.data.values import coded
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

BREAK = "\n"  # between the labels of a list that was no text


def encode_label_sets(
    table: Table, name: str, how: str, known: tuple[Any, ...] | None, notes: list[str], *, may_be_empty: bool,
    rules: LabelRules,
) -> tuple[Array | None, tuple[Any, ...] | None]:  # fmt: skip
    """Encode the labels of each row.

    Args:
        table: the table of nodes or of labels.
        name: the column of labels.
        how: what separates the labels in a cell, "lists" if a cell is a list, or "rows" if each row has one label.
        known: the labels at training, which keep their columns. New labels are appended.
        notes: what looks wrong is added to this list.
        may_be_empty: if no row has a label, return none instead of raising an error.
        rules: which labels mean "no label", and which are one.

    Returns:
        1 where a row has a label and 0 where it has not, `(R, L)`, with -1 in rows without any label; and the labels in
        the order of their columns.
    """
    codes, cells = _cells(table, name, how)
    rules.as_written = table.as_written
    parts = [_parts(cell, how) for cell in cells]
    if known is None and how != ROWS and all(len(part) < 2 for part in parts):
        what = "a list of several labels" if how == LISTS else f"several labels with {how!r} between them"
        raise BGCLError(f"{table.at(None, name)}: no node has {what}, as --many-labels says. Correct or leave it out.")
    counts = np.bincount(codes[codes >= 0], minlength=len(cells)).tolist()
    named = _named(parts, counts, known or (), rules, table.at(None, name))
    found = sorted({value for value in named.values() if value is not None})
    if not found:
        if may_be_empty:
            return None, known
        raise BGCLError(f"{table.at(None, name)}: all labels are missing. Fill in some, or use --ignore {name}.")
    labels = _with_known(found, known, notes, f"{table.name}, column '{name}'")
    column = {str(label): i for i, label in enumerate(labels)}
    rows = np.zeros((len(cells) + 1, len(labels)), dtype=np.int64)
    for row, part in zip(rows, parts, strict=False):
        row[[column[str(named[each])] for each in part if named[each] is not None]] = 1
    rows[~rows.any(1)] = -1
    return rows[codes], labels


def joined_rows(rows: Array, node: Array, nodes: int) -> Array:
    """The labels of each node from those of its rows: `(nodes, L)` from `(R, L)`; `node` is -1 for no node."""
    found = np.full((nodes, rows.shape[1]), -1, dtype=np.int64)
    np.maximum.at(found, node[node >= 0], rows[node >= 0])
    return found


def _cells(table: Table, name: str, how: str) -> tuple[Array, list[str]]:
    """For each row the index of its cell among the different ones, -1 for an empty one; and these as texts."""
    column = table.columns[name]
    if pa.types.is_nested(column.type):
        if how != LISTS or not hasattr(column.type, "value_type"):
            raise BGCLError(f"{table.at(None, name)}: values of type {column.type} need --many-labels lists.")
        texts = [None if row is None else "[" + BREAK.join(map(str, row)) + "]" for row in column.to_pylist()]
        place = {text: i for i, text in enumerate(dict.fromkeys(text for text in texts if text is not None))}
        return np.array([-1 if text is None else place[text] for text in texts]), list(place)
    codes, values = coded(table, name, exact=True)
    return codes, values.to_pylist()


def _parts(cell: str, how: str) -> list[str]:
    """The labels in a cell."""
    if how == ROWS:
        return [cell]
    if how != LISTS:
        return [part for part in cell.split(how) if part.strip()]
    inner = re.sub(r"^\s*[\[({]|[\])}]\s*$", "", cell)
    parts = inner.split(BREAK) if BREAK in inner else inner.split(",")
    return [part.strip().strip("\"'") for part in parts if part.strip().strip("\"'")]


def _named(
    parts: list[list[str]], counts: list[int], known: tuple[Any, ...], rules: LabelRules, where: str
) -> dict[str, Any]:
    """The name of each part: whole numbers if all are, None for one that means "no label"."""
    weight: dict[str, int] = {}
    for part, count in zip(parts, counts, strict=True):
        for each in part:
            weight[each] = weight.get(each, 0) + count
    texts = pa.array(weight, type=pa.string())
    plain = texts if rules.exact else comparable(texts)
    words = [each for each in known if isinstance(each, str)]
    names = spell(plain.to_pylist(), list(weight.values()), words, rules, where)
    kept = pa.array([name for name in names if name is not None], type=pa.string())
    if not words and len(kept) and is_whole(kept):
        numbers = pc.cast(kept, pa.int64()).to_pylist()
        gone = missing_number(numbers, rules, where)
        names = [None if name is None or int(name) in gone else int(name) for name in names]  # type: ignore[misc]
    return dict(zip(weight, names, strict=True))


def _with_known(found: list[Any], known: tuple[Any, ...] | None, notes: list[str], where: str) -> tuple[Any, ...]:
    """The labels at training, and after them the new ones."""
    if known is None:
        return tuple(found)
    seen = {str(label) for label in known}
    fresh = [label for label in found if str(label) not in seen]
    if fresh:
        notes.append(f"{where}: {len(fresh):,} label(s), such as {fresh[0]!r}, were not seen at training.")
    return (*known, *fresh)


def suspect(values: list[str]) -> str | None:
    """A note on labels that look like several, such as 'a;b' beside 'a' and 'b'; None if none does."""
    whole = {value.strip().casefold() for value in values}
    for separator in (";", "|", ","):
        many = [value for value in values if separator in value.strip(separator)]
        if not many:
            continue
        parts = [{part.strip().casefold() for part in value.split(separator) if part.strip()} for value in many]
        times = Counter(part for each in parts for part in each)
        if 2 * sum(all(part in whole or times[part] > 1 for part in each) for each in parts) >= len(many):
            return f"the label {many[0]!r} is one class (--many-labels {separator!r} if it is several labels)"
    return None
