"""From tables to a graph: edges by the ids of their nodes, labels as class numbers, columns as attributes."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from bgcl.data.attributes import AttributeTables, attributes, learn_columns, notes_of_columns
from bgcl.data.border import readable
from bgcl.data.columns import Category, Column, Number, Words
from bgcl.data.edge_table import Edges, clean_edges_of, notes_of_edges, read_edges
from bgcl.data.id_by_values import column_with_all
from bgcl.data.ids import IdError, Lookup
from bgcl.data.label_sets import encode_label_sets, joined_rows
from bgcl.data.label_table import find_label_columns
from bgcl.data.labels import encode_labels
from bgcl.data.long_form import LongForm, find_long_form
from bgcl.data.matching import Matched, ids_of_edges, match
from bgcl.data.missing_labels import USUAL, LabelRules
from bgcl.data.options import Options
from bgcl.data.recipe import Recipe
from bgcl.data.roles import check_roles, find_roles, usual_id
from bgcl.data.tables import Source, Sources, Table, file_name
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


@dataclass
class Reading:
    """A graph that was read from tables, and what the user should know about it."""

    data: Data
    recipe: Recipe
    guesses: list[str] = field(default_factory=list)  # what was inferred
    notes: list[str] = field(default_factory=list)  # what looks wrong
    rows: int = 0  # in the table of edges
    loops: int = 0  # rows from a node to itself
    unknown: int = 0  # rows that were skipped, because an end is not in the table of nodes
    without_weight: int = 0  # rows that were left out, because their weight is 0
    unused: list[str] = field(default_factory=list)  # other columns of the edges
    nodes: Table | None = None


def read(sources: Sources, options: Options | None = None, recipe: Recipe | None = None) -> Reading:
    """Read a graph from its tables.

    Args:
        sources: the tables.
        options: what the user says about them. Without effect if there is a recipe.
        recipe: the recipe of another graph, to read this graph in the same way.

    Raises:
        BGCLError: if a column is missing, or a value cannot be read.
    """
    options = options or Options()
    try:
        return _read(sources, options, recipe)
    except IdError:
        other = _other_id(sources, options) if recipe is None else None
        if other is None:
            raise
        result = _read(sources, replace(options, id=other), recipe)
        result.guesses.append(f"a node's id is '{other}', the only column with the ids of the edges")
        return result


def _other_id(sources: Sources, options: Options) -> str | None:
    """The column of the nodes that has the ids of the edges, if only one has them and the user names none."""
    if sources.nodes is None or options.id is not None:
        return None
    roles = find_roles(sources.edges, None, Options(source=options.source, target=options.target), [])
    ids = ids_of_edges(read_edges(sources.edges, roles, None, [])[0], None, roles)
    return column_with_all(sources.nodes, usual_id(sources.nodes), ids, options.ignore)


def _read(sources: Sources, options: Options, recipe: Recipe | None) -> Reading:
    guesses = [line for source in sources.every() for line in source.inferred] if recipe is None else []
    new = recipe is None
    sources, form = _with_features(sources, options, recipe, guesses)
    if recipe is None:
        recipe = find_roles(sources.edges, sources.nodes, options, guesses, others=_named_elsewhere(sources))
        recipe = replace(recipe, columns=() if form is None else (form,))
    check_roles(recipe, sources.edges, sources.nodes, new=new)
    edge_table, recipe = read_edges(sources.edges, recipe, options if new else None, guesses)
    node_table = None if sources.nodes is None else _read_nodes(sources.nodes, recipe, options if new else None)
    label_table, recipe = _read_labels(sources.labels, recipe, edge_table, node_table, options, new, guesses)
    feature_table = _read_features(sources.features, form)
    matched = match(edge_table, node_table, label_table, feature_table, recipe, options if new else None, guesses)
    recipe = replace(recipe, bipartite=matched.bipartite)
    reading = Reading(Data(), recipe, guesses, rows=edge_table.rows, nodes=node_table)
    reading.unused = [name for name in sources.edges.names if name not in recipe.columns_of_edges()]
    edges = clean_edges_of(edge_table, node_table, matched, recipe, new=new)
    reading.loops, reading.unknown, reading.without_weight = edges.loops, edges.unknown, edges.without_weight
    count = len(matched.lookup.values)
    y, recipe = _labels(node_table, label_table, matched, recipe, reading, options if new else None)
    tables = AttributeTables(node_table, feature_table, matched.features, count)
    if new:
        typed = (recipe.node_type,) if recipe.node_type else ()
        options = replace(options, categorical=(*options.categorical, *typed))
        recipe = replace(recipe, **learn_columns(tables, recipe, options, guesses))
    x = attributes(tables, recipe, reading.notes, edges.index, matched.lookup)
    reading.data, reading.recipe = _as_data(x, edges, y, matched.lookup, recipe), recipe
    if new:
        reading.notes += [*notes_of_edges(edges, reading.unused), *notes_of_columns(tables, recipe)]
        reading.notes += _note_of_totals(matched.lookup, edges)
    return reading


TOTALS = frozenset({"total", "totals", "grand total", "sum", "average", "mean", "gesamt", "summe"})


def _note_of_totals(lookup: Lookup, edges: Edges) -> list[str]:
    """A note if the last node is called like a row of totals and has no edge."""
    last = len(lookup.values) - 1
    if last < 0 or str(lookup.values[last].as_py()).strip().casefold() not in TOTALS or (edges.index == last).any():
        return []
    return [f"The last node, {lookup.values[last].as_py()!r}, has no edge. If it is a row of totals, remove it."]


def _with_features(
    sources: Sources, options: Options, recipe: Recipe | None, guesses: list[str]
) -> tuple[Sources, LongForm | None]:
    """The tables, with attributes in long form as `features`, and its columns. Other features are nodes."""
    source = sources.features or sources.nodes
    if source is None:
        return sources, None
    form = find_long_form(source, options) if recipe is None else recipe.long_form()
    if form is not None and recipe is not None and not {form.name, form.id} <= {*source.names}:
        form = None
    if form is None:
        if sources.features is not None and sources.nodes is not None:
            raise BGCLError(
                f"{sources.features.name} and {sources.nodes.name} both have a row for each node. Join them."
            )
        return replace(sources, nodes=source, features=None), None
    if recipe is None:
        columns = ", ".join(f"'{name}'" for name in (form.id, form.name, form.value) if name)
        unused = [name for name in source.names if name not in (form.id, form.name, form.value)]
        more = f"; not used: {', '.join(unused)}" if unused else ""
        guesses.append(f"{file_name(source)} has a row for each node and feature: {columns}{more}")
    return replace(sources, nodes=None if source is sources.nodes else sources.nodes, features=source), form


def _named_elsewhere(sources: Sources) -> tuple[str, ...]:
    """Options that name a column of the labels or of the features."""
    found = ("id", "label", "ignore") if sources.labels is not None else ()
    return (*found, "id") if sources.features is not None else found


def _read_nodes(nodes: Source, recipe: Recipe, options: Options | None) -> Table:
    """Read the columns that are needed. `options` is None if the recipe has the columns already."""
    if options is not None:
        columns = [name for name in nodes.names if name not in options.ignore]
        texts = [*options.categorical, *options.text, *([recipe.node_type] if recipe.node_type else [])]
    else:
        used = {column.name for column in recipe.columns if column.attribute_names()}
        roles = (recipe.id, recipe.label, recipe.node_type)
        columns = [name for name in nodes.names if name in used or name in roles]
        texts = [c.name for c in recipe.columns if _is_written(c) or c.name == recipe.node_type]
    identity = recipe.id or ""
    if identity not in columns:
        columns.insert(0, identity)
    exact = [name for name in (identity, recipe.label) if name in columns]
    return nodes.read(columns, ids=exact, texts=[name for name in texts if name in columns])


def _is_written(column: Column) -> bool:
    """Whether a column must be read as it is written, and not as pyarrow understands it."""
    return isinstance(column, Category | Words) or (isinstance(column, Number) and bool(column.writing))


def _read_labels(
    labels: Source | None, recipe: Recipe, edges: Table, nodes: Table | None, options: Options, new: bool,
    guesses: list[str],
) -> tuple[Table | None, Recipe]:  # fmt: skip
    """The table of labels, and the recipe with its columns."""
    if labels is None:
        return None, recipe
    if new or recipe.label_id is None:
        known = ids_of_edges(edges, nodes, recipe)
        chosen = options if new else replace(Options(), label=recipe.label if recipe.label in labels.names else None)
        identity, label = find_label_columns(labels, known, chosen, guesses)
        recipe = replace(recipe, label_id=identity, label=label)
    elif recipe.label not in labels.names:  # a trained model needs no labels
        return None, recipe
    columns = [recipe.label_id or "", recipe.label or ""]
    return labels.read(columns, ids=columns), recipe


def _read_features(features: Source | None, form: LongForm | None) -> Table | None:
    if features is None or form is None:
        return None
    columns = [form.id, form.name, *([form.value] if form.value else [])]
    return features.read(columns, ids=[form.id], texts=[form.name])


def _labels(
    nodes: Table | None, labels: Table | None, matched: Matched, recipe: Recipe, reading: Reading,
    options: Options | None,
) -> tuple[Array | None, Recipe]:  # fmt: skip
    """Class numbers `(N,)` or real numbers, and the recipe with the classes. `options` is None if it had them."""
    table = labels or nodes
    if table is None or recipe.label is None or recipe.label not in table.columns.column_names:
        return None, recipe
    at_training = USUAL if recipe.missing_label is None else recipe.missing_label
    given = at_training if options is None else options.missing_label
    task = recipe.task if options is None else options.task
    rules = LabelRules(given, task, recipe.exact, recipe.decimal, guesses=reading.guesses)
    with readable(table.at(None, recipe.label), f"Use text or numbers, or leave it out with --ignore {recipe.label}."):
        may_be_empty = options is None
        if recipe.many_labels is None:
            y, classes = encode_labels(
                table, recipe.label, recipe.classes, reading.notes, may_be_empty=may_be_empty, rules=rules
            )
        else:
            y, classes = encode_label_sets(
                table, recipe.label, recipe.many_labels, recipe.classes, reading.notes, may_be_empty=may_be_empty,
                rules=rules,
            )  # fmt: skip
    never = [] if options is None else [name for name in given or () if name not in rules.seen]
    if never:
        what = ", ".join(repr(name) for name in never)
        reading.notes.append(f"{table.at(None, recipe.label)}: no label is {what}, as --missing-label says.")
    if y is not None and y.ndim == 2 and matched.labels is not None:
        y = joined_rows(y, matched.labels, len(matched.lookup.values))
    elif y is not None and matched.labels is not None:
        missing = np.nan if y.dtype.kind == "f" else -1
        every = np.full(len(matched.lookup.values), missing, dtype=y.dtype)
        every[matched.labels[matched.labels >= 0]] = y[matched.labels >= 0]
        y = every
    if y is not None and y.ndim == 2 and options is not None and not (y.sum(1) > 1).any():
        raise BGCLError(
            f"{table.at(None, recipe.label)}: no node has several labels, as --many-labels says. Correct or leave it "
            "out."
        )
    if y is not None:
        task = "numbers" if y.dtype.kind == "f" else "classes"
    return y, replace(recipe, classes=classes, missing_label=rules.settled(), task=task)


def _as_data(x: torch.Tensor, edges: Edges, y: Array | None, lookup: Lookup, recipe: Recipe) -> Data:
    data = Data(x=x, edge_index=torch.from_numpy(edges.index))
    if edges.weights is not None:
        data.edge_weight = torch.from_numpy(edges.weights)
    if edges.relations is not None:
        data.relations, data.edge_relations = edges.relations[0], torch.from_numpy(edges.relations[1])
    if y is not None:
        data.y = torch.from_numpy(y)
    data.ids, data.attribute_names, data.recipe = lookup.as_array(), recipe.attribute_names(), recipe
    if recipe.classes is not None:
        data.classes = list(recipe.classes)
    return data
