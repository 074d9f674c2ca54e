"""Graphs of users: tables in files or a folder, GraphML, and objects in memory."""

import dataclasses
import logging
import os
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from scipy.sparse import csr_matrix, issparse
from torch_geometric.data import Data, HeteroData

from bgcl.arguments import flag
from bgcl.data import convert
from bgcl.data.border import readable
from bgcl.data.clean import clean
from bgcl.data.folder import find, open_files
from bgcl.data.given_edges import checked_edges
from bgcl.data.hetero import as_one_graph
from bgcl.data.options import Options, TableOptions, given_options, make_options
from bgcl.data.pyg import check_graph, to_data
from bgcl.data.reading import Reading, read
from bgcl.data.recipe import Recipe
from bgcl.data.tables import Sources
from bgcl.data.unused_options import OF_FILES, check_used
from bgcl.data.weights import checked_weights, is_constant
from bgcl.errors import BGCLError

log = logging.getLogger(__name__)


def read_files(
    graph: str | os.PathLike[str], nodes: str | os.PathLike[str] | None = None, options: Options | None = None,
    recipe: Recipe | None = None, labels: str | os.PathLike[str] | None = None,
) -> Reading:  # fmt: skip
    """Read a graph from files.

    Args:
        graph: a folder with the tables `edges`, `nodes` or `features`, and `labels` or `target`; a table of edges, or a
            GraphML file.
        nodes: the table of nodes, if `graph` is a table of edges.
        options: what the user says about the tables.
        recipe: the recipe of another graph, to read this graph in the same way.
        labels: the table of labels, if they are not in the folder or the table of nodes.
    """
    node_path, label_path = (None if path is None else Path(path) for path in (nodes, labels))
    with readable(graph):
        sources = open_files(Path(graph), node_path, label_path, recipe or options or Options())
        result = read(sources, options, recipe)
    files = ["" if path is None else str(path.resolve()) for path in (Path(graph), node_path, label_path)]
    result.recipe = dataclasses.replace(result.recipe, edges_file=files[0], nodes_file=files[1], labels_file=files[2])
    result.data.recipe = result.recipe
    result.data.name = files[0]
    if nodes is None and Path(graph).is_file() and sources.nodes is None:
        for part, option in (("nodes", "nodes"), ("features", "nodes"), ("labels", "labels")):
            beside = None if option == "labels" and labels is not None else find(Path(graph).parent, part)
            if beside is not None and beside != Path(graph):
                result.notes.append(
                    f"{beside.name} in the same folder as {graph} is not used. To use it, name it with --{option}."
                )
    return result


def graph_from(edges: Any, nodes: Any = None, *, labels: Any = None, **options: Unpack[TableOptions]) -> Data:
    """Make a graph from frames, a NetworkX graph, matrices, a `Data`, or files.

    Columns that you do not name are inferred. What looks wrong with them is logged as a warning.

    Args:
        edges: one of

            - a frame of edges (pandas, polars, Arrow, or a dict of columns);
            - a NetworkX graph, of which each attribute of a node or an edge is a column;
            - an adjacency matrix `(N, N)` of SciPy or NumPy, whose values are the weights of the edges;
            - a PyTorch Geometric `Data`, which is checked, or `HeteroData`, which becomes one graph;
            - a name or path, as in `bgcl.load`.
        nodes: a frame of nodes; with an adjacency matrix also a matrix of attributes `(N, F)`.
        labels: labels `(N,)` of any type, with a matrix of attributes. None where a label is missing.
        **options: `id`, `source`, `target`, `label`, `ignore` and the others of `bgcl.load`.

    Returns:
        A checked `Data` with `x` `(N, F)`, `edge_index` `(2, 2E)` in both directions, `edge_weight` `(2E,)` if edges
        have weights, and `y` `(N,)` if there are labels, -1 where a label is missing. Unless it was a `Data` before, it
        also has `ids` and, if they are known, `attribute_names` and `classes`.

    Raises:
        BGCLError: if the type is not supported, a column is missing, or a value cannot be read.

    >>> import bgcl
    >>> people = {"id": ["ann", "bob", "eve"], "age": [31, 45, 27], "label": ["x", "y", None]}
    >>> data = bgcl.graph_from({"source": ["ann", "eve"], "target": ["bob", "bob"]}, people)
    >>> data.ids.tolist(), data.classes, data.y.tolist(), data.attribute_names
    (['ann', 'bob', 'eve'], ['x', 'y'], [0, 1, -1], ['age'])
    """
    if isinstance(edges, Data | HeteroData):
        given = given_options(options)
        if nodes is not None or labels is not None or given.keys() - {"directed"}:
            raise BGCLError("A Data already has nodes and labels: leave out the other arguments, except 'directed'.")
        data = as_one_graph(edges) if isinstance(edges, HeteroData) else edges
        return check_graph(data, directed=flag("directed", given.get("directed", False)))
    if isinstance(edges, str | os.PathLike):
        from bgcl.data.store import load

        if labels is not None:
            raise BGCLError("'labels' needs matrices. In a table, name the column of labels with 'label'.")
        return load(edges, nodes, **options)
    _check_needed(edges, nodes, given_options(options))
    with readable("The graph", "Check the types of its columns and matrices."):
        made = _in_memory(edges, nodes, labels, make_options(**options))
    if isinstance(made, Data):
        return made
    check_used(made, options)
    log_notes(made)
    return made.data


