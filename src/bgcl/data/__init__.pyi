from .catalog import DATASETS, Dataset, find
from .facts import GraphFacts
from .inspection import Inspection
from .pyg import check_graph, read_npz
from .recipe import Recipe
from .store import Place, get, locate
from .verification import Verified, verify

__all__ = [
    "DATASETS",
    "Dataset",
    "GraphFacts",
    "Inspection",
    "Place",
    "Recipe",
    "Verified",
    "check_graph",
    "find",
    "get",
    "locate",
    "read_npz",
    "verify",
]
