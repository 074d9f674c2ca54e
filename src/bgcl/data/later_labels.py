"""Labels that come later: a table with an id and a label, for a graph that was read before."""

import copy
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch_geometric.data import Data

from bgcl.data.border import readable
from bgcl.data.ids import Lookup, id_columns, id_texts
from bgcl.data.label_sets import encode_label_sets, joined_rows
from bgcl.data.label_table import find_label_columns
from bgcl.data.labels import encode_labels
from bgcl.data.missing_labels import USUAL, LabelRules
from bgcl.data.options import ROWS, Options
from bgcl.data.recipe import Recipe
from bgcl.data.tables import Form, Table, open_table
from bgcl.data.tasks import with_task
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


@dataclass
class LaterLabels:
    """A graph with the labels of a table, and what happened to them.

    Attributes:
        data: the graph with its new labels.
        used: how many nodes have their label from the table.
        replaced: how many of these had another label before.
        unknown: how many ids of the table are no nodes of the graph.
        empty: how many rows of the table have no label.
        kept: how many nodes have a label that is not in the table.
        guesses: what was inferred.
        notes: what looks wrong.
    """

    data: Data
    used: int
    replaced: int
    unknown: int
    empty: int
    kept: int
    guesses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [
            f"{self.used:,} from the table" + (f", {self.replaced:,} of them other than before" * bool(self.replaced))
        ]
        parts += [f"{self.kept:,} that the graph has"] if self.kept else []
        parts += [f"{self.empty:,} row(s) have none"] if self.empty else []
        parts += [f"{self.unknown:,} row(s) skipped, whose id is no node of the graph"] if self.unknown else []
        return f"{'; '.join(parts)}."


def with_labels(
    data: Data, file: str | os.PathLike[str], options: Options | None = None, *, forget: bool = False
) -> LaterLabels:
    """Give the nodes of a graph the labels of a table.

    The labels of the table replace those of the nodes that it names. All other nodes keep their labels, and classes
    keep their numbers; new classes come after them. A row without a label changes nothing.

    Args:
        data: the graph. Without `ids`, a node is known by its number.
        file: the table, read with the same care as the labels of a graph.
        options: `id`, `label`, `missing_label`, `exact`, `delimiter`, `skip_unknown`, `task` and `many_labels` are
            used.
        forget: forget the labels that the graph has.

    Returns:
        The graph with the labels, and how many of them were used.

    Raises:
        BGCLError: a value cannot be read, no id is a node of the graph, or one is not and `skip_unknown` is off.

    >>> import bgcl, pathlib, tempfile
    >>> data = bgcl.graph_from({"from": ["ann", "bob"], "to": ["bob", "eve"]})
    >>> file = pathlib.Path(tempfile.mkdtemp(), "labels.csv")
    >>> _ = file.write_text("id,label\\nann,spam\\neve,fine\\n")
    >>> found = with_labels(data, file)
    >>> found.data.y.tolist(), found.data.classes, found.used
    ([1, -1, 0], ['fine', 'spam'], 2)
    """
    said = options or Options()
    data = with_task(data, said.task)
    recipe, known = getattr(data, "recipe", None), known_classes(data)
    guesses, notes = list[str](), list[str]()
    with readable(file):
        source = open_table(Path(file), Form("labels", said.delimiter))
        guesses += source.inferred
        identity, label = find_label_columns(source, pa.array(_ids(data), pa.string()), said, guesses)
        table = source.read([identity, label], ids=[identity, label])
        task = said.task or (None if forget or data.y is None else "numbers" if data.y.is_floating_point() else None)
        rules = _rules(said, recipe, task, guesses)
        many = said.many_labels or (None if recipe is None else recipe.many_labels)
        rows = _nodes_of_rows(table, identity, data, rules.exact, said.skip_unknown, many, guesses)
        names = None if known is None else tuple(known)
        with readable(table.at(None, label), "Use text or numbers."):
            if many is None:
                y, classes = encode_labels(table, label, names, notes, may_be_empty=False, rules=rules)
            else:
                y, classes = encode_label_sets(table, label, many, names, notes, may_be_empty=False, rules=rules)
    assert y is not None  # because they may not be empty
    found = LaterLabels(copy.copy(data), 0, 0, int((rows < 0).sum()), 0, 0, guesses=guesses, notes=notes)
    before = None if forget or data.y is None else data.y.cpu().numpy()
    if before is not None and before.ndim != y.ndim:
        raise BGCLError(
            f"{file}: a node may have several labels {'here' if y.ndim == 2 else 'in the graph'}, and has one in the "
            "other. To use the labels of the file alone, add --forget-labels."
        )
    (_join if y.ndim == 1 else _join_sets)(found, y, rows, before, str(file))
    if classes is not None and (
        getattr(data, "classes", None) is not None or list(classes) != list(range(len(classes)))
    ):
        found.data.classes = list(classes)
    return found


