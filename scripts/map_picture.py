"""Draw docs/images/map.png, the picture of the README: two maps of Cora, with wrong predictions and with uncertainty.

python scripts/map_picture.py [--run RUN]
"""

import argparse
from pathlib import Path

import numpy as np

import bgcl
from bgcl.reporting.look import COLORS
from bgcl.reporting.plots import Picture, look, save
from bgcl.reporting.report.node_map import make_map

OUT = Path(__file__).parent.parent / "docs" / "images" / "map.png"


def picture(position: np.ndarray, label: np.ndarray, wrong: np.ndarray, uncertainty: np.ndarray) -> Picture:
    """On the left the classes, with wrong predictions in black; on the right the uncertainty."""
    colors = np.array([*COLORS, "#999999"])
    with look():
        figure = Picture(figsize=(9.6, 4.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.scatter(*position.T, c=colors[label % len(colors)], s=5, linewidths=0, alpha=0.6)
        left.scatter(*position[wrong].T, c="black", s=9, linewidths=0)
        order = np.argsort(uncertainty, kind="stable")  # draw uncertain nodes last, so that they are on top
        shown = right.scatter(*position[order].T, c=uncertainty[order], s=7, linewidths=0, cmap="magma_r", vmin=0)
        for axis in (left, right):
            axis.set_axis_off()
            axis.set_aspect("equal")
        left.set_title("Classes of Cora; black: wrong predictions")
        right.set_title("Uncertainty of the predictions")
        figure.colorbar(shown, ax=right, shrink=0.6, label="1 - probability of the predicted class")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="folder of a run on Cora; default: train a model")
    arguments = parser.parse_args()
    data = bgcl.load("cora")
    model = bgcl.BGCL.load(arguments.run) if arguments.run else bgcl.BGCL().fit(data)
    split = bgcl.splits(data, "grace", count=1)[0]
    draws, label = model.sample(data, samples=40).numpy(), data.y.numpy()
    head = bgcl.MixtureClassifier(parts=model.parts_).fit(draws[:10, split.train], label[split.train])
    found = bgcl.uncertainty(head.predict_samples(draws[10:]))
    predicted = head.classes_[found.probability.argmax(1)]
    mean = draws.mean(0)
    position = make_map(mean, draws[:1]).position
    wrong = predicted != label
    wrong[split.train] = False  # the head was trained on their labels
    save(picture(position, label, wrong, found.least_confidence), OUT)
    print(f"{OUT}: {wrong[split.test].mean():.1%} of {len(split.test)} nodes wrong")


if __name__ == "__main__":
    main()
