"""Columns of a table as attributes of nodes: numbers, true and false, categories, words.

What was learned from the nodes at training (means, categories, words) is kept, so that other nodes are read alike.
Each column weighs about the same: a number has unit variance, a category is one 1, a text's words have unit length. So
rows must not be scaled again, which would make the other attributes of a node depend on any one of them.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix

from bgcl.data.tables import Table
from bgcl.data.values import NUMBER, as_text, coded, is_list, is_text, numbers, vectors
from bgcl.data.words import vocabulary, word_matrix
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]
Block = Any  # (N, attributes): an array, or a SciPy csr_matrix, which has no types

FEW = 64  # values that a column of categories may have without being asked
MOST_CATEGORIES = 1000


@dataclass(frozen=True)
class Column:
    """What a column became. `missing` says whether missing values have an attribute of their own."""

    name: str
    kind: ClassVar[str] = ""
    kinds: ClassVar[dict[str, type["Column"]]] = {}

    def __init_subclass__(cls) -> None:
        Column.kinds[cls.kind] = cls

    def attributes(self) -> list[str]:
        """The names of the attributes that the column became."""
        return []

    def apply(self, table: Table, notes: list[str]) -> Block:
        """The attributes of a table's nodes, `(N, attributes)`."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.kind

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **vars(self)}


def column_from_dict(values: dict[str, Any]) -> Column:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k != "kind"}
    return Column.kinds[values["kind"]](**fields)


@dataclass(frozen=True)
class Number(Column):
    """`(x - mean) / deviation` with the mean and deviation at training; a missing value is the mean."""

    mean: float = 0.0
    deviation: float = 1.0
    missing: bool = False
    kind: ClassVar[str] = "number"

    def attributes(self) -> list[str]:
        return [self.name, f"{self.name} is missing"][: 1 + self.missing]

    def apply(self, table: Table, notes: list[str]) -> Block:
        values = numbers(table, self.name)
        block = np.empty((len(values), 1 + self.missing), dtype=np.float32)
        block[:, 0] = (values - self.mean) / self.deviation
        if table.columns[self.name].null_count or np.isnan(block[:, 0].sum()):
            absent = np.isnan(values)
            block[absent, 0] = 0
            if self.missing:
                block[:, 1] = absent
        elif self.missing:
            block[:, 1] = 0
        return block


@dataclass(frozen=True)
class Boolean(Column):
    """1 where true; a missing value is 0."""

    missing: bool = False
    kind: ClassVar[str] = "true or false"

    def attributes(self) -> list[str]:
        return [self.name, f"{self.name} is missing"][: 1 + self.missing]

    def apply(self, table: Table, notes: list[str]) -> Block:
        values = numbers(table, self.name)
        if not np.isin(values[~np.isnan(values)], (0, 1)).all():
            row = int(np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1))[0])
            raise BGCLError(f"{table.at(row, self.name)}: true or false was expected, as at training.")
        absent = np.isnan(values)
        return np.stack([np.where(absent, 0, values), absent][: 1 + self.missing], axis=1).astype(np.float32)


@dataclass(frozen=True)
class Category(Column):
    """One attribute for each value, 1 at the node's own. `other` is for values too rare to have one, or never seen."""

    values: tuple[str, ...] = ()
    other: bool = False
    missing: bool = False
    kind: ClassVar[str] = "category"

    def attributes(self) -> list[str]:
        names = [f"{self.name} = {value}" for value in self.values]
        return names + [f"{self.name} = (other)"] * self.other + [f"{self.name} is missing"] * self.missing

    def apply(self, table: Table, notes: list[str]) -> Block:
        codes, values = coded(table, self.name)
        found = pc.index_in(values, value_set=pa.array(self.values, type=pa.string())).fill_null(-1)
        place = np.append(found.to_numpy(zero_copy_only=False).astype(np.int64), -1)[codes]
        absent = codes < 0
        unseen = (place < 0) & ~absent
        count = len(self.values)
        if unseen.any() and not self.other:
            new = [values[int(code)].as_py() for code in np.unique(codes[unseen])]
            notes.append(
                f"{table.name}, column '{self.name}': {len(new):,} value(s) not seen at training, such as {new[0]!r}, "
                f"are left out for {int(unseen.sum()):,} node(s)."
            )
        place = np.where(unseen & self.other, count, place)
        place = np.where(absent, count + self.other if self.missing else -1, place)
        some = place >= 0
        pointer = np.concatenate([[0], np.cumsum(some)])
        return csr_matrix(
            (np.ones(int(some.sum()), np.float32), place[some], pointer), shape=(len(place), len(self.attributes()))
        )

    def __str__(self) -> str:
        return f"{len(self.values) + self.other} categories"


