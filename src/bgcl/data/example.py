"""A tiny random graph for first steps: no file, no download, and training takes a second."""

import numpy as np
import torch
from torch_geometric.data import Data

from bgcl.arguments import seed_or, whole
from bgcl.errors import BGCLError

CLASSES, WORDS = 3, 8  # number of classes, and of attributes that are frequent in each class


def example_graph(nodes: int = 240, *, seed: int = 0) -> Data:
    """Make a random graph of three communities.

    The label of a node is its community. Most of its neighbors are in the same community, and each community has eight
    of the 24 binary attributes more often than the others. The same seed gives the same graph.

    Args:
        nodes: number of nodes N.
        seed: seed of the random numbers.

    Returns:
        A `Data` with `x` `(N, 24)`, `edge_index` in both directions and `y` `(N,)`.

    Raises:
        BGCLError: if there are fewer than six nodes.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> data.num_nodes, data.x.shape[1], data.y.unique().tolist()
    (240, 24, [0, 1, 2])
    """
    nodes = whole("The number of nodes", nodes)
    if nodes < 2 * CLASSES:
        raise BGCLError(f"The example graph must have {2 * CLASSES} nodes or more. Got {nodes} instead.")
    random = np.random.default_rng(seed_or(seed, 0))
    community = np.arange(nodes) % CLASSES
    # For any number of nodes: about six neighbors in the same community, and one in each other community.
    chance = np.where(community[:, None] == community, 6, 1) * CLASSES / nodes
    upper = np.triu(random.random((nodes, nodes)) < chance, 1)
    frequent = np.repeat(np.arange(CLASSES), WORDS)[None] == community[:, None]
    words = random.random((nodes, CLASSES * WORDS)) < np.where(frequent, 0.5, 0.15)
    words[np.arange(nodes), community * WORDS] |= ~words.any(1)  # at least one attribute for each node
    return Data(
        x=torch.as_tensor(words, dtype=torch.float32),
        edge_index=torch.as_tensor(np.stack(np.nonzero(upper | upper.T))),
        y=torch.as_tensor(community),
    )
