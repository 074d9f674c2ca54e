"""Measure the speed and memory of bgcl as ratios to a named alternative in the same run. `make bench` runs it.

The two sides of a ratio take turns, so that load on the machine slows both. Each number is the median over the turns.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.nn import functional as F
from torch_geometric.data import Data

import bgcl
from bgcl.errors import BGCLError
from bgcl.estimator import BGCL
from bgcl.graph.clusters import Batches
from bgcl.graph.prepared import prepare
from bgcl.graph.sparse import Pattern, row_pointer, spmm
from bgcl.model.network import Network
from bgcl.model.objectives.decorrelation import decorrelation_loss
from bgcl.model.objectives.infonce import PRODUCTS, TILE, _tiles, contrastive_loss
from bgcl.model.training import Training
from bgcl.settings import make_settings

THREADS = 2


def ratio(ours: Callable[[], object], reference: Callable[[], object], turns: int = 7) -> tuple[float, float, float]:
    """The median time of each side in seconds, and their ratio."""
    ours(), reference()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for side, action in enumerate((ours, reference)):
            start = time.perf_counter()
            action()
            times[side].append(time.perf_counter() - start)
    a, b = (statistics.median(side) for side in times)
    return a, b, a / b


def dense_loss(o: torch.Tensor, t: torch.Tensor, tau: float) -> torch.Tensor:
    """The contrastive loss as in the code of GRACE, with four dense similarity matrices."""

    def one_way(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        within, between = torch.exp(x @ x.t() / tau), torch.exp(x @ y.t() / tau)
        return -torch.log(between.diag() / (within.sum(1) + between.sum(1) - within.diag()))

    x, y = F.normalize(o), F.normalize(t)
    return ((one_way(x, y) + one_way(y, x)) / 2).mean()


def grace_epoch() -> Callable[[], None]:
    """An epoch of GRACE on Cora with PyG's GCNConv, dense features, the dense loss and the paper's widths."""
    from torch_geometric.nn import GCNConv
    from torch_geometric.utils import dropout_edge

    data = bgcl.load("cora")
    x = data.x.to_dense()
    x = x / x.sum(1, keepdim=True).clamp(min=1)
    layers = torch.nn.ModuleList([GCNConv(x.shape[1], 256), GCNConv(256, 128)])
    head = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ELU(), torch.nn.Linear(128, 128))
    optimizer = torch.optim.Adam([*layers.parameters(), *head.parameters()], lr=0.0005, weight_decay=1e-5)

    def view(edge_rate: float, feature_rate: float) -> torch.Tensor:
        edges, _ = dropout_edge(data.edge_index, p=edge_rate)
        h = x * (torch.rand(x.shape[1]) > feature_rate)
        for layer in layers:
            h = F.relu(layer(h, edges))
        return head(h)

    def epoch() -> None:
        optimizer.zero_grad()
        dense_loss(view(0.2, 0.3), view(0.4, 0.4), 0.4).backward()
        optimizer.step()

    return epoch


def bgcl_epoch() -> Callable[[], object]:
    """An epoch of BGCL on Cora with the preset's settings, encoder and augmentation step."""
    data, settings = bgcl.load("cora"), make_settings("paper-cora")
    return Training(Network(data.x.shape[1], settings), Batches(prepare(data, row_norm="sum")), settings).step


def bench_epoch() -> tuple[float, float, float]:
    return ratio(bgcl_epoch(), grace_epoch(), turns=15)


def projections(nodes: int = 7650, width: int = 256) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(nodes, width, generator=generator).requires_grad_() for _ in range(2))


def bench_loss_against_dense() -> tuple[float, float, float]:
    o, t = projections()
    return ratio(lambda: contrastive_loss(o, t, 0.7).backward(), lambda: dense_loss(o, t, 0.7).backward(), turns=3)


def bench_loss_against_products() -> tuple[float, float, float]:
    o, t = projections()
    x, y = F.normalize(o.detach()), F.normalize(t.detach())

    def tiles() -> Iterator[tuple]:
        return _tiles(x, y, PRODUCTS["both views"], TILE)

    def products() -> None:
        kept, gradients = [], (torch.zeros_like(x), torch.zeros_like(y))
        for _, left, right, rows, columns in tiles():
            kept.append((left[rows] @ right[columns].t()).exp_())
        for exp, ((product, i, j), left, right, rows, columns) in zip(
            kept, _tiles(x, y, PRODUCTS["both views"], TILE), strict=True
        ):
            gradients[0][rows].addmm_(exp, right[columns])
            if product == 0 or i != j:
                gradients[1][columns].addmm_(exp.t(), left[rows])

    return ratio(lambda: contrastive_loss(o, t, 0.7).backward(), products, turns=5)


