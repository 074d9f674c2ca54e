"""Splits of the labeled nodes into training, validation and test nodes, the same for every method."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.arguments import seed_or, shown, whole
from bgcl.errors import BGCLError, nearest

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

FEW_NUMBERS = 30
PAIR = 2  # training nodes of a class that a head needs to be cross-validated


@dataclass(frozen=True)
class Split:
    """One split of the labeled nodes.

    Attributes:
        train: numbers of the training nodes.
        validation: numbers of the validation nodes; empty if the protocol has none.
        test: numbers of the test nodes.
    """

    train: Array
    validation: Array
    test: Array


def splits(data: "Data", protocol: str = "grace", count: int | None = None, seed: int = 0) -> list[Split]:
    """Split the labeled nodes of a graph by a protocol.

    The protocols are

    - `grace`: 10 % training and 90 % test nodes, 50 random splits;
    - `bgrl`: 10 % training, 10 % validation and 80 % test nodes, 20 random splits;
    - `bgrl-20`: 20 % training, 10 % validation and 70 % test nodes, 20 random splits;
    - `half`: 50 % training and 50 % test nodes, 20 random splits;
    - `public`: the published masks, `data.train_mask`, `data.val_mask` and `data.test_mask`;
    - `wikics`: the 20 published splits of WikiCS;
    - `development`: the same as `grace` within a fixed half of the nodes, on which settings may be chosen.

    A random split has two training nodes of every class. Where chance would give fewer, nodes of the class change
    places with nodes of larger classes. If labels are numbers, or a node may have several, chance alone decides.

    The same seed gives the same splits, for every method and every `count`.

    Args:
        data: a graph with labels `data.y`, -1 for nodes without a label.
        protocol: the name of the protocol.
        count: the number of splits. Default: the number that the protocol has.
        seed: seed of random splits.

    Returns:
        The splits.

    Raises:
        BGCLError: the protocol is unknown, or the graph has too few labels or no masks for it.

    >>> import bgcl
    >>> split = bgcl.splits(bgcl.load("cora"), "grace", count=1)[0]
    >>> len(split.train), len(split.test)
    (270, 2438)
    """
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise BGCLError(f"Unknown protocol '{protocol}'. {nearest(protocol, PROTOCOLS)}")
    many = None if count is None else whole("The number of splits", count, 1)
    found = PROTOCOLS[protocol](data, many, seed_or(seed, 0))
    labels = _groups_of(data)
    classes = np.unique(labels[labels >= 0])
    for number, split in enumerate(found):
        missing = np.setdiff1d(classes, labels[split.train])
        if len(missing):
            raise BGCLError(
                f"Class {missing[0]} has no training node in split {number + 1} of the protocol '{protocol}'. "
                "Label more nodes of this class, or use another protocol or seed."
            )
        if not len(split.test):
            raise BGCLError(f"Split {number + 1} of the protocol '{protocol}' has no test node. Label more nodes.")
    return found


def usual_protocol(data: "Data") -> str:
    """The protocol that papers use for a data set: `wikics`, `bgrl` for Amazon and Coauthor, or else `grace`.

    If a tenth of the labeled nodes is too few for two of every class, it is `half`.
    """
    name = getattr(data, "name", None) or ""
    if name == "wikics" or name.startswith(("amazon", "coauthor")):
        return "wikics" if name == "wikics" else "bgrl"
    labels = _groups_of(data)
    counts = np.bincount(labels[labels >= 0])
    if has_numbers(data) or has_label_sets(data):  # a head and its intervals need some tens of training nodes
        return "grace" if 0.1 * counts.sum() >= FEW_NUMBERS else "half"
    # Of few labels, a tenth has not two nodes of every class.
    return "grace" if np.minimum(counts, PAIR).sum() <= max(int(0.1 * counts.sum()), PAIR) else "half"


def labels_of(data: "Data") -> Array:
    """Class numbers `(N,)`, -1 for nodes without a label."""
    if not hasattr(data, "y"):
        raise BGCLError(f"The graph must be a torch_geometric.data.Data. Got {shown(data)} instead.")
    if data.y is None:
        raise BGCLError("The graph has no labels (data.y). A classifier needs labels for training and testing.")
    labels: Array = data.y.cpu().numpy()
    if has_label_sets(data):
        raise BGCLError(
            "A node may have several labels here (data.y has several columns), and this needs one: use "
            "bgcl.downstream.predict_label_sets or evaluate_label_sets."
        )
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise BGCLError(f"data.y must hold one class number for each node. Got {labels.dtype} of shape {labels.shape}.")
    if not (labels >= 0).any():
        raise BGCLError("No node is labeled: all values of data.y are negative. Label some nodes.")
    return labels


def has_numbers(data: "Data") -> bool:
    """Whether the labels are numbers to predict, and not classes."""
    y = getattr(data, "y", None)
    return y is not None and bool(y.is_floating_point()) and y.dim() == 1


SHARES = {"grace": 10, "bgrl": 10, "bgrl-20": 20, "half": 50}  # % of the labeled nodes that train in a random split


def in_words(protocol: str, count: int) -> str:
    """A number of splits of a protocol, with what it means.

    >>> in_words("grace", 50), in_words("public", 1)
    ('50 splits of the protocol grace (10 % of the labeled nodes train)', '1 split of the protocol public')
    """
    share = f" ({SHARES[protocol]} % of the labeled nodes train)" if protocol in SHARES else ""
    return f"{count} split{'' if count == 1 else 's'} of the protocol {protocol}{share}"


def has_label_sets(data: "Data") -> bool:
    """Whether a node may have several labels: `data.y` has a column for each."""
    y = getattr(data, "y", None)
    return y is not None and y.dim() == 2 and y.shape[1] > 1


def label_sets_of(data: "Data", *, may_be_empty: bool = False) -> Array:
    """Which labels each node has, `(N, L)`: 1 or 0, and -1 in all columns of a node whose labels are not known."""
    if not has_label_sets(data):
        raise BGCLError("data.y must have a column for each label, with 1 for nodes that have it and 0 for others.")
    y = np.asarray(data.y.cpu().numpy(), dtype=np.float64)
    unknown = np.isnan(y) | (y < 0)
    if (~unknown & (y != 0) & (y != 1)).any():
        node = int(np.flatnonzero((~unknown & (y != 0) & (y != 1)).any(1))[0])
        raise BGCLError(f"data.y: a value of node {node} is neither 1 (it has the label) nor 0 (it has not).")
    if (unknown.any(1) & ~unknown.all(1)).any():
        node = int(np.flatnonzero(unknown.any(1) & ~unknown.all(1))[0])
        raise BGCLError(f"data.y: some labels of node {node} are unknown and others are not. Give all or none.")
    if unknown.all() and not may_be_empty:
        raise BGCLError("No node is labeled: all values of data.y are negative or NaN. Label some nodes.")
    return np.where(unknown, -1, y).astype(np.int64)


def numbers_of(data: "Data", *, may_be_empty: bool = False) -> Array:
    """The labels as real numbers `(N,)`, NaN for nodes without one."""
    if not has_numbers(data):
        raise BGCLError("The labels (data.y) are not numbers with a fraction, so they are classes. Use --task numbers.")
    found: Array = data.y.cpu().numpy().astype(np.float64)
    if np.isinf(found).any():
        raise BGCLError(f"data.y: the label of node {int(np.flatnonzero(np.isinf(found))[0])} is infinite. Correct it.")
    if np.isnan(found).all() and not may_be_empty:
        raise BGCLError("No node is labeled: all values of data.y are NaN. Label some nodes.")
    return found


def _groups_of(data: "Data") -> Array:
    """Classes as `labels_of` has them; numbers and sets of labels are one group, `(N,)`, -1 for no label."""
    if has_label_sets(data):
        return np.where(label_sets_of(data)[:, 0] < 0, -1, 0)
    return np.where(np.isnan(numbers_of(data)), -1, 0) if has_numbers(data) else labels_of(data)


def _random(parts: tuple[float, float], default: int) -> Callable[["Data", int | None, int], list[Split]]:
    """A protocol of random splits; `parts` are the shares of training and validation nodes."""

    def make(data: "Data", count: int | None, seed: int) -> list[Split]:
        labels = _groups_of(data)
        labeled = np.flatnonzero(labels >= 0)
        cut = [int(parts[0] * len(labeled)), int(parts[0] * len(labeled)) + int(parts[1] * len(labeled))]
        if cut[0] < 2:
            raise BGCLError(
                f"Only {len(labeled)} nodes are labeled: too few to train on {parts[0]:.0%} of them. Label more nodes."
            )
        chosen = (np.random.default_rng((seed, i)).permutation(labeled) for i in range(count or default))
        return [Split(*np.split(_with_every_class(nodes, cut[0], labels), cut)) for nodes in chosen]

    return make


def _with_every_class(nodes: Array, cut: int, labels: Array) -> Array:
    """An order of nodes in which the first `cut` have two of every class, or one where two are too many.

    The order stays as it is if it has them. If not, the first nodes of a class that are further back change places with
    the last ones of the class that has most. This class keeps as many as it needs itself.
    """
    _, codes, counts = np.unique(labels[nodes], return_inverse=True, return_counts=True)
    wanted, have = np.minimum(counts, PAIR), np.bincount(codes[:cut], minlength=len(counts))
    if wanted.sum() > cut:
        wanted = np.minimum(counts, 1)
    if (have >= wanted).all():
        return nodes
    if wanted.sum() > cut:
        raise BGCLError(
            f"{cut} of {len(nodes)} labeled nodes train, which is too few for {len(counts)} classes. Label more nodes, "
            "or use the protocol half."
        )
    order = np.arange(len(nodes))
    for few in np.flatnonzero(have < wanted):
        for back in np.flatnonzero(codes[order[cut:]] == few)[: wanted[few] - have[few]] + cut:
            most = int((have - wanted).argmax())
            front = int(np.flatnonzero(codes[order[:cut]] == most)[-1])
            order[[front, back]] = order[[back, front]]
            have[few] += 1
            have[most] -= 1
    return np.asarray(nodes[order])


def development_half(nodes: int) -> Array:
    """A fixed half of the nodes on which settings may be chosen. Scores on the other half are blind to the choice."""
    return np.random.default_rng(2022).permutation(nodes)[: nodes // 2]


def _development(data: "Data", count: int | None, seed: int) -> list[Split]:
    """Training nodes (10 % of all nodes) and test nodes, both from the development half."""
    labels = _groups_of(data)
    half = development_half(len(labels))
    half = half[labels[half] >= 0]
    cut = int(0.1 * len(labels))
    if not 2 <= cut < len(half):
        raise BGCLError(
            f"Only {len(half)} nodes of the development half are labeled: too few to train on {cut}. Label more nodes."
        )
    chosen = (np.random.default_rng((seed + 7, i)).permutation(half) for i in range(count or 20))
    parts = (_with_every_class(nodes, cut, labels) for nodes in chosen)
    return [Split(nodes[:cut], nodes[:0], nodes[cut:]) for nodes in parts]


def _public(data: "Data", count: int | None, seed: int) -> list[Split]:
    for name in ("train_mask", "val_mask", "test_mask"):
        if name not in data:
            raise BGCLError(f"The graph has no published masks (data.{name}). Use the protocol grace or bgrl.")
    train, validation, test = (mask.cpu().numpy() for mask in (data.train_mask, data.val_mask, data.test_mask))
    many = max(mask.shape[1] if mask.ndim == 2 else 1 for mask in (train, validation, test))
    if count is not None and count > many:
        raise BGCLError(f"The graph has {many} published splits, not {count}. Ask for {many} or fewer.")

    labeled = _groups_of(data) >= 0

    def part(mask: Array, i: int) -> Array:
        return np.flatnonzero((mask[:, i] if mask.ndim == 2 else mask) & labeled)

    return [Split(part(train, i), part(validation, i), part(test, i)) for i in range(count or many)]


def _wikics(data: "Data", count: int | None, seed: int) -> list[Split]:
    found = _public(data, count, seed)
    if len(found) == 1 and count is None:
        raise BGCLError("The graph has one published split, not the 20 of WikiCS. Use the protocol public.")
    return found


PROTOCOLS: dict[str, Callable[["Data", int | None, int], list[Split]]] = {
    "grace": _random((0.1, 0.0), 50),
    "bgrl": _random((0.1, 0.1), 20),
    "bgrl-20": _random((0.2, 0.1), 20),
    "half": _random((0.5, 0.0), 20),
    "public": _public,
    "wikics": _wikics,
    "development": _development,
}
