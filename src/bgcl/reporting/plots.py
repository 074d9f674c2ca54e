"""All plots. Each is a matplotlib `Figure`: a notebook displays it, and `figure.savefig` writes it to a file."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bgcl.augmentation.drop_rates import RatePosterior
from bgcl.downstream.evaluation import SplitResult
from bgcl.errors import BGCLError, nearest
from bgcl.files import atomic_write
from bgcl.measures.metrics import risk_coverage
from bgcl.measures.uncertainty import MEASURES, RECOMMENDED
from bgcl.model.training import Record
from bgcl.reporting.look import COLORS, DASHES, VIEW_STYLE

Array = npt.NDArray[Any]
Results = Sequence[SplitResult]

RATES = np.linspace(0.002, 0.998, 400)  # where densities are drawn
_LOOK: Any = {
    "figure.dpi": 150, "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#dddddd", "grid.linewidth": 0.6, "legend.frameon": False, "axes.titlelocation": "left",
}  # fmt: skip


class Picture(Figure):
    """A figure that a notebook displays even if pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        stream = BytesIO()
        self.savefig(stream, format="png", bbox_inches="tight")
        return stream.getvalue()


def look() -> AbstractContextManager[None]:
    """A context manager with the style that all plots share."""
    return mpl.rc_context(_LOOK)


