"""Verify the data sets on this machine: compare their content with what is published.

A digest of the content is published with this library for every data set but WikiCS. Of WikiCS, only the checksum of
the publisher's file is known. So its content is verified only if that file is at hand. The digest that is recorded
beside a download shows whether the download has changed since. It proves nothing about where it came from, because
whoever writes the one can write the other.
"""

from dataclasses import dataclass
from pathlib import Path

from bgcl.data.catalog import Dataset, find
from bgcl.data.clean import content_digest
from bgcl.data.store import Place, locate, published_folder, read_checked, read_published, record_of
from bgcl.errors import BGCLError


@dataclass(frozen=True)
class Verified:
    """The result of `verify`.

    Attributes:
        name: name of the data set.
        place: where it is stored.
        path: its file.
        digest: SHA-256 of the content.
        note: what the digest was compared with.
        verified: whether the content is known to be the published one.
    """

    name: str
    place: Place
    path: Path
    digest: str
    note: str
    verified: bool = True


def verify(name: str) -> Verified:
    """Read a data set on this machine and compare its content with the published one.

    The content of WikiCS can be verified only if the publisher's `data.json` is in the folder `$BGCL_DATA`.

    Args:
        name: name of the data set.

    Returns:
        The place, the path, the digest, what it was compared with, and whether this verifies it.

    Raises:
        BGCLError: if the data set is not on this machine, is damaged, or has another content than the published one.

    >>> from bgcl.data import verify
    >>> verify("cora").note, verify("cora").verified
    ('matches the published content', True)
    """
    dataset = find(name)
    place, path = locate(name)
    if path is None:
        raise BGCLError(f"{dataset.name} is not on this machine. Download it with `bgcl data get {dataset.name}`.")
    _, found = read_checked(dataset, path)
    if dataset.digest is not None:
        return Verified(dataset.name, place, path, found, "matches the published content")
    folder = published_folder(dataset)
    if folder is None:
        return Verified(dataset.name, place, path, found, _unknown(dataset, path), verified=False)
    if content_digest(read_published(dataset, folder)) != found:
        raise BGCLError(
            f"{path} is not the published {dataset.name}: its content differs from that of the publisher's file in "
            f"{folder}. Delete it and run `bgcl data get {dataset.name}`."
        )
    return Verified(dataset.name, place, path, found, "matches the publisher's file")


def _unknown(dataset: Dataset, path: Path) -> str:
    """What is known of a data set without a published digest."""
    file = dataset.addresses[0].rsplit("/", 1)[-1]
    known = f"it has not changed since {record_of(path).name} was written" if record_of(path).is_file() else "sizes fit"
    return f"not verified: no digest is published; {known}; to verify it, put the publisher's {file} into $BGCL_DATA"
