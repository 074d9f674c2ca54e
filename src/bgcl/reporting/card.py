"""The card that a notebook shows for a model: a small piece of HTML that loads nothing."""

import html
from typing import TYPE_CHECKING

import numpy as np

from bgcl.augmentation.drop_rates import RatePosterior
from bgcl.model.training import how_long
from bgcl.reporting.look import VIEW_STYLE

if TYPE_CHECKING:
    from bgcl.estimator import BGCL

WIDTH, HEIGHT = 120, 32
RATES = np.linspace(0.005, 0.995, 60)  # where densities are drawn
_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:middle"


def card(model: "BGCL") -> str:
    """HTML with the given settings; for a fitted model also the graph, the epochs, the loss and the drop rates."""
    title, rows = "BGCL, not fitted", [("settings", html.escape(_settings(model)))]
    if hasattr(model, "network_"):
        title, graph = "BGCL, fitted", model.graph_
        size = f"{graph.nodes:,} nodes, {graph.edges:,} edges, {graph.num_attributes:,} attributes"
        rows.append(("graph", html.escape(f"{graph.name}: {size}" if graph.name else size)))
        if model.history_:
            last = model.history_[-1]
            rows.append(("training", f"epochs {how_long(model.history_, model.settings_)}, last loss {last.loss:.4f}"))
        for view, rates in model.drop_rates_.items():
            lines = [_rate(rate, VIEW_STYLE[view][0]) for rate in rates]
            rows.append((f"drops, view {html.escape(view)}", "<br>".join(lines)))
    cells = "".join(f'<tr><th style="{_CELL}">{name}</th><td style="{_CELL}">{text}</td></tr>' for name, text in rows)
    return f'<div><strong>{title}</strong><table style="border-collapse:collapse">{cells}</table></div>'


def _settings(model: "BGCL") -> str:
    """The preset and the settings that were given."""
    preset = [f"preset = {model.preset!r}"] if model.preset else []
    return ", ".join(preset + [f"{name} = {value!r}" for name, value in model.given().items()]) or "the defaults"


def _rate(rate: RatePosterior, color: str) -> str:
    mean, mask = f"{rate.average:.2f}", html.escape(rate.mask)
    return f"{draw_density(rate, color)} {mask}, {mean}" if rate.learned else f" {mask}, {mean} fixed"


def draw_density(rate: RatePosterior, color: str) -> str:
    """A small SVG of the densities of a mask's drop rates, each scaled to the height of the picture."""
    lines = []
    for density in rate.density(RATES).reshape(-1, len(RATES)):
        height = density / max(density.max(), 1e-300) * (HEIGHT - 4)
        points = " ".join(f"{x * WIDTH:.1f},{HEIGHT - 1 - y:.1f}" for x, y in zip(RATES, height, strict=True))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>')
    return (
        f'<svg role="img" aria-label="posterior of the drop rate" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" style="vertical-align:middle">'
        f'<path d="M0 {HEIGHT - 1}H{WIDTH}" stroke="currentColor" stroke-width="0.5"/>{"".join(lines)}</svg>'
    )
