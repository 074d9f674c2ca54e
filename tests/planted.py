"""A graph of two communities with attributes that tell them apart a little, and how well embeddings do."""

import numpy as np
import torch
from torch_geometric.data import Data


def planted_graph(nodes: int = 60, *, sparse: bool = True, seed: int = 0) -> Data:
    """Two communities of the same size, few edges between them; node 0 is on its own. `sparse` is about attributes."""
    random = np.random.default_rng(seed)
    community = np.arange(nodes) % 2
    chance = np.where(community[:, None] == community, 0.25, 0.01)
    chance[0, :] = chance[:, 0] = 0
    upper = np.triu(random.random((nodes, nodes)) < chance, 1)
    edges = np.stack(np.nonzero(upper | upper.T))
    words = random.random((nodes, 24)) < (0.03 if sparse else 0.1)
    own = random.random((nodes, 12)) < (0.2 if sparse else 0.7)  # of a community's own words
    words[:, :12] |= own & (community == 0)[:, None]
    words[:, 12:] |= own & (community == 1)[:, None]
    x = torch.as_tensor(words, dtype=torch.float32)
    x[:, 0] += 0.5 * (x.sum(1) == 0)
    return Data(x=x, edge_index=torch.as_tensor(edges), y=torch.as_tensor(community), num_nodes=nodes)


def leave_one_out_accuracy(embeddings: np.ndarray, labels: np.ndarray) -> float:
    """The share of nodes (but node 0) that are nearer, by cosine, to the mean of their own community's other nodes."""
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
