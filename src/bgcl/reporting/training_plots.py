"""Pictures of a training: its loss, and the posteriors of the drop rates as they were learned."""

from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from bgcl.files import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that the colour-blind tell apart (Okabe and Ito, 2008), and dashes for print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
VIEW_STYLE = {"o": (COLOURS[0], "-"), "t": (COLOURS[1], "--")}
_LOOK: Any = {
    "figure.dpi": 150, "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#dddddd", "grid.linewidth": 0.6, "legend.frameon": False, "axes.titlelocation": "left",
}  # fmt: skip


class Picture(Figure):
    """A figure that a notebook shows by itself, whether or not pyplot has been imported."""

    def _repr_png_(self) -> bytes:
        stream = BytesIO()
        self.savefig(stream, format="png", bbox_inches="tight")
        return stream.getvalue()


def look() -> AbstractContextManager[None]:
    """The one look of all pictures."""
    return mpl.rc_context(_LOOK)


def save(figure: Figure, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a figure, whole or not at all."""
    with whole(path) as part:
        figure.savefig(part, format=path.suffix[1:], bbox_inches="tight", metadata=metadata)


def training_figure(history: list[dict[str, Any]]) -> Figure:
    """The loss, and the expected drop rate of each mask in both views with its deviation, by epoch."""
    masks = [mask["mask"] for mask in history[0]["rates"]["o"]]
    with look():
        figure = Picture(figsize=(4.2 * (1 + len(masks)), 3.0), layout="constrained")
        axes = figure.subplots(1, 1 + len(masks), squeeze=False)[0]
        epochs = [record["epoch"] for record in history]
        axes[0].plot(epochs, [record["loss"] for record in history], color="#333333", linewidth=1)
        axes[0].set(title="Contrastive loss", xlabel="epoch")
        for i, mask in enumerate(masks):
            for view, (colour, dash) in VIEW_STYLE.items():
                mean = np.array([np.mean(record["rates"][view][i]["mean"]) for record in history])
                width = np.array([np.mean(record["rates"][view][i]["deviation"]) for record in history])
                axes[i + 1].plot(epochs, mean, dash, color=colour, label=f"view {view}")
                axes[i + 1].fill_between(epochs, mean - width, mean + width, color=colour, alpha=0.15, linewidth=0)
            axes[i + 1].set(title=f"Drop rate: {mask}", xlabel="epoch", ylim=(0, 1))
            axes[i + 1].legend(loc="lower right")
    return figure


def posterior_figure(history: list[dict[str, Any]]) -> Figure:
    """The Kumaraswamy posterior of each learned drop rate in both views, with its start as a thin line."""
    last, first = history[-1]["rates"], history[0]["rates"]
    learned = [i for i, mask in enumerate(last["o"]) if "a" in mask]
    with look():
        figure = Picture(figsize=(4.2 * max(len(learned), 1), 3.0), layout="constrained")
        axes = figure.subplots(1, max(len(learned), 1), squeeze=False)[0]
        for axis, i in zip(axes, learned, strict=False):
            for view, (colour, dash) in VIEW_STYLE.items():
                _density(axis, first[view][i], color=colour, linestyle=":", linewidth=0.8)
                mean = np.mean(last[view][i]["mean"])
                _density(axis, last[view][i], color=colour, linestyle=dash, label=f"view {view}, mean {mean:.2f}")
            axis.set(title=f"Posterior: {last['o'][i]['mask']}", xlabel="drop rate", xlim=(0, 1))
            axis.set_ylim(bottom=0)
            axis.legend(loc="upper left", title="dotted: after the first epoch", title_fontsize=7)
        if not learned:
            axes[0].set(title="All drop rates are fixed")
            axes[0].set_axis_off()
    return figure


def _density(axis: "Axes", rate: dict[str, Any], **style: Any) -> None:
    """Draw `a b pi^(a-1) (1 - pi^a)^(b-1)` for each layer and block of a rate."""
    pi = np.linspace(0.002, 0.998, 400)
    label = style.pop("label", None)
    for a, b in zip(np.ravel(rate["a"]), np.ravel(rate["b"]), strict=True):
        axis.plot(pi, a * b * pi ** (a - 1) * (1 - pi**a) ** (b - 1), label=label, **style)
        label = None
