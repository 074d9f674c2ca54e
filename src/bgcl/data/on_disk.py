"""Arrays on disk that are read and written in pieces, as plain `.npy` files."""

import math
import os
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.data.memory import in_words
from bgcl.errors import BGCLError, CannotWriteError, one_line

Array = npt.NDArray[Any]

# The readers of the header, by the version of the format.
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True)
class DiskArray:
    """An array `(N, ...)` in a `.npy` file. It is read and written by runs of rows, and not mapped.

    What is read is a copy. So the memory of the process is what it holds, and not what it has touched.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> array = DiskArray.create(Path(folder.name) / "a.npy", (4, 2), np.float32)
    >>> array.write(1, np.ones((2, 2), np.float32))
    >>> array.read(0, 3).sum(1).tolist()
    [0.0, 2.0, 2.0]
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int  # bytes before the first row

    @classmethod
    def open(cls, path: Path, remedy: str = "Make it again.") -> "DiskArray":
        """An array that is there already. Its header is checked, and that it is as long as the header says."""
        with one_line(path, remedy), warnings.catch_warnings(), path.open("rb") as file:
            warnings.simplefilter("ignore")  # of NumPy, that a header is odd
            version = np.lib.format.read_magic(file)
            if version not in _HEADERS:
                raise ValueError("its format is of another version")
            shape, by_columns, dtype = _HEADERS[version](file)
            if by_columns and len(shape) > 1:
                raise ValueError("it is in the order of columns")
            if dtype.hasobject or not dtype.itemsize:
                raise ValueError(f"it holds the type {dtype}")
            array = cls(path, shape, dtype, file.tell())
            if min(shape, default=1) < 0 or os.fstat(file.fileno()).st_size != array.offset + array.size:
                raise ValueError("it is not as long as its header says")
            return array

    @classmethod
    def create(cls, path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> "DiskArray":
        """A new array of zeros. Its room on the disk is taken when it is written."""
        kind = np.dtype(dtype)
        try:
            with path.open("wb") as file:
                header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                offset = file.tell()
                file.truncate(offset + kind.itemsize * math.prod(shape))
        except OSError as error:
            raise CannotWriteError(f"Cannot write {path}: {error.strerror or error}.") from error
        return cls(path, shape, kind, offset)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.dtype.itemsize * math.prod(self.shape[1:])

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return self.dtype.itemsize * math.prod(self.shape)

    def read(self, start: int, stop: int) -> Array:
        """Some rows."""
        stop = min(stop, self.shape[0])
        count = (stop - start) * self.row_bytes // self.dtype.itemsize
        found = np.fromfile(self.path, self.dtype, count, offset=self.offset + start * self.row_bytes)
        if len(found) < count:
            raise BGCLError(f"{self.path} was cut off while it was read. Make it again.")
        return found.reshape(stop - start, *self.shape[1:])

    def gather(self, places: Array) -> Array:
        """Some rows, in the given order. A row may be there more than once.

        Rows that are next to each other in the file are read at once.
        """
        wanted, back = np.unique(places, return_inverse=True)
        found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        first = np.flatnonzero(np.diff(wanted, prepend=-2) != 1)  # of each run of rows that are next to each other
        ends = np.append(first[1:], len(wanted))[: len(first)]  # no row is no run
        handle = os.open(self.path, os.O_RDONLY)
        try:
            for a, b in zip(first.tolist(), ends.tolist(), strict=True):
                self._fill(handle, memoryview(found[a:b].data).cast("B"), self.offset + int(wanted[a]) * self.row_bytes)
        finally:
            os.close(handle)
        return np.asarray(found[back])

    def _fill(self, handle: int, room: memoryview, place: int) -> None:
        while room:
            count = os.preadv(handle, [room], place)
            if not count:
                raise BGCLError(f"{self.path} was cut off while it was read. Make it again.")
            room, place = room[count:], place + count

    def write(self, start: int, rows: Array) -> None:
        """Write rows from `start` on."""
        self._put([(start, np.ascontiguousarray(rows, self.dtype))])

    def scatter(self, places: Array, rows: Array) -> None:
        """Write each row to its place."""
        order = np.argsort(places, kind="stable")
        places, rows = places[order], np.ascontiguousarray(rows[order], self.dtype)
        first = np.flatnonzero(np.diff(places, prepend=-2) != 1)  # of each run of rows that are next to each other
        ends = np.append(first[1:], len(places))
        self._put([(int(places[a]), rows[a:b]) for a, b in zip(first, ends, strict=True)])

    def _put(self, runs: list[tuple[int, Array]]) -> None:
        try:
            handle = os.open(self.path, os.O_WRONLY)
            try:
                for start, rows in runs:
                    if rows.size:
                        _write_all(handle, memoryview(rows.data).cast("B"), self.offset + start * self.row_bytes)
            finally:
                os.close(handle)
        except OSError as error:
            raise CannotWriteError(f"Cannot write {self.path}: {error.strerror or error}.") from error


def _write_all(handle: int, data: memoryview, place: int) -> None:
    while data:
        written = os.pwrite(handle, data, place)
        data, place = data[written:], place + written


def check_room(folder: Path, needed: int, what: str) -> None:
    """Raise an error if the disk of a folder has less room than `what` needs, in bytes."""
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if needed > free:
        raise CannotWriteError(
            f"{what} need {in_words(needed)} on the disk of {folder}, and {in_words(free)} are free. Make room, or "
            "name a folder on another disk."
        )
