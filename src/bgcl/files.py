"""Files that appear whole or not at all."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bgcl.errors import BGCLError


@contextlib.contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it into place when the block ends without an error."""
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


@contextlib.contextmanager
def alone(path: str | os.PathLike[str]) -> Iterator[None]:
    """One process at a time for a path: others wait. The lock lies in the system's temporary folder."""
    from filelock import FileLock

    name = hashlib.sha256(str(Path(path).resolve()).encode()).hexdigest()[:20]
    with FileLock(Path(tempfile.gettempdir()) / f"bgcl-{name}.lock"):
        yield


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with whole(path) as part:
        part.write_text(text, encoding="utf-8")
