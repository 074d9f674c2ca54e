"""A pack: a graph as a folder of arrays that need not fit into memory, with rows in the order of clusters.

| file | what it holds |
|---|---|
| `attributes.npy` | attributes, `(N, F)` in float32 |
| `edges.npy` | edges in both directions, sorted, `(2, 2E)` |
| `starts.npy` | the first row of each cluster, and N, `(parts + 1,)` |
| `ids.npy` | the id of each node in the graph that was packed, `(N,)` |
| `labels.npy` | class numbers, -1 where a label is missing, `(N,)`; only if there are labels |
| `pack.json` | sizes, names of classes and attributes, and the size and the digest of every file |

Nodes of a cluster are next to each other, so a batch of clusters is read as a few runs. Every file is a plain `.npy`
that `numpy.load` can map.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from bgcl.data.on_disk import DiskArray
from bgcl.data.packed_files import (
    ABOUT,
    ATTRIBUTES,
    EDGES,
    IDS,
    LABELS,
    REMEDY,
    STARTS,
    PackedFile,
    check_numbers,
    check_types,
)
from bgcl.errors import BGCLError, one_line
from bgcl.files import write_text
from bgcl.validation import checked

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.data.facts import GraphFacts

Array = npt.NDArray[Any]

FORMAT = 1
LARGEST_ABOUT = 64 << 20  # bytes; it has the names of classes and attributes
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Pack:
    """A pack that is open: its folder, and what `pack.json` says."""

    folder: Path
    nodes: Count
    edges: Count  # undirected
    num_attributes: Count
    fingerprint: Annotated[
        str, Field(pattern="^[0-9a-f]{64}$")
    ]  # that of the graph in the order of the rows, as `GraphFacts` has it
    parts: Count
    classes: list[str] = field(repr=False)
    attribute_names: list[str] = field(repr=False)
    files: dict[str, PackedFile] = field(repr=False)

    def path(self, name: str) -> Path:
        """The path of one of its files."""
        return self.folder / name

    @property
    def attributes(self) -> DiskArray:
        """The attributes, `(N, F)`."""
        return DiskArray.open(self.path(ATTRIBUTES))

    def clusters(self) -> Array:
        """The cluster of each row, `(N,)`, ascending."""
        starts = np.load(self.path(STARTS))
        return np.repeat(np.arange(self.parts), np.diff(starts))

    def facts(self) -> "GraphFacts":
        """Name, size and fingerprint."""
        from bgcl.data.facts import GraphFacts  # here, because it imports torch

        name = str(self.folder.resolve())
        return GraphFacts(name, self.nodes, self.edges, self.num_attributes, self.fingerprint)

    def data(self) -> "Data":
        """The graph with arrays that are mapped into memory, so that only what is used is read."""
        import torch
        from torch_geometric.data import Data

        def mapped(name: str) -> Any:
            return torch.from_numpy(np.load(self.path(name), mmap_mode="c"))

        data = Data(x=mapped(ATTRIBUTES), edge_index=mapped(EDGES))
        if LABELS in self.files:
            data.y = mapped(LABELS)
        if self.classes:
            data.classes = list(self.classes)
        data.ids = np.load(self.path(IDS), mmap_mode="r")
        data.attribute_names = list(self.attribute_names)
        data.name = str(self.folder.resolve())
        data.pack, data.pack_at = self, _places(data)
        return data


def is_pack(path: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a pack.

    >>> is_pack("no/such/folder")
    False
    """
    try:
        return (Path(path) / ABOUT).is_file()
    except OSError:  # a name too long for the system
        return False


def pack_of(data: "Data") -> Pack | None:
    """The pack that a graph was opened from; None if there is none, or if edges or attributes were replaced."""
    pack = data.get("pack")
    return pack if isinstance(pack, Pack) and data.get("pack_at") == _places(data) else None


def _places(data: "Data") -> tuple[int, int]:
    """Where attributes and edges are mapped into memory. A copy is somewhere else."""
    return data.x.data_ptr(), data.edge_index.data_ptr()


def write_about(pack: Pack, folder: Path) -> None:
    """Write `pack.json` to a folder. Without it, a folder is no pack."""
    known = {name: value for name, value in vars(pack).items() if name not in ("folder", "files")}
    known["files"] = {name: asdict(file) for name, file in pack.files.items()}
    text = json.dumps(known, indent=1)
    digest = hashlib.sha256(text.encode()).hexdigest()
    write_text(folder / ABOUT, json.dumps({"format": FORMAT, "sha256": digest, "pack": known}, indent=1) + "\n")


def open_pack(folder: str | os.PathLike[str]) -> Pack:
    """Open a pack, and check all of its files, each of which is read twice.

    Raises:
        BGCLError: if a file is missing, was cut off or changed, is of another graph, or makes no graph.
    """
    folder = Path(folder)
    about = folder / ABOUT
    with one_line(about, REMEDY):
        if about.stat().st_size > LARGEST_ABOUT:
            raise ValueError("it is too large")
        found = json.loads(about.read_text("utf-8"))
        if int(found["format"]) != FORMAT:
            raise BGCLError(f"{about} has format {found['format']}, and this version of bgcl reads {FORMAT}. {REMEDY}")
        known = found["pack"]
        if hashlib.sha256(json.dumps(known, indent=1).encode()).hexdigest() != found["sha256"]:
            raise ValueError("its checksum is wrong")
        pack = checked(Pack, known | {"folder": folder})
        if not {ATTRIBUTES, EDGES, STARTS, IDS} <= pack.files.keys() <= {ATTRIBUTES, EDGES, STARTS, IDS, LABELS}:
            raise ValueError(f"it names the files {', '.join(pack.files)}")
        if len(pack.attribute_names) != pack.num_attributes:
            raise ValueError(f"it names {len(pack.attribute_names):,} attributes of {pack.num_attributes:,}")
    for name, file in pack.files.items():
        file.check_ends(pack.path(name))
    arrays = {name: DiskArray.open(pack.path(name), REMEDY) for name in pack.files}
    shapes = {
        ATTRIBUTES: (pack.nodes, pack.num_attributes), EDGES: (2, 2 * pack.edges), STARTS: (pack.parts + 1,),
        IDS: (pack.nodes,), LABELS: (pack.nodes,),
    }  # fmt: skip
    for name, array in arrays.items():
        if array.shape != shapes[name]:
            raise BGCLError(f"{array.path} is of another graph: its shape does not fit {ABOUT}. {REMEDY}")
    check_types(arrays)
    from bgcl.progress import stage  # it imports rich, which a list of data sets does not need

    with stage("checking the pack"):
        for name, file in pack.files.items():
            file.check_content(pack.path(name))
        check_numbers(arrays, pack.nodes, len(pack.classes))
    return pack
