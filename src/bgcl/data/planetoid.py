"""Read the Planetoid release (Yang et al., 2016): eight files per graph, seven of them pickles made by Python 2.

Rows of `allx` come first, then the test nodes. `test.index` has the node of each row of `tx`. If it skips a number
(isolated test nodes of Citeseer), that node has no attributes, no mask, and label 0, as in all copies of the data.
"""

import io
import pickle
import pickletools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from scipy.sparse import csr_matrix, vstack

from bgcl.data.border import readable
from bgcl.data.clean import Array, CleanGraph, clean
from bgcl.errors import BGCLError

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALIDATION_NODES = 500
_REMEDY = "Delete it and download it again."


class _State:
    """Replaces a class of NumPy or SciPy: it stores the pickled state, so that none of their code runs on it."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments, self.state = arguments, cast(Any, None)

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def numpy(self) -> Any:
        """The value that was pickled."""
        raise NotImplementedError


class _Type(_State):
    """A NumPy type: its code, such as `f8`, and in the second place of its state the order of bytes."""

    def numpy(self) -> np.dtype[Any]:
        code = str(self.arguments[0])
        if not re.fullmatch(r"[biuf][1248]", code):
            raise ValueError(f"values of type {code[:20]}")
        return np.dtype(code).newbyteorder("<" if self.state is None or self.state[1] not in "<>" else self.state[1])


class _Array(_State):
    """An array: its state has a version, its shape, its type, the order of its axes, and its bytes."""

    def numpy(self) -> Array:
        _, shape, kind, columns_first, raw = self.state
        content = raw.encode("latin1") if isinstance(raw, str) else bytes(raw)
        return np.frombuffer(content, kind.numpy()).reshape(shape, order="F" if columns_first else "C")


class _Csr(_State):
    """A sparse matrix: its state has the arrays of its entries."""

    def numpy(self) -> csr_matrix:
        shape = self.state["_shape"] if "_shape" in self.state else self.state["shape"]
        arrays = tuple(self.state[name].numpy() for name in ("data", "indices", "indptr"))
        matrix = csr_matrix(arrays, shape=shape)
        matrix.check_format(full_check=True)
        return matrix


def _new_dictionary(factory: object) -> dict[Any, Any]:
    """Replaces `defaultdict(list)`: copies of long lists or dictionaries cannot be made."""
    return {}


class RestrictedUnpickler(pickle.Unpickler):
    """Builds arrays, dictionaries and lists, and refuses everything else: a pickle can call any function by name."""

    allowed: ClassVar[Mapping[tuple[str, str], Any]] = {
        ("numpy", "ndarray"): "an array",
        ("numpy", "dtype"): _Type,
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("scipy.sparse.csr", "csr_matrix"): _Csr,
        ("collections", "defaultdict"): _new_dictionary,
        ("__builtin__", "list"): "a list",
    }

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it loads {module}.{name}, which is not allowed") from None


def read(name: str, folder: Path) -> CleanGraph:
    """Read the graph from the files `ind.<name>.<part>` in a folder."""
    where = f"The {name} release in {folder}"
    files = {part: folder / f"ind.{name}.{part}" for part in PARTS}
    for path in files.values():
        if not path.is_file():
            raise BGCLError(f"There is no file {path}. A release has all of {', '.join(PARTS)}.")
    parts = {part: _unpickle(path, part) for part, path in files.items() if part != "test.index"}
    with readable(files["test.index"], _REMEDY):
        test = np.loadtxt(files["test.index"], dtype=np.int64, ndmin=1)
    with readable(where, _REMEDY):
        return _assemble(parts, test, where)


def _unpickle(path: Path, part: str) -> Any:
    """The content of a file: a matrix, an array, or a dictionary of lists."""
    expected: Any = dict if part == "graph" else _Array if part.endswith("y") else _Csr
    with readable(path, _REMEDY):
        raw = path.read_bytes()
        _check_places(raw)
        value = RestrictedUnpickler(io.BytesIO(raw), encoding="latin1").load()
        if not isinstance(value, expected):
            raise ValueError("it holds something else than a Planetoid file")
        if isinstance(value, _State):
            return value.numpy()
        if sum(len(others) for others in value.values()) > len(raw):
            raise ValueError("it has more edges than bytes")
        return value


def _check_places(raw: bytes) -> None:
    """Raise an error if a pickle stores a value at a place beyond its own length, for which memory would be taken."""
    for operation, argument, _ in pickletools.genops(raw):
        if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > len(raw):
            raise ValueError(f"it stores a value at place {argument:,}")


def _assemble(parts: Mapping[str, Any], test: Array, where: str) -> CleanGraph:
    known, labeled = parts["allx"].shape[0], parts["y"].shape[0]
    if not test.size or test.min() < known or test.size != parts["tx"].shape[0]:
        raise BGCLError(f"{where} is damaged (test.index does not fit tx and allx). {_REMEDY}")
    nodes = int(test.max()) + 1
    if nodes > 2 * (known + test.size):
        raise BGCLError(f"{where} is damaged (test.index has the node {nodes - 1:,}). {_REMEDY}")
    if (len(parts["ally"]), len(parts["ty"])) != (known, test.size):
        raise BGCLError(f"{where} is damaged (ally and ty do not fit allx and tx). {_REMEDY}")
    # Row i of [allx; tx] belongs to node place[i]. Nodes without a row have no attributes.
    place = np.concatenate([np.arange(known), test])
    stacked = vstack([parts["allx"], parts["tx"]]).tocoo()
    attributes = csr_matrix((stacked.data, (place[stacked.row], stacked.col)), shape=(nodes, stacked.shape[1]))
    onehot = np.zeros((nodes, parts["ally"].shape[1]), dtype=np.int64)
    onehot[place] = np.concatenate([parts["ally"], parts["ty"]])
    labels = onehot.argmax(axis=1)
    pairs = [(node, other) for node, others in parts["graph"].items() for other in others] or np.empty((0, 2), np.int64)
    masks = {
        "train_mask": np.arange(nodes) < labeled,
        "val_mask": (np.arange(nodes) >= labeled) & (np.arange(nodes) < labeled + VALIDATION_NODES),
        "test_mask": np.isin(np.arange(nodes), test),
    }
    return clean(np.array(pairs).reshape(-1, 2).T, attributes, labels, masks, where=where)
