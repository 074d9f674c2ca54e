"""The files of a pack: their names, and the check that each is what was written, and that its numbers make a graph."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from bgcl.data.on_disk import DiskArray
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

ABOUT = "pack.json"
ATTRIBUTES, EDGES, STARTS, IDS, LABELS = "attributes.npy", "edges.npy", "starts.npy", "ids.npy", "labels.npy"
REMEDY = "Pack the graph again with 'bgcl data pack'."
_PIECE = 1 << 24  # bytes that are read at a time
_ENDS = 1 << 20  # bytes of both ends of a file that are compared first


@dataclass(frozen=True)
class PackedFile:
    """What is known of a file of a pack: its size in bytes, the SHA-256 of its content, and that of both ends."""

    size: Annotated[int, Field(ge=0)]
    digest: str
    ends: str

    @classmethod
    def of(cls, path: Path) -> "PackedFile":
        """Read all of a file, piece by piece."""
        whole = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                whole.update(piece)
        return cls(path.stat().st_size, whole.hexdigest(), _ends_of(path))

    def check_ends(self, path: Path) -> None:
        """Check the size and both ends of a file, which takes no time however large it is."""
        if not path.is_file():
            raise BGCLError(f"{path} is missing. {REMEDY}")
        size = path.stat().st_size
        if size != self.size:
            how = "was cut off" if size < self.size else "has grown"
            raise BGCLError(f"{path} {how}: it has {size:,} bytes instead of {self.size:,}. {REMEDY}")
        if _ends_of(path) != self.ends:
            raise BGCLError(f"{path} is of another graph, or was changed: it does not fit {ABOUT}. {REMEDY}")

    def check_content(self, path: Path) -> None:
        """Check all of a file."""
        if PackedFile.of(path) != self:
            raise BGCLError(f"{path} was changed: its checksum is wrong. {REMEDY}")


def _ends_of(path: Path) -> str:
    """The SHA-256 of the first and the last MiB of a file."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        sha.update(file.read(_ENDS))
        file.seek(max(path.stat().st_size - _ENDS, 0))
        sha.update(file.read(_ENDS))
    return sha.hexdigest()


def check_types(arrays: dict[str, DiskArray]) -> None:
    """Check the types of the arrays. Raises a `BGCLError` that names the file."""
    for name, array in arrays.items():
        fits = array.dtype.kind in "iufbUS" if name == IDS else array.dtype == _TYPES[name]
        if not fits:
            raise _wrong(array, f"its values have the type {array.dtype}")


_TYPES = {ATTRIBUTES: np.float32, EDGES: np.int64, STARTS: np.int64, LABELS: np.int64}


def check_numbers(arrays: dict[str, DiskArray], nodes: int, classes: int) -> None:
    """Check that the numbers of a pack make a graph, block by block.

    Args:
        arrays: the arrays by the names of their files, with the right shapes and types.
        nodes: number of nodes.
        classes: number of classes; 0 if they have no names.

    Raises:
        BGCLError: if an attribute is not finite, an edge ends at no node, edges are not sorted or not there in both
            directions, clusters do not follow each other, or a label is no class.
    """
    attributes = arrays[ATTRIBUTES]
    rows = max(_PIECE // attributes.row_bytes, 1)
    for start in range(0, nodes, rows):
        if not np.isfinite(attributes.read(start, start + rows)).all():
            raise _wrong(attributes, "an attribute is not a finite number")
    _check_edges(arrays[EDGES], nodes)
    starts = arrays[STARTS].read(0, arrays[STARTS].shape[0])
    if starts[0] != 0 or starts[-1] != nodes or (np.diff(starts) <= 0).any():
        raise _wrong(arrays[STARTS], "its clusters do not follow each other")
    if LABELS in arrays:
        labels, most = arrays[LABELS], classes or nodes
        for start in range(0, nodes, _PIECE // 8):
            found = labels.read(start, start + _PIECE // 8)
            if found.min() < -1 or found.max() >= most:
                raise _wrong(labels, f"a class has a number that is not between -1 and {most - 1:,}")


def _check_edges(edges: DiskArray, nodes: int) -> None:
    """Check that edges are sorted pairs of different nodes, each in both directions."""
    before, balance = (-1, -1), 0
    for source, target in _pairs(edges):
        if min(source.min(), target.min()) < 0 or max(source.max(), target.max()) >= nodes:
            raise _wrong(edges, f"an edge ends at a node that is not between 0 and {nodes - 1:,}")
        if (source == target).any():
            raise _wrong(edges, "an edge leads from a node to itself")
        left, right = np.append(before[0], source), np.append(before[1], target)
        if not ((left[1:] > left[:-1]) | ((left[1:] == left[:-1]) & (right[1:] > right[:-1]))).all():
            raise _wrong(edges, "its edges are not sorted, or one is there twice")
        before = int(source[-1]), int(target[-1])
        balance += int(_mixed(source, target).sum()) - int(_mixed(target, source).sum())
    if balance % 2**64:
        raise _wrong(edges, "an edge is there in one direction only")


def _pairs(edges: DiskArray) -> Iterator[tuple[Array, Array]]:
    """The ends of some edges at a time. The file has all sources, and then all targets."""
    count, length = edges.shape[1], _PIECE // 8
    flat = replace(edges, shape=(2 * count,))
    for start in range(0, count, length):
        stop = min(start + length, count)
        yield flat.read(start, stop), flat.read(count + start, count + stop)


def _mixed(one: Array, other: Array) -> Array:
    """A number of 64 bits for each pair, which depends on its order. Equal sums are those of the same pairs."""
    bits = one.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + other.astype(np.uint64)
    bits ^= bits >> np.uint64(31)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    return bits ^ (bits >> np.uint64(29))


def _wrong(array: DiskArray, what: str) -> BGCLError:
    return BGCLError(f"{array.path} is no file of a pack: {what}. {REMEDY}")
