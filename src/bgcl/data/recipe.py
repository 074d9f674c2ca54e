"""From tables to a graph, and the recipe that reads other tables in the same way.

A recipe says which columns hold the ids, the ends of an edge and the label, which classes there are, and what each
other column became. It is plain JSON in a run's folder, so that a later command reads the same graph again, or another
one with nodes that were not there, without being told anew.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from scipy.sparse import csr_matrix, hstack, issparse
from torch_geometric.data import Data

from bgcl.data.clean import undirected
from bgcl.data.columns import Block, Category, Column, LeftOut, Words, column_from_dict, learn
from bgcl.data.ids import IdColumn, Lookup, id_columns
from bgcl.data.labels import encode_labels
from bgcl.data.memory import check_fits
from bgcl.data.pyg import SPARSE_BELOW, csr_tensor
from bgcl.data.structure import structure, structure_names
from bgcl.data.tables import Source, Table, check_column
from bgcl.errors import BGCLError, nearest

Array = npt.NDArray[Any]

FORMAT = 1
_ENDS = (
    ("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("head", "tail"), ("citing", "cited"),
    ("source_id", "target_id"), ("from_id", "to_id"), ("node1", "node2"), ("node_1", "node_2"), ("id1", "id2"),
    ("id_1", "id_2"),
)  # fmt: skip
_IDS = ("id", "node_id", "nodeid", "node", "index", "key")
_LABELS = ("label", "labels", "class", "y", "target")


@dataclass(frozen=True)
class Options:
    """What a user says of their tables; what is left out is guessed from names and values."""

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
        if self.words < 1:
            raise BGCLError(f"The number of words must be 1 or more. Got {self.words} instead.")
        for name in {*self.categorical} & {*self.text}:
            raise BGCLError(f"Column '{name}' cannot be both categories and text.")


@dataclass(frozen=True)
class Recipe:
    """How a graph was read."""

    source: str
    target: str
    id: str | None  # None: there was no table of nodes
    label: str | None
    classes: tuple[Any, ...] | None
    columns: tuple[Column, ...]
    structural: bool  # whether the attributes are those of `bgcl.data.structure`
    skip_unknown: bool
    edges_file: str = ""  # where the graph was; empty if it was in memory
    nodes_file: str = ""

    def attributes(self) -> list[str]:
        """The name of each attribute."""
        return structure_names() if self.structural else [n for column in self.columns for n in column.attributes()]

    def to_json(self) -> str:
        values = vars(self) | {"columns": [column.to_dict() for column in self.columns], "format": FORMAT}
        return json.dumps(values, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> "Recipe":
        try:
            values = json.loads(text)
            if values.pop("format") != FORMAT:
                raise BGCLError(f"{where} is of another version of bgcl. Train again.")
            values["columns"] = tuple(column_from_dict(column) for column in values["columns"])
            values["classes"] = None if values["classes"] is None else tuple(values["classes"])
            return cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, BGCLError):
                raise
            raise BGCLError(f"{where} is damaged ({error}). Train again, or restore the file.") from error

    def __str__(self) -> str:  # a graph prints its fields: not all of this
        return f"Recipe({len(self.columns)} columns)"


@dataclass
class Reading:
    """A graph that was read, and what there is to say of it."""

    data: Data
    recipe: Recipe
    guesses: list[str] = field(default_factory=list)  # which columns were taken for what
    notes: list[str] = field(default_factory=list)  # what looks wrong
    rows: int = 0  # of the table of edges
    loops: int = 0
    unknown: int = 0  # rows that were skipped, since an end is no node
    unused: list[str] = field(default_factory=list)  # columns of the edges that nothing uses
    nodes: Table | None = None


def read(edges: Source, nodes: Source | None, options: Options | None = None, recipe: Recipe | None = None) -> Reading:
    """The graph of two tables, or of the edges alone; with a `recipe`, in the way of the graph that it is of."""
    guesses: list[str] = []
    new = recipe is None
    if recipe is None:
        recipe = _roles(edges, nodes, options or Options(), guesses)
    _check_columns(recipe, edges, nodes, new)
    edge_table = edges.read([recipe.source, recipe.target], ids=[recipe.source, recipe.target])
    node_table = None if nodes is None else _read_nodes(nodes, recipe, (options or Options()) if new else None)
    lookup, ends = _lookup(edge_table, node_table, recipe)
    reading = Reading(Data(), recipe, guesses, rows=edge_table.rows, nodes=node_table)
    reading.unused = [name for name in edges.names if name not in (recipe.source, recipe.target)]
    pairs = _pairs(ends, lookup, reading)
    edge_index = undirected(pairs[0], pairs[1], len(lookup.values))
    y, recipe = _labels(node_table, recipe, reading, new)
    if new:
        recipe = replace(recipe, **_learned(node_table, recipe, options or Options()))
    x = None if recipe.structural else _attributes(node_table, recipe, reading)
    if x is None:
        x = torch.from_numpy(structure(edge_index, lookup))
    data = Data(x=x, edge_index=torch.from_numpy(edge_index))
    if y is not None:
        data.y = torch.from_numpy(y)
    data.ids, data.attributes, data.recipe = lookup.as_array(), recipe.attributes(), recipe
    if recipe.classes is not None:
        data.classes = list(recipe.classes)
    reading.data, reading.recipe = data, recipe
    if new:
        reading.notes += _notes_of_columns(node_table, recipe)
    return reading


def _roles(edges: Source, nodes: Source | None, options: Options, guesses: list[str]) -> Recipe:
    """Which column is what, by what the user says or by their names."""
    source, target = _ends(edges, options)
    if not (options.source and options.target):
        guesses.append(f"an edge leads from '{source}' to '{target}'")
    identity = label = None
    if nodes is None:
        for name in ("id", "label", "ignore", "categorical", "text"):
            if getattr(options, name):
                raise BGCLError(f"{edges.name}: --{name} names a column of the nodes, but there is no table of nodes.")
    else:
        identity = options.id or next(_named(nodes.names, _IDS), nodes.names[0])
        if options.id is None:
            guesses.append(f"a node's id is '{identity}'")
        free = [name for name in nodes.names if name != identity and name not in options.ignore]
        label = options.label or next(_named(free, _LABELS), None)
        if options.label is None:
            guesses.append(f"its label is '{label}'" if label else "nodes have no label")
        for name in (*options.ignore, *options.categorical, *options.text):
            check_column(nodes, name)
        if identity == label:
            raise BGCLError(f"{nodes.name}: column '{label}' cannot be both the id and the label.")
    return Recipe(source, target, identity, label, None, (), nodes is None, options.skip_unknown)


def _ends(edges: Source, options: Options) -> tuple[str, str]:
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


def _named(names: Iterable[str], wanted: Sequence[str]) -> Iterator[str]:
    lower = {name.lower(): name for name in names}
    return iter([lower[name] for name in wanted if name in lower])


def _check_columns(recipe: Recipe, edges: Source, nodes: Source | None, new: bool) -> None:
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
    if recipe.label and new:  # when it is read again, the label may be missing
        check_column(nodes, recipe.label)
    for column in recipe.columns:
        if column.name not in nodes.names and not isinstance(column, LeftOut) and not recipe.structural:
            raise BGCLError(
                f"{nodes.name} has no column '{column.name}', which the model was trained on. "
                f"{nearest(column.name, nodes.names)}"
            )


def _read_nodes(nodes: Source, recipe: Recipe, options: Options | None) -> Table:
    """The columns that are used; `options` when a graph is read for the first time."""
    if options is not None:
        columns = [name for name in nodes.names if name not in options.ignore]
        texts = [*options.categorical, *options.text]
    else:
        used = {column.name for column in recipe.columns if column.attributes()}
        columns = [name for name in nodes.names if name in used or name in (recipe.id, recipe.label)]
        texts = [column.name for column in recipe.columns if isinstance(column, Category | Words)]
    identity = recipe.id or ""
    if identity not in columns:
        columns.insert(0, identity)
    if recipe.label in columns:
        texts.append(recipe.label)
    return nodes.read(columns, ids=[identity], texts=[name for name in texts if name in columns])


def _lookup(edges: Table, nodes: Table | None, recipe: Recipe) -> tuple[Lookup, list[IdColumn]]:
    ends = [(edges, recipe.source), (edges, recipe.target)]
    if nodes is None:
        found = id_columns(*ends)
        every = pa.chunked_array([*found[0].values.chunks, *found[1].values.chunks])
        return Lookup(IdColumn(edges, recipe.source, pc.unique(every))), found
    identity, *found = id_columns((nodes, recipe.id or ""), *ends)
    return Lookup(identity), found


def _pairs(ends: list[IdColumn], lookup: Lookup, reading: Reading) -> list[Array]:
    """The numbers of the nodes at the two ends of each edge, as the table has them."""
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
                + f". Add it to {lookup.column.table.name}, or leave such edges out with --skip-unknown."
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
    y, classes = encode_labels(table, recipe.label, recipe.classes, reading.notes, may_be_empty=not new)
    return y, replace(recipe, classes=classes)


def _learned(table: Table | None, recipe: Recipe, options: Options) -> dict[str, Any]:
    if table is None:
        return {"columns": (), "structural": True}
    ways = dict.fromkeys(options.categorical, "category") | dict.fromkeys(options.text, "words")
    columns: list[Column] = [LeftOut(name, "as asked") for name in options.ignore]
    for name in table.columns.column_names:
        if name not in (recipe.id, recipe.label):
            columns.append(learn(table, name, declared=ways.get(name), most_words=options.words))
    return {"columns": tuple(columns), "structural": not any(column.attributes() for column in columns)}


def _attributes(table: Table | None, recipe: Recipe, reading: Reading) -> torch.Tensor:
    """The attributes `(N, F)` of columns: sparse if fewer than a fifth of them are not zero."""
    assert table is not None  # or else the attributes are structural
    blocks: list[Block] = []
    for column in recipe.columns:
        if column.attributes():
            blocks.append(column.apply(table, reading.notes))
    nodes, width = table.rows, sum(block.shape[1] for block in blocks)
    filled = sum(block.nnz if issparse(block) else block.size for block in blocks)
    if filled < SPARSE_BELOW * nodes * width:
        matrix = hstack([csr_matrix(block) for block in blocks], format="csr", dtype=np.float32)
        return csr_tensor(matrix)
    check_fits(
        nodes * width * 8, f"{table.name}: {nodes:,} nodes with {width:,} attributes",
        "Leave out columns with --ignore, or lower the number of words with --words.",
    )  # fmt: skip
    dense = np.empty((nodes, width), dtype=np.float32)
    at = 0
    for block in blocks:
        dense[:, at : at + block.shape[1]] = block.toarray() if issparse(block) else block
        at += block.shape[1]
    return torch.from_numpy(dense)


def _notes_of_columns(table: Table | None, recipe: Recipe) -> list[str]:
    notes = []
    for column in recipe.columns:
        if table is None:
            break
        if isinstance(column, LeftOut):
            if column.why != "as asked":
                notes.append(f"{table.name}, column '{column.name}' is left out: {column.why}.")
            continue
        share = table.columns[column.name].null_count / table.rows
        if recipe.label is None and isinstance(column, Category) and 0.1 < share < 1:
            what = f"{share:.0%} of the values are missing. Is it the label? --label {column.name}."
            notes.append(f"{table.name}, column '{column.name}': {what}")
        elif share > 0.5:
            notes.append(f"{table.name}, column '{column.name}': {share:.0%} of the values are missing.")
    if recipe.structural:
        what = "there is no table of nodes" if table is None else f"{table.name} has no usable column"
        notes.append(f"The nodes have no attributes ({what}): their neighbourhoods and degrees are taken instead.")
    return notes
