r"""The supervised Bayesian network with Graph DropConnect and learned drop rates (Hasanzadeh et al., 2020).

Every layer is the masked convolution of `bgcl.encoder`. Its masks of connections, anew for each block of input
features, are drawn at a rate of the layer's own, which has a Beta prior and a Kumaraswamy posterior. Weights and rates
together minimise

    1/N_train sum_v -log p(y_v) + w KL(q(Pi) || p(Pi)) + d sum_l (1 - E[pi^(l)]) |W^(l)|^2

where masks are relaxed, the weight w of the KL rises to its full value in the first epochs, and the last term is the
part of the KL of the weights that depends on them. Other than in `bgcl.objective` its factor is not held fixed: here
the rates minimise too, and a dropped connection is one less weight to describe.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from bgcl.augmentation.drop_rates import DropRate
from bgcl.augmentation.masks import DropConnections
from bgcl.augmentation.views import Augmentation, View
from bgcl.baselines.supervised import Classifier, Task, check_at_least, derived_seed, probabilities, train
from bgcl.downstream.splits import Split
from bgcl.errors import BGCLError
from bgcl.graph.prepared import Graph

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

_VIEW: View = "o"  # the augmentation has two views; a classifier needs one
_START = (1.0, 1.5)  # of the posterior: a mean rate of 0.4, as in the published code
_VALIDATE_EVERY, _VALIDATION_DRAWS = 20, 10


@dataclass(frozen=True, kw_only=True)
class GDCGCN:
    """Settings and `fit`.

    Layers, width, blocks, temperature, learning rate, weight decay, the KL's weight, its warm-up and attributes as they
    are come from the published code. Other than there: the first layer's masks come in blocks too; the prior is on the
    probability of dropping, and uniform instead of Beta(0.8, 1) on keeping; and the matrix is normalised after it is
    masked, as the paper's equation has it. There are 400 epochs instead of 2,000.
    """

    layers: int = 4
    width: int = 128
    blocks: int = 2
    temperature: float = 0.67
    prior: tuple[float, float] = (1.0, 1.0)
    kl_weight: float = 1.0
    warm_up: int = 20  # epochs until the KL has its full weight
    lr: float = 0.005
    weight_decay: float = 5e-3
    epochs: int = 400
    samples: int = 100
    normalise_rows: bool = False
    normalise_after: bool = True  # False: mask the normalised matrix, as the published code does
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(self, 1, "layers", "width", "blocks", "warm_up", "epochs", "samples")
        check_at_least(self, 0, "kl_weight", "lr", "weight_decay", "seed")
        if not self.temperature > 0:
            raise BGCLError(f"The setting 'temperature' must be above 0. Got {self.temperature!r} instead.")
        if len(self.prior) != 2 or not min(self.prior) > 0:
            raise BGCLError(f"The setting 'prior' must be two numbers above 0. Got {self.prior!r} instead.")

    def fit(self, data: "Data", split: Split) -> Array:
        """Class probabilities of every node by draws of rates and masks, `(samples, N, C)`."""
        task = Task.of(data, split, normalise_rows=self.normalise_rows)
        generator = torch.Generator().manual_seed(self.seed)
        network = self.train(task, generator)
        with torch.no_grad():
            return probabilities(network.draws(task.graph, self.samples, generator))

    def train(self, task: Task, generator: torch.Generator) -> "GDCNetwork":
        """The trained network with its drop rates."""
        network = GDCNetwork(task.width, len(task.classes), self)
        network.classifier.reset_parameters(generator)

        other = torch.Generator().manual_seed(derived_seed(self.seed, 0))  # to look does not change what is seen
        look = task.validation_loss(lambda: network.draws(task.graph, _VALIDATION_DRAWS, other))
        optimiser = torch.optim.Adam([*network.classifier.parameters(), *network.rates.parameters()], lr=self.lr)
        train(network, optimiser, lambda epoch: network.objective(task, epoch, generator), self.epochs, look,
              _VALIDATE_EVERY)  # fmt: skip
        return network


class GDCNetwork(nn.Module):
    """A classifier whose connections are dropped at learned rates, one for each layer."""

    def __init__(self, width_in: int, classes: int, settings: GDCGCN) -> None:
        super().__init__()
        inner = [settings.width] * (settings.layers - 1)
        self.settings = settings
        self.classifier = Classifier((width_in, *inner, classes), normalise_after=settings.normalise_after)
        mask = DropConnections(blocks=settings.blocks, per="layer")
        self.augmentation = Augmentation(
            [mask], settings.layers, temperature=settings.temperature, start=_START, prior=settings.prior
        )

    @property
    def rates(self) -> DropRate:
        """The posterior of the drop rates, `(layers, 1)`."""
        ((_, rates),) = self.augmentation.of(_VIEW)
        return rates

    def forward(self, graph: Graph, generator: torch.Generator) -> Tensor:
        """The logits of one draw of rates and masks, `(N, C)`."""
        masks = self.augmentation.draw(_VIEW, graph, self.classifier.inputs(graph), generator)
        logits: Tensor = self.classifier(graph, masks)
        return logits

    def draws(self, graph: Graph, count: int, generator: torch.Generator) -> Iterator[Tensor]:
        for _ in range(count):
            yield self(graph, generator)

    def objective(self, task: Task, epoch: int, generator: torch.Generator) -> Tensor:
        """What an epoch (counted from 0) minimises, by one draw of rates and masks."""
        kl_weight = self.settings.kl_weight * min(1.0, (epoch + 1) / self.settings.warm_up)
        return task.training_loss(self(task.graph, generator)) + kl_weight * self.rates.kl() + self.weight_decay()

    def weight_decay(self) -> Tensor:
        """`d sum_l (1 - E[pi^(l)]) |W^(l)|^2`."""
        squares = [layer.weight.square().sum() for layer in self.classifier.layers]  # type: ignore[operator]
        return self.settings.weight_decay * ((1 - self.rates.mean()[:, 0]) * torch.stack(squares)).sum()
