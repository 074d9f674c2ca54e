"""The role of each column: which holds the ids, the ends of an edge, the label. Named by the user, or inferred."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from bgcl.arguments import flag, shown, whole
from bgcl.data.columns import LeftOut
from bgcl.data.recipe import Recipe
from bgcl.data.tables import Source, check_column
from bgcl.errors import BGCLError, nearest

_ENDS = (
    ("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("head", "tail"), ("citing", "cited"),
    ("source_id", "target_id"), ("from_id", "to_id"), ("node1", "node2"), ("node_1", "node_2"), ("id1", "id2"),
    ("id_1", "id_2"),
)  # fmt: skip
_IDS = ("id", "node_id", "nodeid", "node", "index", "key")
_LABELS = ("label", "labels", "class", "y", "target")


@dataclass(frozen=True)
class Options:
    """What the user says about the tables. Columns that are not named are inferred from their names and values."""

    id: str | None = None
    source: str | None = None
    target: str | None = None
    label: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    words: int = 2000
    skip_unknown: bool = False

    def __post_init__(self) -> None:
        whole("The number of words", self.words, 1)


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


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say something: None, False and no columns are as if they were not given."""
    return {name: value for name, value in options.items() if not (value is None or value is False or _is_empty(value))}


def _is_empty(value: Any) -> bool:
    return isinstance(value, list | tuple) and not value


def make_options(**options: Any) -> Options:
    """`Options` from keyword arguments. A single column may be given without a list."""
    fields = [field.name for field in dataclasses.fields(Options)]
    for name, value in options.items():
        if name not in fields:
            raise BGCLError(f"Unknown option '{name}'. {nearest(name, fields)}")
        if name in _SEVERAL:
            options[name] = _names(name, value)
        elif name in _ONE and not (value is None or isinstance(value, str)):
            raise BGCLError(f"'{name}' must be the name of a column. Got {shown(value)} instead.")
        elif name == "skip_unknown":
            flag(name, value)
    _check_roles(options)
    return Options(**options)


_ONE, _SEVERAL = ("id", "label", "source", "target"), ("ignore", "categorical", "text")


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
    for role in ("id", "label", *_SEVERAL):
        columns = options.get(role) or ()
        for column in (columns,) if isinstance(columns, str) else columns:
            if column in roles:
                raise BGCLError(f"Column '{column}' is named by --{roles[column]} and by --{role}. Name it once.")
            roles[column] = role


def find_roles(edges: Source, nodes: Source | None, options: Options, guesses: list[str]) -> Recipe:
    """A recipe with the role of each column, but without classes and attributes.

    Args:
        edges: the table of edges.
        nodes: the table of nodes, if there is one.
        options: the columns that the user names.
        guesses: a line is added to this list for each role that was inferred.
    """
    source, target = _find_ends(edges, options)
    if not (options.source and options.target):
        guesses.append(f"an edge leads from '{source}' to '{target}'")
    identity, label = (None, None) if nodes is None else _find_id_and_label(nodes, options, guesses)
    if nodes is None:
        for name in ("id", "label", "ignore", "categorical", "text"):
            if getattr(options, name):
                raise BGCLError(f"{edges.name}: --{name} names a column of the nodes, but there is no table of nodes.")
    return Recipe(source, target, identity, label, None, (), nodes is None, options.skip_unknown)


def _find_ends(edges: Source, options: Options) -> tuple[str, str]:
    if len(edges.names) < 2:
        raise BGCLError(f"{edges.name} has one column, '{edges.names[0]}': edges need two, source and target.")
    lower = {name.lower(): name for name in edges.names}
    pairs = [(lower[a], lower[b]) for a, b in _ENDS if a in lower and b in lower]
    pairs += [(edges.names[0], edges.names[1])]
    source, target = options.source or pairs[0][0], options.target or pairs[0][1]
    if source == target:
        if options.source and options.target:
            raise BGCLError(f"{edges.name}: column '{source}' cannot be both ends of an edge.")
        other = next(name for name in edges.names if name != source)
        source, target = (source, other) if options.source else (other, target)
    return source, target


def _find_id_and_label(nodes: Source, options: Options, guesses: list[str]) -> tuple[str, str | None]:
    identity = options.id or _first_named(nodes.names, _IDS) or nodes.names[0]
    if options.id is None:
        guesses.append(f"a node's id is '{identity}'")
    free = [name for name in nodes.names if name != identity and name not in options.ignore]
    label = options.label or _first_named(free, _LABELS)
    if options.label is None:
        guesses.append(f"its label is '{label}'" if label else "nodes have no label")
    for name in (*options.ignore, *options.categorical, *options.text):
        check_column(nodes, name)
    if identity == label:
        raise BGCLError(f"{nodes.name}: column '{label}' cannot be both the id and the label.")
    return identity, label


def _first_named(names: Iterable[str], wanted: Sequence[str]) -> str | None:
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in wanted if name in lower), None)


def check_roles(recipe: Recipe, edges: Source, nodes: Source | None, *, new: bool) -> None:
    """Raise an error if a table lacks a column that the recipe needs. `new`: no model was trained with it yet."""
    check_column(edges, recipe.source)
    check_column(edges, recipe.target)
    if nodes is None:
        if recipe.columns and not recipe.structural:
            raise BGCLError(
                f"{edges.name}: the model was trained on nodes with columns, such as '{recipe.columns[0].name}'. "
                "Give the table of nodes too, with --nodes."
            )
        return
    check_column(nodes, recipe.id or "")
    if recipe.label and new:  # a trained model needs no labels
        check_column(nodes, recipe.label)
    for column in recipe.columns:
        if column.name not in nodes.names and not isinstance(column, LeftOut) and not recipe.structural:
            raise BGCLError(
                f"{nodes.name} has no column '{column.name}', which the model was trained on. "
                f"{nearest(column.name, nodes.names)}"
            )
