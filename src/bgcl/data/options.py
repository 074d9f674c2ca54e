"""What the user says about tables: the role of columns, and how values are written."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from bgcl.arguments import flag, shown, whole
from bgcl.errors import BGCLError, nearest

_LISTS = ("ignore", "categorical", "text", "header", "no_header", "missing_label")
_ONE = ("id", "label", "source", "target", "weight", "edge_type", "node_type", "feature", "value", "delimiter",
        "decimal", "dates", "task", "many_labels")  # fmt: skip
_TABLES = ("edges", "nodes", "labels")
_CHOICES = {"decimal": (".", ","), "dates": ("dmy", "mdy", "ymd"), "task": ("classes", "numbers")}
LISTS, ROWS = "lists", "rows"  # how a node may have several labels, besides what separates them
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
    directed: bool = False
    edge_type: str | None = None  # an empty name: the edges have no types
    node_type: str | None = None
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
    task: str | None = None
    many_labels: str | None = None

    def __post_init__(self) -> None:
        whole("The number of words", self.words, 1)
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in (None, *allowed):
                raise BGCLError(f"--{name} must be {' or '.join(allowed)}. Got '{getattr(self, name)}' instead.")
        for table in (*self.header, *self.no_header):
            if table not in _TABLES:
                raise BGCLError(f"--header and --no-header name a table: {', '.join(_TABLES)}. Got '{table}' instead.")
        for table in {*self.header} & {*self.no_header}:
            raise BGCLError(f"--header and --no-header both name {table}. Name it once.")
        if self.many_labels is not None and not (len(self.many_labels) == 1 or self.many_labels in (LISTS, ROWS)):
            raise BGCLError(
                f"--many-labels must be {ROWS}, {LISTS}, {', '.join(DELIMITERS)} or one character. Got "
                f"'{self.many_labels}' instead."
            )
        if self.many_labels is not None and self.task is not None:
            raise BGCLError("Several labels of a node are classes: leave out --task.")
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
    directed: bool
    edge_type: str | None
    node_type: str | None
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
    task: str | None
    many_labels: str | None


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say something: None, no columns, and False where it is the default are as if not given."""
    return {
        name: value
        for name, value in options.items()
        if not (value is None or (value is False and name != "bipartite") or _is_empty(name, value))
    }


def _is_empty(name: str, value: Any) -> bool:
    return isinstance(value, list | tuple) and not value and name != "missing_label"


def make_options(**options: Any) -> Options:
    """`Options` from keyword arguments. A single column may be given without a list."""
    fields = [field.name for field in dataclasses.fields(Options)]
    for name, value in options.items():
        if name not in fields:
            raise BGCLError(f"Unknown option '{name}'. {nearest(name, fields)}")
        if name in ("delimiter", "many_labels") and isinstance(value, str):
            options[name] = DELIMITERS.get(value.lower(), "\t" if value == "\\t" else value)
        if name in _LISTS and not (name == "missing_label" and value is None):
            options[name] = _names(name, value)
        elif name in _ONE and not (value is None or isinstance(value, str)):
            raise BGCLError(f"'{name}' must be the name of a column. Got {shown(value)} instead.")
        elif name in ("skip_unknown", "exact", "directed") or (name == "bipartite" and value is not None):
            flag(name, value)
    _check_roles(options)
    return Options(**options)


def _names(option: str, value: Any) -> tuple[str, ...]:
    """The names of columns, from one name or several."""
    names = (value,) if isinstance(value, str) else () if value is None else value
    try:
        found = tuple(names)
    except TypeError:
        found = (None,)
    if not all(isinstance(name, str) for name in found):
        raise BGCLError(f"'{option}' must be the name of a column, or a list of names. Got {shown(value)} instead.")
    return found


def _check_roles(options: Mapping[str, Any]) -> None:
    """Refuse a column of the nodes that is named for two roles, of which only one could count."""
    roles: dict[str, str] = {}
    for role in ("id", "label", "ignore", "categorical", "text"):
        columns = options.get(role) or ()
        for column in (columns,) if isinstance(columns, str) else columns:
            if column in roles:
                raise BGCLError(f"Column '{column}' is named by --{roles[column]} and by --{role}. Name it once.")
            roles[column] = role
