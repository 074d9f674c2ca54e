"""From two tables to a graph: edges by the ids of their nodes, labels as class numbers, columns as attributes."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from scipy.sparse import csr_matrix, hstack, issparse
from torch_geometric.data import Data

from bgcl.data.border import readable
from bgcl.data.clean import undirected
from bgcl.data.columns import Block, Category, Column, LeftOut, Words
from bgcl.data.ids import IdColumn, Lookup, id_columns
from bgcl.data.infer_columns import learn
from bgcl.data.labels import encode_labels
from bgcl.data.memory import check_fits
from bgcl.data.pyg import SPARSE_BELOW, csr_tensor
from bgcl.data.recipe import Recipe
from bgcl.data.roles import Options, check_roles, find_roles
from bgcl.data.structure import structure
from bgcl.data.tables import Source, Table
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

_IGNORED = "as asked"  # why a column with --ignore is left out


@dataclass
class Reading:
    """A graph that was read from tables, and what the user should know about it."""

    data: Data
    recipe: Recipe
    guesses: list[str] = field(default_factory=list)  # roles of columns that were inferred
    notes: list[str] = field(default_factory=list)  # what looks wrong
    rows: int = 0  # in the table of edges
    loops: int = 0  # rows from a node to itself
    unknown: int = 0  # rows that were skipped, because an end is not in the table of nodes
    unused: list[str] = field(default_factory=list)  # other columns of the edges
    nodes: Table | None = None


def read(edges: Source, nodes: Source | None, options: Options | None = None, recipe: Recipe | None = None) -> Reading:
    """Read a graph from a table of edges and a table of nodes, or from the edges alone.

    Args:
        edges: the table of edges.
        nodes: the table of nodes, if there is one.
        options: the columns that the user names. Without effect if there is a recipe.
        recipe: the recipe of another graph, to read this graph in the same way.

    Raises:
        BGCLError: if a column is missing, or a value cannot be read.
    """
    options = options or Options()
    guesses: list[str] = []
    new = recipe is None
    if recipe is None:
        recipe = find_roles(edges, nodes, options, guesses)
    check_roles(recipe, edges, nodes, new=new)
    edge_table = edges.read([recipe.source, recipe.target], ids=[recipe.source, recipe.target])
    node_table = None if nodes is None else _read_nodes(nodes, recipe, options if new else None)
    lookup, ends = _look_up_ids(edge_table, node_table, recipe)
    reading = Reading(Data(), recipe, guesses, rows=edge_table.rows, nodes=node_table)
    reading.unused = [name for name in edges.names if name not in (recipe.source, recipe.target)]
    pairs = _pairs(ends, lookup, reading, new)
    edge_index = undirected(pairs[0], pairs[1], len(lookup.values))
    y, recipe = _labels(node_table, recipe, reading, new)
    if new:
        recipe = replace(recipe, **_learn_columns(node_table, recipe, options))
    x = _attributes(node_table, recipe, reading, edge_index, lookup)
    reading.data, reading.recipe = _as_data(x, edge_index, y, lookup, recipe), recipe
    if new:
        reading.notes += _notes_of_columns(node_table, recipe)
    return reading


def _as_data(x: torch.Tensor, edge_index: Array, y: Array | None, lookup: Lookup, recipe: Recipe) -> Data:
    data = Data(x=x, edge_index=torch.from_numpy(edge_index))
    if y is not None:
        data.y = torch.from_numpy(y)
    data.ids, data.attribute_names, data.recipe = lookup.as_array(), recipe.attribute_names(), recipe
    if recipe.classes is not None:
        data.classes = list(recipe.classes)
    return data


def _read_nodes(nodes: Source, recipe: Recipe, options: Options | None) -> Table:
    """Read the columns that are needed. `options` is None if the recipe has the columns already."""
    if options is not None:
        columns = [name for name in nodes.names if name not in options.ignore]
        texts = [*options.categorical, *options.text]
    else:
        used = {column.name for column in recipe.columns if column.attribute_names()}
        columns = [name for name in nodes.names if name in used or name in (recipe.id, recipe.label)]
        texts = [column.name for column in recipe.columns if isinstance(column, Category | Words)]
    identity = recipe.id or ""
    if identity not in columns:
        columns.insert(0, identity)
    if recipe.label in columns:
        texts.append(recipe.label)
    return nodes.read(columns, ids=[identity], texts=[name for name in texts if name in columns])


def _look_up_ids(edges: Table, nodes: Table | None, recipe: Recipe) -> tuple[Lookup, list[IdColumn]]:
    """The numbers of all ids, and the ids at the two ends of each edge."""
    ends = [(edges, recipe.source), (edges, recipe.target)]
    if nodes is None:
        found = id_columns(*ends)
        every = pa.chunked_array([*found[0].values.chunks, *found[1].values.chunks])
        return Lookup(IdColumn(edges, recipe.source, pc.unique(every))), found
    identity, *found = id_columns((nodes, recipe.id or ""), *ends)
    return Lookup(identity), found


def _pairs(ends: list[IdColumn], lookup: Lookup, reading: Reading, new: bool) -> list[Array]:
    """The numbers of the nodes at the two ends of each row, two arrays of shape `(rows,)`."""
    numbers = [lookup.numbers(end.values) for end in ends]
    if any(int(found.min()) < 0 for found in numbers):
        unknown = (numbers[0] < 0) | (numbers[1] < 0)
        if not reading.recipe.skip_unknown:
            row = int(np.flatnonzero(unknown)[0])
            end = ends[0] if numbers[0][row] < 0 else ends[1]
            more = int(unknown.sum()) - 1
            raise BGCLError(
                f"{end.table.at(row, end.name)}: no node has the id {end.values[row].as_py()!r}"
                + (f" ({more:,} more such row(s))" if more else "")
                + f". Add it to {lookup.column.table.name}, "
                + ("or skip such edges with --skip-unknown." if new else "or remove the edge.")
            )
        reading.unknown = int(unknown.sum())
        numbers = [found[~unknown] for found in numbers]
    reading.loops = int(np.count_nonzero(numbers[0] == numbers[1]))
    if len(numbers[0]) == reading.loops:
        raise BGCLError(f"{ends[0].table.name}: the graph has no edges between different nodes.")
    return numbers


def _labels(table: Table | None, recipe: Recipe, reading: Reading, new: bool) -> tuple[Array | None, Recipe]:
    if table is None or recipe.label is None or recipe.label not in table.columns.column_names:
        return None, recipe
    with readable(table.at(None, recipe.label), f"Use text or numbers, or leave it out with --ignore {recipe.label}."):
        y, classes = encode_labels(table, recipe.label, recipe.classes, reading.notes, may_be_empty=not new)
    return y, replace(recipe, classes=classes)


def _learn_columns(table: Table | None, recipe: Recipe, options: Options) -> dict[str, Any]:
    """The fields `columns` and `structural` of a new recipe."""
    if table is None:
        return {"columns": (), "structural": True}
    declared = dict.fromkeys(options.categorical, "category") | dict.fromkeys(options.text, "words")
    columns: list[Column] = [LeftOut(name, _IGNORED) for name in options.ignore]
    for name in table.columns.column_names:
        if name not in (recipe.id, recipe.label):
            with readable(table.at(None, name), f"Leave it out with --ignore {name}."):
                columns.append(learn(table, name, declared=declared.get(name), most_words=options.words))
    return {"columns": tuple(columns), "structural": not any(column.attribute_names() for column in columns)}


def _attributes(
    table: Table | None, recipe: Recipe, reading: Reading, edge_index: Array, lookup: Lookup
) -> torch.Tensor:
    """The attributes `(N, F)`: sparse if their share of nonzero entries is below `SPARSE_BELOW`, else dense."""
    if recipe.structural or table is None:
        return csr_tensor(structure(edge_index, lookup))
    blocks: list[Block] = []
    for column in recipe.columns:
        if column.attribute_names():
            with readable(table.at(None, column.name), "Give it the values that it had at training."):
                blocks.append(column.apply(table, reading.notes))
    nodes, width = table.rows, sum(block.shape[1] for block in blocks)
    nonzero = sum(block.nnz if issparse(block) else block.size for block in blocks)
    if nonzero < SPARSE_BELOW * nodes * width:
        return csr_tensor(hstack([csr_matrix(block) for block in blocks], format="csr", dtype=np.float32))
    check_fits(
        nodes * width * 8, f"{table.name}: {nodes:,} nodes with {width:,} attributes",
        "Leave out columns with --ignore, or lower the number of words with --words.",
    )  # fmt: skip
    dense = np.empty((nodes, width), dtype=np.float32)
    start = 0
    for block in blocks:
        dense[:, start : start + block.shape[1]] = block.toarray() if issparse(block) else block
        start += block.shape[1]
    return torch.from_numpy(dense)


def _notes_of_columns(table: Table | None, recipe: Recipe) -> list[str]:
    """Notes on columns that are left out, or of which many values are missing."""
    notes = []
    for column in recipe.columns:
        if table is None:
            break
        if isinstance(column, LeftOut):
            if column.why != _IGNORED:
                notes.append(f"{table.name}, column '{column.name}' is left out: {column.why}.")
            continue
        share = table.columns[column.name].null_count / table.rows
        if recipe.label is None and isinstance(column, Category) and 0.1 < share < 1:
            what = f"{share:.0%} of the values are missing. Is it the label? --label {column.name}."
            notes.append(f"{table.name}, column '{column.name}': {what}")
        elif share > 0.5:
            notes.append(f"{table.name}, column '{column.name}': {share:.0%} of the values are missing.")
    if recipe.structural:
        why = "there is no table of nodes" if table is None else f"{table.name} has no usable column"
        notes.append(f"The nodes have no attributes ({why}). Their neighborhoods and degrees are used instead.")
    return notes