@dataclass(frozen=True)
class Words(Column):
    """One attribute for each word, see `bgcl.data.words`; a missing text has none."""

    words: tuple[str, ...] = ()
    kind: ClassVar[str] = "words"

    def attributes(self) -> list[str]:
        return [f"{self.name}: {word}" for word in self.words]

    def apply(self, table: Table, notes: list[str]) -> Block:
        matrix, _ = word_matrix(as_text(table, self.name), self.words)
        empty = int((np.diff(matrix.indptr) == 0).sum())
        if empty > 0.1 * table.rows:
            notes.append(f"{table.name}, column '{self.name}': {empty:,} node(s) have none of the words that are kept.")
        return matrix

    def __str__(self) -> str:
        return f"{len(self.words):,} words"


@dataclass(frozen=True)
class Vector(Column):
    """A list of numbers for each node, all of one length; each place is scaled as a `Number`, a missing list is 0."""

    means: tuple[float, ...] = ()
    deviations: tuple[float, ...] = ()
    kind: ClassVar[str] = "vector"

    def attributes(self) -> list[str]:
        return [f"{self.name}[{i}]" for i in range(len(self.means))]

    def apply(self, table: Table, notes: list[str]) -> Block:
        matrix = vectors(table, self.name)
        if matrix.shape[1] != len(self.means):
            raise BGCLError(
                f"{table.at(None, self.name)}: lists of {matrix.shape[1]} numbers, but {len(self.means)} at training."
            )
        # Each place by the root of their number: the whole column weighs as much as one number.
        scaled = (matrix - self.means) / (np.asarray(self.deviations) * np.sqrt(len(self.means)))
        return np.nan_to_num(scaled).astype(np.float32)

    def __str__(self) -> str:
        return f"{len(self.means)} numbers"


@dataclass(frozen=True)
class LeftOut(Column):
    """A column that says nothing of a node, and why."""

    why: str = field(default="")
    kind: ClassVar[str] = "left out"

    def __str__(self) -> str:
        return f"left out: {self.why}"


def learn(table: Table, name: str, *, declared: str | None, most_words: int) -> Column:
    """What a column becomes: what was `declared` ("category" or "words"), or what its type and values suggest."""
    values = table.columns[name]
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_null(kind) or values.null_count == len(values):
        return LeftOut(name, "it has no values")
    if declared == "category":
        return _learn_category(table, name)
    if declared == "words":
        return _learn_words(table, name, most_words)
    if is_list(kind):
        return _learn_vector(table, name)
    if pa.types.is_nested(kind):
        return LeftOut(name, f"values of type {kind} are not understood")
    if pa.types.is_boolean(kind):
        if pc.count_distinct(values).as_py() < 2:
            return LeftOut(name, "it is constant")
        return Boolean(name, missing=values.null_count > 0)
    if is_text(kind):
        return _learn_text(table, name, most_words)
    return _learn_number(table, name)


def _learn_number(table: Table, name: str) -> Column:
    values = numbers(table, name)
    known = values
    if table.columns[name].null_count or np.isnan(values.sum()):
        known = values[~np.isnan(values)]
    if not known.size:
        return LeftOut(name, "it has no values")
    mean = float(known.mean())
    away = known - mean
    deviation = float(np.sqrt(np.square(away, out=away).mean()))
    if deviation <= 1e-12 * max(abs(mean), 1e-300):
        return LeftOut(name, "it is constant")
    return Number(name, mean, deviation, known.size < values.size)


def _learn_vector(table: Table, name: str) -> Column:
    matrix = vectors(table, name)
    if matrix.shape[1] == 0:
        return LeftOut(name, "its lists are empty")
    means, deviations = np.nanmean(matrix, axis=0), np.nanstd(matrix, axis=0)
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
    return Words(name, tuple(words)) if words else LeftOut(name, "no two nodes share a word of it")


def _learn_text(table: Table, name: str, most_words: int) -> Column:
    """Few values, each of two nodes or more on average, are categories; several words a value are text; values that
    are all different are ids; what is left has categories for the values that occur twice.
    """
    codes, values = coded(table, name)
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    known = int(counts.sum())
    _check_not_mixed(table, name, codes, values, counts)
    if len(values) <= FEW and 2 * len(values) <= known:
        return _learn_category(table, name)
    words = pc.add(pc.count_substring_regex(pc.utf8_trim_whitespace(values), r"\s+"), 1)
    if float(words.to_numpy(zero_copy_only=False) @ counts) >= 2 * known:
        return _learn_words(table, name, most_words)
    if len(values) == known:
        return LeftOut(name, "every value is different, as of an id")
    return _learn_category(table, name)


def _check_not_mixed(table: Table, name: str, codes: Array, values: Any, counts: Array) -> None:
    """A column of numbers in which some values are not: nobody means those numbers to be categories."""
    is_number = pc.match_substring_regex(values, NUMBER).to_numpy(zero_copy_only=False)
    count, known = int(counts[is_number].sum()), int(counts.sum())
    if known > count >= known / 2:
        row = int(np.flatnonzero(np.append(~is_number, False)[codes])[0])
        raise BGCLError(
            f"{table.at(row, name)}: {values[int(codes[row])].as_py()!r} is not a number, but {count:,} of {known:,} "
            "values are. Correct it or leave it empty; or read the column with --categorical or --text, or --ignore it."
        )
