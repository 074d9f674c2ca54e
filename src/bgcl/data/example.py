"""A tiny graph to try things on, made here: no file, no download, and a training of a second."""

import numpy as np
import torch
from torch_geometric.data import Data

from bgcl.errors import BGCLError

CLASSES, WORDS = 3, 8  # classes, and attributes that each class has more often than the others


def example_graph(nodes: int = 240, *, seed: int = 0) -> Data:
    """A random graph of three communities, whose nodes mostly have neighbours and attributes of their own kind.

    The label of a node is its community. The same seed gives the same graph.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> data.num_nodes, data.x.shape[1], data.y.unique().tolist()
    (240, 24, [0, 1, 2])
    """
    if nodes < 2 * CLASSES:
        raise BGCLError(f"The example graph must have {2 * CLASSES} nodes or more. Got {nodes} instead.")
    random = np.random.default_rng(seed)
    community = np.arange(nodes) % CLASSES
    # About six neighbours of the own kind and one of each other, whatever the size.
    chance = np.where(community[:, None] == community, 6, 1) * CLASSES / nodes
    upper = np.triu(random.random((nodes, nodes)) < chance, 1)
    own = np.repeat(np.arange(CLASSES), WORDS)[None] == community[:, None]
    words = random.random((nodes, CLASSES * WORDS)) < np.where(own, 0.5, 0.15)
    words[np.arange(nodes), community * WORDS] |= ~words.any(1)  # no node is without any
    return Data(
        x=torch.as_tensor(words, dtype=torch.float32),
        edge_index=torch.as_tensor(np.stack(np.nonzero(upper | upper.T))),
        y=torch.as_tensor(community),
    )
