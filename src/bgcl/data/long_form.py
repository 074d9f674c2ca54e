"""Attributes in long form: a table with a row for each node and feature, which becomes a sparse matrix."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix

from bgcl.data.columns import Column, scaled
from bgcl.data.drift import drift_note
from bgcl.data.ids import is_whole
from bgcl.data.known_names import FEATURES, IDS, VALUES
from bgcl.data.options import Options
from bgcl.data.tables import Source, Table, check_column
from bgcl.data.values import NUMBER, coded, is_text, numbers, power_of_two
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class LongForm(Column):
    """One attribute for each feature: `(x - mean) / scale`, 0 for a node without it.

    The mean is 0 and the scale is the root mean square, so that a 1 stays a 1. If every node has the feature, they are
    the mean and the standard deviation, as for a column of numbers.
    """

    id: str = ""
    value: str | None = None
    features: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    kind: ClassVar[str] = "long form"

    def attribute_names(self) -> list[str]:
        whole = bool(self.features) and is_whole(pa.array(self.features))
        return [f"{self.name} {feature}" if whole else feature for feature in self.features]

    def pivot(self, table: Table, nodes: Array, count: int, notes: list[str]) -> csr_matrix:
        """The attributes `(N, features)`. `nodes` has the number of the node in each row, -1 to leave it out."""
        codes, names, values = _entries(table, self)
        if self.value is not None and (empty := int(np.isnan(values).sum())):
            notes.append(f"{table.name}: {empty:,} row(s) have no value. They are as if they were not there.")
        place = pc.index_in(pa.array(names, pa.string()), value_set=pa.array(self.features, pa.string())).fill_null(-1)
        column = np.asarray(place.to_numpy(zero_copy_only=False), dtype=np.int64)[codes]
        new = len(names) - int(pc.sum(pc.greater_equal(place, 0)).as_py() or 0)
        if new and len(names) > len(self.features):
            notes.append(
                f"{table.name}: {new:,} feature(s) were not seen at training, or are constant. They are ignored."
            )
        use = _once(table, self, nodes, column, values, notes)
        means, scales = (np.asarray(each)[column[use]] for each in (self.means, self.scales))
        values_scaled = scaled(values[use], means, scales, lambda i: table.at(int(use[i]), self.value or self.name))
        if self.value is not None:
            notes += drift_note(table.name, self.features, values_scaled, column[use], centered=False)
        matrix = csr_matrix((values_scaled, (nodes[use], column[use])), shape=(count, len(self.features)))
        matrix.sum_duplicates()
        empty = int((np.diff(matrix.indptr) == 0).sum())
        if empty:
            notes.append(f"{empty:,} node(s) have no row in {table.name}. Their attributes are 0.")
        return matrix

    def __str__(self) -> str:
        return f"{len(self.features):,} features in long form"


def find_long_form(source: Source, options: Options) -> LongForm | None:
    """The columns of a table in long form: node, feature and perhaps value. None for any other table.

    A table is in long form if the user names the column of features, or if it has two or three columns, one of them is
    called feature or the like, and ids occur more than once.
    """
    lower = {name.lower(): name for name in source.names}
    feature = options.feature or next((lower[name] for name in FEATURES if name in lower), None)
    if feature is None or not (options.feature or 2 <= len(source.names) <= 3):
        return None
    check_column(source, feature)
    rest = [name for name in source.names if name != feature]
    if not rest:
        return None
    identity = options.id or next((lower[n] for n in IDS if n in lower and lower[n] in rest), rest[0])
    rest = [name for name in rest if name != identity]
    value = options.value or next((lower[name] for name in VALUES if name in lower and lower[name] in rest), None)
    value = value or (rest[0] if len(rest) == 1 else None)
    for name in (identity, value or identity):
        check_column(source, name)
    found = LongForm(feature, identity, value)
    return found if options.feature or _repeats(source, identity) else None


def _repeats(source: Source, name: str) -> bool:
    table = source.read([name], ids=[name])
    return int(pc.count_distinct(table.columns[name]).as_py()) < table.rows


def learn_long_form(table: Table, form: LongForm, nodes: Array, count: int) -> LongForm:
    """The features of a table and their scales. `nodes` has the number of the node in each row."""
    codes, names, values = _entries(table, form)
    places = np.flatnonzero((nodes >= 0) & ~np.isnan(values))
    keys = nodes[places] * np.int64(len(names)) + codes[places]
    places = places[np.unique(keys, return_index=True)[1]]  # rows that repeat count once
    codes, values = codes[places], values[places]
    greatest = np.zeros(len(names))
    np.maximum.at(greatest, codes, np.abs(values))
    unit = power_of_two(greatest[None])  # so that no square is too great or too small
    values = values / unit[codes]
    rows = np.maximum(np.bincount(codes, minlength=len(names)), 1)
    square = np.sqrt(np.bincount(codes, values**2, len(names)) / rows)
    mean = np.bincount(codes, values, len(names)) / rows
    spread = np.sqrt(np.bincount(codes, (values - mean[codes]) ** 2, len(names)) / rows)
    everywhere = rows == count
    keep = np.where(everywhere, spread > 1e-12 * np.abs(mean), square > 0)
    order = _order(names, keep)
    means, scales = np.where(everywhere, mean, 0) * unit, np.where(everywhere, spread, square) * unit
    return LongForm(
        form.name, form.id, form.value, tuple(names[i] for i in order), tuple(means[order].tolist()),
        tuple(scales[order].tolist()),
    )  # fmt: skip


def _order(names: list[str], keep: Array) -> list[int]:
    """The places of the features that are kept, by number if all are whole numbers, else by name."""
    kept = [int(i) for i in np.flatnonzero(keep)]
    whole = bool(names) and is_whole(pa.array(names))
    return sorted(kept, key=(lambda i: int(names[i])) if whole else (lambda i: names[i]))


def _entries(table: Table, form: LongForm) -> tuple[Array, list[str], Array]:
    """For each row the code of its feature and its value, NaN where it is missing; and the names of the features.

    A value that is not a number is part of the feature: `city` with the value Ulm is the feature `city = Ulm`.
    """
    codes, features = coded(table, form.name)
    if (codes < 0).any():
        raise BGCLError(f"{table.at(int(np.argmin(codes)), form.name)}: the feature is missing. Fill it in.")
    if form.value is None:
        return codes, features.to_pylist(), np.ones(len(codes))
    column = table.columns[form.value]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_text(kind):
        return codes, features.to_pylist(), numbers(table, form.value)
    return _with_categories(table, form.value, codes, features)


def _with_categories(table: Table, name: str, codes: Array, features: Any) -> tuple[Array, list[str], Array]:
    """Entries of which some values are not numbers."""
    value_codes, texts = coded(table, name)
    is_number = np.append(pc.match_substring_regex(texts, NUMBER).to_numpy(zero_copy_only=False), True)[value_codes]
    mixed = np.bincount(codes, ~is_number, len(features))[codes] > 0  # a feature with any value that is no number
    joint = np.where(mixed & (value_codes >= 0), codes * (len(texts) + 1) + value_codes + 1, codes * (len(texts) + 1))
    used, new_codes = np.unique(joint, return_inverse=True)
    feature_names, value_names = features.to_pylist(), ["", *texts.to_pylist()]
    names = []
    for key in used.tolist():
        feature, value = feature_names[key // (len(texts) + 1)], value_names[key % (len(texts) + 1)]
        names.append(f"{feature} = {value}" if value else feature)
    plain = pc.utf8_trim_whitespace(texts)
    as_numbers = pc.if_else(pc.match_substring_regex(texts, NUMBER), plain, None).cast(pa.float64())
    values = np.append(as_numbers.to_numpy(zero_copy_only=False), np.nan)[value_codes]
    infinite = np.flatnonzero(np.isinf(values) & ~mixed)
    if infinite.size:
        raise BGCLError(f"{table.at(int(infinite[0]), name)}: the value is infinite. Correct it, or leave it empty.")
    return new_codes, names, np.where(mixed, np.where(value_codes >= 0, 1.0, np.nan), values)


def _once(table: Table, form: LongForm, nodes: Array, column: Array, values: Array, notes: list[str]) -> Array:
    """The rows to use: those with a node and a feature, and of rows that repeat each other the first.

    Without values a feature may occur several times, and counts as often.

    Raises:
        BGCLError: if a node has two values of one feature.
    """
    use = np.flatnonzero((nodes >= 0) & (column >= 0) & ~np.isnan(values))
    if form.value is None:
        return use
    keys = nodes[use] * np.int64(max(len(form.features), 1)) + column[use]
    order = np.argsort(keys, kind="stable")
    again = np.append(False, keys[order][1:] == keys[order][:-1])
    different = np.flatnonzero(again & (np.append(0, np.diff(values[use][order])) != 0))
    if different.size:
        row = int(use[order[different[0]]])
        raise BGCLError(
            f"{table.at(row, form.value)}: the node has another value of the feature '{form.features[column[row]]}' in "
            "an earlier row. Keep one of them, or add them."
        )
    if again.any():
        notes.append(f"{table.name}: {int(again.sum()):,} row(s) repeat another one. They count once.")
    return np.sort(use[order[~again]])
