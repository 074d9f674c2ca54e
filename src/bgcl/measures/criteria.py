r"""Criteria of embeddings that need no labels: they say how good an embedding may be before anyone has labeled a node.

- `effective_rank`: RankMe (Garrido et al., 2023), how many directions the embeddings use;
- `edge_likelihood`: how well the embeddings tell a held-out neighbor of a node from other nodes;
- `agreement`: how similar two draws of a node are.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

_ROWS = 1024  # edges that are computed at a time


def effective_rank(vectors: Tensor) -> float:
    r"""`exp(-sum_k p_k log p_k)` with `p_k` the share of the k-th singular value in their sum, of vectors `(N, d)`.

    >>> import torch
    >>> round(effective_rank(torch.eye(4)), 3), round(effective_rank(torch.ones(4, 3)), 3)
    (4.0, 1.0)
    """
    rows = vectors.cpu().double()  # some devices have no float64
    squares = torch.linalg.eigvalsh(rows.T @ rows).clamp(min=0)
    share = squares.sqrt() / squares.sqrt().sum().clamp(min=1e-300)
    return float(torch.exp(-torch.special.xlogy(share, share).sum()))


def edge_likelihood(draws: list[Tensor], edges: Tensor, among: Tensor, tau: float) -> float:
    r"""The mean logarithm of the probability with which a node picks its neighbor out of the nodes `among`.

    With unit vectors `x_i` of a draw, node i picks j with the probability `exp(x_i . x_j / tau) / D_i`, where `D_i` is
    the sum over j and the nodes `among` that are neither i nor j. Several draws are a mixture: their probabilities are
    averaged.

    Args:
        draws: vectors of all nodes, `(N, d)` each.
        edges: pairs of nodes, `(2, n)`.
        among: the nodes to tell a neighbor from, `(M,)`.
        tau: the temperature.
    """
    likelihood = torch.stack([_log_picked(F.normalize(draw, dim=1), edges, among, tau) for draw in draws])
    return float((torch.logsumexp(likelihood, 0) - torch.log(torch.tensor(float(len(draws))))).mean())


def _log_picked(unit: Tensor, edges: Tensor, among: Tensor, tau: float) -> Tensor:
    """The log probability of each edge, `(n,)`."""
    found = []
    for start in range(0, edges.shape[1], _ROWS):
        i, j = edges[:, start : start + _ROWS]
        others = unit[i] @ unit[among].T / tau  # (n, M)
        others[(among == i[:, None]) | (among == j[:, None])] = -torch.inf
        own = (unit[i] * unit[j]).sum(1, keepdim=True) / tau
        found.append(own[:, 0] - torch.logsumexp(torch.cat([own, others], 1), 1))
    return torch.cat(found)


def agreement(one: Tensor, other: Tensor) -> float:
    """The mean cosine of two draws `(N, d)` of the same nodes, compared with that of different nodes.

    `(c_same - c_different) / (1 - c_different)`: 1 if the draws are equal, 0 if a node looks like any other.
    """
    x, y = F.normalize(one, dim=1), F.normalize(other, dim=1)
    same = (x * y).sum(1).mean()
    nodes = len(x)
    different = (x.sum(0) @ y.sum(0) - (x * y).sum()) / max(nodes * (nodes - 1), 1)
    return float((same - different) / (1 - different).clamp(min=1e-6))
