"""Files that belong together and appear all or not at all, and folders for what does not stay in memory."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

from bgcl.errors import CannotWriteError
from bgcl.files import lock, sole_use, sync

# Hidden folders: of files that are being written; of files that are whole and being moved; for what is not in memory.
BEGUN, MOVING, SCRATCH = ".new", ".moving", ".blocks-"


@contextlib.contextmanager
def new_files(folder: str | os.PathLike[str], names: Sequence[str], *, replace: bool = False) -> Iterator[Path]:
    """Yield a hidden folder for files that belong together, and move them to `folder` if the block ends without error.

    Nobody else can write the folder meanwhile, see `sole_use`. All files are on the disk before the first is moved. Of
    older files, the last name is removed first. Of the new ones, it is moved last: if it is there, all of them are.

    Args:
        folder: the folder of the files, which is made.
        names: all names that the files may have. A file of the last name must be made.
        replace: whether older files of these names are replaced. Otherwise they are an error.

    Raises:
        CannotWriteError: the folder has one of the files, another process has it, or it cannot be written.
    """
    folder = Path(folder)
    with sole_use(folder):
        if not replace:
            refuse_files(folder, names)
        try:
            _remove_leftovers(folder, names)
            (folder / BEGUN).mkdir()
            yield folder / BEGUN
            _move(folder, names)
        except OSError as error:
            raise CannotWriteError(f"Cannot write {folder}: {error.strerror or error}.") from error
        finally:
            with contextlib.suppress(OSError):
                _remove_leftovers(folder, names)


def _move(folder: Path, names: Sequence[str]) -> None:
    made = [name for name in names if (folder / BEGUN / name).exists()]
    for name in made:
        sync(folder / BEGUN / name)
    sync(folder / BEGUN)
    (folder / BEGUN).rename(folder / MOVING)
    sync(folder)
    for older in (names[-1:], names[:-1]):
        for name in older:
            (folder / name).unlink(missing_ok=True)
        sync(folder)
    for newer in (made[:-1], made[-1:]):
        for name in newer:
            (folder / MOVING / name).rename(folder / name)
        sync(folder)


def refuse_files(folder: Path, names: Sequence[str]) -> None:
    """Raise an error if a folder has one of the files. What a killed process left is removed first."""
    with sole_use(folder):
        _remove_leftovers(folder, names)
        found = [name for name in names if (folder / name).exists()]
    if found:
        raise CannotWriteError(f"{folder} already holds {found[-1]}. Name another folder, or remove it.")


def _remove_leftovers(folder: Path, names: Sequence[str]) -> None:
    """Remove what a process left that was killed in `new_files`: also its files that are in place, if not all are."""
    if (folder / MOVING / names[-1]).exists() and not (folder / names[-1]).exists():
        for name in names:
            (folder / name).unlink(missing_ok=True)
        sync(folder)
    for left in (folder / BEGUN, folder / MOVING):
        if left.is_dir():
            shutil.rmtree(left)
            sync(folder)


class Scratch:
    """A hidden folder for what does not stay in memory, which is removed with this object.

    What a killed process left is removed by the next one that makes a scratch folder in the same place.

    Args:
        place: the folder in which it is made.

    Raises:
        OSError: nothing can be written there.
    """

    def __init__(self, place: Path) -> None:
        for left in place.glob(f"{SCRATCH}*"):
            with contextlib.suppress(OSError):
                handle = os.open(left, os.O_RDONLY)
                if lock(handle):
                    shutil.rmtree(left, ignore_errors=True)
                os.close(handle)
        self.path, handle = _locked_folder(place)
        self._end = weakref.finalize(self, _end_scratch, self.path, handle)

    def remove(self) -> None:
        """Remove the folder now."""
        self._end()


def _locked_folder(place: Path) -> tuple[Path, int]:
    """Make a folder and lock it. Another process may take it for a leftover until it is locked."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=place))
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(path, os.O_RDONLY)
            with contextlib.suppress(OSError):  # some file systems have no locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            if path.exists():
                return path, handle
            os.close(handle)


def _end_scratch(path: Path, handle: int) -> None:
    try:
        shutil.rmtree(path, ignore_errors=True)
    except KeyboardInterrupt:  # nobody can catch it here, so the work is done first
        shutil.rmtree(path, ignore_errors=True)
    os.close(handle)
