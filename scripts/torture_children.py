"""Commands in child processes that are forked after all imports, so that a case takes a fraction of a second.

The parent only imports. It starts no thread, so a fork is safe.
"""

import csv
import gc
import hashlib
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet  # noqa: F401  (what a command imports when it runs)
import torch

import bgcl
import bgcl.checkpoint
import bgcl.data.generator
import bgcl.data.output
import bgcl.data.own
import bgcl.data.packing_parquet
import bgcl.data.store
import bgcl.downstream.prediction
import bgcl.model.training
import bgcl.packed.moments
import bgcl.reporting.report.page
from bgcl.cli import main

torch.set_num_threads(1)

SEED, EPOCHS = "3", "4"
LOG = "epochs.log"  # beside the folder of a case: one line for each epoch that the process took for saved


@dataclass(frozen=True)
class Task:
    """A command, and the state in which it starts: a folder that `Base` made."""

    name: str
    state: str
    arguments: tuple[str, ...]

    @property
    def trains(self) -> bool:
        return self.arguments[0] == "train"

    @property
    def once(self) -> bool:
        """Whether the command refuses to write what is there already."""
        return self.arguments[:2] in (("data", "make"), ("data", "pack"))


class Base:
    """The folder of a campaign: a small graph, the states in which tasks start, and what they must end in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o755)  # a case of another user reads it
        self.graph = write_graph(folder / "graph")
        small = ("--label", "label", "--set", "widths=[8,4]", "--set", "part_width=4", "--quiet")
        train = ("train", str(self.graph), "--out", "r", *small)
        new, resume = (*train, "--seed", SEED, "--epochs"), ("train", str(self.graph), "--out", "r", "--resume")
        out = ("--samples", "4", "--quiet")
        made, plan = folder / "made", ("--nodes", "120", "--attributes", "3", "--classes", "2", "--degree", "6")
        self.tasks = [
            Task("train", "nothing", (*new, EPOCHS)),
            Task("resume", "half", (*resume, "--epochs", EPOCHS, "--quiet")),
            Task("overwrite", "older", (*new, EPOCHS, "--overwrite")),
            Task("predict", "done", ("predict", "r", "--out", "p.csv", *out)),
            Task("embed", "done", ("embed", "r", "--out", "e.npz", *out)),
            Task("report", "done", ("report", "r", *out)),
            Task("data get", "nothing", ("data", "get", "cora", "--quiet")),
            Task("data make", "nothing", ("data", "make", "m", *plan, "--quiet")),
            Task("data pack", "nothing", ("data", "pack", str(made), "--out", "k", "--parts", "3", "--quiet")),
            Task("embed pack", "packed", ("embed", "r", "--graph", "k", "--out", "e", *out)),
        ]
        self.make("nothing", ("data", "make", str(made), *plan, "--quiet"))
        self.make("half", (*new, "2"))
        self.make("older", (*train, "--seed", "7", "--epochs", "2"))
        self.make("done", (*new, EPOCHS))
        self.make("packed", ("data", "pack", str(made), "--out", "k", "--parts", "3", "--quiet"))
        self.run("packed", ("train", "k", "--out", "r", *small[2:], "--seed", SEED, "--epochs", "2"))
        self.expected = {task.name: contents(self.make(f"after {task.name}", task.arguments, task.state))
                         for task in self.tasks}  # fmt: skip

    def make(self, name: str, arguments: tuple[str, ...] = (), state: str | None = None) -> Path:
        folder = self.folder / name
        if state is None:
            folder.mkdir()
        else:
            shutil.copytree(self.folder / state, folder)
        return self.run(name, arguments) if arguments else folder

    def run(self, name: str, arguments: tuple[str, ...]) -> Path:
        """Run a command in one of the folders."""
        folder = self.folder / name
        if (outcome := wait(start(lambda: command(arguments), folder)))[0] != 0:
            raise RuntimeError(f"{arguments} ended with {outcome}")
        return folder

    def case(self, task: Task) -> Path:
        """A fresh folder in the state in which a task starts."""
        (self.folder / LOG).unlink(missing_ok=True)
        shutil.rmtree(self.folder / "case", ignore_errors=True)
        return Path(shutil.copytree(self.folder / task.state, self.folder / "case"))

    def saved_epochs(self) -> int:
        """The last epoch that the process of a case took for saved."""
        log = self.folder / LOG
        return len(log.read_text().splitlines()) if log.exists() else 0


def write_graph(folder: Path) -> Path:
    """The example graph as tables."""
    folder.mkdir()
    data = bgcl.example_graph(40)
    with (folder / "edges.csv").open("w", newline="") as file:
        edges = [pair for pair in data.edge_index.T.tolist() if pair[0] < pair[1]]
        csv.writer(file).writerows([("source", "target"), *edges])
    with (folder / "nodes.csv").open("w", newline="") as file:
        both = zip(data.y.tolist(), data.x.int().tolist(), strict=True)
        rows = [[i, label, *words] for i, (label, words) in enumerate(both)]
        csv.writer(file).writerows([["id", "label", *(f"w{i}" for i in range(data.x.shape[1]))], *rows])
    return folder


def contents(folder: Path) -> dict[str, str]:
    """Every file and folder in a folder, with the SHA-256 of the files."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def command(arguments: tuple[str, ...]) -> None:
    """Run a command of bgcl in this process, in the way that makes files the same bytes each time."""
    sys.argv = ["bgcl", *arguments]
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 -- a result may be out when a signal comes: errors alone count
    bgcl.model.training.time.perf_counter = lambda: 0.0  # the seconds of an epoch are part of the history
    save_epoch = bgcl.checkpoint.save_epoch

    def logged(*given: object) -> None:
        save_epoch(*given)  # type: ignore[arg-type]
        with open(f"../{LOG}", "a") as log:
            log.write("saved\n")

    bgcl.checkpoint.save_epoch = logged
    if arguments[:2] == ("data", "get"):
        _publish_here()
    main()


def _publish_here() -> None:
    """Let `bgcl data get cora` fetch a copy of the bundled file into a cache in this folder."""
    store = bgcl.data.store
    bundled, cache = store.locate("cora")[1], Path("cache").resolve()
    assert bundled is not None
    store.cache_folder = lambda: cache
    cached = cache / "cora.npz"
    store.locate = lambda name: (store.Place.CACHED, cached) if cached.is_file() else (store.Place.ABSENT, None)
    store._fetch = lambda dataset, folder, quiet: shutil.copy(bundled, folder / "cora.npz") and folder
    store.read_published = lambda dataset, folder: store.npz.read(folder / "cora.npz")


@dataclass(frozen=True)
class Child:
    pid: int
    output: int  # what it prints


def start(work: Callable[[], None], folder: Path, gate: int | None = None) -> Child:
    """Start work in a child process in a folder. With a gate, it waits until the other end of the pipe is closed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    try:
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        os.chdir(folder)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if gate is not None:
            os.read(gate, 1)
        work()
        code = 0
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 99
    gc.collect()  # what an object leaves behind goes with it, because nothing else runs at this end of a process
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def wait(child: Child) -> tuple[int, str]:
    """The exit code of a child, minus the signal if one ended it, and what it printed."""
    with os.fdopen(child.output, errors="replace") as output:
        text = output.read()
    return os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]), text


def duration(work: Callable[[], None], folder: Path) -> float:
    """How long work takes in a child process."""
    begin = time.perf_counter()
    wait(start(work, folder))
    return time.perf_counter() - begin
