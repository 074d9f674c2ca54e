"""A tall matrix on disk, as slabs of columns. Products with sparse matrices need columns, and layers need rows."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bgcl.data.on_disk import DiskArray

ROWS, BLOCK_BYTES, FEWEST = 1 << 15, 1 << 26, 256  # rows that are computed at a time: fewer if they are wide
SLAB = 64  # columns of a slab: rows of 256 bytes are read as fast as longer ones, and a few slabs fit into memory


class Slabs:
    """A matrix `(N, w)` in float32, on disk.

    Args:
        folder: the folder of the files.
        name: beginning of the names of the files.
        rows: N.
        width: w.
        slab: columns of a slab.
    """

    def __init__(self, folder: Path, name: str, rows: int, width: int, slab: int = SLAB) -> None:
        self.rows, self.width = rows, width
        self.ranges = [(start, min(start + slab, width)) for start in range(0, width, slab)]
        self.files = [
            DiskArray.create(folder / f"{name}-{start}.npy", (rows, stop - start), np.float32)
            for start, stop in self.ranges
        ]

    def write_rows(self, start: int, block: Tensor) -> None:
        """Write some rows, `(n, w)`."""
        for file, (first, last) in zip(self.files, self.ranges, strict=True):
            file.write(start, block[:, first:last].numpy())

    def read_rows(self, start: int, stop: int) -> Tensor:
        """Read some rows, `(n, w)`."""
        return torch.from_numpy(np.concatenate([file.read(start, stop) for file in self.files], 1))

    def gather(self, rows: Tensor) -> Tensor:
        """Read rows in any order, `(n, w)`."""
        return torch.from_numpy(np.concatenate([file.gather(rows.numpy()) for file in self.files], 1))

    def __len__(self) -> int:
        return len(self.files)

    def read(self, number: int) -> Tensor:
        """Read a slab, `(N, columns)`."""
        return torch.from_numpy(self.files[number].read(0, self.rows))

    def write(self, number: int, slab: Tensor) -> None:
        """Write a slab, `(N, columns)`."""
        self.files[number].write(0, slab.numpy())

    def remove(self) -> None:
        """Remove the files."""
        for file in self.files:
            file.path.unlink(missing_ok=True)


def row_blocks(rows: int, width: int) -> Iterator[tuple[int, int]]:
    """The first row of each block of a matrix `(rows, width)`, and the row after its last one.

    >>> [stop - start for start, stop in row_blocks(70_000, 64)]
    [32768, 32768, 4464]
    >>> [stop - start for start, stop in row_blocks(10_000, 4000)]
    [4194, 4194, 1612]
    """
    block = max(min(ROWS, BLOCK_BYTES // (4 * max(width, 1))), min(FEWEST, ROWS))
    for start in range(0, rows, block):
        yield start, min(start + block, rows)


def rows_of(array: DiskArray, start: int, stop: int) -> Tensor:
    """Some rows of an array on disk, as a tensor."""
    return torch.from_numpy(array.read(start, stop))
