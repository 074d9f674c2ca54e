"""Which nodes a classifier learns from and which it is tested on: seeded, and the same for every method."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.errors import BGCLError, nearest

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Split:
    """Node numbers; `validation` is empty where a protocol has none."""

    train: Array
    validation: Array
    test: Array


def splits(data: "Data", protocol: str = "grace", count: int | None = None, seed: int = 0) -> list[Split]:
    """The splits of a protocol: `grace` (10 % train, 90 % test, 50 random), `bgrl` (10/10/80 %, 20 random), `public`
    (the published masks) or `wikics` (its 20 published splits).

    Only labelled nodes take part. The same seed gives the same splits, whatever the method or the number asked for.

    >>> import bgcl
    >>> split = bgcl.splits(bgcl.load("cora"), "grace", count=1)[0]
    >>> len(split.train), len(split.test)
    (270, 2438)
    """
    if protocol not in PROTOCOLS:
        raise BGCLError(f"Unknown protocol '{protocol}'. {nearest(protocol, PROTOCOLS)}")
    if count is not None and count < 1:
        raise BGCLError(f"The number of splits must be 1 or more. Got {count} instead.")
    found = PROTOCOLS[protocol](data, count, seed)
    labels = labels_of(data)
    classes = np.unique(labels[labels >= 0])
    for number, split in enumerate(found):
        missing = np.setdiff1d(classes, labels[split.train])
        if len(missing):
            raise BGCLError(
                f"Class {missing[0]} has no training node in split {number + 1} of the protocol '{protocol}'. "
                "Label more nodes of it, or take another protocol or seed."
            )
        if not len(split.test):
            raise BGCLError(
                f"Split {number + 1} of the protocol '{protocol}' has no test node: the graph is too small."
            )
    return found


def suited_to(data: "Data") -> str:
    """The protocol that papers use for a data set: `bgrl` for Amazon and Coauthor, `grace` for the rest."""
    name = getattr(data, "name", None) or ""
    return "wikics" if name == "wikics" else "bgrl" if name.startswith(("amazon", "coauthor")) else "grace"


def labels_of(data: "Data") -> Array:
    """Class numbers `(N,)`, -1 where a node has none."""
    if data.y is None:
        raise BGCLError("The graph has no labels (data.y). They are needed to train and test a classifier.")
    labels: Array = data.y.cpu().numpy()
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise BGCLError(f"data.y must hold one class number for each node. Got {labels.dtype} of shape {labels.shape}.")
    if not (labels >= 0).any():
        raise BGCLError("No node is labelled: all of data.y is negative.")
    return labels


def _random(parts: tuple[float, float], default: int) -> Callable[["Data", int | None, int], list[Split]]:
    """Splits at random; `parts` are the shares of the training and validation nodes."""

    def make(data: "Data", count: int | None, seed: int) -> list[Split]:
        labelled = np.flatnonzero(labels_of(data) >= 0)
        cut = [int(parts[0] * len(labelled)), int(parts[0] * len(labelled)) + int(parts[1] * len(labelled))]
        if cut[0] < 2:
            raise BGCLError(f"Only {len(labelled)} nodes are labelled: too few to train on {parts[0]:.0%} of them.")
        chosen = (np.random.default_rng((seed, i)).permutation(labelled) for i in range(count or default))
        return [Split(*np.split(nodes, cut)) for nodes in chosen]

    return make


def development_half(nodes: int) -> Array:
    """The nodes on which settings may be chosen: a fixed half. Figures on the others are blind to these choices."""
    return np.random.default_rng(2022).permutation(nodes)[: nodes // 2]


def _development(data: "Data", count: int | None, seed: int) -> list[Split]:
    """Training nodes, 10 % of all, and test nodes from within the development half."""
    labels = labels_of(data)
    half = development_half(len(labels))
    half = half[labels[half] >= 0]
    cut = int(0.1 * len(labels))
    if not 2 <= cut < len(half):
        raise BGCLError(f"Only {len(half)} nodes of the development half are labelled: too few to train on {cut}.")
    chosen = (np.random.default_rng((seed + 7, i)).permutation(half) for i in range(count or 20))
    return [Split(nodes[:cut], nodes[:0], nodes[cut:]) for nodes in chosen]


def _public(data: "Data", count: int | None, seed: int) -> list[Split]:
    for name in ("train_mask", "val_mask", "test_mask"):
        if name not in data:
            raise BGCLError(f"The graph has no published masks (data.{name}). Take the protocol grace or bgrl.")
    train, validation, test = (mask.cpu().numpy() for mask in (data.train_mask, data.val_mask, data.test_mask))
    many = max(mask.shape[1] if mask.ndim == 2 else 1 for mask in (train, validation, test))
    if count is not None and count > many:
        raise BGCLError(f"The graph has {many} published splits, not {count}.")

    labelled = labels_of(data) >= 0

    def part(mask: Array, i: int) -> Array:
        return np.flatnonzero((mask[:, i] if mask.ndim == 2 else mask) & labelled)

    return [Split(part(train, i), part(validation, i), part(test, i)) for i in range(count or many)]


def _wikics(data: "Data", count: int | None, seed: int) -> list[Split]:
    found = _public(data, count, seed)
    if len(found) == 1 and count is None:
        raise BGCLError("The graph has one published split, not the 20 of WikiCS. Take the protocol public.")
    return found


PROTOCOLS: dict[str, Callable[["Data", int | None, int], list[Split]]] = {
    "grace": _random((0.1, 0.0), 50),
    "bgrl": _random((0.1, 0.1), 20),
    "public": _public,
    "wikics": _wikics,
    "development": _development,
}
