"""The table of edges: which of its columns are used, and the clean edges, weights and relations that it holds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bgcl.data.clean import undirected
from bgcl.data.ids import IdColumn, IdError, Lookup
from bgcl.data.known_names import EDGE_TYPES
from bgcl.data.matching import Matched
from bgcl.data.options import Options
from bgcl.data.recipe import Recipe
from bgcl.data.relations import MOST, Types, joined, relations
from bgcl.data.tables import Source, Table
from bgcl.data.values import coded
from bgcl.data.weights import are_weights, is_constant, merged_weights, read_weights, weight_like, within_32_bits
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


@dataclass
class Edges:
    """Clean edges, and how many rows of their table were left out."""

    index: Array  # (2, 2E), in both directions
    weights: Array | None  # (2E,)
    relations: tuple[list[str], Array] | None  # names, and weights (2E, R)
    loops: int  # rows from a node to itself
    unknown: int  # rows with an end that is not in the table of nodes
    without_weight: int  # rows of weight 0


def read_edges(
    edges: Source, recipe: Recipe, options: Options | None, guesses: list[str]
) -> tuple[Table, Recipe]:  # fmt: skip
    """The table of edges, and the recipe with the columns of weights and types. `options` is None if it has them."""
    ends = [recipe.source, recipe.target]
    own = [name for name in (recipe.weight, recipe.edge_type) if name]
    if options is None:
        return edges.read([*ends, *own], ids=ends, texts=[recipe.edge_type] if recipe.edge_type else []), recipe
    others = [name for name in edges.names if name not in (*ends, *own)]
    weight = weight_like(others) if options.weight is None else None
    kind = _type_like([name for name in others if name != weight]) if options.edge_type is None else None
    more = [name for name in (weight, kind) if name]
    typed = [name for name in (recipe.edge_type, kind) if name]
    table = edges.read([*ends, *own, *more], ids=ends, texts=typed)
    if weight and are_weights(table, weight, guesses):
        recipe = replace(recipe, weight=weight)
    if kind and _are_types(table, kind, guesses):
        recipe = replace(recipe, edge_type=kind)
    return table, recipe


def _type_like(names: list[str]) -> str | None:
    """The column that is called type, if there is one."""
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in EDGE_TYPES if name in lower), None)


def _are_types(table: Table, name: str, guesses: list[str]) -> bool:
    """Whether a column that is called type holds types: words, between 2 and `MOST` different ones."""
    values = table.columns[name]
    if not (pa.types.is_string(values.type) or pa.types.is_dictionary(values.type)):
        return False
    found = coded(table, name)[1].to_pylist()
    count = len(found)
    if not 2 <= count <= MOST or 2 * count > table.rows or all(_is_number(each) for each in found):
        return False
    guesses.append(f"an edge's type is '{name}' (--edge-type '' if not)")
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def clean_edges_of(table: Table, nodes: Table | None, matched: Matched, recipe: Recipe, *, new: bool) -> Edges:
    """The edges, weights and relations of a table. `new`: no model was trained with the recipe yet."""
    pairs = np.stack([matched.lookup.numbers(end.values) for end in matched.ends])
    weights = read_weights(table, recipe.weight) if recipe.weight else None
    types = _types(table, recipe.edge_type) if recipe.edge_type else None
    use = np.ones(pairs.shape[1], dtype=bool) if weights is None else weights > 0
    unknown = (pairs < 0).any(0) & use
    if unknown.any() and not recipe.skip_unknown:
        raise _unknown_id(matched.ends, matched.lookup, new)
    without_weight, use = int((~use).sum()), use & ~unknown
    if not use.all():
        pairs, weights = pairs[:, use], None if weights is None else weights[use]
        types = None if types is None else types.of(use)
    loops = int(np.count_nonzero(pairs[0] == pairs[1]))
    if pairs.shape[1] == loops:
        raise BGCLError(f"{table.name}: the graph has no edges between different nodes.")
    count, found = len(matched.lookup.values), None
    if recipe.node_type and nodes is not None:
        types = joined(types, _types(nodes, recipe.node_type), pairs[0], pairs[1], directed=recipe.directed)
    constant = None if weights is None or not is_constant(weights) else float(weights[0])
    heavy = None if constant is not None else weights  # equal weights say nothing: a repeated edge counts once
    if heavy is None:
        index = undirected(pairs[0], pairs[1], count)
        clean_weights = None if constant is None else within_32_bits(np.full(index.shape[1], constant))
    else:
        index, clean_weights = merged_weights(pairs, heavy, count)
    if types is not None or recipe.directed:
        found = relations(pairs, heavy, types, index, count, directed=recipe.directed, where=table.name)
        if constant is not None:
            found = found[0], found[1] * np.float32(constant)
    return Edges(index, clean_weights, found, loops, int(unknown.sum()), without_weight)


def _types(table: Table, name: str) -> Types:
    """The types in a column, in the order of their names, so that the order of the rows does not matter."""
    codes, values = coded(table, name)
    names = np.array([str(value) for value in values.to_pylist()], dtype=object)
    order = np.argsort(names)
    place = np.append(np.argsort(order), -1)
    return Types(place[codes], [str(each) for each in names[order]])


def _unknown_id(ends: list[IdColumn], lookup: Lookup, new: bool) -> IdError:
    numbers = [lookup.numbers(end.values) for end in ends]
    unknown = (numbers[0] < 0) | (numbers[1] < 0)
    row = int(np.flatnonzero(unknown)[0])
    end = ends[0] if numbers[0][row] < 0 else ends[1]
    more = int(unknown.sum()) - 1
    return IdError(
        f"{end.table.at(row, end.name)}: no node has the id {end.values[row].as_py()!r}"
        + (f" ({more:,} more such row(s))" if more else "")
        + f". Add it to {lookup.column.table.name}, "
        + ("or skip such edges with --skip-unknown." if new else "or remove the edge.")
    )


def notes_of_edges(edges: Edges, unused: Sequence[str]) -> list[str]:
    """Notes on what edges have in common, and on columns that are not used."""
    found = []
    if edges.relations is not None and len(edges.relations[0]) == 1:
        found.append(f"All edges have the type '{edges.relations[0][0]}', so types tell nothing apart.")
    named = [name for name in unused if name.strip()]  # a comma at the end of each row makes a column without a name
    return [*found, _unused(named)] if named else found


def _unused(unused: Sequence[str]) -> str:
    weight, kind = weight_like([*unused]), _type_like([*unused])
    more = f" If '{weight}' is the weight of an edge, use --weight {weight}." if weight else ""
    more += f" If '{kind}' is the type of an edge, use --edge-type {kind}." if kind else ""
    return f"These columns of the edges are not used: {', '.join(unused)}.{more}"