def bench_bfloat16() -> tuple[float, float, float]:
    o, t = projections()

    def step(products: torch.dtype | None) -> None:
        contrastive_loss(o, t, 0.7, products=products).backward()

    return ratio(lambda: step(torch.bfloat16), lambda: step(None), turns=5)


def bench_propagation() -> tuple[float, float, float]:
    nodes, entries, width = 7650, 246_000, 256
    generator = torch.Generator().manual_seed(0)
    row = torch.randint(nodes, (entries,), generator=generator).sort().values
    pattern = Pattern(row_pointer(row, nodes), torch.randint(nodes, (entries,), generator=generator), nodes)
    values = torch.rand(entries, generator=generator)
    features = torch.randn(nodes, width, generator=generator).requires_grad_()
    matrix = torch.sparse_csr_tensor(pattern.pointer, pattern.column, values, (nodes, nodes), check_invariants=False)
    dense, gradient = features.detach(), torch.randn(nodes, width, generator=generator)
    return ratio(lambda: spmm(pattern, values, features).backward(gradient), lambda: matrix @ dense, turns=21)


def bench_draws() -> tuple[float, float, float]:
    """500 draws of embeddings of Cora, against 500 forward passes of PyG's encoder with the same widths."""
    from torch_geometric.nn import GCNConv

    data = bgcl.load("cora")
    model = BGCL(preset="paper-cora", epochs=1).fit(data, progress=False)
    x = data.x.to_dense()
    layers = torch.nn.ModuleList([GCNConv(x.shape[1], 256), GCNConv(256, 128)])

    def passes() -> None:
        with torch.no_grad():
            for _ in range(500):
                h = x
                for layer in layers:
                    h = F.relu(layer(h, data.edge_index))

    def draws() -> None:
        for _ in model.draws(data, 500):
            pass

    return ratio(draws, passes, turns=1)


