r"""How strange a node is by the draws of its embedding, without labels.

- astd: the average standard deviation of its embedding, see `bgcl.model.posterior`;
- disagreement: contrastive model disagreement, see `bgcl.measures.disagreement`;
- likelihood: `-log 1/K sum_k l_k`, with the contrastive likelihoods `l_k` of K pairs of draws: the probability that one
  view of a node picks the other one among those of all nodes.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bgcl.measures.disagreement import disagreement
from bgcl.model.posterior import pairs_of_views

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]


def pair_scores(model: "BGCL", data: "Data", samples: int, seed: int) -> dict[str, Array]:
    """Disagreement and likelihood of each node, `(N,)` each, over `samples / 2` pairs of draws."""
    network, graph = model._ready(data)
    pairs = pairs_of_views(network, graph, max(samples // 2, 2), seed, scale=model.settings_.draw_scale)
    with torch.no_grad():
        logs = [network.objective.log_likelihood(o, t).cpu().double() for o, t in pairs]
    return {"disagreement": disagreement(iter(logs)), "likelihood": surprise(logs)}


def surprise(logs: Iterable[Tensor]) -> Array:
    """`-log 1/K sum_k l_k` from `log l_k` of K pairs, `(N,)` each.

    >>> surprise([torch.tensor([-1.0]), torch.tensor([-1.0])]).tolist()
    [1.0]
    """
    every = torch.stack(list(logs))
    return np.asarray(math.log(len(every)) - torch.logsumexp(every, 0))
