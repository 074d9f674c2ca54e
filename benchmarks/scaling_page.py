"""Write what `scaling.py` measured into docs/scaling.md, between two comments, and what follows from it."""

import math
import re
from pathlib import Path
from typing import Any

from scaling import MODES, SIZES, slope

GB = 1e9
PAPERS = {"nodes": 111e6, "edges": 1.6e9, "attributes": 128}  # ogbn-papers100M
WIDTH = 4 * 256 + 5 * 512  # of the embedding of the default
BUDGET = 24 * 2**30
BEGIN, END = "<!-- measured: made by benchmarks/scaling.py --page -->", "<!-- end -->"
Found = dict[str, dict[str, Any]]


def write_page(found: Found, page: Path) -> None:
    """Replace what is between the comments."""
    text = page.read_text("utf-8")
    new = f"{BEGIN}\n\n{curves(found)}\n{constants_table(found)}\n{dense_table(found)}\n{plan(found)}\n{END}"
    page.write_text(re.sub(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: new, text, flags=re.S), "utf-8")


def of(found: Found, kind: str, field: str) -> dict[int, float]:
    """A measured figure by the number of nodes."""
    every = {nodes: found.get(f"{kind} {nodes}", {}) for nodes in SIZES}
    return {nodes: each[field] for nodes, each in every.items() if field in each}


def curves(found: Found) -> str:
    """Seconds of an epoch and memory by size."""
    sizes = [nodes for nodes in SIZES if any(nodes in of(found, mode, "epoch") for mode in MODES)]
    names = {
        "default": "the default, from a pack", "full": "`gcn`, whole graph", "clusters": "`gcn`, clusters",
    }  # fmt: skip
    lines = [
        "### Time and memory against size",
        "",
        "Processor seconds of one epoch with one thread, and the greatest memory of the process (with about 0.45 GB of "
        "libraries).",
        "",
        "| nodes | "
        + " | ".join(f"{names[mode]}: s" for mode in MODES)
        + " | "
        + " | ".join(f"{names[m]}: GB" for m in MODES)
        + " |",
        "|---|" + "---|" * (2 * len(MODES)),
    ]
    for nodes in sizes:
        row = [_number(of(found, mode, "epoch").get(nodes)) for mode in MODES]
        row += [_number(_in_gb(of(found, mode, "peak").get(nodes))) for mode in MODES]
        lines.append(f"| {nodes:,} | " + " | ".join(row) + " |")
    slopes = []
    for mode in MODES:
        measured = of(found, mode, "epoch")
        if len(measured) > 1:
            slopes.append(f"{slope(measured):.2f} ({names[mode]})")
    return "\n".join([*lines, "", "Exponent p of `seconds ~ N^p`, by least squares: " + ", ".join(slopes) + ".", ""])


def constants(found: Found) -> dict[str, float]:
    """Seconds for a node, from the largest graph, and bytes for a node, from the two largest graphs."""
    what = {
        "make": ("make", "make"), "pack": ("make", "pack"), "epoch": ("default", "epoch"), "fit": ("draw", "fit"),
        "alike": ("draw", "alike"), "draw": ("draw", "draw"),
    }  # fmt: skip
    result = {}
    for name, where in what.items():
        measured = of(found, *where)
        if measured:
            nodes = max(measured)
            result[name] = measured[nodes] / nodes
    for name, kind in (("train bytes", "default"), ("draw bytes", "draw")):
        peaks = sorted(of(found, kind, "peak").items())
        if len(peaks) > 1:
            (small, low), (large, high) = peaks[-2:]
            result[name] = (high - low) / (large - small)
    return result


LABELS = {
    "make": "`bgcl data make`", "pack": "`bgcl data pack`, mostly METIS", "epoch": "an epoch of the default",
    "fit": "what is found before training", "alike": "alike nodes, once for a model", "draw": "a draw",
}  # fmt: skip


def constants_table(found: Found) -> str:
    """The constants of the cost model."""
    known = constants(found)
    lines = ["### Constants", "", "| what | microseconds a node |", "|---|---|"]
    lines += [f"| {label} | {1e6 * known[name]:.3g} |" for name, label in LABELS.items() if name in known]
    for name, label in (("train bytes", "an epoch of the encoder alone"), ("draw bytes", "fitting and drawing")):
        if name in known:
            lines.append(f"| memory of {label} | {known[name]:,.0f} bytes a node |")
    return "\n".join([*lines, ""])


