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
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.data.on_disk import DiskArray
from bgcl.errors import BGCLError, one_line
from bgcl.files import write_text

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.data.facts import GraphFacts

Array = npt.NDArray[Any]

FORMAT, ABOUT = 1, "pack.json"
ATTRIBUTES, EDGES, STARTS, IDS, LABELS = "attributes.npy", "edges.npy", "starts.npy", "ids.npy", "labels.npy"
_PIECE = 1 << 24  # bytes that are hashed at a time
_REMEDY = "Pack the graph again with 'bgcl data pack'."


@dataclass(frozen=True)
class PackedFile:
    """What is known of a file of a pack: its size in bytes, the SHA-256 of its content, and that of both ends."""

    size: int
    digest: str
    ends: str

    @classmethod
    def of(cls, path: Path) -> "PackedFile":
        """Read all of a file, piece by piece."""
        whole = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                whole.update(piece)
        return cls(path.stat().st_size, whole.hexdigest(), _ends_of(path))


@dataclass(frozen=True)
class Pack:
    """A pack that is open: its folder, and what `pack.json` says."""

    folder: Path
    nodes: int
    edges: int  # undirected
    num_attributes: int
    fingerprint: str  # that of the graph in the order of the rows, as `GraphFacts` has it
    parts: int
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

    def check_all(self) -> None:
        """Compare the content of every file with its digest, which reads all of them.

        Raises:
            BGCLError: if a file was changed.
        """
        for name, known in self.files.items():
            if PackedFile.of(self.path(name)) != known:
                raise BGCLError(f"{self.path(name)} was changed: its checksum is wrong. {_REMEDY}")

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


def write_about(pack: Pack) -> None:
    """Write `pack.json`, which is written last: without it, a folder is no pack."""
    known = {name: value for name, value in vars(pack).items() if name not in ("folder", "files")}
    known["files"] = {name: asdict(file) for name, file in pack.files.items()}
    text = json.dumps(known, indent=1)
    digest = hashlib.sha256(text.encode()).hexdigest()
    write_text(pack.path(ABOUT), json.dumps({"format": FORMAT, "sha256": digest, "pack": known}, indent=1) + "\n")


def open_pack(folder: str | os.PathLike[str]) -> Pack:
    """Open a pack, and check the sizes, the shapes and both ends of its files.

    Raises:
        BGCLError: if a file is missing, was cut off, or is of another graph.
    """
    folder = Path(folder)
    about = folder / ABOUT
    with one_line(about, _REMEDY):
        found = json.loads(about.read_text("utf-8"))
        if found["format"] != FORMAT:
            raise BGCLError(f"{about} has format {found['format']}, and this version of bgcl reads {FORMAT}. {_REMEDY}")
        known = found["pack"]
        if hashlib.sha256(json.dumps(known, indent=1).encode()).hexdigest() != found["sha256"]:
            raise ValueError("its checksum is wrong")
        files = {str(name): PackedFile(**file) for name, file in known.pop("files").items()}
        pack = Pack(folder, files=files, **known)
    for name, file in pack.files.items():
        _check_file(pack.path(name), file)
    shapes = {
        ATTRIBUTES: (pack.nodes, pack.num_attributes), EDGES: (2, 2 * pack.edges), STARTS: (pack.parts + 1,),
        IDS: (pack.nodes,), LABELS: (pack.nodes,),
    }  # fmt: skip
    for name in pack.files:
        if DiskArray.open(pack.path(name)).shape != shapes[name]:
            raise BGCLError(f"{pack.path(name)} is of another graph: its shape does not fit {ABOUT}. {_REMEDY}")
    return pack


def _check_file(path: Path, known: PackedFile) -> None:
    """Check the size and both ends of a file, which takes no time however large it is."""
    if not path.is_file():
        raise BGCLError(f"{path} is missing. {_REMEDY}")
    size = path.stat().st_size
    if size != known.size:
        how = "was cut off" if size < known.size else "has grown"
        raise BGCLError(f"{path} {how}: it has {size:,} bytes instead of {known.size:,}. {_REMEDY}")
    if _ends_of(path) != known.ends:
        raise BGCLError(f"{path} is of another graph, or was changed: it does not fit {ABOUT}. {_REMEDY}")


def _ends_of(path: Path) -> str:
    """The SHA-256 of the first and the last MiB of a file."""
    sha, length = hashlib.sha256(), 1 << 20
    with path.open("rb") as file:
        sha.update(file.read(length))
        file.seek(max(path.stat().st_size - length, 0))
        sha.update(file.read(length))
    return sha.hexdigest()
