"""Kill processes of a training, and compare the model with that of an undisturbed training.

Run `python scripts/kills.py` (`make kills`) for ten kills. Two processes train a graph. In the middle of an epoch one
of them, in turn the main one and the other, is killed with SIGKILL. At the end, the run must have as many epochs as
that of one process which nobody disturbed, and the same model, bit for bit.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from os import kill
from pathlib import Path

import torch
from safetensors.torch import load_file

LONGEST = 600  # seconds to wait for a process or an epoch
SETTINGS = ("--set", "batches_per_step=2", "--set", "until_settled=false")


class KilledTraining:
    """A training in two processes that are killed.

    Args:
        folder: an empty folder.
        nodes: nodes of the graph. They decide how long an epoch takes.
        kills: how many kills.
        seed: seed of the moments.
    """

    def __init__(self, folder: Path, nodes: int, kills: int, seed: int = 0) -> None:
        self.folder, self.kills, self.chance = folder, kills, random.Random(seed)
        self.graph, self.run, self.undisturbed = folder / "made", folder / "killed", folder / "undisturbed"
        self.epochs = kills + 2
        self.moments: list[str] = []
        self._command("data", "make", str(self.graph), "--nodes", str(nodes))

    def train(self) -> None:
        """Train without and with kills."""
        self._command(*self._training(self.undisturbed))
        arguments = [*self._training(self.run), "--processes", "2"]
        with (self.folder / "errors.txt").open("w") as errors:
            self.launcher = subprocess.Popen(_bgcl(*arguments), stdout=errors, stderr=errors)
            try:
                for number in range(self.kills):
                    self._kill(main=number % 2 == 0)
                self.launcher.wait(LONGEST)
            finally:
                if self.launcher.poll() is None:
                    self.launcher.terminate()
                    self.launcher.wait(LONGEST)

    def problems(self) -> list[str]:
        """What is wrong at the end; nothing if all is well."""
        found = [] if self.launcher.returncode == 0 else [f"it ended with exit code {self.launcher.returncode}"]
        epochs = [_epochs(run) for run in (self.undisturbed, self.run)]
        found += [] if epochs[0] == epochs[1] == self.epochs else [f"{epochs[1]} epochs in place of {epochs[0]}"]
        one, other = (load_file(run / "model.safetensors") for run in (self.undisturbed, self.run))
        names = [name for name in one | other if name not in one or name not in other]
        names += [name for name in one.keys() & other.keys() if not torch.equal(one[name], other[name])]
        return found + [f"'{name}' differs" for name in names]

    def _training(self, out: Path) -> list[str]:
        return ["train", str(self.graph), "--out", str(out), "--epochs", str(self.epochs), *SETTINGS]

    def _command(self, *arguments: str) -> None:
        subprocess.run(_bgcl(*arguments, "--quiet"), check=True, stdout=subprocess.DEVNULL)

    def _kill(self, *, main: bool) -> None:
        """Wait for the next epoch, then for a random part of an epoch, and kill a process."""
        before = _epochs(self.run)
        self._wait(lambda: _epochs(self.run) > before, "an epoch")
        seconds = json.loads((self.run / "history.jsonl").read_text().splitlines()[-1])["seconds"]
        time.sleep(self.chance.uniform(0.2, 0.8) * seconds)
        processes = self._processes()
        chosen = processes[0 if main else 1]
        kill(chosen, signal.SIGKILL)
        self.moments.append(f"{'main' if main else 'other'} process after epoch {_epochs(self.run)}")
        self._wait(lambda: not Path(f"/proc/{chosen}").exists() or _is_dead(chosen), "the end of the process")

    def _processes(self) -> list[int]:
        """The numbers of the main process, which the lock names, and of the other one."""
        main = int((self.run / ".lock").read_text().split()[1])
        children = Path(f"/proc/{self.launcher.pid}/task/{self.launcher.pid}/children").read_text().split()
        workers = [int(child) for child in children if b"resource_tracker" not in _words(int(child))]
        return [main, *(child for child in workers if child != main)]

    def _wait(self, done, what: str) -> None:  # type: ignore[no-untyped-def]
        end = time.monotonic() + LONGEST
        while not done():
            if self.launcher.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"There was no {what}. {(self.folder / 'errors.txt').read_text()}")
            time.sleep(0.01)


def _bgcl(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bgcl", *arguments]


def _words(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


def _is_dead(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _epochs(run: Path) -> int:
    """The epochs in the history of a run, without a line that is being written."""
    history = run / "history.jsonl"
    return history.read_text().count("\n") if history.is_file() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        training = KilledTraining(folder, given.nodes, given.kills, given.seed)
        training.train()
        problems = training.problems()
        print(f"{given.kills} kills: " + ", ".join(training.moments))
        print("; ".join(problems) or f"{training.epochs} epochs, and the same model bit for bit")
        sys.exit(1 if problems else 0)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
