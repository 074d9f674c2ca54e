"""Decide what kind each column of a table is, from its type and its values, and learn what its attributes need."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.columns import Boolean, Category, Column, LeftOut, Number, Vector, Words
from bgcl.data.options import Options
from bgcl.data.tables import Table
from bgcl.data.values import NUMBER, as_text, coded, is_list, is_text, numbers, power_of_two, vectors
from bgcl.data.words import vocabulary
from bgcl.data.written_dates import find_order, look_like_dates
from bgcl.data.written_numbers import Writing, are_lists, find_writing, look_like_numbers
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

FEW = 64  # text with at most this many values can be inferred to be categories
MOST_CATEGORIES = 1000  # rarer categories share `(other)`


def learn(table: Table, name: str, options: Options) -> Column:
    """Decide how a column becomes attributes, and learn what this needs.

    Args:
        table: the table of nodes.
        name: name of the column.
        options: what the user says. What is not said is inferred from the type and the values.
    """
    values = table.columns[name]
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_null(kind) or values.null_count == len(values):
        return LeftOut(name, "it has no values")
    if name in options.categorical:
        return _learn_category(table, name)
    if name in options.text:
        return _learn_words(table, name, options.words)
    if is_list(kind):
        return _learn_vector(table, name)
    if pa.types.is_nested(kind):
        return LeftOut(name, f"values of type {kind} are not supported")
    if pa.types.is_boolean(kind):
        if pc.count_distinct(values).as_py() < 2:
            return LeftOut(name, "it is constant")
        return Boolean(name, missing=values.null_count > 0)
    if is_text(kind):
        return _learn_text(table, name, options)
    return _learn_number(table, name)


def _learn_number(table: Table, name: str, writing: str = "") -> Column:
    values = numbers(table, name, writing)
    known = values
    if table.columns[name].null_count or np.isnan(values.sum()):
        known = values[~np.isnan(values)]
    if not known.size:
        return LeftOut(name, "it has no values")
    scale = power_of_two(known)
    known = known / scale
    mean = float(known.mean())
    difference = known - mean
    deviation = float(np.sqrt(np.square(difference, out=difference).mean()))
    mean, deviation = mean * float(scale), deviation * float(scale)
    if deviation <= 1e-12 * max(abs(mean), 1e-300):
        return LeftOut(name, "it is constant")
    return Number(name, mean, deviation, known.size < values.size, writing)


def _learn_vector(table: Table, name: str) -> Column:
    matrix = vectors(table, name)
    if matrix.shape[1] == 0:
        return LeftOut(name, "its lists are empty")
    scale = power_of_two(matrix)
    matrix = matrix / scale
    means, deviations = np.nanmean(matrix, axis=0) * scale, np.nanstd(matrix, axis=0) * scale
    if not (deviations > 0).any():
        return LeftOut(name, "it is constant")
    return Vector(name, tuple(means.tolist()), tuple(np.where(deviations > 0, deviations, 1).tolist()))


def _learn_category(table: Table, name: str) -> Column:
    codes, values = coded(table, name)
    missing = bool((codes < 0).any())
    if len(values) < 2 and not missing:
        return LeftOut(name, "it is constant")
    names, counts = values.to_pylist(), np.bincount(codes[codes >= 0], minlength=len(values))
    kept = names
    if len(names) > FEW:
        order = sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))
        kept = [names[i] for i in order if counts[i] > 1][:MOST_CATEGORIES]
    return Category(name, tuple(sorted(kept)), len(kept) < len(names), missing)


def _learn_words(table: Table, name: str, most: int) -> Column:
    words = vocabulary(as_text(table, name), most)
    return Words(name, tuple(words)) if words else LeftOut(name, "no word occurs in two nodes")


def _learn_text(table: Table, name: str, options: Options) -> Column:
    """Infer what a column of text holds, in this order.

    Numbers, dates or lists that are written as text: what they are. Few values, each on average in two nodes or
    more: categories. On average two words or more: text. All values different: ids, which are left out. Anything
    else: categories for the values that occur twice.
    """
    codes, values = coded(table, name)
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    known = int(counts.sum())
    if not len(values):
        return LeftOut(name, "it has no values")
    if pc.all(are_lists(values)).as_py():
        return _learn_vector(table, name)
    writing = find_order(values, options.dates, table.at(None, name)) or _writing(table, name, values, options)
    if writing:
        return _learn_number(table, name, writing)
    _check_not_mixed(table, name, codes, values, counts)
    if len(values) <= FEW and 2 * len(values) <= known:
        return _learn_category(table, name)
    words = pc.add(pc.count_substring_regex(pc.utf8_trim_whitespace(values), r"\s+"), 1)
    if float(words.to_numpy(zero_copy_only=False) @ counts) >= 2 * known:
        return _learn_words(table, name, options.words)
    if len(values) == known:
        return LeftOut(name, "every value is different, as in a column of ids")
    return _learn_category(table, name)


def _writing(table: Table, name: str, values: Any, options: Options) -> str:
    """How the numbers of a column are written, empty if they are not numbers.

    Plain numbers in a table with types are texts on purpose, such as codes.
    """
    found = find_writing(values, options.decimal, table.at(None, name))
    is_plain = found == Writing(".") and bool(pc.all(pc.match_substring_regex(values, NUMBER)).as_py())
    return str(found) if found and (table.as_written or not is_plain) else ""


def _check_not_mixed(table: Table, name: str, codes: Array, values: Any, counts: Array) -> None:
    """Raise an error if most values are numbers, but not all: the column was hardly meant to be categories."""
    every = {"number": look_like_numbers(values), "date": look_like_dates(values), "list of numbers": are_lists(values)}
    for what, matches in every.items():
        fits = matches.to_numpy(zero_copy_only=False)
        count, known = int(counts[fits].sum()), int(counts.sum())
        if known > count >= known / 2:
            row = int(np.flatnonzero(np.append(~fits, False)[codes])[0])
            raise BGCLError(
                f"{table.at(row, name)}: {values[int(codes[row])].as_py()!r} is not a {what}, but {count:,} of "
                f"{known:,} values are. Correct it or leave it empty, or read the column with --categorical, --text or "
                "--ignore."
            )
