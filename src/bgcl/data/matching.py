"""Match the ids of the tables: which nodes there are, and which node each row belongs to."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.ids import IdColumn, Lookup, id_columns, of_two_kinds
from bgcl.data.known_names import are_two_kinds
from bgcl.data.options import ROWS, Options
from bgcl.data.recipe import Recipe
from bgcl.data.spelling import comparable
from bgcl.data.tables import Table
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Matched:
    """The nodes and the rows that belong to them.

    Attributes:
        lookup: the nodes by their ids.
        ends: the ids at the two ends of each edge.
        labels: number of the node in each row of the table of labels, -1 to leave it out; None without such a table.
        features: the same for the table of features in long form.
        bipartite: whether the two ends are nodes of two kinds.
    """

    lookup: Lookup
    ends: list[IdColumn]
    labels: Array | None
    features: Array | None
    bipartite: bool


def match(
    edges: Table, nodes: Table | None, labels: Table | None, features: Table | None, recipe: Recipe,
    options: Options | None, guesses: list[str],
) -> Matched:  # fmt: skip
    """Match the ids of all tables.

    The nodes are the rows of the table of nodes. Without such a table they are all ids of the labels, of the edges
    and of the features. `options` is None if the recipe says whether there are two kinds of nodes.
    """
    form = recipe.long_form()
    columns = [(edges, recipe.source), (edges, recipe.target)]
    columns += [] if nodes is None else [(nodes, recipe.id or "")]
    columns += [] if labels is None else [(labels, recipe.label_id or "")]
    columns += [] if features is None or form is None else [(features, form.id)]
    found = id_columns(*columns, exact=recipe.exact, guesses=guesses)
    ends, rest = found[:2], found[2:]
    bipartite = recipe.bipartite if options is None else _is_bipartite(ends, options)
    ends = of_two_kinds(ends) if bipartite else ends
    rest = [IdColumn(c.table, c.name, c.values.cast(pa.string())) for c in rest] if bipartite else rest
    of_table = {id(column.table): column for column in rest}
    label_ids, feature_ids = of_table.get(id(labels)), of_table.get(id(features))
    if label_ids is not None and recipe.many_labels != ROWS:
        # An id that is there twice is an error.
        Lookup(label_ids, "Give every node one label, or use --many-labels rows.")
    others = [column for column in (label_ids, feature_ids) if column is not None]
    lookup = _every(ends, others) if nodes is None else Lookup(of_table[id(nodes)])
    skip = recipe.skip_unknown
    numbers = [None if c is None else _numbers(c, lookup, skip) for c in (label_ids, feature_ids)]
    return Matched(lookup, ends, numbers[0], numbers[1], bipartite)


def ids_of_edges(edges: Table, nodes: Table | None, recipe: Recipe) -> Any:
    """All ids of the edges and nodes, an Arrow array of texts."""
    columns = [edges.columns[recipe.source], edges.columns[recipe.target]]
    columns += [] if nodes is None else [nodes.columns[recipe.id or ""]]
    chunks = [comparable(chunk) for column in columns for chunk in column.chunks]
    return pc.unique(pa.chunked_array(chunks, type=pa.string()))


def _every(ends: list[IdColumn], others: list[IdColumn]) -> Lookup:
    """All ids of some columns. Those of the labels come first, so that nodes have the order of their table."""
    order = [*others[:1], *ends, *others[1:]]
    chunks = [chunk for column in order for chunk in _chunks(column.values)]
    return Lookup(IdColumn(order[0].table, order[0].name, pc.unique(pa.chunked_array(chunks))))


def _chunks(values: Any) -> list[Any]:
    return list(values.chunks) if isinstance(values, pa.ChunkedArray) else [values]


def _numbers(column: IdColumn, lookup: Lookup, skip_unknown: bool) -> Array:
    """The number of the node in each row."""
    found = lookup.numbers(column.values)
    unknown = np.flatnonzero(found < 0)
    if unknown.size and not skip_unknown:
        row = int(unknown[0])
        raise BGCLError(
            f"{column.table.at(row, column.name)}: no node has the id {column.values[row].as_py()!r}. Add it to "
            f"{lookup.column.table.name}, or skip such rows with --skip-unknown."
        )
    return found


def _is_bipartite(ends: list[IdColumn], options: Options) -> bool:
    """Whether the two columns of the edges hold nodes of two kinds.

    Raises:
        BGCLError: if their names say so, but both have the same ids, and the user does not say what is meant.
    """
    if options.bipartite is not None:
        return options.bipartite
    one, other = ends
    if not are_two_kinds(one.name, other.name):
        return False
    common = pc.is_in(pc.unique(one.values), value_set=pc.unique(other.values))
    if pc.any(common).as_py():
        example = pc.unique(one.values).filter(common)[0].as_py()
        raise BGCLError(
            f"{one.table.name}: the id {example!r} is in column '{one.name}' and in column '{other.name}'. Use "
            "--bipartite if these are two nodes, or --no-bipartite if they are one."
        )
    return False
