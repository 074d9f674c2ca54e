r"""BGRL (Thakoor et al., 2021): contrast without negatives.

An online encoder sees one view, a predictor guesses from it what the target encoder makes of the other view, and

    L = 2 - 1/N sum_i cos(q_i^o, y_i^t) - 1/N sum_i cos(q_i^t, y_i^o),

where no gradient reaches the target encoder: its weights follow the online ones, `phi <- m phi + (1 - m) theta`, with a
decay m that rises from 0.99 to 1 along a cosine.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.views import VIEWS, Augmentation
from bgcl.baselines.convolutions import Convolutions, width_of
from bgcl.baselines.method import Array, EmbeddingMethod, number, whole
from bgcl.data.catalogue import find
from bgcl.graph.prepared import prepare


@dataclass(frozen=True, kw_only=True)
class BGRL(EmbeddingMethod):
    """Convolutions with batch normalisation and PReLU, and a predictor of one hidden layer.

    The authors train for 10,000 epochs, the first 1,000 of them to warm up, at a rate between 1e-5 and 5e-4. Here it is
    a twentieth of that, a tenth of it to warm up, so the steps are longer: the rate of 1e-3 is this project's choice.
    """

    widths: tuple[int, ...] = (256, 128)
    predictor: int = whole(512)
    drop: tuple[str, ...] = ("edges at 0.2/0.4", "features at 0.2/0.3")
    epochs: int = whole(500)
    lr: float = number(1e-3, above=True, most=1)
    warm_up: float = number(0.1, most=0.9)  # share of the epochs
    weight_decay: float = number(1e-5)
    decay: float = number(0.99, most=1)  # m at the start

    @classmethod
    def published(cls, dataset: str) -> Self:
        """The authors' widths and drop rates; the defaults for data sets that they do not have."""
        return cls(**_PUBLISHED.get(find(dataset).name, {}))  # type: ignore[arg-type]

    def _embed(self, data: Data) -> Array:
        graph = prepare(data, normalise_rows=True)
        widths = (width_of(graph), *self.widths)
        online, target = _encoder(widths), _encoder(widths).requires_grad_(False)  # begun apart, as the authors do
        predictor = nn.Sequential(
            nn.Linear(widths[-1], self.predictor), nn.PReLU(), nn.Linear(self.predictor, widths[-1])
        )
        augmentation = Augmentation([parse_mask(sentence) for sentence in self.drop], len(self.widths))
        generator = torch.Generator().manual_seed(self.seed)
        optimiser = torch.optim.AdamW(
            [*online.parameters(), *predictor.parameters()], lr=self.lr, weight_decay=self.weight_decay
        )
        inputs = online.inputs(graph)
        for epoch in range(self.epochs):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(epoch, self.epochs, self.lr, round(self.warm_up * self.epochs))
            masks_o, masks_t = (augmentation.draw(view, graph, inputs, generator, hard=True) for view in VIEWS)
            with torch.no_grad():
                target_o, target_t = target(graph, masks_o), target(graph, masks_t)
            optimiser.zero_grad()
            predicted_o, predicted_t = predictor(online(graph, masks_o)), predictor(online(graph, masks_t))
            loss = bootstrap_loss(predicted_o, target_t) + bootstrap_loss(predicted_t, target_o)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            follow(target, online, target_decay(epoch, self.epochs, self.decay))
        online.eval()
        with torch.no_grad():
            return online(graph).numpy()  # type: ignore[no-any-return]


# Drop rates (edges, features) and widths as in the authors' configuration files.
_PUBLISHED: dict[str, dict[str, tuple[str, ...] | tuple[int, ...]]] = {
    "amazon-photo": {"widths": (256, 128), "drop": ("edges at 0.4/0.1", "features at 0.1/0.2")},
    "amazon-computers": {"widths": (256, 128), "drop": ("edges at 0.5/0.4", "features at 0.2/0.1")},
    "coauthor-cs": {"widths": (512, 256), "drop": ("edges at 0.3/0.2", "features at 0.3/0.4")},
    "coauthor-physics": {"widths": (256, 128), "drop": ("edges at 0.4/0.1", "features at 0.1/0.4")},
    "wikics": {"widths": (512, 256), "drop": ("edges at 0.2/0.3", "features at 0.2/0.1")},
}


def _encoder(widths: tuple[int, ...]) -> Convolutions:
    # The running moments are used to embed, so they average over some hundred views. The authors' code passes 0.99 as
    # torch's momentum, with which they are those of the last view.
    behind = [nn.Sequential(nn.BatchNorm1d(width, momentum=0.01), nn.PReLU()) for width in widths[1:]]
    return Convolutions(widths, behind)


def bootstrap_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """`1 - 1/N sum_i cos(q_i, y_i)` of `(N, d)` predictions and targets."""
    return 1 - F.cosine_similarity(predicted, target.detach(), dim=-1).mean()


def target_decay(epoch: int, epochs: int, start: float) -> float:
    """m, which rises from `start` at epoch 0 to 1 at the end: `1 - (1 - start) (1 + cos(pi k / K)) / 2`."""
    return 1 - (1 - start) * _half_cosine(epoch / epochs)


def learning_rate(epoch: int, epochs: int, highest: float, warm_up: int) -> float:
    """A line from 0 up to `highest` over the first `warm_up` epochs, then half a cosine down to 0."""
    if epoch < warm_up:
        return highest * epoch / warm_up
    return highest * _half_cosine((epoch - warm_up) / (epochs - warm_up))


def _half_cosine(share: float) -> float:
    """From 1 down to 0 as `share` goes from 0 to 1."""
    return (1 + math.cos(math.pi * share)) / 2


@torch.no_grad()
def follow(target: nn.Module, online: nn.Module, decay: float) -> None:
    """`phi <- m phi + (1 - m) theta` for each of the weights."""
    for phi, theta in zip(target.parameters(), online.parameters(), strict=True):
        phi.lerp_(theta, 1 - decay)
