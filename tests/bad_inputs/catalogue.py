"""The catalogue of bad inputs: the cases in the `.toml` files of this folder.

A file has a title and a list of errors. An error has its message, its cause, what to do, the pattern of its line, and
the cases that must end in it. A case says how to build its files, see `build.py`. `docs/errors.md` is made from the
same files.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# The order of the page.
KINDS = (
    "tables_contents",
    "folders",
    "relations",
    "csv",
    "parquet",
    "npz",
    "graphml",
    "packs",
    "memory",
    "releases",
    "commands",
)


@dataclass(frozen=True)
class BadInput:
    """One case: how to build it, and the pattern of the line that it must end in."""

    name: str
    case: dict[str, Any]
    line: str
    by_command: bool  # whether it is also tried as a command: the first case of each error


def kinds() -> dict[str, dict[str, Any]]:
    """The files of the catalogue, in the order of the page."""
    return {kind: tomllib.loads((HERE / f"{kind}.toml").read_text("utf-8")) for kind in KINDS}


def bad_inputs() -> list[BadInput]:
    """All cases."""
    found = []
    for kind, content in kinds().items():
        for number, error in enumerate(content["error"], start=1):
            for place, case in enumerate(error["cases"], start=1):
                by_command = place == 1 and error.get("command", content.get("command", True))
                name = f"{kind}-{number}-{place}"
                found.append(BadInput(name, case, case.get("line", error["line"]), by_command))
    return found
