"""Results that a command keeps in the folder of a run, so that the next command need not compute them again.

Each result is a file of tensors in the folder `kept`. Its name says what it is, of which model, and has a digest of all
that it depends on. So a result of another model, graph or seed is not found, and a file that was changed is not used.
Results of an older model are removed, and the oldest of the others if there is no room. Nothing is lost with them: all
are computed again when they are needed, and the folder may be removed at any time.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from torch import Tensor

from bgcl.checkpoint.contents import checksum, sha256
from bgcl.checkpoint.tensors import read_tensor_file, write_tensor_file
from bgcl.errors import CannotWriteError
from bgcl.files import remove_leftovers

KEPT = "kept"  # the folder in a run
# What a changed file can raise: it counts as one that is not there.
DAMAGE = (ValueError, TypeError, AttributeError, LookupError, RecursionError, MemoryError)
MOST = 512 << 20  # bytes that a run may keep


class Kept:
    """The folder `kept` of a run.

    Args:
        run: the folder of the run.
        model: a digest of the model.
        most: the greatest number of bytes to keep.

    Attributes:
        notes: what could not be kept, and why, in sentences.
    """

    def __init__(self, run: Path, model: str, *, most: int = MOST) -> None:
        self.folder, self.model, self.most = run / KEPT, model, most
        self.notes: list[str] = []

    def find(self, what: str, key: str) -> dict[str, Tensor] | None:
        """The tensors that were kept for a key; None if there are none, or if their file was changed."""
        path = self._path(what, key)
        try:
            tensors, checks = read_tensor_file(path)
            if checks.get("tensors") != checksum(tensors) or checks.get("key") != self._full(key):
                return None
            os.utime(path)  # it is the last to be removed
        except (OSError, SafetensorError, *DAMAGE):
            return None
        return tensors

    def put(self, what: str, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Keep tensors, if there is room. A folder that cannot be written is no error, but a note."""
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        if size > self.most:
            self.notes.append(
                f"The {what} need {size / 2**20:,.0f} MB, so they are not kept: a run keeps {self.most / 2**20:,.0f} "
                "MB at most."
            )
            return
        path = self._path(what, key)
        try:
            if self.folder.is_dir():
                self._make_room(size, path)
            write_tensor_file(path, tensors, {"key": self._full(key)})
        except (CannotWriteError, OSError) as error:
            self.notes.append(f"The {what} are not kept: {error}")

    def _make_room(self, size: int, path: Path) -> None:
        """Remove results of other models, then the oldest ones, until there is room for `size` bytes at a path."""
        remove_leftovers(self.folder)
        found = []
        for file in self.folder.glob("*.safetensors"):
            with contextlib.suppress(OSError):  # another command may remove it at the same time
                if file == path or f"-{self.model[:12]}-" not in file.name:
                    file.unlink()
                else:
                    found.append((file.stat().st_mtime_ns, file.stat().st_size, file))
        total = sum(each for _, each, _ in found)
        for _, each, file in sorted(found):
            if total + size <= self.most:
                break
            file.unlink(missing_ok=True)
            total -= each

    def _full(self, key: str) -> str:
        return sha256(f"{self.model} {key}")

    def _path(self, what: str, key: str) -> Path:
        return self.folder / f"{what.replace(' ', '_')}-{self.model[:12]}-{self._full(key)[:16]}.safetensors"
