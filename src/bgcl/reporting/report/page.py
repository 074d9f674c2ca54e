"""The page: one HTML file that contains everything it needs and loads nothing.

Arrays are stored as base64. Measures are float64, so that the page computes the same numbers as `bgcl.measures` to the
last bit. Positions on the map are 16-bit fractions of its width, probabilities 16-bit fractions of one.
"""

import base64
import hashlib
import html
import json
import math
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.arguments import path_of
from bgcl.errors import BGCLError
from bgcl.files import write_text
from bgcl.reporting.report.contents import MEANINGS, Contents, gather
from bgcl.reporting.report.curves import QUANTILES, RATES, rate_curves, training_curves
from bgcl.reporting.report.node_map import NodeMap

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_geometric.data import Data

    from bgcl.downstream.kept_results import KeptResults
    from bgcl.downstream.node_predictions import NodePredictions
    from bgcl.estimator import BGCL
    from bgcl.reporting.report.figures import Figures

Array = npt.NDArray[Any]

FULL = 65_535  # the largest 16-bit number
SCRIPTS = (
    "arrays",
    "colors",
    "raster",
    "node_map",
    "charts",
    "threshold",
    "curves",
    "figures",
    "table",
    "trust",
    "page",
)


def report(
    model: "BGCL",
    data: "Data",
    out: str | os.PathLike[str] = "report.html",
    *,
    samples: int = 100,
    seed: int | None = None,
    progress: bool = False,
    kept: "KeptResults | None" = None,
    compare: "Callable[[NodePredictions], Figures | None] | None" = None,
) -> Path:
    """Write an HTML page that shows what a model knows about the nodes of its training graph, and how sure it is.

    The page has a map of the nodes, a slider for the threshold of certainty, the nodes to review first, the calibration
    and the training. It works offline. The map is t-SNE if openTSNE is installed (`pip install 'bgcl[report]'`),
    otherwise PCA. The same model and seed give the same page.

    Args:
        model: a fitted model.
        data: the graph that it was trained on. Without labels, the page has no predictions.
        out: the file to write; it must end in `.html` or `.htm`.
        samples: number of draws, 2 or more.
        seed: seed of the draws; None: the model's.
        progress: show on a terminal how many draws were made.
        kept: what was kept in the run, and is not made again.
        compare: a function that makes a table which compares the predictions with others.

    Returns:
        The path of the page.

    Raises:
        BGCLError: the file cannot be written, the model was trained on another graph, or there are too few samples.

    >>> import bgcl, tempfile
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> bgcl.report(model, data, f"{tempfile.mkdtemp()}/report.html", samples=8).name
    'report.html'
    """
    page = path_of("'out'", out)
    check_out(page)
    write_text(
        page, render(gather(model, data, samples=samples, seed=seed, progress=progress, kept=kept, compare=compare))
    )
    return page


def check_out(out: Path) -> None:
    """Raise a `BGCLError` if a path cannot be a page, before any work is done."""
    if out.suffix not in (".html", ".htm"):
        raise BGCLError(f"Cannot write {out}: the report is an HTML page, so the name of its file must end in .html.")
    if out.is_dir():
        raise BGCLError(f"Cannot write {out}: it is a folder. Name a file.")


def render(contents: Contents) -> str:
    """The page as HTML."""
    assets = files("bgcl.reporting.report") / "assets"
    script = "\n".join((assets / f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n'
    style = (assets / "page.css").read_text("utf-8")
    # The browser runs only this script and this style, and loads nothing, whatever text an id or a class contains.
    policy = (
        f"default-src 'none'; script-src '{_source_hash(script)}'; style-src '{_source_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(contents.title),
        "style": style,
        "script": script,
        "payload": _json(payload(contents)),
    }
    template = (assets / "page.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def payload(contents: Contents) -> dict[str, Any]:
    """The data for the page's script, as JSON can hold it."""
    position, cloud = quantize(contents.map)
    nodes = len(contents.label)
    found: dict[str, Any] = {
        "title": contents.title,
        "facts": contents.facts,
        "notes": contents.notes,
        "figures": [vars(figures) for figures in contents.figures],
        "nodes": nodes,
        "ids": contents.ids,
        "classes": contents.classes,
        "label": _pack(contents.label, "<i2"),
        "map": {"method": contents.map.method, "position": _pack(position, "<u2"), "cloud": _pack(cloud, "<u2")},
        "draws": len(contents.map.cloud),
        "first_measure": contents.first_measure,
        "measures": [
            {"name": name, "title": MEANINGS[name][0], "meaning": MEANINGS[name][1], "values": _pack(values, "<f8")}
            for name, values in contents.measures.items()
        ],
        "scores": contents.scores,
        "training": training_curves(contents.history) if contents.history else None,
        "rates": rate_curves(contents.history, relations=contents.relations),
        "quantiles": QUANTILES,
        "grid": RATES.tolist(),
    }
    if contents.likeliest is not None and contents.probability is not None:
        found["likeliest"] = _pack(contents.likeliest, "<u2")
        found["probability"] = _pack(np.rint(contents.probability * FULL), "<u2")
        found["shown_classes"] = contents.likeliest.shape[1]
    if (unknown := contents.unknown) is not None:
        found["unknown"] = {
            "nodes": unknown.nodes.tolist(), "novelty": unknown.novelty.tolist(), "reasons": unknown.reasons,
            "nearest": unknown.nearest.tolist(),
        }  # fmt: skip
    if (sets := contents.sets) is not None:
        found["sets"] = {
            "levels": sets.levels.tolist(), "size": _pack(sets.size, "<u2"), "needed": sets.needed.tolist(),
            "calibration": sets.calibration,
        }  # fmt: skip
    if (bins := contents.reliability) is not None:
        found["reliability"] = {
            "confidence": bins.confidence.tolist(), "accuracy": bins.accuracy.tolist(), "count": bins.count.tolist(),
        }  # fmt: skip
    return found


def quantize(node_map: NodeMap) -> tuple[Array, Array]:
    """Positions as 16-bit numbers, with one scale for both axes: of nodes `(N, 2)`, and of draws `(N, D, 2)`."""
    low, high = node_map.position.min(0), node_map.position.max(0)
    size = float((high - low).max()) or 1.0
    offset = (size - (high - low)) / 2  # center the shorter side

    def fraction(position: Array) -> Array:
        return np.asarray(np.rint(((position - low + offset) / size).clip(0, 1) * FULL))

    return fraction(node_map.position), fraction(node_map.cloud).transpose(1, 0, 2)


def _pack(values: Array, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode("ascii")


def _source_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _json(value: Any) -> str:
    """JSON for a script element: escaped, so that no tag can begin or end in it."""
    text = json.dumps(_short(value), allow_nan=False, separators=(",", ":"))  # only ASCII
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _short(value: Any) -> Any:
    """Round floats to six digits, and replace NaN and infinity by None."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _short(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_short(part) for part in value]
    return value
