"""Pictures of uncertainty: PAvPU, reliability, risk-coverage, uncertainty by class, ASTD by hop."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bgcl.downstream.evaluation import SplitResult
from bgcl.measures.metrics import risk_coverage
from bgcl.measures.uncertainty import MEASURES, RECOMMENDED
from bgcl.reporting.training_plots import COLOURS, DASHES, Picture, look, save
from bgcl.reproduce.noise_experiment import NoiseExperiment

Array = npt.NDArray[Any]


def save_evaluation(results: Sequence[SplitResult], folder: Path) -> list[Path]:
    """All pictures of an evaluation, in a folder; gives their files."""
    figures = {
        "pavpu": pavpu_figure({"BGCL": results}),
        "reliability": reliability_figure(results),
        "risk_coverage": risk_coverage_figure(results),
        "uncertainty_by_class": by_class_figure(results),
    }
    paths = [folder / f"{name}.png" for name in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        save(figure, path)
    return paths


def pavpu_figure(methods: dict[str, Sequence[SplitResult]], measure: str = "predictive_entropy") -> Figure:
    """PAvPU and its two parts by threshold, the mean over splits with their deviation, a line for each method."""
    parts = {
        "pavpu": "PAvPU",
        "accurate_if_certain": "p(accurate | certain)",
        "uncertain_if_inaccurate": "p(uncertain | inaccurate)",
    }
    with look():
        figure = Picture(figsize=(9.6, 3.1), layout="constrained")
        for axis, (part, title) in zip(figure.subplots(1, 3), parts.items(), strict=True):
            for i, (name, results) in enumerate(methods.items()):
                curves = np.array([getattr(result.pavpu(measure), part) for result in results])
                _band(axis, np.linspace(0, 1, curves.shape[1]), curves, i, name)
            axis.set(title=title, xlabel=f"threshold of {_words(measure)}", ylim=(0, 1.02), xlim=(0, 1))
            axis.set_xticks([0, 0.5, 1], ["least", "", "greatest"])
            if len(methods) > 1:
                axis.legend(loc="lower right")
    return figure


def reliability_figure(results: Sequence[SplitResult]) -> Figure:
    """How often the prediction is right, by how sure it is, over all splits; below, how many nodes are that sure."""
    bins = [result.reliability() for result in results]
    count = np.sum([b.count for b in bins], axis=0)
    with np.errstate(invalid="ignore"):
        accuracy = np.nansum([b.accuracy * b.count for b in bins], axis=0) / count
        confidence = np.nansum([b.confidence * b.count for b in bins], axis=0) / count
    ece = np.mean([b.ece for b in bins])
    full, width = count > 0, 1 / len(count)
    left = np.arange(len(count)) * width
    with look():
        figure = Picture(figsize=(3.8, 4.2), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        top.bar(left[full], accuracy[full], width, align="edge", color=COLOURS[0], alpha=0.35, edgecolor=COLOURS[0])
        top.plot(confidence[full], accuracy[full], "o-", color=COLOURS[0], markersize=3, label="accuracy")
        top.plot([0, 1], [0, 1], "--", color="#555555", linewidth=1, label="perfectly calibrated")
        top.set(title=f"Reliability, ECE {ece:.3f}", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))
        top.legend(loc="upper left")
        bottom.bar(left, count / count.sum(), width, align="edge", color="#999999")
        bottom.set(xlabel="probability of the predicted class", ylabel="nodes")
    return figure


def risk_coverage_figure(results: Sequence[SplitResult]) -> Figure:
    """The share of errors among the most certain nodes, for each measure of uncertainty."""
    grid = np.linspace(0.02, 1, 50)
    with look():
        figure = Picture(figsize=(4.6, 3.4), layout="constrained")
        axis = figure.subplots()
        for i, measure in enumerate(MEASURES):
            curves, areas = [], []
            for result in results:
                curve = risk_coverage(result.correct, getattr(result.uncertainty, measure))
                curves.append(np.interp(grid, curve.coverage, curve.risk))
                areas.append(curve.area)
            _band(axis, grid, np.array(curves), i, f"{_words(measure)}, area {np.mean(areas):.3f}", spread=False)
        axis.set(title="Errors among the nodes that are kept", xlabel="coverage, most certain first", ylabel="risk")
        axis.set(xlim=(0, 1), ylim=(0, None))
        axis.legend(loc="upper left", fontsize=7)
    return figure


def by_class_figure(results: Sequence[SplitResult], measure: str = RECOMMENDED) -> Figure:
    """The uncertainty of the test nodes of each class, those predicted right beside those predicted wrong."""
    label = np.concatenate([result.label for result in results])
    correct = np.concatenate([result.correct for result in results])
    value = np.concatenate([getattr(result.uncertainty, measure) for result in results])
    classes = np.unique(label)
    with look():
        figure = Picture(figsize=(max(4.6, 0.7 * len(classes) + 1.5), 3.2), layout="constrained")
        axis = figure.subplots()
        for side, (right, name) in enumerate(((True, "right"), (False, "wrong"))):
            groups = [value[(label == c) & (correct == right)] for c in classes]
            places = np.arange(len(classes)) + 0.36 * side - 0.18
            boxes = axis.boxplot(
                [group if len(group) else [np.nan] for group in groups], positions=places, widths=0.3,
                showfliers=False, patch_artist=True, medianprops={"color": "black"},
            )  # fmt: skip
            for box in boxes["boxes"]:
                box.set(facecolor=COLOURS[side], alpha=0.6, hatch="" if right else "///")
            axis.plot([], [], "s", color=COLOURS[side], label=f"predicted {name}")
        axis.set(title="Uncertainty by class", ylabel=_words(measure), xlabel="class")
        axis.set_xticks(np.arange(len(classes)), [str(results[0].classes[c]) for c in classes])
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return figure


def astd_figure(experiments: dict[str, NoiseExperiment], hops: int = 5) -> Figure:
    """The increase of ASTD by the distance from the noisy nodes, a panel for each experiment."""
    with look():
        figure = Picture(figsize=(3.8 * len(experiments), 3.1), layout="constrained")
        axes = figure.subplots(1, len(experiments), squeeze=False)[0]
        for axis, (name, experiment) in zip(axes, experiments.items(), strict=True):
            groups = [group if len(group) else np.array([np.nan]) for group in experiment.by_hop(hops)]
            boxes = axis.boxplot(groups, showfliers=False, patch_artist=True, medianprops={"color": "black"})
            for box in boxes["boxes"]:
                box.set(facecolor=COLOURS[0], alpha=0.5)
            axis.axhline(0, color="#555555", linewidth=0.8, linestyle="--")
            axis.set(title=name, xlabel="hops from the nearest noisy node", ylabel="increase of ASTD")
            axis.set_xticklabels([str(hop) for hop in range(hops + 1)])
    return figure


def _band(axis: Axes, x: Array, curves: Array, i: int, label: str, spread: bool = True) -> None:
    """The mean of curves `(splits, points)` as a line, their deviation as a band."""
    mean, colour = curves.mean(0), COLOURS[i % len(COLOURS)]
    axis.plot(x, mean, linestyle=DASHES[i % len(DASHES)], color=colour, label=label)
    if spread and len(curves) > 1:
        deviation = curves.std(0, ddof=1)
        axis.fill_between(x, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0)


def _words(measure: str) -> str:
    return measure.replace("_", " ")
