"""Read the Planetoid release (Yang et al., 2016): eight files per graph, seven of them pickles made by Python 2.

Rows of `allx` come first, then the test nodes. `test.index` has the node of each row of `tx`. If it skips a number
(isolated test nodes of Citeseer), that node has no attributes, no mask, and label 0, as in all copies of the data.
"""

import collections
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, vstack

from bgcl.data.clean import Array, CleanGraph, clean
from bgcl.errors import BGCLError

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALIDATION_NODES = 500


class _Csr:
    """Replaces SciPy's class: it stores the pickled state, so that no code of SciPy runs on it."""

    state: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state


class RestrictedUnpickler(pickle.Unpickler):
    """Builds arrays, dictionaries and lists, and refuses everything else: a pickle can call any function by name."""

    allowed: ClassVar[Mapping[tuple[str, str], Any]] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        # Its module depends on the version of NumPy, but how to pickle an array always names it.
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("scipy.sparse.csr", "csr_matrix"): _Csr,
        ("collections", "defaultdict"): collections.defaultdict,
        ("__builtin__", "list"): list,
    }

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it loads {module}.{name}, which is not allowed") from None


def read(name: str, folder: Path) -> CleanGraph:
    """Read the graph from the files `ind.<name>.<part>` in a folder."""
    where = f"The {name} release in {folder}"
    try:
        parts = {part: _unpickle(folder / f"ind.{name}.{part}") for part in PARTS if part != "test.index"}
        test = np.loadtxt(folder / f"ind.{name}.test.index", dtype=np.int64, ndmin=1)
        return _assemble(parts, test, where)
    except BGCLError:
        raise
    except FileNotFoundError as error:
        raise BGCLError(f"There is no file {error.filename}. A release has all of {', '.join(PARTS)}.") from error
    except Exception as error:  # a damaged pickle can raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BGCLError(f"{where} is damaged ({reason}). Delete it and download it again.") from error


def _unpickle(path: Path) -> Any:
    with path.open("rb") as file:
        value = RestrictedUnpickler(file, encoding="latin1").load()
    if isinstance(value, _Csr):
        state = value.state
        shape = state["_shape"] if "_shape" in state else state["shape"]
        matrix = csr_matrix((state["data"], state["indices"], state["indptr"]), shape=shape)
        matrix.check_format(full_check=True)
        return matrix
    return value


def _assemble(parts: Mapping[str, Any], test: Array, where: str) -> CleanGraph:
    known, labeled = parts["allx"].shape[0], parts["y"].shape[0]
    if test.min() < known or test.size != parts["tx"].shape[0]:
        raise BGCLError(f"{where} is damaged (test.index does not fit tx and allx). Delete it and download it again.")
    nodes = int(test.max()) + 1
    # Row i of [allx; tx] belongs to node place[i]. Nodes without a row have no attributes.
    place = np.concatenate([np.arange(known), test])
    stacked = vstack([parts["allx"], parts["tx"]]).tocoo()
    attributes = csr_matrix((stacked.data, (place[stacked.row], stacked.col)), shape=(nodes, stacked.shape[1]))
    onehot = np.zeros((nodes, parts["ally"].shape[1]), dtype=np.int64)
    onehot[place] = np.concatenate([parts["ally"], parts["ty"]])
    labels = onehot.argmax(axis=1)
    pairs = [(node, other) for node, others in parts["graph"].items() for other in others]
    masks = {
        "train_mask": np.arange(nodes) < labeled,
        "val_mask": (np.arange(nodes) >= labeled) & (np.arange(nodes) < labeled + VALIDATION_NODES),
        "test_mask": np.isin(np.arange(nodes), test),
    }
    return clean(np.array(pairs, dtype=np.int64).reshape(-1, 2).T, attributes, labels, masks, where=where)
