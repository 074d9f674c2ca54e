"""The figures of the paper, made from result files. Each PNG file contains a digest of the numbers that it shows."""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bgcl.reporting.look import COLORS, DASHES
from bgcl.reporting.plots import look, save
from bgcl.reproduce import rates_page, results
from bgcl.reproduce.experiments import EXPERIMENTS, TITLES
from bgcl.reproduce.results import Result


def pavpu_picture(found: Sequence[Result]) -> Figure:
    """PAvPU by threshold, as in the paper: one panel for each data set, one line for each method."""
    experiment = EXPERIMENTS["pavpu"]
    datasets = [d for d in experiment.datasets if results.of(found, "bgcl", d)]
    with look():
        figure = Figure(figsize=(3.3 * len(datasets), 3.2), layout="constrained")
        for axis, dataset in zip(figure.subplots(1, len(datasets), squeeze=False)[0], datasets, strict=True):
            for i, method in enumerate(reversed(experiment.methods)):
                if ours := results.of(found, method, dataset):
                    curve = results.curve(ours, "pavpu")
                    axis.plot(
                        np.linspace(0, 1, len(curve)),
                        curve,
                        color=COLORS[i],
                        linestyle=DASHES[i],
                        label=TITLES[method],
                    )
            axis.set(title=dataset, xlabel="threshold of predictive entropy", ylabel="PAvPU", xlim=(0, 1))
            axis.set_xticks([0, 0.5, 1], ["lowest", "", "highest"])
        figure.axes[0].legend(loc="lower right", fontsize=7)  # one legend for all panels
    return figure


def astd_picture(found: Sequence[Result]) -> Figure:
    """Increase of ASTD by distance from the noisy nodes, as in the paper. Whiskers are at 5 % and 95 %."""
    every = panels(found)
    with look():
        figure = Figure(figsize=(2.9 * len(every), 3.1), layout="constrained")
        for axis, (dataset, label) in zip(figure.subplots(1, len(every), squeeze=False)[0], every, strict=True):
            ours = results.of(found, "bgcl", dataset, label)
            boxes = []
            for hop in range(6):
                quantiles = [result["quantiles"][hop] for result in ours if result["quantiles"][hop]]
                low, q1, median, q3, high = np.mean(quantiles, axis=0) if quantiles else [np.nan] * 5
                boxes.append({"whislo": low, "q1": q1, "med": median, "q3": q3, "whishi": high, "label": str(hop)})
            drawn = axis.bxp(boxes, showfliers=False, patch_artist=True, medianprops={"color": "black"})
            for box in drawn["boxes"]:
                box.set(facecolor=COLORS[0], alpha=0.5)
            axis.axhline(0, color="#555555", linewidth=0.8, linestyle="--")
            axis.set(title=f"{dataset}, {label}", xlabel="hops from the nearest noisy node", ylabel="increase of ASTD")
    return figure


FIGURES = {"pavpu": pavpu_picture, "astd": astd_picture, "rates": rates_page.picture}
SOURCE = re.compile(rb"results sha256 ([0-9a-f]{64})")


def figure_digest(found: Sequence[Result]) -> str:
    """A digest of the numbers that a figure shows."""
    shown = [
        {name: result.get(name) for name in ("cell", "curves", "quantiles", "criteria", "accuracy")} for result in found
    ]
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def write_figures(folder: Path, images: Path) -> None:
    """Write the figures as PNG files, with the digest of their results in the metadata."""
    for name, draw in FIGURES.items():
        if found := results.read(results.path_of(folder, name)):
            save(
                draw(found), images / f"{name}.png", metadata={"Description": f"results sha256 {figure_digest(found)}"}
            )


def panels(found: Sequence[Result]) -> list[tuple[str, str]]:
    """Data set and label of each panel of the noise experiment."""
    order = EXPERIMENTS["astd"].datasets
    every = {(result["cell"]["dataset"], result["cell"]["label"]) for result in found}
    return sorted(every, key=lambda panel: (order.index(panel[0]), len(panel[1])))
