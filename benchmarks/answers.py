"""How long does a user wait for an answer? Ratios of commands to each other, or to an older version, in one run.

    python benchmarks/answers.py kept [--nodes N] [--samples S]    predict after evaluate, to evaluate
    python benchmarks/answers.py older [--commit df8fbab]          predict with nothing kept, to that of a commit
    python benchmarks/answers.py inspect                           inspect of 10,000 columns, to ten times 1,000

The graph of the first two is synthetic, with 22,000 nodes and 4 classes if no other number is given, and the model is
trained for one epoch. Each command runs in a process of its own, so the times include the start of Python.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from silence import write_graph

ROOT = Path(__file__).resolve().parent.parent


def seconds(command: list[str], folder: Path, source: Path = ROOT / "src") -> float:
    """The time of a command of the version of bgcl in a source folder."""
    began = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "-m", "bgcl", *command, "--quiet"], cwd=folder, env=environment, check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    return time.perf_counter() - began


def train(folder: Path, out: str, source: Path = ROOT / "src") -> None:
    seconds(["train", "graph", "--out", out, "--epochs", "1"], folder, source)


def kept(folder: Path, nodes: int, samples: int) -> tuple[float, float, float]:
    write_graph(folder / "graph", nodes, 200)
    train(folder, "run")
    first = seconds(["evaluate", "run", "--samples", str(samples)], folder)
    then = seconds(["predict", "run", "--out", "nodes.csv", "--samples", str(samples)], folder)
    return then, first, 0.1


def older(folder: Path, nodes: int, samples: int, commit: str) -> tuple[float, float, float]:
    write_graph(folder / "graph", nodes, 200)
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x"], cwd=folder, input=archive, check=True)
    train(folder, "new")
    train(folder, "old", folder / "src")
    predict = ["--out", "nodes.csv", "--samples", str(samples)]
    ours = seconds(["predict", "new", *predict, "--no-keep"], folder)
    return ours, seconds(["predict", "old", *predict], folder, folder / "src"), 1 / 6


def inspect(folder: Path) -> tuple[float, float, float]:
    write_graph(folder / "graph", 300, 10_000)
    write_graph(folder / "narrow", 300, 1000)
    start = seconds(["data", "list"], folder)
    wide, narrow = (seconds(["inspect", name], folder) - start for name in ("graph", "narrow"))
    return wide, 10 * narrow, 1.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kept", "older", "inspect"))
    parser.add_argument("--nodes", type=int, default=22_000)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--commit", default="df8fbab")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if given.what == "inspect":
            ours, theirs, target = inspect(Path(name))
        elif given.what == "kept":
            ours, theirs, target = kept(Path(name), given.nodes, given.samples)
        else:
            ours, theirs, target = older(Path(name), given.nodes, given.samples, given.commit)
    print(f"{given.what}: {ours:.1f} s to {theirs:.1f} s, ratio {ours / theirs:.3f}; at most {target:.3f} is wanted")


if __name__ == "__main__":
    main()
