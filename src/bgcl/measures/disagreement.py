"""Contrastive model disagreement, a measure of uncertainty that needs no labels (after Möllers et al., 2023).

What is theirs: the likelihoods of a contrastive model as the source, the effective number as the measure, and that an
anchor and its negatives stay the same while its positives differ (`model.disagreement(data, anchored=True)`). What is
not: their posterior is one of weights, here draws differ by their masks; and the default here is over pairs in which
anchor, positive and negatives are all drawn anew.

A pair of draws, one for each view, gives each node a contrastive likelihood `l`: the probability that the node's
embedding in one view picks its own embedding in the other view among those of all nodes
(`contrastive_log_likelihood`).

If the model knows a node well, the likelihoods of K pairs agree. Daxberger and Hernández-Lobato (2019) measure this for
Bayesian generative models by the effective number of pairs, `1 / sum_k w_k^2` with `w_k = l_k / sum_j l_j`. Here the
measure is `1 - 1 / (K sum_k w_k^2)`, which has the opposite order. It is 0 if all pairs agree, and at most `1 - 1/K`.

In a graph of more than 4,096 nodes, the likelihood of a node is estimated: its own similarity is exact, and those of
all other nodes are estimated from 4,096 nodes. These were chosen at random once, and are the same for all pairs and all
seeds.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[Any]


def disagreement(log_likelihoods: Iterator[Tensor]) -> Array:
    """Compute `1 - 1 / (K sum_k w_k^2)` for each node.

    Args:
        log_likelihoods: `log l` of each pair, `(N,)` each.

    Returns:
        The disagreement, `(N,)`.

    >>> agree, differ = torch.tensor([-1.0, 0.0]), torch.tensor([-1.0, -9.0])
    >>> disagreement(iter([agree, differ])).round(3)
    array([0. , 0.5])
    """
    total: Tensor | None = None
    squares = torch.zeros(())
    count = 0
    for log_l in log_likelihoods:
        count += 1
        likelihood = log_l.cpu().double()  # some devices have no float64
        total = likelihood if total is None else torch.logaddexp(total, likelihood)
        squares = 2 * likelihood if count == 1 else torch.logaddexp(squares, 2 * likelihood)
    assert total is not None
    effective = torch.exp(2 * total - squares)  # (sum l)^2 / sum l^2, from 1 to K
    return np.asarray((1 - effective / count).clamp(min=0))
