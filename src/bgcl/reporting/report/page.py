"""The page: one HTML file with everything in it, that asks for nothing from outside.

Arrays of the nodes go in as base64: measures as float64, so that the page's numbers are those of `bgcl.quality` to the
last bit; places on the map as 16-bit fractions of its width; probabilities as 16-bit fractions of one.
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

from bgcl.errors import BGCLError
from bgcl.files import write_text
from bgcl.reporting.report.contents import MEANINGS, Contents, gather
from bgcl.reporting.report.curves import QUANTILES, RATES, rate_curves, training_curves

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

FULL = 65_535
SCRIPTS = ("arrays", "colours", "raster", "node_map", "charts", "threshold", "curves", "table", "page")


def report(
    model: "BGCL",
    data: "Data",
    out: str | os.PathLike[str] = "report.html",
    *,
    samples: int = 100,
    seed: int | None = None,
    progress: bool = False,
) -> Path:
    """Write a page that shows what a model knows of the nodes that it was trained on, and what it does not.

    `samples` draws are made; without a `seed`, with the model's. The map is t-SNE where openTSNE is installed
    (`bgcl[report]`), and PCA elsewhere. The same model and seed give the same page.

    >>> import bgcl, tempfile
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> bgcl.report(model, data, f"{tempfile.mkdtemp()}/report.html", samples=8).name
    'report.html'
    """
    out = Path(out)
    check_out(out)
    write_text(out, render(gather(model, data, samples=samples, seed=seed, progress=progress)))
    return out


def check_out(out: Path) -> None:
    """Refuse what is no page, before any work is done for it."""
    if out.suffix not in (".html", ".htm"):
        raise BGCLError(f"Cannot write {out}: the report is a page, its file must end in .html.")
    if out.is_dir():
        raise BGCLError(f"Cannot write {out}: it is a folder. Name a file.")


def render(contents: Contents) -> str:
    """The page as text."""
    assets = files("bgcl.reporting.report") / "assets"
    script = "\n".join((assets / f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n'
    style = (assets / "page.css").read_text("utf-8")
    # Only this very script and style run, and nothing is fetched, whatever an id or a class may hold.
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
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
    """What the page's script reads, as JSON has it."""
    place, cloud = quantise(contents.map)
    nodes = len(contents.label)
    found: dict[str, Any] = {
        "title": contents.title,
        "facts": contents.facts,
        "notes": contents.notes,
        "nodes": nodes,
        "ids": contents.ids,
        "classes": contents.classes,
        "label": _pack(contents.label, "<i2"),
        "map": {"method": contents.map.method, "place": _pack(place, "<u2"), "cloud": _pack(cloud, "<u2")},
        "draws": len(contents.map.cloud),
        "first_measure": contents.first_measure,
        "measures": [
            {"name": name, "title": MEANINGS[name][0], "meaning": MEANINGS[name][1], "values": _pack(values, "<f8")}
            for name, values in contents.measures.items()
        ],
        "scores": contents.scores,
        "training": training_curves(contents.history) if contents.history else None,
        "rates": rate_curves(contents.history),
        "quantiles": QUANTILES,
        "grid": RATES.tolist(),
    }
    if contents.likeliest is not None and contents.probability is not None:
        found["likeliest"] = _pack(contents.likeliest, "<u2")
        found["probability"] = _pack(np.rint(contents.probability * FULL), "<u2")
        found["shown_classes"] = contents.likeliest.shape[1]
    if (bins := contents.reliability) is not None:
        found["reliability"] = {
            "confidence": bins.confidence.tolist(), "accuracy": bins.accuracy.tolist(), "count": bins.count.tolist(),
        }  # fmt: skip
    return found


def quantise(placed: Any) -> tuple[Array, Array]:
    """Places as 16-bit numbers, the same scale on both axes: nodes `(N, 2)`, and draws node by node, `(N, D, 2)`."""
    low, high = placed.position.min(0), placed.position.max(0)
    size = float((high - low).max()) or 1.0
    offset = (size - (high - low)) / 2  # the shorter side is in the middle

    def fraction(place: Array) -> Array:
        return np.asarray(np.rint(((place - low + offset) / size).clip(0, 1) * FULL))

    return fraction(placed.position), fraction(placed.cloud).transpose(1, 0, 2)


def _pack(values: Array, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode("ascii")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _json(value: Any) -> str:
    """JSON that may stand inside a script element: no tag can begin or end in it."""
    text = json.dumps(_short(value), allow_nan=False, separators=(",", ":"))  # ASCII alone
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _short(value: Any) -> Any:
    """Numbers of curves and scores to six digits; what is not finite as null."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _short(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_short(part) for part in value]
    return value
