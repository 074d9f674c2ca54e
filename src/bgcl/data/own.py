"""A user's own graph: two tables in files or a folder, GraphML, a `.npz`, or what is in memory."""

import dataclasses
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from torch_geometric.data import Data

from bgcl.data import convert
from bgcl.data.clean import clean
from bgcl.data.pyg import check_graph, to_data
from bgcl.data.recipe import Options, Reading, Recipe, read
from bgcl.data.tables import ENDINGS, Source, open_table
from bgcl.errors import BGCLError, nearest

log = logging.getLogger(__name__)


def read_files(
    graph: str | os.PathLike[str], nodes: str | os.PathLike[str] | None = None, options: Options | None = None,
    recipe: Recipe | None = None,
) -> Reading:  # fmt: skip
    """A folder, a file of edges with or without one of nodes, or a GraphML file."""
    edge_source, node_source = _open(Path(graph), None if nodes is None else Path(nodes))
    reading = read(edge_source, node_source, options, recipe)
    edges_file, nodes_file = str(Path(graph).resolve()), "" if nodes is None else str(Path(nodes).resolve())
    reading.recipe = dataclasses.replace(reading.recipe, edges_file=edges_file, nodes_file=nodes_file)
    reading.data.recipe = reading.recipe
    reading.data.name = edges_file
    if nodes is None and Path(graph).is_file() and node_source is None:
        beside = _find(Path(graph).parent, "nodes")
        if len(beside) == 1:
            reading.notes.append(f"{beside[0].name} lies beside {graph} and is not used. Name it with --nodes.")
    return reading


def graph_from(edges: Any, nodes: Any = None, *, labels: Any = None, **options: Any) -> Data:
    """A graph from whatever holds it, as a checked `Data` that carries `ids`, `classes` and `attributes`.

    - two frames (pandas, polars, Arrow, or a dict of columns), edges and nodes, or the edges alone;
    - a NetworkX graph, its nodes' attributes being columns;
    - a SciPy or NumPy matrix of connections, with a frame of nodes, or with a matrix of attributes and `labels`;
    - a PyTorch Geometric `Data`;
    - files, as `bgcl.load` takes them.

    Options are those of `bgcl.load`: `id`, `source`, `target`, `label`, `ignore`, `categorical`, `text`, `words`,
    `skip_unknown`.

    >>> import bgcl
    >>> people = {"id": ["ann", "bob", "eve"], "age": [31, 45, 27], "label": ["x", "y", None]}
    >>> data = bgcl.graph_from({"source": ["ann", "eve"], "target": ["bob", "bob"]}, people)
    >>> data.ids.tolist(), data.classes, data.y.tolist(), data.attributes
    (['ann', 'bob', 'eve'], ['x', 'y'], [0, 1, -1], ['age'])
    """
    if isinstance(edges, Data):
        if nodes is not None or labels is not None or options:
            raise BGCLError("A Data has its nodes and labels in it already: leave out the other arguments.")
        return check_graph(edges)
    if isinstance(edges, str | os.PathLike):
        from bgcl.data.store import load

        return load(edges, nodes, **options)
    reading = _in_memory(edges, nodes, labels, make_options(**options))
    return reading if isinstance(reading, Data) else told(reading)


def _in_memory(edges: Any, nodes: Any, labels: Any, options: Options) -> Reading | Data:
    if convert.is_matrix(edges):
        if nodes is None or convert.is_matrix(nodes):
            return _matrices(edges, nodes, labels)
        if labels is None:
            frame, identity = convert.with_row_numbers(convert.frame(nodes, "the nodes"), edges.shape[0])
            return read(convert.matrix_frame(edges), frame, dataclasses.replace(options, id=identity))
    if labels is not None:
        raise BGCLError("'labels' goes with a matrix of attributes. In a frame, name the column with 'label'.")
    if convert.is_networkx(edges):
        edge_frame, node_frame = convert.networkx_frames(edges)
        chosen = dataclasses.replace(options, source="source", target="target", id=options.id or node_frame.names[0])
        return read(edge_frame, node_frame, chosen)
    if not convert.is_frame(edges) or not (nodes is None or convert.is_frame(nodes)):
        strange = edges if not convert.is_frame(edges) else nodes
        raise BGCLError(
            f"Cannot make a graph of {type(strange).__name__}: give frames, a NetworkX graph, a SciPy matrix or a Data."
        )
    node_source = None if nodes is None else convert.frame(nodes, "the nodes")
    return read(convert.frame(edges, "the edges"), node_source, options)


def _matrices(adjacency: Any, attributes: Any, labels: Any) -> Data | Reading:
    edges, count = convert.matrix_edges(adjacency)
    if attributes is None:
        if labels is not None:
            raise BGCLError("'labels' goes with a matrix of attributes. Give one, or a frame of nodes.")
        nodes, identity = convert.with_row_numbers(convert.frame({"row": np.arange(count)}, "the nodes"), count)
        return read(convert.matrix_frame(adjacency), nodes, Options(id=identity, ignore=("row",)))
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
    """The graph of a recipe, or another in the same way."""
    if graph is None:
        if not recipe.edges_file:
            raise BGCLError("The graph was in memory when the model was trained. Name its files with --graph.")
        graph, nodes = recipe.edges_file, recipe.nodes_file or None
    return read_files(graph, nodes, recipe=recipe)


def make_options(**options: Any) -> Options:
    """Options by name; a single column may be named without a list."""
    fields = [field.name for field in dataclasses.fields(Options)]
    for name, value in options.items():
        if name not in fields:
            raise BGCLError(f"Unknown option '{name}'. {nearest(name, fields)}")
        if name in ("ignore", "categorical", "text"):
            options[name] = (value,) if isinstance(value, str) else tuple(value or ())
    return Options(**options)


def told(reading: Reading) -> Data:
    """The graph, its notes in the log."""
    for note in reading.notes:
        log.warning("%s", note)
    return reading.data


def _open(graph: Path, nodes: Path | None) -> tuple[Source, Source | None]:
    if graph.is_dir():
        if nodes is not None:
            raise BGCLError(f"{graph} is a folder, which has its nodes: leave out --nodes, or name the file of edges.")
        found = {part: _find(graph, part) for part in ("edges", "nodes")}
        for part, paths in found.items():
            if len(paths) > 1:
                raise BGCLError(f"{graph} has {len(paths)} files of {part}: {', '.join(p.name for p in paths)}.")
        if not found["edges"]:
            raise BGCLError(f"{graph} has no file of edges: edges.csv or another that ends in {', '.join(ENDINGS)}.")
        return open_table(found["edges"][0]), open_table(found["nodes"][0]) if found["nodes"] else None
    if graph.suffix.lower() == ".graphml":
        if nodes is not None:
            raise BGCLError(f"{graph} has its nodes in it: leave out --nodes.")
        return _graphml(graph)
    return open_table(graph), None if nodes is None else open_table(nodes)


def _find(folder: Path, stem: str) -> list[Path]:
    return [folder / f"{stem}{ending}" for ending in ENDINGS if (folder / f"{stem}{ending}").is_file()]


def _graphml(path: Path) -> tuple[Source, Source]:
    from xml.etree.ElementTree import ParseError

    import networkx

    if not path.is_file():
        raise BGCLError(f"There is no file {path}.")
    try:
        graph = networkx.read_graphml(path)
    except (networkx.NetworkXException, ParseError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise BGCLError(f"{path} is not GraphML that can be read ({' '.join(str(error).split())[:160]}).") from error
    return convert.networkx_frames(graph, str(path))
