r"""The Graph Posterior Network (Stadler et al., 2021): evidence for each class, which spreads along the edges.

An encoder that sees one node at a time gives a vector z. A radial flow for each class gives its density, and the
evidence of a node is `b_c = (4 pi)^(d/2) p(z | c) p(c)`. It is spread by personalized PageRank,

    B_0 = b,    B_k = (1 - t) A' B_(k-1) + t b,    A' = g_a(A),

and `alpha = 1 + B_K` are the parameters of a Dirichlet distribution of the class probabilities. A node that is unlike
all training nodes, in a neighborhood of such nodes, has little evidence. Training minimizes the expected cross-entropy
of the training nodes under this distribution, minus a small multiple of its entropy.

Encoder, widths, flows, K, t, learning rate, penalties, warm-up and patience are from the published configurations for
citation graphs. Different here: attributes have rows that sum to one unless they are given otherwise, and there are at
most 400 epochs (100,000 there, of which the patience leaves some hundred).
"""

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.distributions import Dirichlet

from bgcl.augmentation.views import LayerMask
from bgcl.baselines.method import Count, NotNegative, Seed
from bgcl.baselines.radial_flow import RadialFlows
from bgcl.baselines.supervised import Task, train
from bgcl.downstream.splits import Split
from bgcl.graph.prepared import PreparedGraph, RowNorm
from bgcl.model.encoders.mlp import MaskedLinear
from bgcl.model.propagation import Propagation
from bgcl.validation import CheckedSettings, Number

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

_LARGEST = 30.0  # bound of the log evidence, so that it can be exponentiated


class GPN(CheckedSettings):
    """Settings and `fit` of the Graph Posterior Network."""

    width: Count = 64
    latent: Count = 16
    flows: Count = 10
    steps: Count = 10
    teleport: Number = Field(default=0.1, ge=0, le=1)
    dropout: Number = Field(default=0.5, ge=0, lt=1)
    entropy: NotNegative = 1e-4
    lr: NotNegative = 0.01
    weight_decay: NotNegative = 1e-3  # of the encoder
    epochs: Count = 400
    warm_up: int = Field(default=5, ge=0)  # epochs in which only the flows learn
    patience: Count = 50
    row_norm: RowNorm = "sum"
    seed: Seed = 0

    @classmethod
    def published(cls, dataset: str) -> Self:
        """The published settings. The Amazon graphs have unscaled attributes, as for the GCN."""
        return cls(row_norm="none" if dataset.startswith("amazon") else "sum")

    def fit(self, data: "Data", split: Split) -> Array:
        """Train on a split and predict every node.

        Args:
            data: a graph with labels.
            split: the training nodes, and the validation nodes that choose the epoch.

        Returns:
            Class probabilities, `(1, N, C)`: the mean of each node's Dirichlet distribution.

        Raises:
            BGCLError: the graph or the split is not valid, or training diverges.
        """
        task = Task.of(data, split, row_norm=self.row_norm)
        alpha = self.train(task)(task.graph)
        return mean_probability(alpha)[None]

    def train(self, task: Task) -> "GPNNetwork":
        """Train a network."""
        generator = torch.Generator().manual_seed(self.seed)
        network = GPNNetwork(task, self, generator)
        flows = list(network.flows.parameters())
        encoder: list[dict[str, Any]] = [
            {"params": [*network.first.parameters(), *network.second.parameters()], "weight_decay": self.weight_decay}
        ]
        nodes, codes = task.train

        def objective(_: int) -> Tensor:
            alpha = network(task.graph, generator)[nodes]
            entropy: Tensor = Dirichlet(alpha).entropy()  # type: ignore[no-untyped-call]
            return expected_cross_entropy(alpha, codes).sum() - self.entropy * entropy.sum()

        if self.warm_up:
            train(network, torch.optim.Adam(flows, lr=self.lr), objective, self.warm_up, None, 1)
        optimizer = torch.optim.Adam([*encoder, {"params": flows}], lr=self.lr)
        validation_loss = task.validation_loss(lambda: iter((network.log_probability(task.graph),)))
        train(network, optimizer, objective, self.epochs, validation_loss, 1, patience=self.patience)
        return network


class GPNNetwork(nn.Module):
    """The encoder, the flows, and the diffusion of the evidence."""

    def __init__(self, task: Task, settings: GPN, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        self.first = MaskedLinear(task.width, settings.width)
        self.second = MaskedLinear(settings.width, settings.latent)
        for layer in (self.first, self.second):
            layer.reset_parameters(generator)
        self.flows = RadialFlows(len(task.classes), settings.latent, settings.flows, generator)
        counts = torch.bincount(task.train[1], minlength=len(task.classes)).float()
        self.register_buffer("log_frequency", torch.log(counts / counts.sum()))

    def forward(self, graph: PreparedGraph, dropout: torch.Generator | None = None) -> Tensor:
        """The parameters alpha of each node's Dirichlet distribution, `(N, C)`; without dropout if None is given."""
        return 1 + diffused(Propagation(graph), self.evidence(graph, dropout), self.settings.steps,
                            self.settings.teleport)  # fmt: skip

    def evidence(self, graph: PreparedGraph, dropout: torch.Generator | None = None) -> Tensor:
        """The evidence of each node by itself, `(N, C)`."""
        hidden = torch.relu(self.first(graph, graph.features, LayerMask()))  # (N, width)
        rate = self.settings.dropout
        if dropout is not None and rate:
            hidden = hidden * (torch.rand(hidden.shape, generator=dropout) >= rate) / (1 - rate)
        z = self.second(graph, hidden, LayerMask())  # (N, latent)
        scale = self.settings.latent / 2 * math.log(4 * math.pi)
        found = self.flows(z) + self.log_frequency + scale
        return torch.exp(found.clamp(-_LARGEST, _LARGEST))

    def log_probability(self, graph: PreparedGraph) -> Tensor:
        """The log of the mean class probabilities, `(N, C)`."""
        alpha = self(graph)
        return torch.log(alpha / alpha.sum(1, keepdim=True))


def diffused(propagation: Propagation, evidence: Tensor, steps: int, teleport: float) -> Tensor:
    """`B_K` from the evidence `(N, C)`, in `steps` steps of personalized PageRank."""
    found = evidence
    for _ in range(steps):
        found = (1 - teleport) * propagation(found) + teleport * evidence
    return found


def expected_cross_entropy(alpha: Tensor, codes: Tensor) -> Tensor:
    """`E[-log p_y]` for `p ~ Dirichlet(alpha)`, `digamma(sum_c alpha_c) - digamma(alpha_y)`, `(n,)`."""
    return torch.digamma(alpha.sum(1)) - torch.digamma(alpha.gather(1, codes[:, None])[:, 0])


def mean_probability(alpha: Tensor) -> Array:
    """The mean of the Dirichlet distributions, `(N, C)`."""
    return np.asarray((alpha / alpha.sum(1, keepdim=True)).detach().numpy())
