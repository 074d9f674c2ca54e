"""Supervised graph convolutional networks: a plain one, one with Monte Carlo dropout, and an ensemble.

Each is a class of checked settings with a method `fit(data, split)`. It trains on the labels of `split.train`, and
returns the class probabilities of S draws for every node, `(S, N, C)`, with classes in ascending order. The labels of
`split.validation` choose the epoch whose weights are kept; without validation nodes, it is the last epoch. No other
labels are used.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.augmentation.views import LayerMask
from bgcl.baselines.method import Count, NotNegative, Seed
from bgcl.data.pyg import check_graph
from bgcl.downstream.splits import Split, labels_of
from bgcl.errors import BGCLError
from bgcl.graph.prepared import Features, PreparedGraph, RowNorm, prepare
from bgcl.model.encoders.gcn import GCNEncoder
from bgcl.validation import CheckedSettings, Number

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

_VALIDATE_EVERY = 5  # epochs between validations, each of which costs a forward pass


class GCN(CheckedSettings):
    """The network of Kipf and Welling (2017): `softmax(A' relu(A' X W_1) W_2)` with `A' = g_a(A)`.

    Learning rate, dropout, weight decay, epochs and the scaling of attributes are from their paper. Their width is 16,
    for 20 labeled nodes of each class. With more labeled nodes, as here, 64 is usual (Shchur et al., 2018). If nodes
    have hundreds of attributes, as in Amazon-Photo, attributes scaled to a sum of one are too small for 200 epochs; use
    `row_norm="none"` there.
    """

    width: Count = 64
    dropout: Number = Field(default=0.5, ge=0, lt=1)  # applied to the input of both layers
    lr: NotNegative = 0.01
    weight_decay: NotNegative = 5e-4  # applied to the weights of the first layer
    epochs: Count = 200
    row_norm: RowNorm = "sum"
    seed: Seed = 0

    @classmethod
    def published(cls, dataset: str) -> Self:
        """The published settings. The Amazon graphs have unscaled attributes, a choice made on validation nodes."""
        return cls(row_norm="none" if dataset.startswith("amazon") else "sum")

    def fit(self, data: "Data", split: Split) -> Array:
        """Train on a split and predict every node.

        Args:
            data: a graph with labels.
            split: the training nodes, and the validation nodes that choose the epoch.

        Returns:
            Class probabilities `(S, N, C)`. `GCN` makes one prediction, without dropout.

        Raises:
            BGCLError: the graph or the split is not valid, or training diverges.
        """
        task = Task.of(data, split, row_norm=self.row_norm)
        generator = torch.Generator().manual_seed(self.seed)
        network = self._train(task, generator)
        with torch.no_grad():
            return probabilities(self._draws(network, task.graph, generator))

    def _draws(self, network: "Classifier", graph: PreparedGraph, generator: torch.Generator) -> Iterator[Tensor]:
        yield network(graph)

    def _train(self, task: "Task", generator: torch.Generator) -> "Classifier":
        network = Classifier((task.width, self.width, len(task.classes)))
        network.reset_parameters(generator)
        first = network.layers[0].weight
        others = [parameter for parameter in network.parameters() if parameter is not first]
        groups: list[dict[str, Any]] = [{"params": [first], "weight_decay": self.weight_decay}, {"params": others}]
        optimizer = torch.optim.Adam(groups, lr=self.lr)

        def objective(epoch: int) -> Tensor:
            logits = network(task.graph, dropout_masks(network, task.graph, self.dropout, generator))
            return task.training_loss(logits)

        validation_loss = task.validation_loss(lambda: iter((network(task.graph),)))
        train(network, optimizer, objective, self.epochs, validation_loss, _VALIDATE_EVERY)
        return network


class MCDropoutGCN(GCN):
    """The same network with dropout at prediction too, an approximate posterior (Gal and Ghahramani, 2016)."""

    samples: Count = 100

    def _draws(self, network: "Classifier", graph: PreparedGraph, generator: torch.Generator) -> Iterator[Tensor]:
        for _ in range(self.samples):
            yield network(graph, dropout_masks(network, graph, self.dropout, generator))


class EnsembleGCN(GCN):
    """A deep ensemble: the same network trained with several seeds (Lakshminarayanan et al., 2017)."""

    members: Count = 10

    def member(self, number: int) -> GCN:
        """One network of the ensemble."""
        same = {name: getattr(self, name) for name in GCN.model_fields}
        return GCN(**same | {"seed": derived_seed(self.seed, number)})

    def fit(self, data: "Data", split: Split) -> Array:
        """Train all members on a split and predict every node with each, `(members, N, C)`."""
        return np.concatenate([self.member(number).fit(data, split) for number in range(self.members)])


class Classifier(GCNEncoder):
    """Masked convolutions with an activation between them. The result are logits `(N, C)`."""

    def reset_parameters(self, generator: torch.Generator) -> None:
        for layer in self.layers:
            layer.reset_parameters(generator)  # type: ignore[operator]

    def forward(self, graph: PreparedGraph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        features: Features = graph.features
        for i, layer in enumerate(self.layers):
            if i:
                features = self.activation(features)
            features = layer(graph, features, LayerMask() if masks is None else masks[i])
        assert isinstance(features, Tensor)
        return features


def dropout_masks(
    network: GCNEncoder, graph: PreparedGraph, rate: float, generator: torch.Generator
) -> list[LayerMask] | None:
    """Dropout masks for the input of every layer: `1 / (1 - rate)` with probability `1 - rate`, or else 0."""
    if rate == 0:
        return None
    noise = (torch.rand(layer.entries, generator=generator) for layer in network.inputs(graph))
    return [LayerMask(entries=(uniform >= rate).float() / (1 - rate)) for uniform in noise]


@dataclass(frozen=True)
class Task:
    """What a supervised method may use: the graph, the labels of the training nodes and of the validation nodes."""

    graph: PreparedGraph
    classes: Array  # class numbers in ascending order
    width: int  # number of attributes
    train: tuple[Tensor, Tensor]  # nodes, and the positions of their labels in `classes`
    validation: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, data: "Data", split: Split, *, row_norm: RowNorm) -> "Task":
        data = check_graph(data).cpu()
        labels = labels_of(data)
        classes = np.unique(labels[labels >= 0])
        if len(classes) < 2:
            raise BGCLError("All labeled nodes are of one class. A classifier needs two classes or more.")
        if not len(split.train):
            raise BGCLError("The split has no training node. A supervised method needs some of every class.")
        graph = prepare(data, row_norm=row_norm)
        train, validation = (_labeled(nodes, labels, classes) for nodes in (split.train, split.validation))
        return cls(graph, classes, data.x.shape[1], train, validation)

    def training_loss(self, logits: Tensor) -> Tensor:
        """The mean cross-entropy of the training nodes."""
        nodes, codes = self.train
        return F.cross_entropy(logits[nodes], codes)

    def validation_loss(self, draws: Callable[[], Iterator[Tensor]]) -> Callable[[], float] | None:
        """A function that computes the mean cross-entropy of the validation nodes; None if there are none.

        Class probabilities are averaged over the draws first.
        """
        nodes, codes = self.validation
        if not len(nodes):
            return None

        def loss() -> float:
            samples = torch.stack([F.log_softmax(logits[nodes], 1) for logits in draws()])  # (S, nodes, C)
            return float(F.nll_loss(samples.logsumexp(0) - np.log(len(samples)), codes))

        return loss


def _labeled(nodes: Array, labels: Array, classes: Array) -> tuple[Tensor, Tensor]:
    found = labels[nodes]
    if (found < 0).any():
        raise BGCLError(f"Node {nodes[found < 0][0]} of the split has no label. Use splits of labeled nodes.")
    return torch.as_tensor(np.asarray(nodes, dtype=np.int64)), torch.as_tensor(np.searchsorted(classes, found))


def train(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    objective: Callable[[int], Tensor],
    epochs: int,
    validation_loss: Callable[[], float] | None,
    every: int,
    patience: int | None = None,
) -> None:
    """Minimize `objective(epoch)`.

    A validation loss is computed every `every` epochs and after the last one. The network ends with the weights that
    had the lowest validation loss, or with the last ones if there is none. With `patience`, training ends when the
    validation loss has not fallen for more than this many epochs.
    """
    best, kept, since = float("inf"), None, 0
    for epoch in range(epochs):
        optimizer.zero_grad()
        loss = objective(epoch)
        if not torch.isfinite(loss):
            raise BGCLError(f"Training diverged in epoch {epoch + 1}: the loss is {loss.item()}. Give a lower 'lr'.")
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if validation_loss is not None and ((epoch + 1) % every == 0 or epoch + 1 == epochs):
            with torch.no_grad():
                found = validation_loss()
            if found < best:
                best, kept, since = found, copy.deepcopy(network.state_dict()), epoch
            elif patience is not None and epoch - since > patience:
                break
    if kept is not None:
        network.load_state_dict(kept)


def probabilities(draws: Iterator[Tensor]) -> Array:
    """Class probabilities `(S, N, C)` from the logits of S draws, `(N, C)` each."""
    return np.stack([F.softmax(logits, dim=1).numpy() for logits in draws])


def derived_seed(seed: int, number: int) -> int:
    """The seed of one of several fits, computed from their common seed and the number of the fit."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
