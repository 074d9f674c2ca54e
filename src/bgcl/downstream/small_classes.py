"""Classes with few labeled nodes: merged into one class, left out, or kept."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from bgcl.downstream.known_labels import align_classes, gather_labels
from bgcl.errors import BGCLError, nearest

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

FEWEST = 3  # labeled nodes of a class: two to train and one to test
WAYS = ("leave-out", "merge", "keep")
OTHER = "(other)"  # the name of merged classes
SHOWN = 5  # classes that a note names


def check_way(small: str) -> None:
    """Refuse what is no way to treat small classes."""
    if small not in WAYS:
        raise BGCLError(f"Unknown way to treat small classes '{small}'. {nearest(small, WAYS)}")


def settle_classes(
    data: "Data", other: "Data | None" = None, *, small: str = "leave-out"
) -> "tuple[Data, Data | None, str]":
    """Settle what becomes of classes with fewer than three labeled nodes.

    Args:
        data: a graph with labels.
        other: another graph with more labels, see `labels_from` of `bgcl.predict`.
        small: "leave-out": their nodes count as unlabeled; "merge": they become one class, which is left out if it is
            small too; "keep": they are classes like others, but no node of theirs is held out, because the rest would
            be too few to learn from, so their own labels predict them. If fewer than two classes would be left, all are
            kept.

    Returns:
        The graphs with the labels to use, and a sentence on what was done; it is empty if no class is small.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> data.y[data.y == 1] = -1
    >>> data.y[0] = 1
    >>> settle_classes(data)[2]
    'Class 1 has fewer than 3 labeled nodes and is left out (--small-classes merge or keep for another way).'
    """
    check_way(small)
    known = gather_labels(data, other)
    counts = np.bincount(known.labels)
    few = np.flatnonzero((counts > 0) & (counts < FEWEST))
    if not len(few):
        return data, other, ""
    names = known.names
    shown = [str(number if names is None else names[number]) for number in few[:SHOWN]]
    what = f"Class {shown[0]} has" if len(few) == 1 else f"{len(few)} classes ({_listed(shown, len(few))}) have"
    what, is_ = f"{what} fewer than {FEWEST} labeled nodes and", "is" if len(few) == 1 else "are"
    merges = small == "merge" and counts[few].sum() >= FEWEST
    left = int((counts >= FEWEST).sum()) + merges
    if small == "keep" or left < 2:
        why = "" if small == "keep" else ", because fewer than two classes would be left"
        return data, other, f"{what} {is_} kept{why}: none of their nodes is held out."
    if merges:
        data, other = align_classes(data, other)
        both = _merged(data, few, len(counts)), None if other is None else _merged(other, few, len(counts))
        return *both, f"{what} {is_} merged into {OTHER}."
    moved = np.arange(len(counts))
    moved[few] = -1
    way = "" if small == "leave-out" else ", because together they have too few too"
    data, other = align_classes(data, other)
    advice = " (--small-classes merge or keep for another way)" if small == "leave-out" else ""
    both = _relabeled(data, moved), None if other is None else _relabeled(other, moved)
    return *both, f"{what} {is_} left out{way}{advice}."


def with_pairs(train: Array, labels: Array) -> Array:
    """Training nodes, of which the only one of a class comes twice: a head is cross-validated, which needs two."""
    counts = np.bincount(labels[train])
    return np.concatenate([train, train[counts[labels[train]] == 1]])


def _listed(names: Sequence[str], count: int) -> str:
    return ", ".join(names) + (f" and {count - len(names)} more" if count > len(names) else "")


def _relabeled(data: "Data", moved: Array) -> "Data":
    """The graph with other class numbers, -1 for none."""
    if data.y is None:
        return data
    found = copy.copy(data)
    y = data.y.cpu().numpy()
    found.y = torch.from_numpy(np.append(moved, -1)[np.where(y >= 0, y, -1)])
    return found


def _merged(data: "Data", few: Array, classes: int) -> "Data":
    """The graph with one class, of the next number, in the place of some."""
    names = getattr(data, "classes", None)
    names = list(range(classes)) if names is None else list(names)
    moved = np.arange(len(names))
    moved[few] = len(names)
    found = _relabeled(data, moved)
    found.classes = [*names, OTHER]
    return found
