"""Supervised graph convolutional networks: one, one with dropout at prediction too, and an ensemble.

Each is a frozen dataclass of its settings with one method, `fit(data, split)`, which trains on the labels of
`split.train` and returns the class probabilities of S stochastic draws for every node, `(S, N, C)`, the classes in
ascending order. Labels of other nodes take no part, but for those of `split.validation`, where a protocol has them:
they choose the epoch whose weights are kept. Without them the last epoch's are.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.augmentation.views import LayerMask
from bgcl.data import check_graph
from bgcl.downstream.splits import Split, labels_of
from bgcl.errors import BGCLError
from bgcl.graph.prepared import Features, Graph, prepare
from bgcl.model.encoders.gcn import Encoder

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

_VALIDATE_EVERY = 5  # epochs: to look takes a pass through the network


@dataclass(frozen=True, kw_only=True)
class GCN:
    """The network of Kipf and Welling (2017): `softmax(A' relu(A' X W_1) W_2)` with `A' = g_a(A)`.

    Learning rate, dropout, weight decay, epochs and attributes that sum to one are theirs. The width is 64, as is usual
    where more nodes are labelled than the 20 of a class that their 16 was meant for (Shchur et al., 2018). Where nodes
    have hundreds of attributes, as in Amazon Photo, those that sum to one are too small to learn from in 200 epochs:
    take `normalise_rows=False` there.
    """

    width: int = 64
    dropout: float = 0.5  # of the input of either layer
    lr: float = 0.01
    weight_decay: float = 5e-4  # of the first layer's weights
    epochs: int = 200
    normalise_rows: bool = True  # attributes that sum to one in absolute value
    seed: int = 0

    @classmethod
    def published(cls, dataset: str) -> Self:
        """As published, but Amazon's attributes as they are, which is what the validation nodes of Photo chose."""
        return cls(normalise_rows=not dataset.startswith("amazon"))

    def __post_init__(self) -> None:
        check_at_least(self, 1, "width", "epochs")
        check_at_least(self, 0, "lr", "weight_decay", "seed")
        if not 0 <= self.dropout < 1:
            raise BGCLError(f"The setting 'dropout' must be 0 or more and below 1. Got {self.dropout!r} instead.")

    def fit(self, data: "Data", split: Split) -> Array:
        """Class probabilities of every node, `(S, N, C)`: here one prediction without dropout."""
        task = Task.of(data, split, normalise_rows=self.normalise_rows)
        generator = torch.Generator().manual_seed(self.seed)
        network = self._train(task, generator)
        with torch.no_grad():
            return probabilities(self._draws(network, task.graph, generator))

    def _draws(self, network: "Classifier", graph: Graph, generator: torch.Generator) -> Iterator[Tensor]:
        yield network(graph)

    def _train(self, task: "Task", generator: torch.Generator) -> "Classifier":
        network = Classifier((task.width, self.width, len(task.classes)))
        network.reset_parameters(generator)
        first = network.layers[0].weight
        others = [parameter for parameter in network.parameters() if parameter is not first]
        groups: list[dict[str, Any]] = [{"params": [first], "weight_decay": self.weight_decay}, {"params": others}]
        optimiser = torch.optim.Adam(groups, lr=self.lr)

        def objective(epoch: int) -> Tensor:
            logits = network(task.graph, dropout_masks(network, task.graph, self.dropout, generator))
            return task.training_loss(logits)

        look = task.validation_loss(lambda: iter((network(task.graph),)))
        train(network, optimiser, objective, self.epochs, look, _VALIDATE_EVERY)
        return network


@dataclass(frozen=True, kw_only=True)
class MCDropoutGCN(GCN):
    """The same network, with dropout at prediction too: an approximate posterior (Gal and Ghahramani, 2016)."""

    samples: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "samples")

    def _draws(self, network: "Classifier", graph: Graph, generator: torch.Generator) -> Iterator[Tensor]:
        for _ in range(self.samples):
            yield network(graph, dropout_masks(network, graph, self.dropout, generator))


@dataclass(frozen=True, kw_only=True)
class EnsembleGCN(GCN):
    """A deep ensemble: the same network from several seeds (Lakshminarayanan et al., 2017)."""

    members: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "members")

    def member(self, number: int) -> GCN:
        """One network of the ensemble."""
        same = {field.name: getattr(self, field.name) for field in fields(GCN)}
        return GCN(**same | {"seed": derived_seed(self.seed, number)})

    def fit(self, data: "Data", split: Split) -> Array:
        """Class probabilities of every node by every member, `(members, N, C)`."""
        return np.concatenate([self.member(number).fit(data, split) for number in range(self.members)])


