"""Files that are written completely or not at all, and locks between processes."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bgcl.errors import BGCLError


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path next to `path`, and rename it to `path` if the block ends without an error."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=f".part{path.suffix}", dir=path.parent)
    except OSError as error:
        raise BGCLError(f"Cannot write {path}: {error.strerror}. Choose another folder.") from error
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o644)
        os.replace(part, path)
    except OSError as error:
        raise BGCLError(f"Cannot write {path}: {error.strerror or error}. Nothing was changed.") from error
    finally:
        part.unlink(missing_ok=True)


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
