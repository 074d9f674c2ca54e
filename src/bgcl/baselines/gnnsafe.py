r"""GNNSafe (Wu et al., 2023): the energy of a supervised GCN's logits, spread along the edges, finds unknown nodes.

The energy of a node with logits l is `E = -log sum_c exp l_c`. It is low where the network is sure of a class. As
neighbors are mostly of the same kind, it is averaged with the mean over the neighbors, K times:

    E_k = a E_(k-1) + (1 - a) D^-1 A E_(k-1),    K = 2, a = 0.5.

The network has two layers with batch normalization between them, as published. A node without neighbors keeps its
energy, which in the published code falls to zero.
"""

from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt
import torch
from pydantic import Field
from torch import nn

from bgcl.baselines.convolutions import Convolutions
from bgcl.baselines.method import Count, NotNegative, Seed
from bgcl.baselines.supervised import Task, probabilities, train
from bgcl.downstream.splits import Split
from bgcl.graph.prepared import PreparedGraph, RowNorm
from bgcl.novelty.propagation import mean_of_neighbors, propagated
from bgcl.validation import CheckedSettings, Number

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

_VALIDATE_EVERY = 5


class GNNSafe(CheckedSettings):
    """Settings and `fit` of the network, and the energy of its nodes. Settings are those of the published code."""

    width: Count = 64
    lr: NotNegative = 0.01
    weight_decay: NotNegative = 0.01
    epochs: Count = 200
    steps: int = Field(default=2, ge=0)
    own: Number = Field(default=0.5, ge=0, le=1)  # a, the share of a node's own energy
    row_norm: RowNorm = "sum"
    seed: Seed = 0

    @classmethod
    def published(cls, dataset: str) -> Self:
        """The published settings, which are the same for every data set."""
        return cls()

    def fit(self, data: "Data", split: Split) -> Array:
        """Train on a split and predict every node.

        Args:
            data: a graph with labels.
            split: the training nodes, and the validation nodes that choose the epoch.

        Returns:
            Class probabilities, `(1, N, C)`.

        Raises:
            BGCLError: the graph or the split is not valid, or training diverges.
        """
        task = Task.of(data, split, row_norm=self.row_norm)
        network = self.train(task)
        with torch.no_grad():
            return probabilities(iter((network(task.graph),)))

    def train(self, task: Task) -> Convolutions:
        """Train a network. It is returned in the mode of evaluation."""
        after = [nn.Sequential(nn.BatchNorm1d(self.width), nn.ReLU()), nn.Identity()]
        network = Convolutions((task.width, self.width, len(task.classes)), after)
        network.reset_parameters(torch.Generator().manual_seed(self.seed))
        optimizer = torch.optim.Adam(network.parameters(), lr=self.lr, weight_decay=self.weight_decay)

        def logits() -> Any:
            yield network.eval()(task.graph)

        train(
            network, optimizer, lambda _: task.training_loss(network.train()(task.graph)), self.epochs,
            task.validation_loss(logits), _VALIDATE_EVERY,
        )  # fmt: skip
        return network.eval()

    def propagated(self, energies: Array, graph: PreparedGraph) -> Array:
        """`E_K` of energies `(N,)`."""
        return propagated(mean_of_neighbors(graph), energies, self.own, self.steps)
