r"""BGRL (Thakoor et al., 2021): contrastive learning without negatives.

An online encoder embeds one view. From this embedding, a predictor predicts the embedding of the other view by a target
encoder. With predictions q and targets y of the views o and t, the loss is

    L = 2 - 1/N sum_i cos(q_i^o, y_i^t) - 1/N sum_i cos(q_i^t, y_i^o).

The target encoder gets no gradient. Its weights `phi` follow the weights `theta` of the online encoder,
`phi <- m phi + (1 - m) theta`, with a decay m that rises from 0.99 to 1 along a cosine.
"""

import math
from typing import Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.noise import NoiseStream
from bgcl.augmentation.views import VIEWS, Augmentation
from bgcl.baselines.convolutions import Convolutions
from bgcl.baselines.method import Array, Count, EmbeddingMethod, LearningRate, NotNegative, Widths
from bgcl.data.catalog import find
from bgcl.graph.prepared import prepare, width_of
from bgcl.validation import Number


class BGRL(EmbeddingMethod):
    """Graph convolutions with batch normalization and PReLU, and a predictor with one hidden layer.

    The authors train for 10,000 epochs, with 1,000 epochs of warm-up and a learning rate between 1e-5 and 5e-4. Here
    there are 500 epochs, with 50 epochs of warm-up. Fewer epochs need a higher learning rate: 1e-3 is the choice of
    this project.
    """

    widths: Widths = (256, 128)
    predictor: Count = 512
    drop: tuple[str, ...] = Field(
        default=("edges at 0.2/0.4", "features at 0.2/0.3"), description="what a view drops: one sentence for each mask"
    )
    epochs: Count = 500
    lr: LearningRate = 1e-3
    warm_up: Number = Field(default=0.1, ge=0, le=0.9)  # as a share of the epochs
    weight_decay: NotNegative = 1e-5
    decay: Number = Field(default=0.99, ge=0, le=1)  # m at the start

    @classmethod
    def published(cls, dataset: str) -> Self:
        """The authors' widths and drop rates. Data sets that they did not use get the defaults."""
        return cls(**_PUBLISHED.get(find(dataset).name, {}))  # type: ignore[arg-type]

    def _embed(self, data: Data) -> Array:
        graph = prepare(data, row_norm="sum")
        widths = (width_of(graph), *self.widths)
        online, target = (
            _encoder(widths),
            _encoder(widths).requires_grad_(False),
        )  # different weights, as in the authors' code
        predictor = nn.Sequential(
            nn.Linear(widths[-1], self.predictor), nn.PReLU(), nn.Linear(self.predictor, widths[-1])
        )
        augmentation = Augmentation([parse_mask(sentence) for sentence in self.drop], len(self.widths))
        noise = NoiseStream(torch.Generator().manual_seed(self.seed))
        optimizer = torch.optim.AdamW(
            [*online.parameters(), *predictor.parameters()], lr=self.lr, weight_decay=self.weight_decay
        )
        inputs = online.inputs(graph)
        for epoch in range(self.epochs):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(epoch, self.epochs, self.lr, round(self.warm_up * self.epochs))
            masks_o, masks_t = (augmentation.draw(view, graph, inputs, noise, hard=True) for view in VIEWS)
            with torch.no_grad():
                target_o, target_t = target(graph, masks_o), target(graph, masks_t)
            optimizer.zero_grad()
            predicted_o, predicted_t = predictor(online(graph, masks_o)), predictor(online(graph, masks_t))
            loss = bootstrap_loss(predicted_o, target_t) + bootstrap_loss(predicted_t, target_o)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            follow(target, online, target_decay(epoch, self.epochs, self.decay))
        online.eval()
        with torch.no_grad():
            return online(graph).numpy()  # type: ignore[no-any-return]


# Drop rates of edges and features, and widths, from the authors' configuration files.
_PUBLISHED: dict[str, dict[str, tuple[str, ...] | tuple[int, ...]]] = {
    "amazon-photo": {"widths": (256, 128), "drop": ("edges at 0.4/0.1", "features at 0.1/0.2")},
    "amazon-computers": {"widths": (256, 128), "drop": ("edges at 0.5/0.4", "features at 0.2/0.1")},
    "coauthor-cs": {"widths": (512, 256), "drop": ("edges at 0.3/0.2", "features at 0.3/0.4")},
    "coauthor-physics": {"widths": (256, 128), "drop": ("edges at 0.4/0.1", "features at 0.1/0.4")},
    "wikics": {"widths": (512, 256), "drop": ("edges at 0.2/0.3", "features at 0.2/0.1")},
}


def _encoder(widths: tuple[int, ...]) -> Convolutions:
    # Embedding uses the running mean and variance, so they should average over about a hundred views. The authors' code
    # has a momentum of 0.99, with which they depend on the last view only.
    after = [nn.Sequential(nn.BatchNorm1d(width, momentum=0.01), nn.PReLU()) for width in widths[1:]]
    return Convolutions(widths, after)


def bootstrap_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """`1 - 1/N sum_i cos(q_i, y_i)` for predictions and targets `(N, d)`. The targets get no gradient."""
    return 1 - F.cosine_similarity(predicted, target.detach(), dim=-1).mean()


def target_decay(epoch: int, epochs: int, start: float) -> float:
    """The decay m at epoch k of K: `1 - (1 - start) (1 + cos(pi k / K)) / 2`. It rises from `start` to 1."""
    return 1 - (1 - start) * _half_cosine(epoch / epochs)


def learning_rate(epoch: int, epochs: int, highest: float, warm_up: int) -> float:
    """The learning rate: a linear rise from 0 to `highest` over `warm_up` epochs, then a cosine decay to 0."""
    if epoch < warm_up:
        return highest * epoch / warm_up
    return highest * _half_cosine((epoch - warm_up) / (epochs - warm_up))


def _half_cosine(share: float) -> float:
    """`(1 + cos(pi share)) / 2`, which falls from 1 to 0."""
    return (1 + math.cos(math.pi * share)) / 2


@torch.no_grad()
def follow(target: nn.Module, online: nn.Module, decay: float) -> None:
    """Update the target weights: `phi <- m phi + (1 - m) theta`."""
    for phi, theta in zip(target.parameters(), online.parameters(), strict=True):
        phi.lerp_(theta, 1 - decay)
