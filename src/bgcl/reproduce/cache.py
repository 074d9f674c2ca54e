"""Results that were computed before, by their cell's key; and folders of trainings, which resume where they stopped."""

import json
import logging
from pathlib import Path
from typing import Any

from bgcl.data.store import cache_folder
from bgcl.files import write_text

log = logging.getLogger("bgcl")


class Cache:
    """A folder of results and of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        return self.folder / "cells" / f"{key}.json"

    def run(self, name: str) -> Path:
        """The folder of a training."""
        return self.folder / "runs" / name

    def embeddings(self, name: str) -> Path:
        """The file of a baseline's embeddings."""
        return self.folder / "embeddings" / f"{name}.npy"

    def read(self, key: str) -> dict[str, Any] | None:
        """A result, or None if it is not there. A damaged one is told of, removed, and to be computed again."""
        path = self.path(key)
        try:
            found = json.loads(path.read_text("utf-8"))
            if (says := found.pop("key")) != key:
                raise ValueError(f"it says that it is {says}")
            return dict(found)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("The kept result %s is damaged (%s): it is computed again.", path, _first_line(error))
            path.unlink(missing_ok=True)
            return None

    def write(self, key: str, result: dict[str, Any]) -> None:
        write_text(self.path(key), json.dumps({"key": key, **result}))


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def default_folder() -> Path:
    """In the user's cache folder, beside the data sets."""
    return cache_folder() / "reproduce"