def _check_needed(edges: Any, nodes: Any, given: dict[str, Any]) -> None:
    """Refuse options that a graph in memory has no use for."""
    what, unneeded = "Only a file is written in one way or another", {*OF_FILES}
    if convert.is_matrix(edges):
        what, unneeded = "With an adjacency matrix, nodes are the numbers of its rows", {"id", *_OF_EDGES, *OF_FILES}
        if nodes is None or convert.is_matrix(nodes):
            what, unneeded = "A matrix has no columns to name", {*given} - {"directed"}
    elif convert.is_networkx(edges):
        what, unneeded = "A NetworkX graph already has edges between its nodes", {*_OF_EDGES, *OF_FILES}
        if nodes is not None:
            raise BGCLError("A NetworkX graph already has nodes: leave out 'nodes'.")
    for name in given:
        if name in unneeded:
            raise BGCLError(f"{what}: leave out '{name}'.")


_OF_EDGES = ("source", "target", "skip_unknown")


def _in_memory(edges: Any, nodes: Any, labels: Any, options: Options) -> Reading | Data:
    if convert.is_matrix(edges):
        if nodes is None or convert.is_matrix(nodes):
            return _matrices(edges, nodes, labels, directed=options.directed)
        if labels is None:
            frame, row_numbers = convert.with_row_numbers(convert.frame(nodes, "the nodes"), edges.shape[0])
            return read(Sources(convert.matrix_frame(edges), frame), dataclasses.replace(options, id=row_numbers))
    if labels is not None:
        raise BGCLError("'labels' needs a matrix of attributes. For a frame, name the column of labels with 'label'.")
    if convert.is_networkx(edges):
        edge_frame, node_frame = convert.networkx_frames(edges)
        chosen = dataclasses.replace(options, source="source", target="target", id=options.id or node_frame.names[0])
        return read(Sources(edge_frame, node_frame), chosen)
    if not convert.is_frame(edges) or not (nodes is None or convert.is_frame(nodes)):
        unsupported = edges if not convert.is_frame(edges) else nodes
        raise BGCLError(
            f"Cannot make a graph from {type(unsupported).__name__}. Use frames, a NetworkX graph, a SciPy matrix or "
            "a Data."
        )
    node_source = None if nodes is None else convert.frame(nodes, "the nodes")
    return read(Sources(convert.frame(edges, "the edges"), node_source), options)


def _matrices(adjacency: Any, attributes: Any, labels: Any, *, directed: bool) -> Data | Reading:
    edges, weights, count = convert.matrix_edges(adjacency)
    if attributes is None:
        if labels is not None:
            raise BGCLError("'labels' needs a matrix of attributes. Give one, or a frame of nodes.")
        nodes, row_numbers = convert.with_row_numbers(convert.frame({"row": np.arange(count)}, "the nodes"), count)
        options = Options(id=row_numbers, ignore=("row",), directed=directed)
        return read(Sources(convert.matrix_frame(adjacency), nodes), options)
    classes, numbers = None, None
    if labels is not None:
        from bgcl.data.labels import encode_labels
        from bgcl.data.missing_labels import LabelRules
        from bgcl.data.tables import Table

        table = Table("labels", convert.frame({"labels": labels}, "labels").table, 0, False)
        rules = LabelRules(missing=(), exact=True)  # a missing label is None
        numbers, classes = encode_labels(table, "labels", None, [], may_be_empty=False, rules=rules)
    matrix = csr_matrix(attributes) if issparse(attributes) else csr_matrix(np.asarray(attributes))
    if matrix.shape[0] != count:
        raise BGCLError(f"The matrix of attributes has {matrix.shape[0]} rows, but there are {count} nodes.")
    data = to_data(clean(edges, matrix, numbers, {}, where="the matrix"))
    weights = checked_weights(weights, edges.shape[1], "the matrix")
    data.edge_index = torch.from_numpy(edges)
    if not is_constant(weights):
        data.edge_weight = torch.from_numpy(weights)
    data.update(checked_edges(data, count, directed=directed))
    data.ids = np.arange(count)
    if classes is not None:
        data.classes = list(classes)
    return data


def read_again(
    recipe: Recipe, graph: str | None = None, nodes: str | None = None, labels: str | None = None
) -> Reading:
    """Read the graph of a recipe again, or other files in the same way."""
    if graph is None:
        if not recipe.edges_file:
            raise BGCLError("The model was trained on a graph in memory. Name the files of a graph with --graph.")
        graph, nodes, labels = recipe.edges_file, recipe.nodes_file or None, recipe.labels_file or None
    return read_files(graph, nodes, recipe=recipe, labels=labels)


def log_notes(result: Reading) -> None:
    """Log what looks wrong with the tables of a graph."""
    for note in result.notes:
        log.warning("%s", note)
