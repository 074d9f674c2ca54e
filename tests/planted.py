"""A graph of two communities whose attributes differ a little, and a score for embeddings of it."""

import numpy as np
import torch
from torch_geometric.data import Data


def planted_graph(nodes: int = 60, *, sparse: bool = True, seed: int = 0) -> Data:
    """Two communities of the same size with few edges between them. Node 0 has no edges. `sparse`: the attributes."""
    random = np.random.default_rng(seed)
    community = np.arange(nodes) % 2
    chance = np.where(community[:, None] == community, 0.25, 0.01)
    chance[0, :] = chance[:, 0] = 0
    upper = np.triu(random.random((nodes, nodes)) < chance, 1)
    edges = np.stack(np.nonzero(upper | upper.T))
    words = random.random((nodes, 24)) < (0.03 if sparse else 0.1)
    own = random.random((nodes, 12)) < (0.2 if sparse else 0.7)  # words of the node's community
    words[:, :12] |= own & (community == 0)[:, None]
    words[:, 12:] |= own & (community == 1)[:, None]
    x = torch.as_tensor(words, dtype=torch.float32)
    x[:, 0] += 0.5 * (x.sum(1) == 0)
    return Data(x=x, edge_index=torch.as_tensor(edges), y=torch.as_tensor(community), num_nodes=nodes)


def leave_one_out_accuracy(embeddings: np.ndarray, labels: np.ndarray) -> float:
    """The share of nodes, without node 0, whose nearest community mean by cosine, without the node, is their own."""
    unit = embeddings - embeddings.mean(0)
    unit = (unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12))[1:]
    labels = labels[1:]
    right = 0
    for i in range(len(unit)):
        others = np.arange(len(unit)) != i
        means = [unit[others & (labels == c)].mean(0) for c in (0, 1)]
        scores = [unit[i] @ mean / np.linalg.norm(mean) for mean in means]
        right += int(np.argmax(scores) == labels[i])
    return right / len(unit)