class Classifier(Encoder):
    """Masked convolutions with the activation between them. Shapes: result `(N, C)`, the logits of the classes."""

    def reset_parameters(self, generator: torch.Generator) -> None:
        for layer in self.layers:
            layer.reset_parameters(generator)  # type: ignore[operator]

    def forward(self, graph: Graph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        features: Features = graph.features
        for i, layer in enumerate(self.layers):
            if i:
                features = self.activation(features)
            features = layer(graph, features, LayerMask() if masks is None else masks[i])
        assert isinstance(features, Tensor)
        return features


def dropout_masks(network: Encoder, graph: Graph, rate: float, generator: torch.Generator) -> list[LayerMask] | None:
    """Dropout of the input of every layer: an entry is kept with probability `1 - rate` and then divided by it."""
    if rate == 0:
        return None
    noise = (torch.rand(layer.entries, generator=generator) for layer in network.inputs(graph))
    return [LayerMask(entries=(uniform >= rate).float() / (1 - rate)) for uniform in noise]


@dataclass(frozen=True)
class Task:
    """What a supervised method may see: the graph, the training labels, and those that choose the epoch."""

    graph: Graph
    classes: Array  # class numbers, ascending
    width: int  # of the attributes
    train: tuple[Tensor, Tensor]  # nodes, and positions of their labels in `classes`
    validation: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, data: "Data", split: Split, *, normalise_rows: bool) -> "Task":
        data = check_graph(data).cpu()
        labels = labels_of(data)
        classes = np.unique(labels[labels >= 0])
        if len(classes) < 2:
            raise BGCLError("All labelled nodes are of one class: a classifier needs two or more.")
        if not len(split.train):
            raise BGCLError("The split has no training node: a supervised method needs some of every class.")
        graph = prepare(data, normalise_rows=normalise_rows)
        train, validation = (_labelled(nodes, labels, classes) for nodes in (split.train, split.validation))
        return cls(graph, classes, data.x.shape[1], train, validation)

    def training_loss(self, logits: Tensor) -> Tensor:
        """The cross-entropy, averaged over the training nodes."""
        nodes, codes = self.train
        return F.cross_entropy(logits[nodes], codes)

    def validation_loss(self, draws: Callable[[], Iterator[Tensor]]) -> Callable[[], float] | None:
        """A function that gives the cross-entropy of the draws' mean prediction for the validation nodes, if any."""
        nodes, codes = self.validation
        if not len(nodes):
            return None

        def loss() -> float:
            samples = torch.stack([F.log_softmax(logits[nodes], 1) for logits in draws()])  # (S, nodes, C)
            return float(F.nll_loss(samples.logsumexp(0) - np.log(len(samples)), codes))

        return loss


def _labelled(nodes: Array, labels: Array, classes: Array) -> tuple[Tensor, Tensor]:
    found = labels[nodes]
    if (found < 0).any():
        raise BGCLError(f"Node {nodes[found < 0][0]} of the split has no label. Take splits of labelled nodes.")
    return torch.as_tensor(np.asarray(nodes, dtype=np.int64)), torch.as_tensor(np.searchsorted(classes, found))


def train(
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    objective: Callable[[int], Tensor],
    epochs: int,
    validation_loss: Callable[[], float] | None,
    every: int,
) -> None:
    """Minimise `objective(epoch)`; with a validation loss, looked at `every` few epochs, end with the best weights."""
    best, kept = float("inf"), None
    for epoch in range(epochs):
        optimiser.zero_grad()
        loss = objective(epoch)
        if not torch.isfinite(loss):
            raise BGCLError(
                f"Training diverged in epoch {epoch + 1}: the loss is {loss.item()}. Lower the setting 'lr'."
            )
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if validation_loss is not None and ((epoch + 1) % every == 0 or epoch + 1 == epochs):
            with torch.no_grad():
                found = validation_loss()
            if found < best:
                best, kept = found, copy.deepcopy(network.state_dict())
    if kept is not None:
        network.load_state_dict(kept)


def probabilities(draws: Iterator[Tensor]) -> Array:
    """Class probabilities `(S, N, C)` of the logits of draws, `(N, C)` each."""
    return np.stack([F.softmax(logits, dim=1).numpy() for logits in draws])


def derived_seed(seed: int, number: int) -> int:
    """A seed of its own for each of several fits under one seed."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])


def check_at_least(settings: object, least: int, *names: str) -> None:
    """Refuse a setting below `least`."""
    for name in names:
        if not getattr(settings, name) >= least:
            raise BGCLError(f"The setting '{name}' must be {least} or more. Got {getattr(settings, name)!r} instead.")
