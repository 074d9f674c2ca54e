"""A model as a notebook shows it: a small card of HTML that asks for nothing from outside."""

import html
from typing import TYPE_CHECKING, Any

import numpy as np

from bgcl.reporting.training_plots import VIEW_STYLE
from bgcl.settings import make_settings

if TYPE_CHECKING:
    from bgcl.estimator import BGCL

WIDTH, HEIGHT, POINTS = 120, 32, 60
_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:middle"


def card(model: "BGCL") -> str:
    """Settings that differ from the defaults; of a fitted model the graph, the epochs, the loss and the drop rates."""
    title, rows = "BGCL, not fitted", [("settings", html.escape(_settings(model)))]
    if hasattr(model, "network_"):
        title, graph = "BGCL, fitted", model.graph_
        size = f"{graph.nodes:,} nodes, {graph.edges:,} edges, {graph.attributes:,} attributes"
        rows.append(("graph", html.escape(f"{graph.name}: {size}" if graph.name else size)))
        if model.history_:
            last = model.history_[-1]
            rows.append(("training", f"{last['epoch']:,} epochs, last loss {last['loss']:.4f}"))
        rows += [
            (f"drops, view {html.escape(view)}", _rates(masks, VIEW_STYLE[view][0]))
            for view, masks in model.drop_rates_.items()
        ]
    cells = "".join(f'<tr><th style="{_CELL}">{name}</th><td style="{_CELL}">{text}</td></tr>' for name, text in rows)
    return f'<div><strong>{title}</strong><table style="border-collapse:collapse">{cells}</table></div>'


def _settings(model: "BGCL") -> str:
    """What is not the default, the preset first."""
    plain = make_settings()
    changed = [f"{name} = {value!r}" for name, value in model.settings if value != getattr(plain, name)]
    preset = [f"preset = {model.preset!r}"] if model.preset else []
    return ", ".join(preset + changed) or "the defaults"


def _rates(masks: list[dict[str, Any]], colour: str) -> str:
    parts = []
    for mask in masks:
        mean = f"{np.mean(mask['mean']):.2f}"
        drawn = density(mask["a"], mask["b"], colour) if "a" in mask else ""
        parts.append(f"{drawn} {html.escape(mask['mask'])}, {mean if drawn else mean + ' fixed'}")
    return "<br>".join(parts)


def density(a: object, b: object, colour: str) -> str:
    """The posteriors `a b pi^(a-1) (1 - pi^a)^(b-1)` between 0 and 1 as a tiny picture, each scaled to its height."""
    pi = np.linspace(0.005, 0.995, POINTS)
    lines = []
    for a_i, b_i in zip(np.ravel(np.asarray(a)), np.ravel(np.asarray(b)), strict=True):
        # By logarithms: a narrow posterior has large parameters.
        log_q = (a_i - 1) * np.log(pi) + (b_i - 1) * np.log1p(-(pi**a_i))
        height = np.exp(log_q - log_q.max()) * (HEIGHT - 4)
        points = " ".join(f"{x * WIDTH:.1f},{HEIGHT - 1 - y:.1f}" for x, y in zip(pi, height, strict=True))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return (
        f'<svg role="img" aria-label="posterior of the drop rate" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" style="vertical-align:middle">'
        f'<path d="M0 {HEIGHT - 1}H{WIDTH}" stroke="currentColor" stroke-width="0.5"/>{"".join(lines)}</svg>'
    )
