"""The catalogue of odd tables: the cases in the `.toml` files of this folder.

A case has a name, its files by their names, options, and what must be understood of them: the number of nodes and
edges, the names of classes and attributes, ids, the class of each node, or the pattern of the error. Endings .gz and
.zst compress a file. `read` is the file to read instead of the folder. `says` are patterns of what the user is told.
"""

import gzip
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

HERE = Path(__file__).parent


@dataclass(frozen=True)
class OddTable:
    """One case."""

    name: str
    case: dict[str, Any]


def odd_tables() -> list[OddTable]:
    """All cases."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        content = tomllib.loads(path.read_text("utf-8"))
        found += [OddTable(f"{path.stem}: {case['name']}", case) for case in content["case"]]
    return found


def write_files(case: dict[str, Any], folder: Path) -> Path:
    """Write the files of a case into a folder. Returns what is to be read."""
    for name, text in case["files"].items():
        raw = text.encode(case.get("encoding", "utf-8"))
        path = folder / name
        if name.endswith(".zst"):
            with pa.CompressedOutputStream(str(path), "zstd") as file:
                file.write(raw)
        else:
            path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return folder / case["read"] if "read" in case else folder
