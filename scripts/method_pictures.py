"""The pictures of docs/method.md: what masks drop, what a posterior of a drop rate looks like, and the ceiling.

python scripts/method_pictures.py
"""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

import bgcl
from bgcl.augmentation.masks import LayerInput, bernoulli
from bgcl.graph.prepared import prepare
from bgcl.reporting.training_plots import COLOURS, DASHES, Picture, look, save

OUT = Path(__file__).parent.parent / "docs" / "images"
SIDE, WIDTH, RATE = 5, 12, 0.4


def masks_picture() -> Picture:
    """A grid of nodes, and of its edges and attributes those that each kind of mask leaves."""
    place = np.stack(np.divmod(np.arange(SIDE * SIDE), SIDE), axis=1)[:, ::-1].astype(float)
    near = np.abs(place[:, None] - place).sum(-1) == 1
    data = Data(x=torch.ones(SIDE * SIDE, WIDTH), edge_index=torch.as_tensor(np.stack(np.nonzero(near))))
    graph = prepare(data, normalise_rows=False)
    row, column = graph.connections.row.numpy(), graph.connections.column.numpy()
    logit = torch.logit(torch.tensor(RATE))
    layer = LayerInput(WIDTH, torch.Size((SIDE * SIDE, WIDTH)))
    sentences = ("connections", "edges", "nodes", "subgraph", "features", "entries")
    with look():
        figure = Picture(figsize=(9.6, 2.1), layout="constrained")
        for axis, sentence in zip(figure.subplots(1, 6), sentences, strict=True):
            mask = bgcl.parse_mask(sentence)
            keep = bernoulli(logit, mask.uniform(graph, layer, torch.Generator().manual_seed(3)))
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
                # Each half of a line is one direction of the edge: it ends at the node that hears.
                if v != u:
                    middle = (place[v] + place[u]) / 2
                    ends = np.stack([middle, place[v]]).T
                    axis.plot(
                        *ends, color=COLOURS[0] if on else "#dddddd", linewidth=1.8 if on else 0.8, zorder=int(on)
                    )
            own = kept[row == column][np.argsort(row[row == column])]
            axis.scatter(*place[own].T, s=22, color=COLOURS[0], zorder=3)
            axis.scatter(*place[~own].T, s=22, facecolors="white", edgecolors="#aaaaaa", zorder=3)
            axis.set_aspect("equal")
    return figure


def rates_picture() -> Picture:
    """Left Kumaraswamy posteriors, from the flat one; right, keep values at some rates, relaxed or hard."""
    pi = np.linspace(0.002, 0.998, 400)
    with look():
        figure = Picture(figsize=(7.6, 2.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        for i, (a, b) in enumerate(((1.0, 1.0), (2.0, 2.0), (4.0, 8.0), (6.0, 3.0))):
            density = a * b * pi ** (a - 1) * (1 - pi**a) ** (b - 1)
            left.plot(pi, density, color=COLOURS[i], linestyle=DASHES[i], label=f"a = {a:g}, b = {b:g}")
        left.set(title="q(pi), posteriors of a drop rate", xlabel="drop rate", xlim=(0, 1), ylim=(0, None))
        left.legend(loc="upper left", fontsize=7)
        # z = sigmoid((logit(1 - pi) + logit(u)) / t), so P(z <= x) = sigmoid(t logit(x) - logit(1 - pi)).
        x = np.linspace(0.001, 0.999, 600)
        for i, rate in enumerate((0.2, 0.5, 0.8)):
            below = 1 / (1 + np.exp(-(0.3 * np.log(x / (1 - x)) - np.log((1 - rate) / rate))))
            right.plot(x, below, color=COLOURS[i], linestyle=DASHES[i], label=f"rate {rate:g}")
            right.plot([0, 1], [rate, rate], color=COLOURS[i], linewidth=0.6)
        right.set(title="share of keep values up to z (thin: hard)", xlabel="z", xlim=(0, 1), ylim=(0, 1))
        right.legend(loc="lower right", fontsize=7)
    return figure


def ceiling_picture(nodes: int = 2708, tau: float = 0.4, keep: float = 0.3) -> Picture:
    """What the augmentation maximises, `min(L, 2 L* - L)`, against the paper's, `L`."""
    most = np.log(2 * nodes - 1)
    ceiling = most - keep / tau
    loss = np.linspace(most - 1 / tau, most, 300)
    with look():
        figure = Picture(figsize=(4.6, 2.9), layout="constrained")
        axis = figure.subplots()
        axis.plot(loss, loss, "--", color=COLOURS[1], label="the paper's: L")
        axis.plot(loss, np.minimum(loss, 2 * ceiling - loss), color=COLOURS[0], label="here: min(L, 2 L* - L)")
        axis.axvline(ceiling, color="#555555", linewidth=0.8, linestyle=":")
        axis.annotate("L*", (ceiling, loss[0]), textcoords="offset points", xytext=(4, 2))
        axis.set(title="The augmentation's reward", xlabel="contrastive loss L of the two views", ylabel="reward")
        axis.legend(loc="upper left", fontsize=7)
    return figure


def main() -> None:
    for name, figure in (("masks", masks_picture()), ("rates", rates_picture()), ("ceiling", ceiling_picture())):
        save(figure, OUT / f"method_{name}.png")
        print(OUT / f"method_{name}.png")


if __name__ == "__main__":
    main()
