"""The role of each column: which holds the ids, the ends of an edge, the label. Named by the user, or inferred."""

from collections.abc import Iterable, Sequence

from bgcl.data.columns import LeftOut
from bgcl.data.ends import find_ends
from bgcl.data.known_names import IDS, LABELS
from bgcl.data.long_form import LongForm
from bgcl.data.options import Options
from bgcl.data.recipe import Recipe
from bgcl.data.tables import Source, check_column
from bgcl.errors import BGCLError, nearest

_OF_NODES = ("id", "label", "node_type", "ignore", "categorical", "text")  # options that name a column of the nodes


def find_roles(
    edges: Source, nodes: Source | None, options: Options, guesses: list[str], *, others: Sequence[str] = ()
) -> Recipe:
    """A recipe with the role of each column, but without classes and attributes.

    Args:
        edges: the table of edges.
        nodes: the table of nodes, if there is one.
        options: the columns that the user names.
        guesses: a line is added to this list for each role that was inferred.
        others: options that name a column of another table, of labels or of features.
    """
    source, target = find_ends(edges, options)
    if not (options.source and options.target):
        more = "" if options.directed else " (--directed to use its direction)"
        guesses.append(f"an edge leads from '{source}' to '{target}'{more}")
    identity, label = None, None
    if nodes is not None:
        identity, label = _find_id_and_label(nodes, options, guesses, has_labels="label" not in others)
    for name in _OF_NODES:
        if nodes is None and getattr(options, name) and name not in others:
            option = name.replace("_", "-")
            raise BGCLError(f"{edges.name}: --{option} names a column of the nodes, but there is no table of nodes.")
    return Recipe(
        source, target, identity, label, None, (), nodes is None, options.skip_unknown, weight=options.weight or None,
        directed=options.directed, edge_type=options.edge_type or None, node_type=options.node_type or None,
        bipartite=bool(options.bipartite), exact=options.exact, delimiter=options.delimiter, header=options.header,
        no_header=options.no_header, decimal=options.decimal, many_labels=options.many_labels,
    )  # fmt: skip


def _find_id_and_label(nodes: Source, options: Options, guesses: list[str], has_labels: bool) -> tuple[str, str | None]:
    identity = options.id or usual_id(nodes)
    if options.id is None:
        guesses.append(f"a node's id is '{identity}'")
    free = [name for name in nodes.names if name != identity and name not in options.ignore]
    for name in (*options.ignore, *options.categorical, *options.text):
        check_column(nodes, name)
    if not has_labels:
        if own := first_named(free, LABELS):
            raise BGCLError(
                f"{nodes.name} has a column '{own}', but the labels are in a table of their own. Remove one of them, "
                f"or leave the column out with --ignore {own}."
            )
        return identity, None
    label = options.label or first_named(free, LABELS)
    if options.label is None:
        guesses.append(f"its label is '{label}'" if label else "nodes have no label")
    if identity == label:
        raise BGCLError(f"{nodes.name}: column '{label}' cannot be both the id and the label.")
    return identity, label


def usual_id(nodes: Source) -> str:
    """The column of ids by its name, else the first column."""
    return first_named(nodes.names, IDS) or nodes.names[0]


def first_named(names: Iterable[str], wanted: Sequence[str]) -> str | None:
    """The column with the first of some names, in upper or lower case."""
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in wanted if name in lower), None)


def check_roles(recipe: Recipe, edges: Source, nodes: Source | None, *, new: bool) -> None:
    """Raise an error if a table lacks a column that the recipe needs. `new`: no model was trained with it yet."""
    for name in recipe.columns_of_edges():
        check_column(edges, name)
    columns = [column for column in recipe.columns if not isinstance(column, LongForm)]
    if nodes is None:
        if columns and not recipe.structural:
            raise BGCLError(
                f"{edges.name}: the model was trained on nodes with columns, such as '{columns[0].name}'. "
                "Give the table of nodes too, with --nodes."
            )
        return
    if recipe.id is None:
        raise BGCLError(
            f"{nodes.name}: the model was trained without a table of nodes. If these are labels, give them with "
            "--labels; if not, leave out --nodes."
        )
    for name in (recipe.id, recipe.node_type or recipe.id):
        check_column(nodes, name)
    if recipe.label and recipe.label_id is None and new:  # a trained model needs no labels
        check_column(nodes, recipe.label)
    for column in columns:
        if column.name not in nodes.names and not isinstance(column, LeftOut) and not recipe.structural:
            raise BGCLError(
                f"{nodes.name} has no column '{column.name}', which the model was trained on. "
                f"{nearest(column.name, nodes.names)}"
            )
