"""The graphs of the experiments: data sets of the catalog, and others that have to be in the folder `$BGCL_DATA`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bgcl.data import store
from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from torch_geometric.data import Data

# Graphs that are not in the catalog, and their files: an `.npz`, or tables of edges and of nodes.
FILES = {
    "blogcatalog": ("blogcatalog.npz",),
    "actor": ("actor.npz",),
    "tolokers": ("tolokers.npz",),
    "lastfm": ("lastfm/edges.csv", "lastfm/target.csv"),
}


def check_graph_is_here(name: str) -> None:
    """Find a graph, and download it if it is in the catalog.

    Raises:
        BGCLError: there is no such graph on this machine, and it cannot be downloaded.
    """
    if name in FILES:
        _paths(name)
    else:
        store.get(name, quiet=True)


def open_graph(name: str) -> "Data":
    """Load a graph by its name.

    Raises:
        BGCLError: the graph is missing or damaged.
    """
    if name not in FILES:
        return store.load(name, quiet=True)
    first, *nodes = _paths(name)
    return store.load(first, nodes[0], quiet=True, label="target") if nodes else store.load(first, quiet=True)


def _paths(name: str) -> list[Path]:
    """The files of a graph that is not in the catalog."""
    folder = os.environ.get("BGCL_DATA")
    if not folder:
        raise BGCLError(f"{name} is not in the catalog. Set $BGCL_DATA to a folder with {' and '.join(FILES[name])}.")
    paths = [Path(folder) / file for file in FILES[name]]
    for path in paths:
        if not path.is_file():
            raise BGCLError(f"{path} is missing. Put it there, or set $BGCL_DATA to the folder that has it.")
    return paths
