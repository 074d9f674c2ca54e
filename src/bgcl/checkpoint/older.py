"""The run that a training replaces, so that a training that is started again knows whether it has replaced it."""

from pathlib import Path

from bgcl.checkpoint.contents import ABOUT, TENSORS, place_of, sha256
from bgcl.checkpoint.reading import is_run
from bgcl.files import write_text

OLDER = ".older"  # the file that names it


def remember_older(folder: Path) -> None:
    """Note the run in a folder, which is to be replaced by the first epoch of another one."""
    write_text(folder / OLDER, _digest(folder))


def is_older(folder: Path) -> bool:
    """Whether the run in a folder is the one that was noted."""
    note = folder / OLDER
    return note.is_file() and is_run(folder) and note.read_text("utf-8") == _digest(folder)


def forget_older(folder: Path) -> None:
    """Remove the note."""
    (folder / OLDER).unlink(missing_ok=True)


def _digest(folder: Path) -> str:
    return sha256(b"".join(place_of(folder, name).read_bytes() for name in (ABOUT, TENSORS)))
