"""Labels in a table of their own: which column has the ids of the nodes, and which the label."""

from typing import Any

import pyarrow.compute as pc

from bgcl.data.id_by_values import has_known, share_known
from bgcl.data.known_names import LABELS
from bgcl.data.options import Options
from bgcl.data.roles import first_named, usual_id
from bgcl.data.tables import Source, Table, check_column, file_name
from bgcl.errors import BGCLError

MOST_CLASSES = 64  # a column with more different values is not taken for the label, unless its name says so


def find_label_columns(labels: Source, ids: Any, options: Options, guesses: list[str]) -> tuple[str, str]:
    """The columns of a table of labels with the ids and with the labels.

    The id is the column whose values are ids of nodes. The label is the column that is called label, class, y or
    target; else the only other column; else the only one with few different values.

    Args:
        labels: the table of labels.
        ids: the ids that are known, an Arrow array of texts.
        options: `id` and `label` are used if the table has these columns.
        guesses: a line is added to this list.

    Raises:
        BGCLError: if no column has the ids, or if several columns could be the label.
    """
    identity = options.id if options.id in labels.names else _find_id(labels, ids, guesses)
    if options.label is not None:
        check_column(labels, options.label)
        if options.label == identity:
            raise BGCLError(f"{labels.name}: column '{identity}' cannot be both the id and the label.")
        return identity, options.label
    free = [name for name in labels.names if name != identity and name not in options.ignore]
    if not free:
        raise BGCLError(f"{labels.name} has no column of labels: give it one for the id and one for the label.")
    label = first_named(free, LABELS) or (free[0] if len(free) == 1 else _only_with_few_values(labels, free))
    unused = [name for name in free if name != label]
    guesses.append(
        f"{file_name(labels)}: the id of a node is '{identity}', its label is '{label}'"
        + (f"; not used: {', '.join(unused)}" if unused else "")
    )
    return identity, label


def _find_id(labels: Source, ids: Any, guesses: list[str]) -> str:
    """The column that is called id or is the first one, or another one if only that one has the ids of the nodes."""
    usual = usual_id(labels)
    share = share_known(labels, usual, ids)
    if share == 1:
        return usual
    every = {name: share_known(labels, name, ids) for name in labels.names if name != usual}
    best = max(every, key=lambda name: every[name], default=usual)
    if every.get(best, 0.0) > share and every[best] > 0.5:
        guesses.append(f"{file_name(labels)}: '{best}' has the ids of the edges, '{usual}' has not")
        return best
    if share == 0 and not has_known(labels, usual, ids):
        raise BGCLError(
            f"{labels.name}: no value of column '{usual}' is the id of a node. Name the column of ids with --id, or "
            "correct the ids."
        )
    return usual


def _only_with_few_values(labels: Source, names: list[str]) -> str:
    table = labels.read(names, texts=names)
    plausible = [name for name in names if _has_classes(table, name)]
    if len(plausible) != 1:
        raise BGCLError(
            f"{labels.name}: it is not clear which column is the label: {', '.join(plausible or names)}. Name it with "
            "--label."
        )
    return plausible[0]


def _has_classes(table: Table, name: str) -> bool:
    """Whether a column has at least two different values, at most 64, and each twice on average."""
    values = table.columns[name].drop_null()
    different = int(pc.count_distinct(values).as_py())
    return 2 <= different <= MOST_CLASSES and 2 * different <= len(values)
