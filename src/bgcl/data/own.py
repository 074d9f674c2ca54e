"""Graphs of users: tables in files or a folder, GraphML, and objects in memory."""

import dataclasses
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from scipy.sparse import csr_matrix, issparse
from torch_geometric.data import Data

from bgcl.data import convert
from bgcl.data.border import readable
from bgcl.data.clean import clean
from bgcl.data.columns import Words
from bgcl.data.pyg import check_graph, to_data
from bgcl.data.reading import Reading, read
from bgcl.data.recipe import Recipe
from bgcl.data.roles import Options, TableOptions, given_options, make_options
from bgcl.data.tables import ENDINGS, Source, open_table
from bgcl.errors import BGCLError

log = logging.getLogger(__name__)


def read_files(
    graph: str | os.PathLike[str], nodes: str | os.PathLike[str] | None = None, options: Options | None = None,
    recipe: Recipe | None = None,
) -> Reading:  # fmt: skip
    """Read a graph from files.

    Args:
        graph: a folder with the tables `edges` and `nodes`, a table of edges, or a GraphML file.
        nodes: the table of nodes, if `graph` is a table of edges.
        options: the columns that the user names.
        recipe: the recipe of another graph, to read this graph in the same way.
    """
    with readable(graph):
        edge_source, node_source = _open(Path(graph), None if nodes is None else Path(nodes))
        result = read(edge_source, node_source, options, recipe)
    edges_file, nodes_file = str(Path(graph).resolve()), "" if nodes is None else str(Path(nodes).resolve())
    result.recipe = dataclasses.replace(result.recipe, edges_file=edges_file, nodes_file=nodes_file)
    result.data.recipe = result.recipe
    result.data.name = edges_file
    if nodes is None and Path(graph).is_file() and node_source is None:
        beside = _find(Path(graph).parent, "nodes")
        if len(beside) == 1:
            result.notes.append(
                f"{beside[0].name} in the same folder as {graph} is not used. To use it, name it with --nodes."
            )
    return result


def graph_from(edges: Any, nodes: Any = None, *, labels: Any = None, **options: Unpack[TableOptions]) -> Data:
    """Make a graph from frames, a NetworkX graph, matrices, a `Data`, or files.

    Columns that you do not name are inferred. What looks wrong with them is logged as a warning.

    Args:
        edges: one of

            - a frame of edges (pandas, polars, Arrow, or a dict of columns);
            - a NetworkX graph, of which each node attribute is a column;
            - an adjacency matrix `(N, N)` of SciPy or NumPy;
            - a PyTorch Geometric `Data`, which is checked;
            - a name or path, as in `bgcl.load`.
        nodes: a frame of nodes; with an adjacency matrix also a matrix of attributes `(N, F)`.
        labels: labels `(N,)` of any type, with a matrix of attributes. None where a label is missing.
        **options: `id`, `source`, `target`, `label`, `ignore`, `categorical`, `text`, `words` and `skip_unknown`, as in
            `bgcl.load`.

    Returns:
        A checked `Data` with `x` `(N, F)`, `edge_index` `(2, 2E)` in both directions, and `y` `(N,)` if there are
        labels, -1 where a label is missing. Unless it was a `Data` before, it also has `ids` and, if they are known,
        `attribute_names` and `classes`.

    Raises:
        BGCLError: if the type is not supported, a column is missing, or a value cannot be read.

    >>> import bgcl
    >>> people = {"id": ["ann", "bob", "eve"], "age": [31, 45, 27], "label": ["x", "y", None]}
    >>> data = bgcl.graph_from({"source": ["ann", "eve"], "target": ["bob", "bob"]}, people)
    >>> data.ids.tolist(), data.classes, data.y.tolist(), data.attribute_names
    (['ann', 'bob', 'eve'], ['x', 'y'], [0, 1, -1], ['age'])
    """
    if isinstance(edges, Data):
        if nodes is not None or labels is not None or options:
            raise BGCLError("A Data already has nodes and labels: leave out the other arguments.")
        return check_graph(edges)
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
    what, unneeded = "", set[str]()
    if convert.is_matrix(edges):
        what, unneeded = "With an adjacency matrix, nodes are the numbers of its rows", {"id", *_OF_EDGES}
        if nodes is None or convert.is_matrix(nodes):
            what, unneeded = "A matrix has no columns to name", set(given)
    elif convert.is_networkx(edges):
        what, unneeded = "A NetworkX graph already has edges between its nodes", set(_OF_EDGES)
        if nodes is not None:
            raise BGCLError("A NetworkX graph already has nodes: leave out 'nodes'.")
    for name in given:
        if name in unneeded:
            raise BGCLError(f"{what}: leave out '{name}'.")


_OF_EDGES = ("source", "target", "skip_unknown")


def check_used(reading: Reading, options: Mapping[str, Any]) -> None:
    """Refuse options for tables that had nothing to act on."""
    given = given_options(options)
    if "skip_unknown" in given and reading.nodes is None:
        raise BGCLError("There is no table of nodes, so no node is unknown: leave out --skip-unknown.")
    if "words" in given and not any(isinstance(column, Words) for column in reading.recipe.columns):
        raise BGCLError("No column is text, so there are no words to limit: leave out --words, or name it with --text.")


