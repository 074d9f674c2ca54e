"""The files of a graph: a folder with tables, single tables, or a GraphML file."""

from pathlib import Path

from bgcl.data import convert
from bgcl.data.adjacency import edges_of_matrix
from bgcl.data.border import readable
from bgcl.data.options import Options
from bgcl.data.packed_files import ABOUT
from bgcl.data.recipe import Recipe
from bgcl.data.tables import ENDINGS, ENDINGS_IN_WORDS, Form, Source, Sources, open_table
from bgcl.data.unused_options import check_files
from bgcl.errors import BGCLError, CannotWriteError

# The names of a table without the ending.
_STEMS = {"edges": ("edges",), "nodes": ("nodes",), "features": ("features",), "labels": ("labels", "target")}
NAMES = frozenset(stem for stems in _STEMS.values() for stem in stems)


def open_files(graph: Path, nodes: Path | None, labels: Path | None, said: Options | Recipe) -> Sources:
    """Open the tables of a graph.

    Args:
        graph: a folder, a table of edges, or a GraphML file.
        nodes: the table of nodes, if `graph` is a table of edges.
        labels: the table of labels.
        said: what the user says about how the files are written, now or at training.
    """
    found = _paths(graph, nodes, labels)
    if isinstance(said, Options):
        check_files(found | {"nodes": found["nodes"] or found["features"]}, said)
    if graph.suffix.lower() == ".graphml" and not graph.is_dir():
        if nodes is not None:
            raise BGCLError(f"{graph} already has nodes: leave out --nodes.")
        edge_frame, node_frame = _graphml(graph)
        return Sources(edge_frame, node_frame, _open(labels, "labels", said))
    if not graph.is_dir():
        return Sources(_open_edges(graph, said), _open(nodes, "nodes", said), _open(labels, "labels", said))
    if nodes is not None:
        raise BGCLError(f"{graph} is a folder with its own nodes: leave out --nodes, or name the file of edges.")
    if found["edges"] is None:
        raise BGCLError(f"{graph} has no file of edges: edges.csv, or another ending of {ENDINGS_IN_WORDS}.")
    sources = Sources(
        _open_edges(found["edges"], said), _open(found["nodes"], "nodes", said), _open(found["labels"], "labels", said),
        _open(found["features"], "nodes", said),
    )  # fmt: skip
    if sources.labels is not None or sources.features is not None:
        parts = {"the attributes": found["features"], "the nodes": found["nodes"], "the labels": found["labels"]}
        taken = ", ".join(f"{path.name} has {what}" for what, path in parts.items() if path is not None)
        sources.edges.inferred.insert(0, f"{found['edges'].name} has the edges, {taken}")
    return sources


def _paths(graph: Path, nodes: Path | None, labels: Path | None) -> dict[str, Path | None]:
    """The file of each table, None if there is none."""
    if not graph.is_dir():
        return {"edges": graph, "nodes": nodes, "features": None, "labels": labels}
    found = {part: find(graph, part) for part in _STEMS}
    return found if labels is None else found | {"labels": labels}


def find(folder: Path, part: str) -> Path | None:
    """The file of a folder with the edges, nodes, features or labels. Several are an error."""
    names = [f"{stem}{ending}" for stem in _STEMS[part] for ending in ENDINGS]
    paths = [folder / name for name in names if (folder / name).is_file()]
    if len(paths) > 1:
        raise BGCLError(f"{folder} has {len(paths)} files of {part}: {', '.join(p.name for p in paths)}. Keep one.")
    return paths[0] if paths else None


def refuse_graph(folder: Path) -> None:
    """Raise an error if a folder holds tables of a graph or a pack, which a graph beside them would hide."""
    names = [f"{stem}{ending}" for stem in sorted(NAMES) for ending in ENDINGS]
    for name in (ABOUT, *names):
        if (folder / name).is_file():
            raise CannotWriteError(f"{folder} already holds {name}. Name another folder, or remove it.")


def _open(path: Path | None, table: str, said: Options | Recipe) -> Source | None:
    return None if path is None else _open_as(path, table, said)


def _open_as(path: Path, table: str, said: Options | Recipe) -> Source:
    header = True if table in said.header else False if table in said.no_header else None
    return open_table(path, Form(table, said.delimiter, header, said.decimal))


def _open_edges(path: Path, said: Options | Recipe) -> Source:
    source = _open_as(path, "edges", said)
    if said.source in source.names or (isinstance(said, Options) and (said.source or said.target)):
        return source
    return edges_of_matrix(source)


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
