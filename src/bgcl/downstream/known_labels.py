"""The labels that train heads: those of a graph, and those of another graph that has some of the same nodes."""

import copy
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from bgcl.data.ids import id_texts
from bgcl.downstream.splits import labels_of
from bgcl.errors import BGCLError
from bgcl.graph.csr import without_beta_warning

if TYPE_CHECKING:
    from torch_geometric.data import Data

log = logging.getLogger("bgcl")

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class KnownLabels:
    """R labels: first those of the nodes of another graph, then those of the graph itself.

    Attributes:
        labels: the class numbers, `(R,)`.
        node: the node of the graph that has each label, -1 if it is in the other graph alone, `(R,)`.
        here: nodes of the graph whose embeddings train, `(R_1,)`.
        there: nodes of the other graph whose embeddings train, `(R - R_1,)`.
        names: the names of the classes, if there are any.
    """

    labels: Array
    node: Array
    here: Array
    there: Array
    names: Sequence[Any] | None

    def rows(self, draws: Iterator[Array], others: Iterator[Array] | None) -> Iterator[Array]:
        """The embeddings that train heads, `(R, d)`, from each draw of both graphs, `(N, d)`."""
        if others is None:
            yield from (draw[self.here] for draw in draws)
            return
        for draw, other in zip(draws, others, strict=True):
            yield np.concatenate([other[self.there], draw[self.here]]) if len(self.here) else other[self.there]

    def of_nodes(self, num_nodes: int) -> Array:
        """The label of each node of the graph, -1 if it has none, `(N,)`."""
        found = np.full(num_nodes, -1)
        found[self.node[self.node >= 0]] = self.labels[self.node >= 0]
        return found


def gather_labels(data: "Data", other: "Data | None" = None) -> KnownLabels:
    """The labels of a graph, and those that only another graph has.

    Nodes are matched by `match_nodes`, and classes by their names. If both graphs have a label for a node, that of
    `data` counts, with the embedding that the node has there.
    """
    if other is None:
        labels = labels_of(data)
        here = np.flatnonzero(labels >= 0)
        return KnownLabels(labels[here], here, here, here[:0], getattr(data, "classes", None))
    own = _labels_or_none(data)
    if own is None:
        own, names, theirs = np.full(data.num_nodes, -1), getattr(other, "classes", None), labels_of(other)
    else:
        theirs, names = _with_same_classes(data, other)
    here, there, match = np.flatnonzero(own >= 0), np.flatnonzero(theirs >= 0), match_nodes(data, other)
    there = there[~((match[there] >= 0) & (own[match[there]] >= 0))]
    labels = np.concatenate([theirs[there], own[here]])
    return KnownLabels(labels, np.concatenate([match[there], here]), here, there, names)


def align_classes(data: "Data", other: "Data | None") -> "tuple[Data, Data | None]":
    """Both graphs with the same classes in the same order."""
    if other is None:
        return data, None
    data, other = copy.copy(data), copy.copy(other)
    if _labels_or_none(data) is None:
        names = getattr(other, "classes", None)
        data.y = None
    else:
        theirs, names = _with_same_classes(data, other)
        other.y = torch.from_numpy(theirs)
    if names is not None:
        data.classes = other.classes = list(names)
    return data, other


def _labels_or_none(data: "Data") -> Array | None:
    return labels_of(data) if data.y is not None and bool((data.y >= 0).any()) else None


def _with_same_classes(data: "Data", other: "Data") -> tuple[Array, Sequence[Any] | None]:
    """The labels of the other graph with the class numbers of `data`, and the names of all classes."""
    theirs, own_names, other_names = labels_of(other), getattr(data, "classes", None), getattr(other, "classes", None)
    if own_names is None and other_names is None:
        return theirs, None
    own_names = list(range(int(data.y.max()) + 1)) if own_names is None else list(own_names)
    other_names = list(range(int(theirs.max()) + 1)) if other_names is None else list(other_names)
    number = {str(name): i for i, name in enumerate(own_names)}
    if not number.keys() & {str(name) for name in other_names}:
        raise BGCLError(
            f"The graph and the training graph have no class in common: one has {own_names[0]!r}, the other "
            f"{other_names[0]!r}. Correct the labels, or use those of the graph alone (--forget-labels)."
        )
    for name in other_names:
        if str(name) not in number:
            number[str(name)] = len(own_names)
            own_names.append(name)
    moved = np.array([*(number[str(name)] for name in other_names), -1])
    return moved[np.where(theirs >= 0, theirs, -1)], own_names


def match_nodes(data: "Data", other: "Data") -> Array:
    """For each node of the other graph, its number in `data`, -1 if it is not there.

    Nodes are matched by their ids. Without ids, two graphs with the same attributes, row by row, have the same nodes.
    """
    if other is data:
        return np.arange(data.num_nodes)
    if "ids" in data and "ids" in other:
        # As text: one id that is a text makes all ids of a table texts.
        number = {key: i for i, key in enumerate(id_texts(data.ids))}
        return np.array([number.get(key, -1) for key in id_texts(other.ids)])
    return np.arange(data.num_nodes) if _same_rows(data.x, other.x) else np.full(other.num_nodes, -1)


def warn_without_ids(data: "Data", other: "Data | None") -> None:
    """Log a warning if it cannot be known which nodes two graphs share: the label of such a node predicts itself."""
    if other is None or ("ids" in data and "ids" in other) or (match_nodes(data, other) >= 0).any():
        return
    log.warning(
        "Nodes of the two graphs cannot be matched, because one has no ids: all count as different nodes. If they "
        "share nodes, give both graphs ids. Without them the label of a shared node helps to predict this node."
    )


def _same_rows(x: Any, other: Any) -> bool:
    """Whether two graphs have the same attributes, dense or sparse."""
    if not (isinstance(x, torch.Tensor) and isinstance(other, torch.Tensor) and x.shape == other.shape):
        return False
    return all(map(torch.equal, _csr(x), _csr(other)))


def _csr(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    x = x.detach().cpu()
    rows = x if x.layout == torch.sparse_csr else without_beta_warning(x.to_sparse_csr)
    return rows.crow_indices(), rows.col_indices(), rows.values().float()