def _in_memory(edges: Any, nodes: Any, labels: Any, options: Options) -> Reading | Data:
    if convert.is_matrix(edges):
        if nodes is None or convert.is_matrix(nodes):
            return _matrices(edges, nodes, labels)
        if labels is None:
            frame, row_numbers = convert.with_row_numbers(convert.frame(nodes, "the nodes"), edges.shape[0])
            return read(convert.matrix_frame(edges), frame, dataclasses.replace(options, id=row_numbers))
    if labels is not None:
        raise BGCLError("'labels' needs a matrix of attributes. For a frame, name the column of labels with 'label'.")
    if convert.is_networkx(edges):
        edge_frame, node_frame = convert.networkx_frames(edges)
        chosen = dataclasses.replace(options, source="source", target="target", id=options.id or node_frame.names[0])
        return read(edge_frame, node_frame, chosen)
    if not convert.is_frame(edges) or not (nodes is None or convert.is_frame(nodes)):
        unsupported = edges if not convert.is_frame(edges) else nodes
        raise BGCLError(
            f"Cannot make a graph from {type(unsupported).__name__}. Use frames, a NetworkX graph, a SciPy matrix or "
            "a Data."
        )
    node_source = None if nodes is None else convert.frame(nodes, "the nodes")
    return read(convert.frame(edges, "the edges"), node_source, options)


def _matrices(adjacency: Any, attributes: Any, labels: Any) -> Data | Reading:
    edges, count = convert.matrix_edges(adjacency)
    if attributes is None:
        if labels is not None:
            raise BGCLError("'labels' needs a matrix of attributes. Give one, or a frame of nodes.")
        nodes, row_numbers = convert.with_row_numbers(convert.frame({"row": np.arange(count)}, "the nodes"), count)
        return read(convert.matrix_frame(adjacency), nodes, Options(id=row_numbers, ignore=("row",)))
    classes, numbers = None, None
    if labels is not None:
        from bgcl.data.labels import encode_labels
        from bgcl.data.tables import Table

        table = Table("labels", convert.frame({"labels": labels}, "labels").table, 0, False)
        numbers, classes = encode_labels(table, "labels", None, [], may_be_empty=False)
    matrix = csr_matrix(attributes) if issparse(attributes) else csr_matrix(np.asarray(attributes))
    if matrix.shape[0] != count:
        raise BGCLError(f"The matrix of attributes has {matrix.shape[0]} rows, but there are {count} nodes.")
    data = to_data(clean(edges, matrix, numbers, {}, where="the matrix"))
    data.ids = np.arange(count)
    if classes is not None:
        data.classes = list(classes)
    return data


def read_again(recipe: Recipe, graph: str | None = None, nodes: str | None = None) -> Reading:
    """Read the graph of a recipe again, or other files in the same way."""
    if graph is None:
        if not recipe.edges_file:
            raise BGCLError("The model was trained on a graph in memory. Name the files of a graph with --graph.")
        graph, nodes = recipe.edges_file, recipe.nodes_file or None
    return read_files(graph, nodes, recipe=recipe)


def log_notes(result: Reading) -> None:
    """Log what looks wrong with the tables of a graph."""
    for note in result.notes:
        log.warning("%s", note)


def _open(graph: Path, nodes: Path | None) -> tuple[Source, Source | None]:
    if graph.is_dir():
        if nodes is not None:
            raise BGCLError(f"{graph} is a folder with its own nodes: leave out --nodes, or name the file of edges.")
        found = {part: _find(graph, part) for part in ("edges", "nodes")}
        for part, paths in found.items():
            if len(paths) > 1:
                raise BGCLError(
                    f"{graph} has {len(paths)} files of {part}: {', '.join(p.name for p in paths)}. Keep one."
                )
        if not found["edges"]:
            raise BGCLError(f"{graph} has no file of edges: edges.csv, or another ending of {', '.join(ENDINGS)}.")
        return open_table(found["edges"][0]), open_table(found["nodes"][0]) if found["nodes"] else None
    if graph.suffix.lower() == ".graphml":
        if nodes is not None:
            raise BGCLError(f"{graph} already has nodes: leave out --nodes.")
        return _graphml(graph)
    return open_table(graph), None if nodes is None else open_table(nodes)


def _find(folder: Path, stem: str) -> list[Path]:
    return [folder / f"{stem}{ending}" for ending in ENDINGS if (folder / f"{stem}{ending}").is_file()]


def _graphml(path: Path) -> tuple[Source, Source]:
    from xml.etree.ElementTree import iterparse

    import networkx

    if not path.is_file():
        raise BGCLError(f"There is no file {path}.")
    with readable(path, "Correct it, or write the graph anew as GraphML."):
        # NetworkX takes what is missing for a node called "None", and is silent about unknown, double and nested nodes.
        graphs, ids, ends = 0, set[str](), set[str]()
        for _, element in iterparse(path):
            kind = element.tag.rpartition("}")[2]
            graphs += kind == "graph"
            if kind == "edge" and not {"source", "target"} <= element.attrib.keys():
                raise BGCLError(f"{path}: an edge has no source or no target. Give every edge both.")
            if kind == "node" and "id" not in element.attrib:
                raise BGCLError(f"{path}: a node has no id. Give every node an id.")
            if kind == "edge":
                ends |= {element.attrib["source"], element.attrib["target"]}
            elif kind == "node" and element.attrib["id"] in ids:
                raise BGCLError(
                    f"{path}: the node '{element.attrib['id']}' is there twice. Give every node an id of its own."
                )
            elif kind == "node":
                ids.add(element.attrib["id"])
            element.clear()
        if graphs > 1:
            raise BGCLError(f"{path} has {graphs} graphs. Write each of them, also a nested one, as a file of its own.")
        if unknown := ends - ids:
            raise BGCLError(f"{path}: an edge leads to the node '{min(unknown)}', which is not there. Add the node.")
        graph = networkx.read_graphml(path)
        return convert.networkx_frames(graph, str(path))
