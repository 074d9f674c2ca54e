"""Classifiers that look at labels alone: the vote of neighbors, and the most frequent class."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from bgcl.baselines.method import Positive, Seed
from bgcl.downstream.splits import Split, labels_of
from bgcl.graph.prepared import relative_weights
from bgcl.validation import CheckedSettings

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]


class MajorityClass(CheckedSettings):
    """The share of each class among the training nodes, the same for every node. The seed has no effect."""

    seed: Seed = 0

    def fit(self, data: "Data", split: Split) -> Array:
        """Class probabilities of every node, `(1, N, C)`."""
        onehot, frequency = training_labels(data, split)
        return np.tile(frequency, (1, len(onehot), 1))


class NeighborVote(CheckedSettings):
    r"""The labels of a node's neighbors, then those of their neighbors.

    With Y the one-hot labels of the training nodes, `(N, C)`, and A the adjacency matrix, which has the weights of the
    edges divided by their mean, the votes are `A Y`. A node without a labeled neighbor takes `A^2 Y`, where a neighbor
    counts once for each path. The probabilities are

        p = (votes + s f) / sum(votes + s f),

    with f the frequency of the classes and s the `prior_votes`. The seed has no effect.
    """

    prior_votes: Positive = 1.0
    seed: Seed = 0

    def fit(self, data: "Data", split: Split) -> Array:
        """Class probabilities of every node, `(1, N, C)`."""
        onehot, frequency = training_labels(data, split)
        row, column = data.edge_index.cpu().numpy()
        keep = row != column
        weights = relative_weights(data)
        values = np.ones(len(row)) if weights is None else weights.numpy()
        adjacency = csr_matrix((values[keep], (row[keep], column[keep])), shape=(data.num_nodes, data.num_nodes))
        near = adjacency @ onehot
        far = adjacency @ near
        votes = np.where(near.sum(1, keepdims=True) > 0, near, far) + self.prior_votes * frequency
        return np.asarray(votes / votes.sum(1, keepdims=True))[None]


def training_labels(data: "Data", split: Split) -> tuple[Array, Array]:
    """One-hot labels of the training nodes, `(N, C)`, zero for all others; and the frequency of the classes, `(C,)`."""
    labels = labels_of(data)
    classes = np.unique(labels[labels >= 0])
    onehot = np.zeros((data.num_nodes, len(classes)))
    onehot[split.train, np.searchsorted(classes, labels[split.train])] = 1
    # One more node in each class, so that no probability is 0.
    counts = onehot.sum(0) + 1
    return onehot, counts / counts.sum()
