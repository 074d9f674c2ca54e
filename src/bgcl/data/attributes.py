"""The attributes of nodes: what each column of their tables becomes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from scipy.sparse import csr_matrix, hstack, issparse

from bgcl.data.border import readable
from bgcl.data.columns import Block, Category, Column, LeftOut, Number
from bgcl.data.ids import Lookup
from bgcl.data.infer_columns import learn
from bgcl.data.long_form import LongForm, learn_long_form
from bgcl.data.memory import check_fits
from bgcl.data.options import Options
from bgcl.data.pyg import SPARSE_BELOW, csr_tensor
from bgcl.data.recipe import Recipe
from bgcl.data.structure import structure
from bgcl.data.tables import Table
from bgcl.data.values import numbers
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

MISSING = (-9, -99, -999, -9999)  # what surveys write for "no answer"
CODES = frozenset({"zip", "zipcode", "postcode", "postalcode", "plz", "areacode", "phone", "phonenumber"})
_IGNORED = "as asked"  # why a column with --ignore is left out


@dataclass(frozen=True)
class AttributeTables:
    """The tables that have attributes, and the node of each row of the table in long form."""

    nodes: Table | None
    features: Table | None
    rows: Array | None  # the number of the node in each row of the features, -1 to leave it out
    count: int  # number of nodes


def learn_columns(tables: AttributeTables, recipe: Recipe, options: Options, guesses: list[str]) -> dict[str, Any]:
    """The fields `columns` and `structural` of a new recipe."""
    columns: list[Column] = []
    table, form = tables.nodes, recipe.long_form()
    if table is not None:
        columns += [LeftOut(name, _IGNORED) for name in options.ignore]
        for name in table.columns.column_names:
            if name not in (recipe.id, recipe.label):
                with readable(table.at(None, name), f"Leave it out with --ignore {name}."):
                    columns.append(_learn(table, name, options))
        _check_one_decimal(table, columns, options)
    if tables.features is not None and tables.rows is not None and form is not None:
        with readable(tables.features.name, "Check its columns."):
            columns.append(learn_long_form(tables.features, form, tables.rows, tables.count))
    for column in columns:
        if isinstance(column, Number) and column.writing:
            guesses.append(f"'{column.name}' is a {column} (--categorical {column.name} if not)")
    return {"columns": tuple(columns), "structural": not any(column.attribute_names() for column in columns)}


def _learn(table: Table, name: str, options: Options) -> Column:
    if name in ("", "Unnamed: 0") and _counts_rows(table, name):
        return LeftOut(name, "it counts the rows")
    return learn(table, name, options)


def _counts_rows(table: Table, name: str) -> bool:
    """Whether a column is 0, 1, 2, ... as the index that pandas writes."""
    values = table.columns[name]
    return pa.types.is_integer(values.type) and np.array_equal(values.to_numpy(), np.arange(table.rows))


def _check_one_decimal(table: Table, columns: list[Column], options: Options) -> None:
    """Raise an error if some columns have decimal commas and others decimal points."""
    commas = next((c.name for c in columns if isinstance(c, Number) and c.writing.startswith(",")), None)
    if commas is None or options.decimal is not None or not table.as_written:
        return
    for column in columns:
        if isinstance(column, Number) and pa.types.is_floating(table.columns[column.name].type):
            raise BGCLError(
                f"{table.name}: column '{commas}' has decimal commas, but column '{column.name}' has points. Are these "
                "decimals or thousands? Use --decimal . or --decimal , to say so."
            )


def attributes(
    tables: AttributeTables, recipe: Recipe, notes: list[str], edge_index: Array, lookup: Lookup
) -> torch.Tensor:
    """The attributes `(N, F)`: sparse if their share of nonzero entries is below `SPARSE_BELOW`, else dense."""
    if recipe.structural:
        return csr_tensor(structure(edge_index, lookup))
    blocks = _blocks(tables, recipe, notes)
    nodes, width = tables.count, sum(block.shape[1] for block in blocks)
    nonzero = sum(block.nnz if issparse(block) else block.size for block in blocks)
    if nonzero < SPARSE_BELOW * nodes * width:
        return csr_tensor(hstack([csr_matrix(block) for block in blocks], format="csr", dtype=np.float32))
    name = (tables.nodes or tables.features or lookup.column.table).name
    check_fits(
        nodes * width * 8, f"{name}: {nodes:,} nodes with {width:,} attributes",
        "Leave out columns with --ignore, or lower the number of words with --words.",
    )  # fmt: skip
    dense = np.empty((nodes, width), dtype=np.float32)
    start = 0
    for block in blocks:
        dense[:, start : start + block.shape[1]] = block.toarray() if issparse(block) else block
        start += block.shape[1]
    return torch.from_numpy(dense)


def _blocks(tables: AttributeTables, recipe: Recipe, notes: list[str]) -> list[Block]:
    """The attributes of each column."""
    blocks: list[Block] = []
    for column in recipe.columns:
        if isinstance(column, LongForm):
            if tables.features is None or tables.rows is None:
                raise BGCLError(
                    f"The model was trained on attributes in long form, with the column '{column.name}'. Give this "
                    "table too, with --nodes."
                )
            with readable(tables.features.name, "Give it the columns that it had at training."):
                blocks.append(column.pivot(tables.features, tables.rows, tables.count, notes))
        elif column.attribute_names() and tables.nodes is not None:
            with readable(tables.nodes.at(None, column.name), "Give it the values that it had at training."):
                blocks.append(column.apply(tables.nodes, notes))
    return blocks


def notes_of_columns(tables: AttributeTables, recipe: Recipe) -> list[str]:
    """Notes on columns that are left out, that have many missing values, or that spell a value in several ways."""
    notes = []
    table = tables.nodes
    for column in recipe.columns:
        if table is None or isinstance(column, LongForm):
            continue
        if isinstance(column, LeftOut):
            if column.why != _IGNORED:
                notes.append(f"{table.name}, column '{column.name}' is left out: {column.why}.")
            continue
        if isinstance(column, Category):
            notes += _several_spellings(table, column)
        if isinstance(column, Number):
            notes += _codes_among_numbers(table, column)
        share = table.columns[column.name].null_count / table.rows
        if recipe.label is None and isinstance(column, Category) and 0.1 < share < 1:
            what = f"{share:.0%} of the values are missing. Is it the label? --label {column.name}."
            notes.append(f"{table.name}, column '{column.name}': {what}")
        elif share > 0.5:
            notes.append(f"{table.name}, column '{column.name}': {share:.0%} of the values are missing.")
    if recipe.structural:
        named = table or tables.features
        why = "there is no table of nodes" if named is None else f"{named.name} has no usable column"
        instead = f"Their neighborhoods and degrees are used instead{_plain(recipe)}."
        notes.append(f"The nodes have no attributes ({why}). {instead}")
    return notes


def _plain(recipe: Recipe) -> str:
    """What attributes that are made from the edges do not use, although the edges have it."""
    given = {"weights": recipe.weight, "types": recipe.edge_type, "directions": recipe.directed}
    unused = [name for name, there in given.items() if there]
    return f", without {' and '.join(unused)} of the edges" if unused else ""


def _codes_among_numbers(table: Table, column: Number) -> list[str]:
    """A note if a number may be a code: for a missing value, or all of them by the name of the column."""
    where = f"{table.name}, column '{column.name}'"
    if column.name.casefold().replace("_", "").replace(" ", "") in CODES:
        return [f"{where} is taken for a number. If its values are codes, use --categorical {column.name}."]
    values = numbers(table, column.name, column.writing)
    values = values[~np.isnan(values)]
    least = float(values.min())
    if least not in MISSING or (values[values > least] < 0).any():
        return []
    return [f"{where}: {least:g} counts as a number. If it means that the value is missing, leave the cell empty."]


def _several_spellings(table: Table, column: Category) -> list[str]:
    """A note if two categories differ only in upper and lower case."""
    lower = pc.utf8_lower(pa.array(column.values, type=pa.string())).to_pylist()
    seen: dict[str, str] = {}
    for value, key in zip(column.values, lower, strict=True):
        if key in seen:
            return [
                f"{table.name}, column '{column.name}': '{seen[key]}' and '{value}' are two categories. If they are "
                "one, write them alike."
            ]
        seen[key] = value
    return []