def dense_table(found: Found) -> str:
    """The largest graph of the dense loss on 24 GiB, and of what is computed here."""
    measured = {
        int(name.split()[1]): each["bytes"]
        for name, each in found.items()
        if name.startswith("dense ") and "bytes" in each
    }
    if not measured:
        return ""
    nodes = max(measured)
    factor = measured[nodes] / (4 * nodes**2)
    largest = int(math.sqrt(BUDGET / (4 * factor)))
    known = constants(found)
    lines = [
        "### Against the dense loss",
        "",
        "| nodes | memory of the dense loss and its gradient | matrices of N x N |",
        "|---|---|---|",
        *(f"| {n:,} | {_number(size / GB)} GB | {size / (4 * n**2):.1f} |" for n, size in sorted(measured.items())),
        "",
        f"So {factor:.1f} matrices of N x N are alive at the same time, and 24 GiB hold a graph of {largest:,} nodes "
        "with it, without anything else.",
    ]
    for name, what in (("train bytes", "train"), ("draw bytes", "fit and draw")):
        if name in known:
            ours = int((BUDGET - 0.5 * GB) / known[name])
            lines.append(
                f"To {what}, the default takes {known[name]:,.0f} bytes a node from a pack: {ours:,} nodes, "
                f"{ours / largest:,.0f} times as many."
            )
    return "\n".join([*lines, ""])


def plan(found: Found) -> str:
    """What a graph of 111 million nodes would need, from the constants."""
    known = constants(found)
    if not {"epoch", "draw", "train bytes", "draw bytes"} <= known.keys():
        return ""
    nodes, entries = PAPERS["nodes"], 2 * PAPERS["edges"] + PAPERS["nodes"]
    measured = of(found, "make", "edges")
    ours = (2 * measured[max(measured)] + max(measured)) / max(measured)  # entries for a node of the measured graphs
    dense = entries / nodes / ours
    hours = {name: known[name] * nodes / 3600 for name in known if not name.endswith("bytes")}
    wide, narrow = (f"{known[name] * nodes / GB:,.0f} GB" for name in ("draw bytes", "train bytes"))
    hours |= {name: hours[name] * dense for name in ("pack", "fit", "draw")}  # these go along edges
    both = f"{84 * entries / GB:,.0f} GB for METIS, or {9 * entries / GB:,.0f} GB for the search"
    rows = [
        ("pack: partition", both, hours["pack"]),
        ("find rates, directions, positions", wide, hours["fit"]),
        ("one epoch", narrow, hours["epoch"]),
        ("alike nodes", wide, hours["alike"]),
        ("a draw", wide, hours["draw"]),
        ("ten draws", "the same", 10 * hours["draw"]),
    ]
    disk, embedding = 4 * nodes * (PAPERS["attributes"] * 4 + 3) + 32 * PAPERS["edges"], 4 * nodes * WIDTH
    steps, gradient = math.ceil(nodes / 512), max(of(found, "default", "gradient").values(), default=0.0)
    total = hours["fit"] + hours["epoch"] / 16 + hours["alike"] + hours["draw"]
    lines = [
        "### A plan for 111 million nodes and 1.6 billion edges",
        "",
        f"This is the size of ogbn-papers100M. It has {entries / nodes:.0f} entries of the adjacency matrix for a "
        f"node, {dense:.1f} times as many as the measured graphs, and what goes along edges is scaled by that. Nothing "
        f"here was run: it is the constants above, of {max(measured):,} nodes at most, times the sizes. "
        "Larger graphs miss the caches of the processor more often, so hours along edges are a lower bound.",
        "",
        "| step | memory | processor hours of one thread |",
        "|---|---|---|",
        *(f"| {step} | {memory} | {time:.1f} |" for step, memory, time in rows),
        "",
        f"- **Disk**: {disk / GB:,.0f} GB for the pack and the scaled attributes; {embedding / GB:,.0f} GB for a mean "
        "of the embeddings, and as much for a standard deviation.",
        f"- **Traffic of training**: a step reduces one flat gradient of {gradient / 4:,.0f} numbers, "
        f"{gradient / 1e6:.1f} MB in each direction for each process. An epoch has {steps:,} steps of 512 nodes, "
        f"or {steps // 16:,} on 16 processes: {gradient * (steps // 16) / GB:,.0f} GB of traffic for each. "
        "At 10 Gbit/s a reduction takes "
        f"{2 * gradient * 8 / 1e10 * 1e3:.0f} ms, and a step about {known['epoch'] * 512 * 1e3:.0f} ms.",
        f"- **One epoch is enough**: it has {steps:,} steps, and the default takes about 300 if the graph is small.",
        "- **Machines**: one with the memory above for the parts of the embedding, or one with less and fewer parts: "
        "without `structure hop 1` no positions are in memory. Training can be shared among 16 processes of a few "
        "machines, and draws too, one draw each.",
        f"- **Hours**: {total:,.0f} with 16 threads, if what is found before training and alike nodes take one of "
        "them, training is shared by all, and each of ten draws has one of its own.",
        "",
    ]
    return "\n".join(lines)


def _in_gb(size: float | None) -> float | None:
    return None if size is None else size / GB


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
