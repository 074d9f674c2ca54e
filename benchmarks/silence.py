"""How long is a command silent on a terminal? Run commands on a pseudo-terminal, and print the longest pause of each.

The graph is synthetic. The pause before the first output is Python's start and the imports of the command line.
"""

import argparse
import os
import pty
import select
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

LONGEST = 2.0  # seconds


def write_graph(folder: Path, nodes: int, columns: int) -> None:
    """Tables of a graph whose classes show in edges and attributes."""
    random, classes = np.random.default_rng(0), 4
    label = random.integers(classes, size=nodes)
    members = [np.flatnonzero(label == c) for c in range(classes)]
    source = random.integers(nodes, size=6 * nodes)
    target = random.integers(nodes, size=6 * nodes)
    same = random.random(6 * nodes) < 0.6
    target[same] = [random.choice(members[label[node]]) for node in source[same]]
    values = (random.random((nodes, columns)) < np.where(np.arange(columns) % classes == label[:, None], 0.1, 0.03)) * 1
    folder.mkdir()
    edges = "\n".join(f"{a},{b}" for a, b in zip(source, target, strict=True) if a != b)
    (folder / "edges.csv").write_text(f"source,target\n{edges}\n")
    names = ",".join(f"x{i}" for i in range(columns))
    rows = "\n".join(f"{i},{','.join(map(str, row))},c{label[i]}" for i, row in enumerate(values.tolist()))
    (folder / "nodes.csv").write_text(f"id,{names},label\n{rows}\n")


def pauses(command: list[str], cwd: Path) -> tuple[float, float, float, str]:
    """Seconds before the first output, the longest pause after it, seconds in all, and what was printed before it."""
    began = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(cwd)
        os.execv(sys.executable, [sys.executable, "-m", "bgcl", *command])
    first, longest, last, text, before = 0.0, 0.0, began, b"", b""
    while True:
        ready, *_ = select.select([terminal], [], [], 600)
        try:
            found = os.read(terminal, 65536) if ready else b""
        except OSError:  # the other end is closed
            found = b""
        now = time.monotonic()
        if last == began:
            first = now - began
        elif found and now - last > longest:  # not the end of the process, after its last line
            longest, before = now - last, text[-60:]
        last, text = now, text + found
        if not found:
            break
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"bgcl {' '.join(command)} failed: {text.decode(errors='replace')[-400:]}")
    return first, longest, time.monotonic() - began, before.decode(errors="replace")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=22_000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--samples", type=int, default=100)
    arguments = parser.parse_args()
    few = ["--samples", str(arguments.samples)]
    commands = [
        ["inspect", "graph"],
        ["train", "graph", "--out", "run", "--epochs", "2"],
        ["predict", "run", "--out", "nodes.csv", *few],
        ["evaluate", "run", "--splits", "2", "--plots", "plots", *few],
        ["predict", "run", "--out", "nodes.csv", *few],
        ["rank", "run", "--diverse", *few],
        ["rank", "run", "--by", "disagreement", *few],
        ["embed", "run", "--out", "nodes.npz", "--no-draws", *few],
        ["report", "run", *few],
    ]
    table = Table("command", "first output, s", "longest pause after it, s", "in all, s", "printed before the pause")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_graph(folder / "graph", arguments.nodes, arguments.columns)
        worst = 0.0
        for command in commands:
            first, longest, total, before = pauses(command, folder)
            worst = max(worst, longest)
            table.add_row(" ".join(command), f"{first:.1f}", f"{longest:.1f}", f"{total:.0f}", repr(before)[-40:])
            print(*command, f"{first:.1f} {longest:.1f} {total:.0f}", repr(before)[-50:], flush=True)
    Console(width=160).print(table)
    print(f"The longest pause is {worst:.1f} seconds; at most {LONGEST:g} are wanted.")


if __name__ == "__main__":
    main()
