"""A cache of computed results, of embeddings, and of training runs, which resume if they were interrupted."""

import json
import logging
from pathlib import Path
from typing import Any

from bgcl.data.store import cache_folder
from bgcl.files import write_text

log = logging.getLogger("bgcl")


class Cache:
    """A folder of results, embeddings and training runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        """The file of a cell's result."""
        return self.folder / "cells" / f"{key}.json"

    def run(self, name: str) -> Path:
        """The folder of a training run."""
        return self.folder / "runs" / name

    def embeddings(self, name: str) -> Path:
        """The file of a baseline's embeddings."""
        return self.folder / "embeddings" / f"{name}.npy"

    def read(self, key: str) -> dict[str, Any] | None:
        """The result of a cell, or None if there is none. A damaged file is reported and removed."""
        path = self.path(key)
        try:
            found = json.loads(path.read_text("utf-8"))
            if (says := found.pop("key")) != key:
                raise ValueError(f"it has the key {says}")
            return dict(found)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("The result in %s is damaged (%s). It is computed again.", path, _first_line(error))
            path.unlink(missing_ok=True)
            return None

    def write(self, key: str, result: dict[str, Any]) -> None:
        """Store the result of a cell."""
        write_text(self.path(key), json.dumps({"key": key, **result}))


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def default_folder() -> Path:
    """The default folder: in the user's cache folder, next to the data sets."""
    return cache_folder() / "reproduce"
