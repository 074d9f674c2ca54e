"""Files that are written completely or not at all, and locks between processes."""

import contextlib
import fcntl
import glob
import hashlib
import os
import platform
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from bgcl.errors import CannotWriteError

LOCK = ".lock"  # the file in a folder that a process keeps to itself; it names the process
_held: dict[str, int] = {}  # the thread that has a folder


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], spare: "Spare | None" = None) -> Iterator[Path]:
    """Yield a temporary path next to `path`, and rename it to `path` if the block ends without an error.

    The contents are on the disk before the new name is, so a power cut leaves the old file or the new one. Temporary
    files of `path` that a killed process left behind are removed. With a spare, the file at the temporary path may be
    an older one, which the block has to overwrite and truncate.
    """
    path = Path(path)
    try:
        _make_folder(path.parent)
        part, handle = (spare.take() if spare else None) or _new(path)
    except OSError as error:
        raise CannotWriteError(f"Cannot write {path}: {error.strerror}. Choose another folder.") from error
    older: tuple[Path, int] | None = None
    try:
        remove_leftovers(path.parent, path)
        yield part
        sync(part)
        older = _second_name(path) if spare else None
        os.replace(part, path)
        if sync(path.parent) and spare and older:
            spare.put(*older)
            older = None
    except OSError as error:
        raise CannotWriteError(f"Cannot write {path}: {error.strerror or error}. Nothing was changed.") from error
    finally:
        _discard(part, handle)
        if older is not None:
            _discard(*older)


class Spare:
    """The last but one version of a file that is written again and again. Its room on the disk is used anew.

    This takes less time than to find room for each version and to free that of an older one. The last version is never
    touched: the spare is put here when the folder is on the disk, so no power cut can bring its old name back. It is
    left alone if another process has it open, or if it has another name, such as in a backup of hard links.
    """

    def __init__(self) -> None:
        self._kept: tuple[Path, int] | None = None

    def put(self, part: Path, handle: int) -> None:
        """Keep a file under its temporary name, open and locked."""
        self.remove()
        self._kept = part, handle

    def take(self) -> tuple[Path, int] | None:
        """The file to be overwritten; None if there is none that belongs to this process alone."""
        if self._kept is None or os.fstat(self._kept[1]).st_nlink != 1 or not _is_open_only_here(self._kept[1]):
            self.remove()
            return None
        kept, self._kept = self._kept, None
        return kept

    def remove(self) -> None:
        """Remove the file, if there is one."""
        if self._kept is not None:
            kept, self._kept = self._kept, None
            _discard(*kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def _discard(part: Path, handle: int) -> None:
    os.close(handle)
    part.unlink(missing_ok=True)


def _second_name(path: Path) -> tuple[Path, int] | None:
    """A temporary name for the file at a path, and the file, open and locked; None if that cannot be."""
    part = _temporary(path)
    try:
        os.link(path, part)
        handle = os.open(part, os.O_RDWR)
    except OSError:  # there is no file yet, or this file system gives a file only one name
        part.unlink(missing_ok=True)
        return None
    lock(handle)
    return part, handle


def _is_open_only_here(handle: int) -> bool:
    """Whether nobody else has a file open. Only Linux can say: it grants a lease on such a file and on no other."""
    try:
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except (OSError, AttributeError):
        return False
    return True


def _temporary(path: Path) -> Path:
    return path.parent / f".{path.name}.{secrets.token_hex(4)}.part{path.suffix}"


def _new(path: Path) -> tuple[Path, int]:
    """Make a temporary file for a path, and lock it."""
    while True:
        part = _temporary(path)
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)  # less what the user's umask takes away
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)  # waits for a process that took it for a leftover before it was locked
        if os.fstat(handle).st_nlink:
            return part, handle
        os.close(handle)  # that process has removed it


def remove_leftovers(folder: Path, path: Path | None = None) -> None:
    """Remove temporary files, those of `path` or all, whose process is gone. The system has released their locks."""
    random = "[0-9a-f]" * 8
    name, ending = ("*", "*") if path is None else (glob.escape(path.name), glob.escape(path.suffix))
    for left in folder.glob(f".{name}.{random}.part{ending}"):
        with contextlib.suppress(OSError):
            handle = os.open(left, os.O_RDWR)
            try:
                if lock(handle):
                    left.unlink()
            finally:
                os.close(handle)


def lock(handle: int) -> bool:
    """Lock an open file, and say whether it was free. The lock ends when the file is closed."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _make_folder(folder: Path) -> list[Path]:
    """Make a folder with its parents, wait until their names are on the disk, and return those that were made."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync(each.parent)
    return missing


def sync(path: Path) -> bool:
    """Wait until a file, or the names in a folder, are on the disk. Some folders cannot be waited for: then False."""
    is_folder = path.is_dir()
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        if not is_folder:
            raise
        return False
    return True


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path`, completely or not at all."""
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def exclusive(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let only one process at a time use a path. Others wait. The lock is a file in the system's temporary folder."""
    from filelock import FileLock

    name = hashlib.sha256(str(Path(path).resolve()).encode()).hexdigest()[:20]
    with FileLock(Path(tempfile.gettempdir()) / f"bgcl-{name}.lock"):
        yield


@contextlib.contextmanager
def sole_use(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Keep a folder to this process. If it is not there, it is made, and removed again if nothing was put into it.

    The system releases the lock when the process ends, however it ends, so an old lock never blocks. Temporary files
    that a killed process left in the folder are removed. The thread that has the folder may ask for it again.

    Raises:
        CannotWriteError: another process, or another thread, has the folder. The error names the process.
    """
    folder = Path(folder)
    place = str(folder.resolve())
    if _held.get(place) == threading.get_ident():  # this thread has it already
        yield
        return
    try:
        missing, handle = _take(folder)
    except OSError as error:
        raise CannotWriteError(f"Cannot write {folder}: {error.strerror or error}. Choose another folder.") from error
    if handle is None:
        raise CannotWriteError(
            f"{folder} is in use by {_owner(folder)}. Wait until it has finished, or choose another folder."
        )
    try:
        _held[place] = threading.get_ident()
        with contextlib.suppress(OSError):  # it is only for the error of another process
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            os.truncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {platform.node()}, since {now}".encode())
        remove_leftovers(folder)
        yield
    finally:
        _held.pop(place, None)
        with contextlib.suppress(OSError):
            (folder / LOCK).unlink(missing_ok=True)
        os.close(handle)
        with contextlib.suppress(OSError):
            for each in missing:
                each.rmdir()  # only if it is empty


def _take(folder: Path) -> tuple[list[Path], int | None]:
    """Make and lock a folder: the folders that were made, and the open lock; None if another process has it."""
    missing: list[Path] = []
    while True:
        missing += _make_folder(folder)
        try:
            handle = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:  # another process has just removed the folder that it had made
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:  # a folder in which nothing can be locked is another error
            os.close(handle)
            if not isinstance(error, BlockingIOError | PermissionError):
                raise
            return missing, None
        if os.fstat(handle).st_nlink:
            return missing, handle
        os.close(handle)  # the process before removed it after this one had opened it


def _owner(folder: Path) -> str:
    """The process that has a folder. It writes its name just after it has taken the lock."""
    for _ in range(20):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if name := (folder / LOCK).read_text("utf-8"):
                return name
        time.sleep(0.02)
    return "another process"
