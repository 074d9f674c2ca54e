"""Benchmark graphs by name, users' graphs from files, and the checks that both pass.

Names are imported when first used, so that listing data sets needs no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bgcl.data.catalogue import DATASETS, Dataset, find
    from bgcl.data.own import graph_from
    from bgcl.data.pyg import check_graph, read_npz
    from bgcl.data.store import Place, Verified, get, load, locate, verify

__all__ = [
    "DATASETS",
    "Dataset",
    "Place",
    "Verified",
    "check_graph",
    "find",
    "get",
    "graph_from",
    "load",
    "locate",
    "read_npz",
    "verify",
]

_MODULES = {
    "catalogue": ("DATASETS", "Dataset", "find"),
    "own": ("graph_from",),
    "pyg": ("check_graph", "read_npz"),
    "store": ("Place", "Verified", "get", "load", "locate", "verify"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