def bench_evaluate() -> tuple[float, float, float]:
    """`evaluate` with 50 splits and 100 draws, against the evaluation of GRACE with 50 fits, on the same model."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import normalize

    data = bgcl.load("cora")
    model = BGCL(preset="paper-cora", epochs=100).fit(data, progress=False)
    splits, labels = bgcl.splits(data, "grace"), data.y.numpy()
    fixed = normalize(model.embed(data).numpy())

    def grace() -> float:
        correct = []
        for split in splits:
            head = GridSearchCV(
                OneVsRestClassifier(LogisticRegression(solver="liblinear")),
                {"estimator__C": [2.0**i for i in range(-10, 10)]}, n_jobs=THREADS, cv=5,
            )  # fmt: skip
            head.fit(fixed[split.train], labels[split.train])
            correct.append((head.predict(fixed[split.test]) == labels[split.test]).mean())
        return statistics.mean(correct)

    def ours() -> float:
        results = bgcl.evaluate(model, data, "grace")
        return statistics.mean(float(result.correct.mean()) for result in results)

    figures, accuracies = [], []
    for action in (ours, grace):
        start = time.perf_counter()
        accuracies.append(action())
        figures.append(time.perf_counter() - start)
    print(f"accuracy: evaluate {accuracies[0]:.4f}, evaluation of GRACE {accuracies[1]:.4f}")
    return figures[0], figures[1], figures[0] / figures[1]


def bench_tables() -> tuple[float, float, float]:
    """A graph of 1,000,000 edges and 100,000 nodes from Parquet, against reading the files and making a CSR matrix."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from scipy.sparse import csr_matrix

    nodes, edges, random = 100_000, 1_000_000, np.random.default_rng(0)
    columns = {"id": random.permutation(nodes)}
    columns |= {f"x{i}": random.normal(size=nodes) for i in range(12)}
    columns |= {"kind": random.choice(["a", "b", "c", "d"], nodes), "label": random.choice(["p", "q", "r"], nodes)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, target = random.integers(nodes, size=(2, edges))
        pq.write_table(pa.table({"source": source, "target": target}), folder / "edges.parquet")
        pq.write_table(pa.table(columns), folder / "nodes.parquet")

        def reading() -> None:
            pairs, _ = pq.read_table(folder / "edges.parquet"), pq.read_table(folder / "nodes.parquet")
            ends = pairs["source"].to_numpy(), pairs["target"].to_numpy()
            csr_matrix((np.ones(edges), ends), shape=(nodes, nodes))

        return ratio(lambda: bgcl.load(folder), reading, turns=31)


def bench_help() -> tuple[float, float, float]:
    def run(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    return ratio(run("-m", "bgcl", "--help"), run("-c", "import torch"), turns=5)


def memory_of_a_step() -> None:
    """Train one full-batch epoch on coauthor-physics and print the peak memory in bytes."""
    data = bgcl.load("coauthor-physics")
    BGCL(preset="paper-coauthor-cs", batches=1, epochs=1).fit(data, progress=False)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def bench_memory() -> tuple[float, float, float]:
    done = subprocess.run([sys.executable, __file__, "--memory"], capture_output=True, text=True)
    if done.returncode:
        raise BGCLError(done.stderr.strip().splitlines()[-1])
    peak, dense = int(done.stdout) / 2**30, 12 * 34_493**2 * 4 / 2**30
    return peak, dense, peak / dense


def _time(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def bench_training(name: str = "cora") -> tuple[float, float, float]:
    """The whole training of the default, and as many epochs of the paper's preset as it has, from the time of a few."""
    data = bgcl.load(name)
    few = 5
    paper = BGCL(preset=f"paper-{name}", epochs=few)
    epochs = make_settings(f"paper-{name}").epochs or 0
    ours = _time(lambda: BGCL().fit(data, progress=False))
    theirs = statistics.median(r.seconds for r in paper.fit(data, progress=False).history_) * epochs
    return ours, theirs, ours / theirs


def _epoch(data: Data, **settings: Any) -> float:
    """The time of the second epoch of an encoder of the paper's kind on a whole graph."""
    return BGCL(encoder="gcn", epochs=2, **settings).fit(data, progress=False).history_[-1].seconds


def bench_decorrelation() -> tuple[float, float, float]:
    data = bgcl.load("coauthor-physics")
    ours, theirs = _epoch(data, objective="decorrelation"), _epoch(data, objective="infonce")
    return ours, theirs, ours / theirs


def bench_slope() -> tuple[float, float, float]:
    """The exponent p in `seconds ~ N^p` of the loss and its gradient, from 50,000 and 400,000 nodes."""
    seconds = []
    for nodes in (50_000, 400_000):
        o, t = (view.requires_grad_() for view in projections(nodes, 128))

        def step(o: torch.Tensor = o, t: torch.Tensor = t) -> None:
            decorrelation_loss(o, t, 1e-3)[0].backward()

        step()
        seconds.append(statistics.median(_time(step) for _ in range(7)))
    return seconds[1], seconds[0], math.log(seconds[1] / seconds[0]) / math.log(8)


BENCHES = {
    "training": ("training of the default on Cora", "the paper's preset", "s", bench_training, 0.2),
    "training-photo": (
        "training of the default on Photo",
        "the paper's preset",
        "s",
        lambda: bench_training("amazon-photo"),
        0.2,
    ),
    "decorrelation": ("epoch of decorrelation, coauthor-physics", "epoch of infonce", "s", bench_decorrelation, 0.1),
    "slope": ("decorrelation, 400,000 nodes; exponent", "50,000 nodes", "s", bench_slope, 1.05),
    "epoch": ("epoch of BGCL on Cora, both steps", "epoch of GRACE with PyG", "s", bench_epoch, 0.9),
    "loss": ("tiled loss, N = 7,650, d = 256", "dense loss", "s", bench_loss_against_dense, 0.35),
    "products": ("tiled loss, same size", "only its products and exponentials", "s", bench_loss_against_products, 1.3),
    "bfloat16": ("tiled loss, same size, products in bfloat16", "in float32", "s", bench_bfloat16, 0.8),
    "propagation": ("propagation, forward and backward", "CSR product, forward", "s", bench_propagation, 4.0),
    "draws": ("500 draws of embeddings of Cora", "500 passes of PyG's encoder", "s", bench_draws, 0.8),
    "evaluate": ("evaluate, 50 splits, 100 draws", "evaluation of GRACE", "s", bench_evaluate, 0.25),
    "tables": ("graph from Parquet, 1M edges, 100k nodes", "pyarrow and SciPy's CSR", "s", bench_tables, 1.5),
    "help": ("bgcl --help", "import torch", "s", bench_help, 0.5),
    "memory": ("peak memory of a step on coauthor-physics", "matrices of the dense loss", "GiB", bench_memory, None),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHES)}; default: all")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    if arguments.memory:
        memory_of_a_step()
        return
    table = Table("bgcl", "alternative", "ours", "theirs", "ratio", "target", box=None, pad_edge=False)
    figures = {}
    unknown = [name for name in arguments.names if name not in BENCHES]
    if unknown:
        parser.error(f"There is no benchmark '{unknown[0]}'. Use one of {', '.join(BENCHES)}.")
    for name in arguments.names or BENCHES:
        what, against, unit, bench, target = BENCHES[name]
        try:
            ours, theirs, quotient = bench()
        except BGCLError as error:
            table.add_row(what, against, str(error))
            continue
        figures[name] = {"ours": ours, "theirs": theirs, "ratio": quotient, "unit": unit}
        bound = "ours at most 6 GiB" if target is None else f"at most {target:g}"
        table.add_row(what, against, f"{ours:.3g} {unit}", f"{theirs:.3g} {unit}", f"{quotient:.2f}", bound)
    Console(width=140).print(table)
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"threads": THREADS, "torch": torch.__version__, **figures}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
