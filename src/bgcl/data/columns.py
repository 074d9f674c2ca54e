"""The kinds of columns, each with the attributes that it gives to nodes: numbers, booleans, categories, words, vectors.

A column keeps what it learned from the nodes at training (means, categories, words), so that other nodes are read in
the same way. All columns have about the same weight: a number has unit variance, a category is a single 1, and the
words of a text have unit length. Rows must not be normalized again: each attribute would then depend on all others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix

from bgcl.data import written_dates
from bgcl.data.drift import drift_note
from bgcl.data.spelling import tidy
from bgcl.data.tables import Table
from bgcl.data.values import as_text, coded, numbers, power_of_two, vectors
from bgcl.data.words import word_matrix
from bgcl.data.written_numbers import Writing
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]
Block = Any  # (N, attributes): an array, or a SciPy csr_matrix, which has no types


@dataclass(frozen=True)
class Column:
    """How a column becomes attributes. With `missing`, one attribute says whether the value is missing."""

    name: str
    kind: ClassVar[str] = ""
    kinds: ClassVar[dict[str, type["Column"]]] = {}

    def __init_subclass__(cls) -> None:
        Column.kinds[cls.kind] = cls

    def attribute_names(self) -> list[str]:
        """The names of the column's attributes."""
        return []

    def apply(self, table: Table, notes: list[str]) -> Block:
        """The attributes `(N, attributes)` of the nodes in a table. What looks wrong is added to `notes`."""
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
    """`(x - mean) / deviation`, with the mean and standard deviation at training. A missing value becomes the mean."""

    mean: float = 0.0
    deviation: float = 1.0
    missing: bool = False
    writing: str = ""  # how texts are written, see `bgcl.data.values.numbers`
    kind: ClassVar[str] = "number"

    def attribute_names(self) -> list[str]:
        return [self.name, f"{self.name} is missing"][: 1 + self.missing]

    def apply(self, table: Table, notes: list[str]) -> Block:
        values = numbers(table, self.name, self.writing)
        block = np.empty((len(values), 1 + self.missing), dtype=np.float32)
        block[:, 0] = scaled(
            values, np.asarray(self.mean), np.asarray(self.deviation), lambda i: table.at(i, self.name)
        )
        notes += drift_note(table.at(None, self.name), [self.name], block[:, 0])
        if table.columns[self.name].null_count or np.isnan(block[:, 0].sum()):
            absent = np.isnan(values)
            block[absent, 0] = 0
            if self.missing:
                block[:, 1] = absent
        elif self.missing:
            block[:, 1] = 0
        return block

    def __str__(self) -> str:
        if self.writing in written_dates.ORDERS:
            return f"date, {written_dates.ORDERS_IN_WORDS[self.writing]}"
        return f"number {Writing.of(self.writing).in_words()}".strip() if self.writing else self.kind


def scaled(
    values: npt.NDArray[Any], mean: npt.NDArray[Any], deviation: npt.NDArray[Any], where: Callable[[int], str]
) -> npt.NDArray[np.float32]:
    """`(values - mean) / deviation` in float32, NaN where a value is missing. What is too great is refused.

    `where` says in words where the value with a number is.
    """
    scale = power_of_two(np.atleast_2d(deviation))
    with np.errstate(over="ignore", invalid="ignore"):
        found = ((values / scale - mean / scale) / (deviation / scale)).astype(np.float32)
    wrong = ~np.isfinite(found) & ~np.isnan(values)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        center = np.broadcast_to(mean, values.shape)[place]
        raise BGCLError(
            f"{where(int(place[0]))}: {values[place]:.3g} is too far from the others, whose mean is "
            f"{center:.3g}. Correct it, or leave the column out with --ignore."
        )
    return found


@dataclass(frozen=True)
class Boolean(Column):
    """1 for true, 0 for false and for a missing value."""

    missing: bool = False
    kind: ClassVar[str] = "true or false"

    def attribute_names(self) -> list[str]:
        return [self.name, f"{self.name} is missing"][: 1 + self.missing]

    def apply(self, table: Table, notes: list[str]) -> Block:
        values = numbers(table, self.name)
        if not np.isin(values[~np.isnan(values)], (0, 1)).all():
            row = int(np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1))[0])
            raise BGCLError(f"{table.at(row, self.name)}: the value must be true or false, as at training.")
        absent = np.isnan(values)
        return np.stack([np.where(absent, 0, values), absent][: 1 + self.missing], axis=1).astype(np.float32)


