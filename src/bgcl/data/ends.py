"""The columns with the two ends of an edge: named by the user, or inferred from names and values."""

from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.known_names import ENDS, NOT_ENDS, ROW_NUMBERS, are_alike, are_two_kinds
from bgcl.data.options import Options
from bgcl.data.tables import Source
from bgcl.errors import BGCLError

_COMPARED = 6  # columns whose values are compared
_ALIKE = 20  # columns whose names are compared
_CLEAR = 0.2  # share of common ids from which two columns clearly hold the same nodes


def find_ends(edges: Source, options: Options) -> tuple[str, str]:
    """The columns with the first and the second node of an edge.

    Raises:
        BGCLError: if there are not two columns, or if it is not clear which they are.
    """
    if len(edges.names) < 2:
        raise BGCLError(f"{edges.name} has one column, '{edges.names[0]}': edges need two, source and target.")
    source, target = options.source, options.target
    if not (source and target):
        pair = _by_name(edges.names) or _by_values(edges, options)
        source, target = options.source or pair[0], options.target or pair[1]
    if source == target:
        if options.source and options.target:
            raise BGCLError(f"{edges.name}: column '{source}' cannot be both ends of an edge.")
        other = next(name for name in edges.names if name != source)
        source, target = (source, other) if options.source else (other, target)
    return source, target


def _by_name(names: list[str]) -> tuple[str, str] | None:
    lower = {name.lower(): name for name in names}
    pairs = [(lower[a], lower[b]) for a, b in ENDS if a in lower and b in lower]
    named = [name for name in names[:_ALIKE] if not name.startswith("column ")]  # not those of a table without header
    pairs += [(a, b) for a, b in combinations(named, 2) if are_alike(a, b)]
    return pairs[0] if pairs else None


def _by_values(edges: Source, options: Options) -> tuple[str, str]:
    """The first two columns that can hold ids, by their names and values."""
    names = [name for name in edges.names if name.lower() not in NOT_ENDS]
    if len(names) > 2 and names[0] == edges.names[0] and names[0].lower() in ROW_NUMBERS and _differ(edges, names[0]):
        names = names[1:]
    if len(names) < 2:
        names = edges.names
    named = options.source or options.target
    if len(edges.names) == 2 or len(names) == 2 or named or are_two_kinds(names[0], names[1]):
        return names[0], names[1]
    shares = _common(edges, names[:_COMPARED])
    first = shares.get((names[0], names[1]), 0.0)
    best = max(shares, key=lambda pair: shares[pair], default=(names[0], names[1]))
    if first == 0 and shares.get(best, 0) >= _CLEAR:
        return best
    if first < 0.5 * shares.get(best, 0):
        raise BGCLError(
            f"{edges.name}: it is not clear which columns hold the ends of an edge: '{names[0]}' and '{names[1]}' have "
            f"fewer ids in common than '{best[0]}' and '{best[1]}'. Name them with --source and --target."
        )
    return names[0], names[1]


def _differ(edges: Source, name: str) -> bool:
    """Whether all values of a column are different, as numbers of rows are."""
    table = edges.read([name], ids=[name])
    return int(pc.count_distinct(table.columns[name]).as_py()) == table.rows


def _common(edges: Source, names: list[str]) -> dict[tuple[str, str], float]:
    """For each two columns the share of their different values, of the smaller column, that are in both."""
    table = edges.read(names, ids=names)
    every = {name: pc.unique(table.columns[name].cast(pa.string())) for name in names}
    return {
        (a, b): pc.sum(pc.is_in(every[a], value_set=every[b])).as_py() / max(1, min(len(every[a]), len(every[b])))
        for a, b in combinations(names, 2)
    }
