"""Tasks of detection: known nodes, and nodes that a model has not seen anything like.

The shifts are those of Stadler et al. (2021, "Graph Posterior Network") and of Wu et al. (2023, "Energy-based
Out-of-Distribution Detection for Graph Neural Networks"). No method may learn from the labels or the attributes of
unknown nodes. Nodes of left-out classes are in the graph of the training, without labels; all others come later.
"""

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix

from bgcl.downstream.graph_changes import NOISE, attribute_rows, with_attributes, with_noise
from bgcl.downstream.splits import Split, development_half, labels_of, splits
from bgcl.errors import BGCLError, nearest

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]
Random = np.random.Generator

SHIFTS = ("left-out", "bernoulli", "normal", "interpolated", "structure")
SHARE = 0.1  # of all nodes, whose attributes are replaced by noise
WITHIN, BETWEEN = 1.5, 0.5  # probabilities of the blocks' edges, in units of the density of the graph
_FINAL, _DEVELOPMENT = 2026, 2025  # seeds of the random numbers


@dataclass(frozen=True)
class Trial:
    """One task of detection.

    Attributes:
        shift: one of `SHIFTS`.
        trained: the graph of the training. Nodes of left-out classes have no label.
        split: training, validation and test nodes of known classes. Only labels of the first two may be used.
        known_graph: the graph in which known nodes are scored.
        unknown_graph: the graph in which unknown nodes are scored. It may be the same object.
        known: numbers of the known nodes.
        unknown: numbers of the unknown nodes.
    """

    shift: str
    trained: "Data"
    split: Split
    known_graph: "Data"
    unknown_graph: "Data"
    known: Array
    unknown: Array


def trials(data: "Data", shift: str, count: int = 10, *, development: bool = False) -> list[Trial]:
    """Make the tasks of a shift, one for each split.

    Splits have 10 % training, 10 % validation and 80 % test nodes. Only nodes outside the development half are
    scored. Tasks for development have training nodes and scored nodes from this half alone, so that a setting that was
    chosen with them has not seen the nodes of the others.

    Args:
        data: a graph with labels.
        shift: one of `SHIFTS`.
        count: number of splits. The first ones are the same for every count.
        development: make the tasks on which settings may be chosen.

    Returns:
        The tasks.

    Raises:
        BGCLError: the shift is unknown, or the graph has too few labels or classes.

    >>> import bgcl
    >>> trial = trials(bgcl.load("cora"), "left-out", 1)[0]
    >>> np.unique(trial.trained.y[trial.split.train]).tolist(), len(trial.known), len(trial.unknown)
    ([0, 1, 2], 367, 486)
    """
    if shift not in SHIFTS:
        raise BGCLError(f"Unknown shift '{shift}'. {nearest(shift, SHIFTS)}")
    half = development_half(data.num_nodes)
    scored = half if development else np.setdiff1d(np.arange(data.num_nodes), half)
    trained, left_out = left_out_classes(data) if shift == "left-out" else (data, None)
    found = []
    for number, split in enumerate(splits(trained, "development" if development else "bgrl", count)):
        random = np.random.default_rng((_DEVELOPMENT if development else _FINAL, number, SHIFTS.index(shift)))
        known = unknown = np.intersect1d(split.test, scored)
        graph = changed = trained
        if left_out is not None:
            unknown = np.intersect1d(left_out, scored)
        elif shift in NOISE:
            unknown = np.sort(random.choice(known, min(int(SHARE * data.num_nodes), len(known) // 2), replace=False))
            known = np.setdiff1d(known, unknown)
            graph = changed = with_noise(data, unknown, shift, random)
        else:
            changed = interpolated(data, random) if shift == "interpolated" else rewired(data, random)
        if not len(known) or not len(unknown):
            raise BGCLError(f"The shift '{shift}' leaves no known or no unknown node to score. Use a larger graph.")
        found.append(Trial(shift, trained, split, graph, changed, known, unknown))
    return found


def left_out_classes(data: "Data") -> tuple["Data", Array]:
    """Take the labels of the first classes away, as in the code of Wu et al.

    With C classes and `t = C // 2`, at most 4, classes 0 to t - 1 are unknown and those from t + 1 known. Their code
    trains some methods on class t as an example of the unknown. Here it has no labels and is not scored. If only one
    class would be known, class t is known too.

    Returns:
        The graph, in which known classes are numbered from 0 and all other nodes have the label -1; and the numbers of
        the nodes of unknown classes.

    Raises:
        BGCLError: the graph has fewer than three classes.
    """
    labels = labels_of(data)
    classes = np.unique(labels[labels >= 0])
    if len(classes) < 3:
        raise BGCLError(f"The graph has {len(classes)} classes. To leave classes out, it needs three or more.")
    middle = min(len(classes) // 2, 4)
    known = classes[middle + (len(classes) - middle > 2) :]
    found = copy(data)
    found.y = torch.as_tensor(np.where(np.isin(labels, known), np.searchsorted(known, labels), -1))
    return found, np.flatnonzero(np.isin(labels, classes[:middle]))


def interpolated(data: "Data", random: Random) -> "Data":
    r"""Mix the attributes of two random nodes for each node: `x_v = w_v x_a + (1 - w_v) x_b`, `w_v ~ U(0, 1)`."""
    rows = attribute_rows(data.x)
    first, second = random.integers(rows.shape[0], size=(2, rows.shape[0]))
    weight = random.random(rows.shape[0], dtype=np.float32)
    mixed = rows[first].multiply(weight[:, None]) + rows[second].multiply(1 - weight[:, None])
    return with_attributes(data, csr_matrix(mixed))


def rewired(data: "Data", random: Random) -> "Data":
    r"""Replace all edges by those of a stochastic block model that knows nothing of the graph but its density.

    There are C blocks of `N // C` nodes in the order of the nodes, and the last one has the rest. Two nodes are joined
    with a probability of `1.5 rho` within a block and `0.5 rho` between blocks, where `rho` is the share of all pairs
    that have an edge in the graph.
    """
    nodes, blocks = data.num_nodes, len(np.unique(labels_of(data)[labels_of(data) >= 0]))
    density = data.num_edges / (nodes * (nodes - 1))
    bounds = np.append(np.arange(blocks) * (nodes // blocks), nodes)
    edges = [
        _random_pairs(bounds[i : i + 2], bounds[j : j + 2], (WITHIN if i == j else BETWEEN) * density, random)
        for i in range(blocks)
        for j in range(i, blocks)
    ]
    once = np.concatenate(edges, axis=1)
    found = copy(data)
    for name in ("edge_weight", "edge_relations", "relations"):
        if name in found:
            del found[name]
    found.edge_index = torch.as_tensor(np.concatenate([once, once[::-1]], axis=1))
    return found


def _random_pairs(rows: Array, columns: Array, probability: float, random: Random) -> Array:
    """Pairs of nodes of two blocks, each with the same probability, `(2, n)`. In a block, pairs have no order."""
    height, width = np.diff(rows)[0], np.diff(columns)[0]
    same = rows[0] == columns[0]
    every = height * (height - 1) // 2 if same else height * width
    count = random.binomial(every, min(probability, 1.0))
    number = random.choice(every, count, replace=False, shuffle=False)
    if not same:
        return np.stack([rows[0] + number // width, columns[0] + number % width])
    high = ((1 + np.sqrt(1 + 8 * number)) / 2).astype(np.int64)  # number = high (high - 1) / 2 + low, low < high
    high -= high * (high - 1) // 2 > number
    high += (high + 1) * high // 2 <= number
    low = number - high * (high - 1) // 2
    return np.stack([rows[0] + low, rows[0] + high])