@dataclass(frozen=True)
class Category(Column):
    """One attribute for each value: 1 if the node has it, else 0. Rare and new values share `(other)`, if it exists."""

    values: tuple[str, ...] = ()
    other: bool = False
    missing: bool = False
    kind: ClassVar[str] = "category"

    def attribute_names(self) -> list[str]:
        names = [f"{self.name} = {value}" for value in self.values]
        return names + [f"{self.name} = (other)"] * self.other + [f"{self.name} is missing"] * self.missing

    def apply(self, table: Table, notes: list[str]) -> Block:
        codes, values = coded(table, self.name)
        found = pc.index_in(values, value_set=tidy(pa.array(self.values, type=pa.string()))).fill_null(-1)
        place = np.append(found.to_numpy(zero_copy_only=False).astype(np.int64), -1)[codes]
        absent = codes < 0
        unseen = (place < 0) & ~absent
        count = len(self.values)
        if unseen.any() and not self.other:
            new = [values[int(code)].as_py() for code in np.unique(codes[unseen])]
            notes.append(
                f"{table.name}, column '{self.name}': {len(new):,} value(s), such as {new[0]!r}, were not seen at "
                f"training. They are ignored for {int(unseen.sum()):,} node(s)."
            )
        place = np.where(unseen & self.other, count, place)
        place = np.where(absent, count + self.other if self.missing else -1, place)
        some = place >= 0
        pointer = np.concatenate([[0], np.cumsum(some)])
        return csr_matrix(
            (np.ones(int(some.sum()), np.float32), place[some], pointer),
            shape=(len(place), len(self.attribute_names())),
        )

    def __str__(self) -> str:
        return f"{len(self.values) + self.other} categories"


@dataclass(frozen=True)
class Words(Column):
    """One attribute for each word, see `bgcl.data.words`. A missing text has no words."""

    words: tuple[str, ...] = ()
    kind: ClassVar[str] = "words"

    def attribute_names(self) -> list[str]:
        return [f"{self.name}: {word}" for word in self.words]

    def apply(self, table: Table, notes: list[str]) -> Block:
        matrix = word_matrix(as_text(table, self.name), self.words)
        empty = int((np.diff(matrix.indptr) == 0).sum())
        if empty > 0.1 * table.rows:
            notes.append(f"{table.name}, column '{self.name}': {empty:,} node(s) have none of the known words.")
        return matrix

    def __str__(self) -> str:
        return f"{len(self.words):,} words"


@dataclass(frozen=True)
class Vector(Column):
    """A list of numbers, as long for every node. Each place is scaled like a `Number`; a missing list becomes 0."""

    means: tuple[float, ...] = ()
    deviations: tuple[float, ...] = ()
    kind: ClassVar[str] = "vector"

    def attribute_names(self) -> list[str]:
        return [f"{self.name}[{i}]" for i in range(len(self.means))]

    def apply(self, table: Table, notes: list[str]) -> Block:
        matrix = vectors(table, self.name)
        if matrix.shape[1] != len(self.means):
            raise BGCLError(
                f"{table.at(None, self.name)}: the lists have {matrix.shape[1]} numbers, but had {len(self.means)} at "
                "training."
            )
        # Divided by the square root of the length, so that the list has the weight of one number.
        deviations = np.asarray(self.deviations) * np.sqrt(len(self.means))
        found = scaled(matrix, np.asarray(self.means), deviations, lambda i: table.at(i, self.name))
        notes += drift_note(
            table.at(None, self.name), self.attribute_names(), found.ravel() * np.sqrt(len(self.means)),
            np.tile(np.arange(len(self.means)), len(found)),
        )  # fmt: skip
        return np.nan_to_num(found)

    def __str__(self) -> str:
        return f"{len(self.means)} numbers"


@dataclass(frozen=True)
class LeftOut(Column):
    """A column that is not used, and why."""

    why: str = field(default="")
    kind: ClassVar[str] = "left out"

    def __str__(self) -> str:
        return f"left out: {self.why}"