def _rules(said: Options, recipe: Recipe | None, task: str | None, guesses: list[str]) -> LabelRules:
    """How labels are read: as the user says now, or else said or had to settle at training."""
    missing = said.missing_label
    if missing is None and recipe is not None and recipe.missing_label is not None:
        missing = recipe.missing_label if {*recipe.missing_label} != {*USUAL} else None
    return LabelRules(
        missing,
        task,
        said.exact or (recipe is not None and recipe.exact),
        decimal=None if recipe is None else recipe.decimal,
        guesses=guesses,
    )


def _ids(data: Data) -> list[str]:
    return id_texts(data.ids) if "ids" in data else [str(i) for i in range(data.num_nodes)]


def _nodes_of_rows(
    table: Table, identity: str, data: Data, exact: bool, skip_unknown: bool, many: str | None, guesses: list[str]
) -> Array:
    """The number of the node in each row of the table, -1 for an id that is no node of the graph."""
    nodes = Table("the graph", pa.table({"id": pa.array(_ids(data), pa.string())}), 0, True)
    graph_ids, given = id_columns((nodes, "id"), (table, identity), exact=exact, guesses=guesses)
    if many != ROWS:  # an id that is there twice is an error
        Lookup(given, "Give every node one label, or use --many-labels rows.")
    rows = Lookup(graph_ids).numbers(given.values)
    unknown = np.flatnonzero(rows < 0)
    if len(unknown) == len(rows):
        raise BGCLError(f"{table.at(None, identity)}: no id is a node of the graph. Name the column of ids with --id.")
    if unknown.size and not skip_unknown:
        row, more = int(unknown[0]), unknown.size - 1
        raise BGCLError(
            f"{table.at(row, identity)}: no node of the graph has the id {given.values[row].as_py()!r}"
            + (f" ({more:,} more such row(s))" if more else "")
            + ". Correct it, or skip such rows with --skip-unknown."
        )
    return rows


def _join(found: LaterLabels, y: Array, rows: Array, before: Array | None, file: str) -> None:
    """Put the labels of the table over those of the graph, and count them."""
    real = y.dtype.kind == "f"
    labeled = (~np.isnan(y) if real else y >= 0) & (rows >= 0)
    found.empty = int(((rows >= 0) & ~labeled).sum())
    if before is not None and (before.dtype.kind == "f") != real:
        what = ("numbers", "classes") if real else ("classes", "numbers")
        raise BGCLError(
            f"{file}: its labels are {what[0]}, but those of the graph are {what[1]}. To use those of the file alone, "
            "add --forget-labels."
        )
    every = np.full(found.data.num_nodes, np.nan if real else -1, dtype=y.dtype)
    if before is not None:
        every = before.copy()
    old = every[rows[labeled]]
    found.used = int(labeled.sum())
    had = ~np.isnan(old) if real else old >= 0
    found.replaced = int((had & (old != y[labeled])).sum())
    every[rows[labeled]] = y[labeled]
    found.kept = int((~np.isnan(every) if real else every >= 0).sum()) - found.used
    found.data.y = torch.from_numpy(every)


def _join_sets(found: LaterLabels, y: Array, rows: Array, before: Array | None, file: str) -> None:
    """The same for nodes that may have several labels, of which each row has some, `(R, L)`."""
    new = joined_rows(y, rows, found.data.num_nodes)
    named, every = new[:, 0] >= 0, np.full(new.shape, -1, dtype=np.int64)
    if before is not None:
        known = before[:, 0] >= 0
        every[known] = 0
        every[known, : before.shape[1]] = before[known]
    found.empty = int(((rows >= 0) & (y[:, 0] < 0)).sum())
    found.used = int(named.sum())
    found.replaced = int((named & (every[:, 0] >= 0) & (every != new).any(1)).sum())
    every[named] = new[named]
    found.kept = int((every[:, 0] >= 0).sum()) - found.used
    found.data.y = torch.from_numpy(every)


def known_classes(data: Data) -> list[Any] | None:
    """The names of a graph's classes, or their numbers if they have no names; None if there are no classes."""
    names = getattr(data, "classes", None)
    if names is not None:
        return list(names)
    if data.y is None or data.y.is_floating_point() or not bool((data.y >= 0).any()):
        return None
    if data.y.dim() == 2:
        return list(range(data.y.shape[1]))
    return list(range(int(data.y.max()) + 1))
