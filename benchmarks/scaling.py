"""Measure how time and memory grow with the graph: `python benchmarks/scaling.py FOLDER`, and `--page` for the docs.

Graphs of `bgcl data make` (average degree 20, 128 attributes) are made and packed in FOLDER. Each measurement is a
process of its own with one thread. Times are those of the processor, so that other work on the machine counts little.
Results are added to `results/scaling.json`, or to the file that `--results` names; what is there is not measured again.
`--page` writes them into `docs/scaling.md`, together with the costs of a graph of 111 million nodes that follow.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "scaling.json", ROOT / "docs" / "scaling.md"
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
# One epoch each, of the encoder alone: drop rates are fixed, and nothing is found before training but scales.
FIXED = {"epochs": 1, "until_settled": False, "drop": ("edges at 0.3", "entries at 0.3"), "widths": (128, 64)}
MODES: dict[str, dict[str, Any]] = {
    "default": {**FIXED, "drop": ("entries at 0.3", "neighbors at 0.3"), "widths": (512, 256), "parts": ("encoder",)},
    "full": {**FIXED, "encoder": "gcn", "objective": "decorrelation", "batches": 1},
    "clusters": {**FIXED, "encoder": "gcn", "objective": "decorrelation", "batches": None},
}
DENSE = (1000, 2000, 4000, 8000)  # nodes of the dense loss
GIB = 2**30


def processor() -> float:
    """Seconds of the processor that this process has used."""
    return time.process_time()


def peak() -> int:
    """The greatest memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def make(folder: Path, nodes: int) -> dict[str, Any]:
    """Make and pack a graph."""
    from bgcl.data.generator import GraphPlan, write_parquet
    from bgcl.data.packing import pack_rows
    from bgcl.data.packing_parquet import parquet_rows

    start = processor()
    write_parquet(GraphPlan(nodes=nodes), folder / f"graph-{nodes}")
    made = processor()
    found = pack_rows(parquet_rows(folder / f"graph-{nodes}"), folder / f"pack-{nodes}")
    return {"make": made - start, "pack": processor() - made, "edges": found.edges}


def epoch(folder: Path, nodes: int, mode: str) -> dict[str, Any]:
    """One epoch of training on a packed graph."""
    import bgcl
    from bgcl.model.global_step import NUMBERS
    from bgcl.model.network import Network
    from bgcl.model.training import Training
    from bgcl.ready_model import fit_graph, is_dense, ready_graph

    data = bgcl.load(folder / f"pack-{nodes}")
    how = dict(MODES[mode])
    if "batches" in how:
        how["batches"] = how["batches"] or max(round(nodes / 4000), 1)
    settings = bgcl.BGCL(**how).settings_for(data)
    ready = ready_graph(data, settings)
    network = Network(data.x.shape[1], settings, dense=is_dense(ready))
    import torch

    ready.scaled = fit_graph(network, ready, torch.Generator().manual_seed(0))
    training = Training(network, ready.batches(settings), settings)
    before, start = peak(), processor()
    record = training.step()
    seconds = processor() - start
    gradient = 4 * (sum(parameter.numel() for parameter in training.theta_w) + NUMBERS)  # bytes that a step adds up
    return {
        "epoch": seconds, "peak": peak(), "peak before": before, "wall": record.seconds, "gradient": gradient,
    }  # fmt: skip


def draw(folder: Path, nodes: int) -> dict[str, Any]:
    """A draw of the embedding of the default, after what is found before training."""
    import torch

    import bgcl
    from bgcl.augmentation.noise import CountedNoise
    from bgcl.model.network import Network
    from bgcl.ready_model import fit_graph, ready_graph

    data = bgcl.load(folder / f"pack-{nodes}")
    settings = bgcl.BGCL().settings_for(data)
    ready = ready_graph(data, settings)
    network = Network(data.x.shape[1], settings, dense=True)
    generator = torch.Generator().manual_seed(0)
    network.reset_parameters(generator)
    start = processor()
    fit_graph(network, ready, generator)
    fitted = processor()
    embedder = ready.embedder_of(network.eval())
    embedder.alike  # noqa: B018, it is found on first use
    alike = processor()
    embedder.draw(lambda first, slab: None, "o", CountedNoise.of_draw(0, 0), scale=None)
    return {"fit": fitted - start, "alike": alike - fitted, "draw": processor() - alike, "peak": peak()}


def dense(nodes: int) -> dict[str, Any]:
    """Memory of the dense loss of GRACE and its gradient, beyond what was there before."""
    import torch

    from run import dense_loss

    o, t = (torch.randn(nodes, 128, requires_grad=True) for _ in range(2))
    small = torch.randn(50, 128, requires_grad=True)
    dense_loss(small, small, 0.5).backward()
    before = peak()
    dense_loss(o, t, 0.5).backward()
    return {"bytes": peak() - before}


def slope(measured: dict[int, float]) -> float:
    """The exponent p of `seconds ~ N^p`, by least squares of the logarithms."""
    x, y = [math.log(n) for n in measured], [math.log(seconds) for seconds in measured.values()]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def in_a_process(folder: Path, what: str, *arguments: object) -> dict[str, Any]:
    """A measurement in a process of its own."""
    words = [sys.executable, __file__, str(folder), "--one", what, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["killed"])[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(folder: Path, sizes: list[int], results: Path) -> None:
    """Measure what is not in the results yet, and write them after each measurement."""
    known = json.loads(results.read_text("utf-8")) if results.exists() else {}
    wanted: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        (f"dense {nodes}", lambda nodes=nodes: in_a_process(folder, "dense", nodes)) for nodes in DENSE
    ]
    for nodes in sizes:
        wanted.append((f"make {nodes}", lambda nodes=nodes: in_a_process(folder, "make", nodes)))
        for mode in MODES:
            wanted.append((f"{mode} {nodes}", lambda n=nodes, mode=mode: in_a_process(folder, "epoch", n, mode)))
        wanted.append((f"draw {nodes}", lambda nodes=nodes: in_a_process(folder, "draw", nodes)))
    from bgcl.files import write_text

    for name, measurement in wanted:
        kind, nodes = name.split()
        there = (folder / f"pack-{nodes}" / "pack.json").exists()
        if name in known and (kind != "make" or there):
            continue
        known[name] = measurement()
        print(name, known[name], flush=True)
        write_text(results, json.dumps(known, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="where graphs are made")
    parser.add_argument("--sizes", type=float, nargs="+", default=SIZES, help="numbers of nodes")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of what was measured")
    parser.add_argument("--page", action="store_true", help="write the results into docs/scaling.md")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.page:
        from scaling_page import write_page

        write_page(json.loads(arguments.results.read_text("utf-8")), PAGE)
        return
    if arguments.folder is None:
        parser.error("Name a folder, in which graphs are made.")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.one is None:
        measure(arguments.folder, [int(size) for size in arguments.sizes], arguments.results)
        return
    import torch

    torch.set_num_threads(1)
    what, *rest = arguments.one
    numbers = [int(word) if word.isdigit() else word for word in rest]
    if what == "dense":
        print(json.dumps(dense(*numbers)))
    else:
        print(json.dumps({"make": make, "epoch": epoch, "draw": draw}[what](arguments.folder, *numbers)))


if __name__ == "__main__":
    main()
