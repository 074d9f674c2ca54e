r"""DGI (Velickovic et al., 2019): tell the vectors of nodes from those of nodes with shuffled attributes.

A discriminator knows one view only by its summary `s = sigmoid(mean of its vectors)`. It tells the vectors h of the
other view from the vectors h' of the same view with its attributes shuffled, by the score `D(h) = h W s`. The loss is
the cross entropy, the mean of both kinds of vectors and of both directions, such as

    L^o = 1/2N sum_i [-log sigmoid(h_i^o W s^t) - log(1 - sigmoid(h'_i^o W s^t))].

DGI has one view for both; two views are as in MVGRL (Hassani and Khasahmadi, 2020), which compares across views too. A
discriminator that guesses has a loss of `log 2`, and `log 2 - L` is a lower bound of the Jensen-Shannon divergence
between the two kinds of vectors, which is at most `log 2`.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.graph.clusters import feature_rows
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.objectives.base import Objective, Outcome, Step


class Infomax(Objective):
    """A discriminator between nodes and nodes with shuffled attributes.

    A step encodes four times. The rest costs `O(N d)`, so the loss always has all nodes: a part would only add noise.

    Args:
        width: d, width of the encoder's output.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Xavier initialization, from one generator."""
        nn.init.xavier_uniform_(self.weight, generator=generator)

    def forward(self, step: Step) -> Outcome:
        """The loss of one step; `shared` is `1 - L / log 2`."""
        o, t = step.encode("o"), step.encode("t")
        corrupted = shuffled(step.graph, step.generator)
        wrong_o, wrong_t = step.encode("o", graph=corrupted), step.encode("t", graph=corrupted)
        loss = (self._cross_entropy(o, wrong_o, t) + self._cross_entropy(t, wrong_t, o)) / 2
        return Outcome(loss, 1 - loss / math.log(2), o, len(o))

    def log_likelihood(self, o: Tensor, t: Tensor) -> Tensor:
        """`log sigmoid` of the score of either draw with the summary of the other, averaged over both, `(N,)`."""
        return (F.logsigmoid(self.score(o, t)) + F.logsigmoid(self.score(t, o))) / 2

    def score(self, vectors: Tensor, other: Tensor) -> Tensor:
        """`h_i W s` of vectors h `(N, d)` with the summary s of the other view, `(N,)`."""
        return vectors @ (self.weight @ summary(other))

    def _cross_entropy(self, right: Tensor, wrong: Tensor, other: Tensor) -> Tensor:
        scores = self.score(torch.cat([right, wrong]), other)
        return (F.softplus(-scores[: len(right)]).mean() + F.softplus(scores[len(right) :]).mean()) / 2


def summary(vectors: Tensor) -> Tensor:
    """The sigmoid of the mean vector, `(d,)`."""
    return torch.sigmoid(vectors.mean(0))


def shuffled(graph: PreparedGraph, generator: torch.Generator) -> PreparedGraph:
    """The same connections, with the attributes of all nodes shuffled among them."""
    order = torch.randperm(graph.nodes, generator=generator, device=generator.device)
    return replace(graph, features=feature_rows(graph.features, order))