def save(figure: Figure, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a figure to a file, completely or not at all."""
    with atomic_write(path) as part:
        figure.savefig(part, format=path.suffix[1:], bbox_inches="tight", metadata=metadata)


def save_evaluation(results: Results, folder: Path) -> list[Path]:
    """Write all plots of an evaluation to a folder as PNG files, and return their paths."""
    figures = {
        "pavpu": plot_pavpu(results),
        "reliability": plot_reliability(results),
        "risk_coverage": plot_risk_coverage(results),
        "uncertainty_by_class": plot_uncertainty(results),
    }
    paths = [folder / f"{name}.png" for name in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        save(figure, path)
    return paths


def plot_training(history: Sequence[Record]) -> Figure:
    """Plot the loss by epoch, and the expected drop rate of each mask in both views with its standard deviation.

    Args:
        history: the records of the epochs, such as `model.history_`.

    >>> import bgcl
    >>> from bgcl.reporting import plot_training
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(encoder="gcn", widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> [axis.get_title("left") for axis in plot_training(model.history_).axes]
    ['Loss', 'Drop rate: edges', 'Drop rate: entries']
    """
    masks = history[0].rates["o"]
    with look():
        figure = Picture(figsize=(4.2 * (1 + len(masks)), 3.0), layout="constrained")
        axes = figure.subplots(1, 1 + len(masks), squeeze=False)[0]
        epochs = [record.epoch for record in history]
        axes[0].plot(epochs, [record.loss for record in history], color="#333333", linewidth=1)
        axes[0].set(title="Loss", xlabel="epoch")
        for i, mask in enumerate(masks):
            for view, (color, dash) in VIEW_STYLE.items():
                mean = np.array([record.rates[view][i].average for record in history])
                std = np.array([record.rates[view][i].average_std for record in history])
                axes[i + 1].plot(epochs, mean, dash, color=color, label=f"view {view}")
                axes[i + 1].fill_between(epochs, mean - std, mean + std, color=color, alpha=0.15, linewidth=0)
            axes[i + 1].set(title=f"Drop rate: {mask.mask}", xlabel="epoch", ylim=(0, 1))
            axes[i + 1].legend(loc="lower right")
    return figure


def plot_drop_rates(history: Sequence[Record]) -> Figure:
    """Plot the posterior of each learned drop rate in both views. Dotted lines show it after the first epoch.

    Args:
        history: the records of the epochs, such as `model.history_`.

    >>> import bgcl
    >>> from bgcl.reporting import plot_drop_rates
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(encoder="gcn", widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> [axis.get_title("left") for axis in plot_drop_rates(model.history_).axes]
    ['Posterior: edges', 'Posterior: entries']
    """
    last, first = history[-1].rates, history[0].rates
    learned = [i for i, rate in enumerate(last["o"]) if rate.learned]
    with look():
        figure = Picture(figsize=(4.2 * max(len(learned), 1), 3.0), layout="constrained")
        axes = figure.subplots(1, max(len(learned), 1), squeeze=False)[0]
        for axis, i in zip(axes, learned, strict=False):
            for view, (color, dash) in VIEW_STYLE.items():
                rate = last[view][i]
                _draw_density(axis, first[view][i], color=color, linestyle=":", linewidth=0.8)
                _draw_density(axis, rate, color=color, linestyle=dash, label=f"view {view}, mean {rate.average:.2f}")
            axis.set(title=f"Posterior: {last['o'][i].mask}", xlabel="drop rate", xlim=(0, 1))
            axis.set_ylim(bottom=0)
            axis.legend(loc="upper left", title="dotted: after the first epoch", title_fontsize=7)
        if not learned:
            axes[0].set(title="All drop rates are fixed")
            axes[0].set_axis_off()
    return figure


def _draw_density(axis: Axes, rate: RatePosterior, **style: Any) -> None:
    label = style.pop("label", None)
    for density in rate.density(RATES).reshape(-1, len(RATES)):
        axis.plot(RATES, density, label=label, **style)
        label = None


def plot_pavpu(results: Results | Mapping[str, Results], measure: str = "predictive_entropy") -> Figure:
    """Plot PAvPU and its two parts by the threshold of certainty: the mean over splits and the standard deviation.

    Args:
        results: the results of `bgcl.evaluate`, or a dict of them with one line for each method.
        measure: the measure of uncertainty.

    Raises:
        BGCLError: there are no results, or the measure is unknown.

    >>> import bgcl
    >>> from bgcl.reporting import plot_pavpu
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> results = bgcl.evaluate(model, data, "bgrl", count=2, samples=8, training_draws=4)
    >>> [axis.get_title("left") for axis in plot_pavpu(results).axes]
    ['PAvPU', 'p(accurate | certain)', 'p(uncertain | inaccurate)']
    """
    methods = dict(results) if isinstance(results, Mapping) else {"BGCL": results}
    for found in methods.values():
        _check(found, measure)
    parts = {
        "pavpu": "PAvPU",
        "accurate_if_certain": "p(accurate | certain)",
        "uncertain_if_inaccurate": "p(uncertain | inaccurate)",
    }
    with look():
        figure = Picture(figsize=(9.6, 3.1), layout="constrained")
        for axis, (part, title) in zip(figure.subplots(1, 3), parts.items(), strict=True):
            for i, (name, found) in enumerate(methods.items()):
                curves = np.array([getattr(result.pavpu(measure), part) for result in found])
                _draw_band(axis, np.linspace(0, 1, curves.shape[1]), curves, i, name)
            axis.set(title=title, xlabel=f"threshold of {_words(measure)}", ylim=(0, 1.02), xlim=(0, 1))
            axis.set_xticks([0, 0.5, 1], ["least", "", "greatest"])
            if len(methods) > 1:
                axis.legend(loc="lower right")
    return figure


def plot_reliability(results: Results) -> Figure:
    """Plot the share of correct predictions by their confidence, over all splits, and the share of nodes below it.

    Args:
        results: the results of `bgcl.evaluate`.

    Raises:
        BGCLError: there are no results.

    >>> import bgcl
    >>> from bgcl.reporting import plot_reliability
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> results = bgcl.evaluate(model, data, "bgrl", count=2, samples=8, training_draws=4)
    >>> plot_reliability(results).axes[0].get_ylabel()
    'share of correct predictions'
    """
    _check(results)
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
        top.bar(left[full], accuracy[full], width, align="edge", color=COLORS[0], alpha=0.35, edgecolor=COLORS[0])
        top.plot(confidence[full], accuracy[full], "o-", color=COLORS[0], markersize=3, label="accuracy")
        top.plot([0, 1], [0, 1], "--", color="#555555", linewidth=1, label="perfectly calibrated")
        top.set(title=f"Reliability, ECE {ece:.3f}", ylabel="share of correct predictions", xlim=(0, 1), ylim=(0, 1))
        top.legend(loc="upper left")
        bottom.bar(left, count / count.sum(), width, align="edge", color="#999999")
        bottom.set(xlabel="probability of the predicted class", ylabel="nodes")
    return figure


def plot_risk_coverage(results: Results) -> Figure:
    """Plot the share of errors among the most certain nodes by the share of nodes, for each measure of uncertainty.

    Args:
        results: the results of `bgcl.evaluate`.

    Raises:
        BGCLError: there are no results.

    >>> import bgcl
    >>> from bgcl.reporting import plot_risk_coverage
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> results = bgcl.evaluate(model, data, "bgrl", count=2, samples=8, training_draws=4)
    >>> plot_risk_coverage(results).axes[0].get_ylabel()
    'risk'
    """
    _check(results)
    grid = np.linspace(0.02, 1, 50)
    with look():
        figure = Picture(figsize=(4.6, 3.4), layout="constrained")
        axis = figure.subplots()
        for i, measure in enumerate(MEASURES):
            found = [risk_coverage(result.correct, getattr(result.uncertainty, measure)) for result in results]
            curves = np.array([np.interp(grid, curve.coverage, curve.risk) for curve in found])
            area = np.mean([curve.area for curve in found])
            _draw_band(axis, grid, curves, i, f"{_words(measure)}, area {area:.3f}", with_std=False)
        axis.set(title="Errors among the most certain nodes", xlabel="coverage, most certain first", ylabel="risk")
        axis.set(xlim=(0, 1), ylim=(0, None))
        axis.legend(loc="upper left", fontsize=7)
    return figure


def plot_uncertainty(results: Results, measure: str = RECOMMENDED) -> Figure:
    """Plot the uncertainty of the test nodes of each class, for correct and for wrong predictions.

    Args:
        results: the results of `bgcl.evaluate`.
        measure: the measure of uncertainty.

    Raises:
        BGCLError: there are no results, or the measure is unknown.

    >>> import bgcl
    >>> from bgcl.reporting import plot_uncertainty
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> results = bgcl.evaluate(model, data, "bgrl", count=2, samples=8, training_draws=4)
    >>> plot_uncertainty(results, "mutual_information").axes[0].get_ylabel()
    'mutual information'
    """
    _check(results, measure)
    label = np.concatenate([result.label for result in results])
    correct = np.concatenate([result.correct for result in results])
    value = np.concatenate([getattr(result.uncertainty, measure) for result in results])
    classes = np.unique(label)
    with look():
        figure = Picture(figsize=(max(4.6, 0.7 * len(classes) + 1.5), 3.2), layout="constrained")
        axis = figure.subplots()
        for side, (right, name) in enumerate(((True, "correct"), (False, "wrong"))):
            groups = [value[(label == c) & (correct == right)] for c in classes]
            places = np.arange(len(classes)) + 0.36 * side - 0.18
            for box in draw_boxes(axis, groups, positions=places, widths=0.3):
                box.set(facecolor=COLORS[side], alpha=0.6, hatch="" if right else "///")
            axis.plot([], [], "s", color=COLORS[side], label=f"{name} prediction")
        axis.set(title="Uncertainty by class", ylabel=_words(measure), xlabel="class")
        axis.set_xticks(np.arange(len(classes)), [str(results[0].classes[c]) for c in classes])
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return figure


def draw_boxes(axis: Axes, groups: Sequence[Array], **options: Any) -> Any:
    """Draw a box plot of groups, which may be empty, and return the boxes."""
    filled = [group if len(group) else np.array([np.nan]) for group in groups]
    options |= {"showfliers": False, "patch_artist": True, "medianprops": {"color": "black"}}
    return axis.boxplot(filled, **options)["boxes"]


def _draw_band(axis: Axes, x: Array, curves: Array, i: int, label: str, with_std: bool = True) -> None:
    """Draw the mean of curves `(splits, points)` as a line and their standard deviation as a band."""
    mean, color = curves.mean(0), COLORS[i % len(COLORS)]
    axis.plot(x, mean, linestyle=DASHES[i % len(DASHES)], color=color, label=label)
    if with_std and len(curves) > 1:
        std = curves.std(0, ddof=1)
        axis.fill_between(x, mean - std, mean + std, color=color, alpha=0.2, linewidth=0)


def _check(results: Results, measure: str = RECOMMENDED) -> None:
    if not isinstance(results, Sequence) or not results or not isinstance(results[0], SplitResult):
        raise BGCLError("There is nothing to plot. Pass the results of bgcl.evaluate.")
    if measure not in MEASURES:
        raise BGCLError(f"Unknown measure '{measure}'. {nearest(measure, MEASURES)}")


def _words(measure: str) -> str:
    return measure.replace("_", " ")
