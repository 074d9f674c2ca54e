"""Draw the pictures of docs/method.md: masks, posteriors of drop rates, and the reward of the augmentation.

python scripts/method_pictures.py
"""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from bgcl.augmentation import parse_mask
from bgcl.augmentation.drop_rates import RatePosterior
from bgcl.augmentation.masks import LayerInput, bernoulli
from bgcl.augmentation.noise import NoiseStream
from bgcl.graph.prepared import prepare
from bgcl.reporting.look import COLORS, DASHES
from bgcl.reporting.plots import Picture, look, save

OUT = Path(__file__).parent.parent / "docs" / "images"
SIDE, WIDTH, RATE = 5, 12, 0.4


def masks_picture() -> Picture:
    """A grid of nodes with the edges and attributes that each kind of mask keeps."""
    place = np.stack(np.divmod(np.arange(SIDE * SIDE), SIDE), axis=1)[:, ::-1].astype(float)
    near = np.abs(place[:, None] - place).sum(-1) == 1
    data = Data(x=torch.ones(SIDE * SIDE, WIDTH), edge_index=torch.as_tensor(np.stack(np.nonzero(near))))
    graph = prepare(data, row_norm="none")
    row, column = graph.connections.row.numpy(), graph.connections.column.numpy()
    logit = torch.logit(torch.tensor(RATE))
    layer = LayerInput(WIDTH, torch.Size((SIDE * SIDE, WIDTH)))
    sentences = ("connections", "edges", "nodes", "subgraph", "features", "entries")
    with look():
        figure = Picture(figsize=(9.6, 2.1), layout="constrained")
        for axis, sentence in zip(figure.subplots(1, 6), sentences, strict=True):
            mask = parse_mask(sentence)
            keep = bernoulli(logit, mask.uniform(graph, layer, NoiseStream(torch.Generator().manual_seed(3))))
            factor = mask.factor(keep, graph)
            axis.set_title(sentence)
            axis.set_axis_off()
            if mask.on != "connections":
                image = factor.expand(SIDE * SIDE, WIDTH).numpy() if mask.on == "columns" else factor.numpy()
                axis.imshow(image, cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
                axis.set_box_aspect(1)
                continue
            kept = factor[:, 0].numpy() > 0
            for v, u, on in zip(row, column, kept, strict=True):
                # Each half of a line is one direction of the edge. It ends at the node that receives.
                if v != u:
                    middle = (place[v] + place[u]) / 2
                    ends = np.stack([middle, place[v]]).T
                    axis.plot(*ends, color=COLORS[0] if on else "#dddddd", linewidth=1.8 if on else 0.8, zorder=int(on))
            own = kept[row == column][np.argsort(row[row == column])]
            axis.scatter(*place[own].T, s=22, color=COLORS[0], zorder=3)
            axis.scatter(*place[~own].T, s=22, facecolors="white", edgecolors="#aaaaaa", zorder=3)
            axis.set_aspect("equal")
    return figure


def rates_picture() -> Picture:
    """On the left Kumaraswamy posteriors; on the right the distribution of keep values, relaxed and hard."""
    pi = np.linspace(0.002, 0.998, 400)
    with look():
        figure = Picture(figsize=(7.6, 2.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        for i, (a, b) in enumerate(((1.0, 1.0), (2.0, 2.0), (4.0, 8.0), (6.0, 3.0))):
            posterior = RatePosterior("edges", mean=((0.5,),), std=((0.0,),), a=((a,),), b=((b,),))  # mean: not used
            density = posterior.density(pi)[0, 0]
            left.plot(pi, density, color=COLORS[i], linestyle=DASHES[i], label=f"a = {a:g}, b = {b:g}")
        left.set(title="posterior q(pi) of a drop rate", xlabel="drop rate", xlim=(0, 1), ylim=(0, None))
        left.legend(loc="upper left", fontsize=7)
        # z = sigmoid((logit(1 - pi) + logit(u)) / t), so P(z <= x) = sigmoid(t logit(x) - logit(1 - pi)).
        x = np.linspace(0.001, 0.999, 600)
        for i, rate in enumerate((0.2, 0.5, 0.8)):
            below = 1 / (1 + np.exp(-(0.3 * np.log(x / (1 - x)) - np.log((1 - rate) / rate))))
            right.plot(x, below, color=COLORS[i], linestyle=DASHES[i], label=f"rate {rate:g}")
            right.plot([0, 1], [rate, rate], color=COLORS[i], linewidth=0.6)
        right.set(title="share of keep values below z (thin: hard masks)", xlabel="z", xlim=(0, 1), ylim=(0, 1))
        right.legend(loc="lower right", fontsize=7)
    return figure


def ceiling_picture(nodes: int = 2708, tau: float = 0.4, shared_information: float = 0.3) -> Picture:
    """The reward that the augmentation maximizes: `min(L, 2 L* - L)` here, `L` in the paper."""
    most = np.log(2 * nodes - 1)
    ceiling = most - shared_information / tau
    loss = np.linspace(most - 1 / tau, most, 300)
    with look():
        figure = Picture(figsize=(4.6, 2.9), layout="constrained")
        axis = figure.subplots()
        axis.plot(loss, loss, "--", color=COLORS[1], label="in the paper: L")
        axis.plot(loss, np.minimum(loss, 2 * ceiling - loss), color=COLORS[0], label="here: min(L, 2 L* - L)")
        axis.axvline(ceiling, color="#555555", linewidth=0.8, linestyle=":")
        axis.annotate("L*", (ceiling, loss[0]), textcoords="offset points", xytext=(4, 2))
        axis.set(title="Reward of the augmentation", xlabel="contrastive loss L of the two views", ylabel="reward")
        axis.legend(loc="upper left", fontsize=7)
    return figure


def main() -> None:
    for name, figure in (("masks", masks_picture()), ("rates", rates_picture()), ("ceiling", ceiling_picture())):
        save(figure, OUT / f"method_{name}.png")
        print(OUT / f"method_{name}.png")


if __name__ == "__main__":
    main()
