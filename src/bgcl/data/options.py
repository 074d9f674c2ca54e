"""What the user says about tables: the role of columns, and how values are written."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from bgcl.errors import BGCLError, nearest

_LISTS = ("ignore", "categorical", "text", "header", "no_header", "missing_label")
_TABLES = ("edges", "nodes", "labels")
_CHOICES = {"decimal": (".", ","), "dates": ("dmy", "mdy", "ymd")}
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}


@dataclass(frozen=True)
class Options:
    """What the user says about the tables. What is not said is inferred from names and values."""

    id: str | None = None
    source: str | None = None
    target: str | None = None
    label: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    words: int = 2000
    skip_unknown: bool = False
    weight: str | None = None  # an empty name: the edges have no weights
    bipartite: bool | None = None
    missing_label: tuple[str, ...] | None = None
    exact: bool = False
    feature: str | None = None
    value: str | None = None
    delimiter: str | None = None
    header: tuple[str, ...] = ()
    no_header: tuple[str, ...] = ()
    decimal: str | None = None
    dates: str | None = None

    def __post_init__(self) -> None:
        if self.words < 1:
            raise BGCLError(f"The number of words must be 1 or more. Got {self.words} instead.")
        for name in {*self.categorical} & {*self.text}:
            raise BGCLError(f"Column '{name}' cannot be both categories and text.")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in (None, *allowed):
                raise BGCLError(f"--{name} must be {' or '.join(allowed)}. Got '{getattr(self, name)}' instead.")
        for table in (*self.header, *self.no_header):
            if table not in _TABLES:
                raise BGCLError(f"--header and --no-header name a table: {', '.join(_TABLES)}. Got '{table}' instead.")
        for table in {*self.header} & {*self.no_header}:
            raise BGCLError(f"--header and --no-header both name {table}. Name it once.")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise BGCLError(
                f"--delimiter must be {', '.join(DELIMITERS)} or one character. Got '{self.delimiter}' instead."
            )

    def has_header(self, table: str) -> bool | None:
        """Whether the first row of a table names its columns; None if the user does not say so."""
        return True if table in self.header else False if table in self.no_header else None


class TableOptions(TypedDict, total=False):
    """The keyword arguments of `bgcl.load` and `bgcl.graph_from` that make `Options`."""

    id: str | None
    source: str | None
    target: str | None
    label: str | None
    ignore: str | Sequence[str] | None
    categorical: str | Sequence[str] | None
    text: str | Sequence[str] | None
    words: int
    skip_unknown: bool
    weight: str | None
    bipartite: bool | None
    missing_label: str | Sequence[str] | None
    exact: bool
    feature: str | None
    value: str | None
    delimiter: str | None
    header: str | Sequence[str] | None
    no_header: str | Sequence[str] | None
    decimal: str | None
    dates: str | None


def make_options(**options: Any) -> Options:
    """`Options` from keyword arguments. A single column may be given without a list."""
    fields = [field.name for field in dataclasses.fields(Options)]
    for name, value in options.items():
        if name not in fields:
            raise BGCLError(f"Unknown option '{name}'. {nearest(name, fields)}")
        if name == "delimiter" and isinstance(value, str):
            options[name] = DELIMITERS.get(value.lower(), "\t" if value == "\\t" else value)
        if name in _LISTS and not (name == "missing_label" and value is None):
            options[name] = (value,) if isinstance(value, str) else tuple(value or ())
    return Options(**options)
