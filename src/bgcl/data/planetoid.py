"""The Planetoid release (Yang et al., 2016): eight files per graph, seven of them pickles made by Python 2.

Rows of `allx` come first, then the test nodes. `test.index` says which node each row of `tx` is. Where it skips a
number (Citeseer's isolated test nodes), that node exists with zero attributes, belongs to no mask, and has label 0, as
in every copy of the release that is in use.
"""

import collections
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, vstack

from bgcl.data.clean import Array, Graph, clean
from bgcl.errors import BGCLError

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALIDATION_NODES = 500


class _Csr:
    """Stands in for scipy's class: it keeps the pickled state and runs none of scipy's code on it."""

    state: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state


class RestrictedUnpickler(pickle.Unpickler):
    """Builds arrays, dictionaries and lists, and refuses every other name: a pickle can call whatever it names."""

    allowed: ClassVar[Mapping[tuple[str, str], Any]] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        # NumPy moved this function between versions; an array's own recipe leads to it in all of them.
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("scipy.sparse.csr", "csr_matrix"): _Csr,
        ("collections", "defaultdict"): collections.defaultdict,
        ("__builtin__", "list"): list,
    }

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is refused") from None


def read(name: str, folder: Path) -> Graph:
    """Assemble the graph from `folder`'s files `ind.<name>.<part>`."""
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
        raise BGCLError(f"{where} is damaged ({reason}). Delete it and get it again.") from error


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


def _assemble(parts: Mapping[str, Any], test: Array, where: str) -> Graph:
    known, labelled = parts["allx"].shape[0], parts["y"].shape[0]
    if test.min() < known or test.size != parts["tx"].shape[0]:
        raise BGCLError(f"{where} is damaged (test.index does not fit tx and allx). Delete it and get it again.")
    nodes = int(test.max()) + 1
    # Row i of [allx; tx] belongs at node place[i]; rows that nothing is placed in stay empty.
    place = np.concatenate([np.arange(known), test])
    stacked = vstack([parts["allx"], parts["tx"]]).tocoo()
    attributes = csr_matrix((stacked.data, (place[stacked.row], stacked.col)), shape=(nodes, stacked.shape[1]))
    onehot = np.zeros((nodes, parts["ally"].shape[1]), dtype=np.int64)
    onehot[place] = np.concatenate([parts["ally"], parts["ty"]])
    labels = onehot.argmax(axis=1)
    pairs = [(node, other) for node, others in parts["graph"].items() for other in others]
    masks = {
        "train_mask": np.arange(nodes) < labelled,
        "val_mask": (np.arange(nodes) >= labelled) & (np.arange(nodes) < labelled + VALIDATION_NODES),
        "test_mask": np.isin(np.arange(nodes), test),
    }
    return clean(np.array(pairs, dtype=np.int64).reshape(-1, 2).T, attributes, labels, masks, where=where)
