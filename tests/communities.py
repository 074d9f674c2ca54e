"""A graph of communities, and splits of it, for methods that learn from labels."""

import numpy as np
import torch
from torch_geometric.data import Data

from bgcl.downstream.splits import Split


def communities(nodes: int = 60, classes: int = 3, *, seed: int = 0, sparse: bool = True) -> Data:
    """Most edges are within a class, and most nonzero attributes of a node belong to its class."""
    random = np.random.default_rng(seed)
    label = np.arange(nodes) % classes
    same = label[:, None] == label[None, :]
    upper = np.triu(random.random((nodes, nodes)) < np.where(same, 0.3, 0.02), 1)
    words = random.random((nodes, 4 * classes)) < np.where(np.arange(4 * classes) % classes == label[:, None], 0.5, 0.1)
    words[:, -1] = True  # every node has an attribute
    x = torch.as_tensor(words, dtype=torch.float32)
    edges = torch.as_tensor(np.stack(np.nonzero(upper | upper.T)))
    return Data(x=x.to_sparse_csr() if sparse else x, edge_index=edges, y=torch.as_tensor(label))


def split_of(data: Data, validation: int = 0, seed: int = 0) -> Split:
    """A random split with 5 training nodes of each class."""
    random, labels = np.random.default_rng(seed), data.y.numpy()
    order = random.permutation(len(labels))
    chosen = np.concatenate([order[labels[order] == c][:5] for c in np.unique(labels) if c >= 0])
    rest = np.setdiff1d(order[labels[order] >= 0], chosen)
    return Split(chosen, rest[:validation], rest[validation:])
