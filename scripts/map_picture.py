"""The README's picture: a map of Cora's nodes, twice: which predictions are wrong, and how unsure each one is.

python scripts/map_picture.py [--run RUN]   # a run of Cora; trained here if none is given
"""

import argparse
from pathlib import Path

import numpy as np

import bgcl
from bgcl.reporting.report.node_map import make_map
from bgcl.reporting.training_plots import COLOURS, Picture, look, save

OUT = Path(__file__).parent.parent / "docs" / "images" / "map.png"


def picture(position: np.ndarray, label: np.ndarray, wrong: np.ndarray, doubt: np.ndarray) -> Picture:
    """Left the classes, wrong predictions in black; right the doubt, in the same places."""
    colours = np.array([*COLOURS, "#999999"])
    with look():
        figure = Picture(figsize=(9.6, 4.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.scatter(*position.T, c=colours[label % len(colours)], s=5, linewidths=0, alpha=0.6)
        left.scatter(*position[wrong].T, c="black", s=9, linewidths=0)
        order = np.argsort(doubt, kind="stable")  # the unsure on top
        shown = right.scatter(*position[order].T, c=doubt[order], s=7, linewidths=0, cmap="magma_r", vmin=0)
        for axis in (left, right):
            axis.set_axis_off()
            axis.set_aspect("equal")
        left.set_title("Cora by class; black: predicted wrong")
        right.set_title("How unsure the model is")
        figure.colorbar(shown, ax=right, shrink=0.6, label="1 - probability of the predicted class")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--epochs", type=int, default=300)
    arguments = parser.parse_args()
    data = bgcl.load("cora")
    model = bgcl.BGCL.load(arguments.run) if arguments.run else bgcl.BGCL("cora", epochs=arguments.epochs).fit(data)
    split = bgcl.splits(data, "grace", count=1)[0]
    draws, label = model.sample(data, samples=40).numpy(), data.y.numpy()
    head = bgcl.MixtureClassifier().fit(draws[:10, split.train], label[split.train])
    found = bgcl.uncertainty(head.predict_samples(draws[10:]))
    predicted = head.classes_[found.probability.argmax(1)]
    mean = draws.mean(0)
    position = make_map(mean, draws[:1]).position
    wrong = predicted != label
    wrong[split.train] = False  # their labels were seen
    save(picture(position, label, wrong, found.least_confidence), OUT)
    print(f"{OUT}: {wrong[split.test].mean():.1%} of {len(split.test)} nodes wrong")


if __name__ == "__main__":
    main()
