r"""The supervised Bayesian GCN with Graph DropConnect and learned drop rates (Hasanzadeh et al., 2020).

Each layer is a `MaskedConvolution`. Each block of its input features has its own mask of connections, drawn at the drop
rate of the layer. The drop rate has a Beta prior and a Kumaraswamy posterior. Weights and rates minimize

    1/N_train sum_v -log p(y_v) + w KL(q(Pi) || p(Pi)) + d sum_l (1 - E[pi^(l)]) |W^(l)|^2.

Masks are relaxed. The weight w rises to its full value in the first epochs. The last term is the part of the KL
divergence of the weights that depends on the weights. Its factor `1 - E[pi^(l)]` gets a gradient here, but not in
`bgcl.model.weight_decay`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from bgcl.augmentation.drop_rates import DropRate
from bgcl.augmentation.masks import DropConnections
from bgcl.augmentation.noise import NoiseStream
from bgcl.augmentation.views import Augmentation, View
from bgcl.baselines.method import Count, NotNegative, Positive, Seed
from bgcl.baselines.supervised import Classifier, Task, derived_seed, probabilities, train
from bgcl.downstream.splits import Split
from bgcl.graph.prepared import PreparedGraph, RowNorm
from bgcl.validation import CheckedSettings

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

_VIEW: View = "o"  # an augmentation has two views, a classifier needs one
_START = (1.0, 1.5)  # a and b of the posterior at the start: a mean rate of 0.4, as in the published code
_VALIDATE_EVERY, _VALIDATION_DRAWS = 20, 10


class GDCGCN(CheckedSettings):
    """Settings and `fit` of the Bayesian GCN with Graph DropConnect.

    Layers, width, blocks, temperature, learning rate, weight decay, weight and warm-up of the KL divergence, and
    unscaled attributes are from the published code. These are different here:

    - the masks of the first layer have blocks too;
    - the prior of the drop rate is uniform; the published code has the prior Beta(0.8, 1) of the keep probability;
    - the matrix is normalized after it is masked, as in the paper's equation;
    - there are 400 epochs instead of 2,000.
    """

    layers: Count = 4
    width: Count = 128
    blocks: Count = 2
    temperature: Positive = 0.67
    prior: tuple[Positive, Positive] = (1.0, 1.0)
    kl_weight: NotNegative = 1.0
    warm_up: Count = 20  # epochs until the KL divergence has its full weight
    lr: NotNegative = 0.005
    weight_decay: NotNegative = 5e-3
    epochs: Count = 400
    samples: Count = 100
    row_norm: RowNorm = "none"
    normalize_after: bool = True  # False: mask the normalized matrix, as the published code does
    seed: Seed = 0

    def fit(self, data: "Data", split: Split) -> Array:
        """Train on a split, then predict with draws of rates and masks.

        Args:
            data: a graph with labels.
            split: the training nodes, and the validation nodes that choose the epoch.

        Returns:
            Class probabilities, `(samples, N, C)`.

        Raises:
            BGCLError: the graph or the split is not valid, or training diverges.
        """
        task = Task.of(data, split, row_norm=self.row_norm)
        generator = torch.Generator().manual_seed(self.seed)
        network = self.train(task, generator)
        with torch.no_grad():
            return probabilities(network.draws(task.graph, self.samples, generator))

    def train(self, task: Task, generator: torch.Generator) -> "GDCNetwork":
        """Train a network with its drop rates."""
        network = GDCNetwork(task.width, len(task.classes), self)
        network.classifier.reset_parameters(generator)

        other = torch.Generator().manual_seed(derived_seed(self.seed, 0))  # so that validation does not change training
        validation_loss = task.validation_loss(lambda: network.draws(task.graph, _VALIDATION_DRAWS, other))
        optimizer = torch.optim.Adam([*network.classifier.parameters(), *network.rates.parameters()], lr=self.lr)
        train(network, optimizer, lambda epoch: network.objective(task, epoch, generator), self.epochs, validation_loss,
              _VALIDATE_EVERY)  # fmt: skip
        return network


class GDCNetwork(nn.Module):
    """A classifier that drops connections at learned rates, one for each layer."""

    def __init__(self, width_in: int, classes: int, settings: GDCGCN) -> None:
        super().__init__()
        inner = [settings.width] * (settings.layers - 1)
        self.settings = settings
        self.classifier = Classifier((width_in, *inner, classes), normalize_after=settings.normalize_after)
        mask = DropConnections(blocks=settings.blocks, per="layer")
        self.augmentation = Augmentation(
            [mask], settings.layers, temperature=settings.temperature, start=_START, prior=settings.prior
        )

    @property
    def rates(self) -> DropRate:
        """The posterior of the drop rates, `(layers, 1)`."""
        ((_, rates),) = self.augmentation.of(_VIEW)
        return rates

    def forward(self, graph: PreparedGraph, generator: torch.Generator) -> Tensor:
        """Logits with one draw of rates and masks, `(N, C)`."""
        masks = self.augmentation.draw(_VIEW, graph, self.classifier.inputs(graph), NoiseStream(generator))
        logits: Tensor = self.classifier(graph, masks)
        return logits

    def draws(self, graph: PreparedGraph, count: int, generator: torch.Generator) -> Iterator[Tensor]:
        for _ in range(count):
            yield self(graph, generator)

    def objective(self, task: Task, epoch: int, generator: torch.Generator) -> Tensor:
        """The loss of an epoch, counted from 0, with one draw of rates and masks."""
        kl_weight = self.settings.kl_weight * min(1.0, (epoch + 1) / self.settings.warm_up)
        return task.training_loss(self(task.graph, generator)) + kl_weight * self.rates.kl() + self.weight_decay()

    def weight_decay(self) -> Tensor:
        """`d sum_l (1 - E[pi^(l)]) |W^(l)|^2`."""
        squares = [layer.weight.square().sum() for layer in self.classifier.layers]  # type: ignore[operator]
        return self.settings.weight_decay * ((1 - self.rates.mean()[:, 0]) * torch.stack(squares)).sum()
