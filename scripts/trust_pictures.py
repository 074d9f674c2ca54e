"""Draw the pictures of docs/trust.md, all from Cora: novelty, sets, answers at a risk, and what a shift does.

python scripts/trust_pictures.py [--run RUN]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import betabinom
from torch_geometric.data import Data

import bgcl
from bgcl.conformal import Abstention, ScoreDiffusion
from bgcl.conformal.class_scores import class_scores
from bgcl.conformal.thresholds import sets_of, thresholds
from bgcl.downstream import evaluate_shift
from bgcl.downstream.graph_changes import changed, with_noise
from bgcl.downstream.shift_evaluation import SHARES, SplitHeads
from bgcl.measures.levels import rank_of_level
from bgcl.model.structure import same_numbers
from bgcl.reporting.look import COLORS, DASHES
from bgcl.reporting.plots import Picture, look, save
from bgcl.reproduce.unknown_nodes import trials

Array = npt.NDArray[Any]

OUT = Path(__file__).parent.parent / "docs" / "images"
DRAWS, OF_SHIFTS = 10, 6
CALIBRATIONS, CALIBRATE = 1000, 270
LEVEL, LEVELS = 0.9, np.linspace(0.8, 0.99, 20)
RISKS = np.linspace(0.02, 0.14, 13)


def novelty_picture(model: bgcl.BGCL, data: Data) -> Picture:
    """The share of nodes whose novelty is at most a: the diagonal for known nodes, above it for unknown ones."""
    curves: dict[str, Array] = {}
    left_out = trials(data, "left-out", 1)[0]
    found = novelty_of(model, left_out.trained, left_out.split, [left_out.trained])[0]
    curves["test nodes of known classes"] = found[left_out.known]
    curves["nodes of left-out classes"] = found[left_out.unknown]
    random = np.random.default_rng(0)
    split = bgcl.splits(data, "bgrl", count=1)[0]
    some = split.test[: data.num_nodes // 10]
    graphs = [changed(data, "rewired", 0.3, random), with_noise(data, some, "bernoulli", random)]
    rewired, noise = novelty_of(model, data, split, graphs)
    curves["30 % of all edges lead to random nodes"] = rewired[split.test]
    curves["nodes whose attributes are noise"] = noise[some]
    with look():
        figure = Picture(figsize=(4.8, 3.2), layout="constrained")
        axis = figure.subplots()
        axis.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
        for i, (name, values) in enumerate(curves.items()):
            share = np.arange(1, len(values) + 1) / len(values)
            axis.step(np.sort(values), share, where="post", color=COLORS[i], linestyle=DASHES[i], label=name)
        axis.set(title="Nodes with a novelty up to a, share", xlabel="a", xlim=(-0.02, 1), ylim=(0, 1.02))
        axis.legend(loc="lower right", fontsize=7)
    return figure


def novelty_of(model: bgcl.BGCL, known: Data, split: Any, graphs: Sequence[Data]) -> list[Array]:
    """The novelty of all nodes of some graphs, if validation nodes say what is usual."""
    heads, every = SplitHeads(model, known, [split], DRAWS), [np.arange(known.num_nodes)]
    usual = heads.predict(known, every)[0]
    novelty = bgcl.Novelty(model).fit(known, usual, known=split.validation, labeled=split.train)
    with same_numbers():
        return [novelty.score(graph, heads.predict(graph, every)[0]).novelty for graph in graphs]


def sets_picture(model: bgcl.BGCL, data: Data) -> Picture:
    """On the left the coverage of many calibrations, on the right the size of sets by the level."""
    split, labels = bgcl.splits(data, "bgrl-20", count=1)[0], data.y.numpy()
    found = SplitHeads(model, data, [split], DRAWS).predict(data, [np.arange(data.num_nodes)])[0]
    left, random = np.setdiff1d(np.arange(data.num_nodes), split.train), np.random.default_rng(0)
    diffusion = ScoreDiffusion.of(model, data)
    scores = {name: class_scores(found.probability, name, random) for name in ("lac", "aps")}
    scores["lac, diffused"] = diffusion(scores["lac"])
    coverage: list[float] = []
    sizes: dict[str, Array] = {name: np.zeros(len(LEVELS)) for name in scores}
    for number in range(CALIBRATIONS):
        nodes = random.permutation(left)
        some, test = nodes[:CALIBRATE], nodes[CALIBRATE:]
        own = scores["lac"]
        sets = sets_of(own[test], thresholds(own[some], labels[some], LEVEL))
        coverage.append(float(sets[np.arange(len(test)), labels[test]].mean()))
        if number < 20:
            for name, values in scores.items():
                limits = [thresholds(values[some], labels[some], level) for level in LEVELS]
                sizes[name] += [sets_of(values[test], limit).sum(1).mean() / 20 for limit in limits]
    tested, rank = len(left) - CALIBRATE, rank_of_level(CALIBRATE, LEVEL)
    with look():
        figure = Picture(figsize=(7.6, 2.9), layout="constrained")
        first, second = figure.subplots(1, 2)
        bins = (np.arange(round(0.8 * tested), tested, 12) - 0.5) / tested
        first.hist(
            coverage, bins=bins, density=True, color=COLORS[0], alpha=0.45, label=f"{CALIBRATIONS:,} calibrations"
        )
        covered = np.arange(tested + 1)
        law = betabinom(tested, rank, CALIBRATE + 1 - rank).pmf(covered) * tested
        first.plot(covered / tested, law, color=COLORS[1], label="the exact law")
        first.axvline(LEVEL, color="#555555", linewidth=0.8, linestyle=":")
        first.set(title=f"Coverage at a level of {100 * LEVEL:.0f} %", xlabel="share of sets with the true class",
                  xlim=(0.82, 0.97), yticks=[])  # fmt: skip
        first.legend(loc="upper left", fontsize=7)
        for i, (name, values) in enumerate(sizes.items()):
            second.plot(LEVELS, values, color=COLORS[i], linestyle=DASHES[i], label=name)
        second.set(title="Mean number of classes in a set", xlabel="level", ylim=(0.5, None))
        second.legend(loc="upper left", fontsize=7)
    return figure


def risk_picture(model: bgcl.BGCL, data: Data) -> Picture:
    """How many nodes get an answer at a risk, and how many answers are wrong, on nodes that set no threshold."""
    found = bgcl.predict(model, data, samples=DRAWS)
    doubt, wrong = found.uncertainty.least_confidence, found.predicted != found.label
    half = np.random.default_rng(0).permutation(data.num_nodes)
    some, others = half[: len(half) // 2], half[len(half) // 2 :]
    answered, errors = [], []
    for risk in RISKS:
        answers = ~Abstention.at_risk(doubt[some], wrong[some], float(risk)).abstains(doubt[others])
        answered.append(answers.mean())
        errors.append(wrong[others][answers].mean() if answers.any() else np.nan)
    with look():
        figure = Picture(figsize=(7.6, 2.9), layout="constrained")
        first, second = figure.subplots(1, 2)
        first.plot(RISKS, answered, "o-", color=COLORS[0], markersize=3)
        first.set(title="Nodes with an answer, share", xlabel="wrong answers that are allowed", ylim=(0, 1.02))
        second.plot(RISKS, RISKS, color="#999999", linewidth=0.8, label="allowed")
        second.plot(RISKS, errors, "o-", color=COLORS[1], markersize=3, label="wrong, on other nodes")
        second.set(title="Wrong answers, share", xlabel="wrong answers that are allowed", ylim=(0, None))
        second.legend(loc="upper left", fontsize=7)
    return figure


def shift_picture(model: bgcl.BGCL, data: Data) -> Picture:
    """Accuracy and confidence as edges and attributes change: where they part, confidence is no longer right."""
    kinds = {"rewired": "edges that join random nodes", "normal": "nodes whose attributes are noise"}
    with look():
        figure = Picture(figsize=(7.6, 2.9), layout="constrained")
        for axis, (kind, title) in zip(figure.subplots(1, 2, sharey=True), kinds.items(), strict=True):
            levels = evaluate_shift(model, data, kind, count=2, samples=OF_SHIFTS).values()
            accuracy = [np.mean([one.correct.mean() for one in results]) for results in levels]
            sure = [np.mean([1 - one.uncertainty.least_confidence.mean() for one in results]) for results in levels]
            axis.plot(SHARES, sure, "s--", color=COLORS[1], markersize=3, label="mean confidence")
            axis.plot(SHARES, accuracy, "o-", color=COLORS[0], markersize=3, label="accuracy")
            axis.set(title="Accuracy and confidence", xlabel=f"share of the {title}")
            axis.legend(loc="lower left", fontsize=7)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="folder of a run on Cora; default: train a model")
    arguments = parser.parse_args()
    data = bgcl.load("cora")
    model = bgcl.BGCL.load(arguments.run) if arguments.run else bgcl.BGCL().fit(data)
    for draw in (novelty_picture, sets_picture, risk_picture, shift_picture):
        path = OUT / f"trust_{draw.__name__.removesuffix('_picture')}.png"
        save(draw(model, data), path)
        print(path)


if __name__ == "__main__":
    main()
