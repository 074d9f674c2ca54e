"""Torture: kill, interrupt, cut the power, fill the disk and flip bits, and look at what is left of a run.

Run `python scripts/torture.py` for the whole campaign (minutes), which writes results/torture.json and the counts in
docs/reliability.md. `--quick` takes about a minute and writes nothing. The cases follow from the seed.
"""

import argparse
import json
import random
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torture_cases as cases
from bgcl.files import write_text
from bgcl.folders import SCRATCH
from torture_children import Base, Task, command, duration
from torture_cost import cost

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "results" / "torture.json", ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- {}: made by scripts/torture.py -->", "<!-- end of {} -->"
# How many cases of each kind: the whole campaign, the quick one, and the one of the tests.
SIZES = {
    "full": {
        "steps": 1000,
        "kills": 70,
        "signals": 60,
        "cuts": 160,
        "pairs": 66,
        "disks": 40,
        "flips": 4000,
        "pack flips": 2000,
    },
    "quick": {
        "steps": 18,
        "kills": 7,
        "signals": 6,
        "cuts": 14,
        "pairs": 6,
        "disks": 6,
        "flips": 400,
        "pack flips": 200,
    },
    "tiny": {"steps": 3, "kills": 1, "signals": 3, "cuts": 4, "pairs": 2, "disks": 2, "flips": 80, "pack flips": 40},
}
TITLES = {
    "steps": "killed at a step on the disk (SIGKILL)",
    "kills": "killed at a random moment (SIGKILL)",
    "signals": "SIGTERM, SIGINT or SIGHUP at a random moment",
    "cuts": "power cut: what was not synced is lost, kept or torn",
    "disks": "full disk",
    "read only": "disk that can only be read",
    "pairs": "two commands at once in one folder",
    "flips": "one bit of a file of a run is flipped",
    "pack flips": "one bit of a file of a packed graph is flipped",
}


class Campaign:
    """Runs cases and counts how they end."""

    def __init__(self, folder: Path, size: str, seed: int, share: float = 1.0) -> None:
        self.base, self.chance, self.share = Base(folder), random.Random(seed), share
        self.sizes = {kind: round(number * share) for kind, number in SIZES[size].items()}
        self.counts: dict[str, Counter[str]] = {kind: Counter() for kind in TITLES}
        self.failures: list[str] = []
        self.tasks = {task.name: task for task in self.base.tasks}
        self.trainings = [task for task in self.base.tasks if task.trains]
        self.steps = {task.name: cases.steps_of(self.base, task) for task in self.base.tasks}

    def run(self) -> None:
        for kind in (self._steps, self._kills, self._signals, self._cuts, self._disks, self._read_only, self._pairs):
            kind()
        for kind in ("flips", "pack flips"):
            found = cases.flips(self.base, self.sizes[kind], self.chance, packed=kind == "pack flips")
            self.counts[kind].update(found)
            if found["wrong"]:
                self.failures.append(f"{TITLES[kind]}: {found['wrong']} changed what is read")

    def _case(self, kind: str, what: str, work: Callable[..., str], *given: Any) -> None:
        try:
            self.counts[kind][work(self.base, *given)] += 1
        except cases.Failure as failure:
            self.counts[kind]["wrong"] += 1
            self.failures.append(f"{TITLES[kind]}: {what}: {failure}")
            print(self.failures[-1], file=sys.stderr, flush=True)

    def _steps(self) -> None:
        """Every step of every command, and those that write content twice: before it, and when a part is written.

        Of the many steps on what does not stay in memory, some are enough: all of it is removed.
        """
        every = [
            (task, number, torn)
            for task in self.base.tasks
            for number, step in enumerate(self.steps[task.name])
            for torn in ((None, self.chance.random()) if "content" in step else (None,))
            if number % 16 == 0 or not any(SCRATCH in path for path in step.get("paths", ()))
        ]
        for task, number, torn in self._some(every, "steps"):
            self._case("steps", f"{task.name}, step {number}, torn {torn}", cases.killed_at, task, number, torn)

    def _some(self, every: list[Any], kind: str) -> list[Any]:
        size = min(self.sizes[kind], round(self.share * len(every)))
        return every if len(every) <= size else self.chance.sample(every, size)

    def _moment(self, task: Task) -> float:
        """A moment while a task runs, in seconds after its start."""
        name = f"seconds of {task.name}"
        if not hasattr(self, name):
            setattr(self, name, duration(lambda: command(task.arguments), self.base.case(task)))
        return self.chance.random() * float(getattr(self, name))

    def _kills(self) -> None:
        for number in range(self.sizes["kills"]):
            task = self.base.tasks[number % len(self.base.tasks)]
            seconds = self._moment(task)
            self._case("kills", f"{task.name}, {seconds:.3f} s", cases.signaled, task, signal.SIGKILL, seconds)

    def _signals(self) -> None:
        for number in range(self.sizes["signals"]):
            task = self.base.tasks[number % len(self.base.tasks)]
            which, seconds = cases.SIGNALS[number % 3], self._moment(task)
            self._case("signals", f"{task.name}, {which.name}, {seconds:.3f} s", cases.signaled, task, which, seconds)

    def _cuts(self) -> None:
        """Mostly in trainings, which write one file after another."""
        for number in range(self.sizes["cuts"]):
            both = [*self.base.tasks, *self.trainings]
            task = both[number % len(both)]
            steps = self.steps[task.name]
            step = self.chance.randint(1, len(steps))
            self._case("cuts", f"{task.name}, step {step}", cases.power_cut, task, steps, step, self.chance)

    def _disks(self) -> None:
        mounts = cases.can_mount(self.base.folder)
        for number in range(self.sizes["disks"]):
            task = self.base.tasks[number % len(self.base.tasks)]
            work = cases.small_disk if mounts and number % 2 else cases.full_disk
            size = self.chance.choice((0, 1, 500, 2000, 5000, 20_000, 60_000))
            self._case("disks", f"{task.name}, {size} bytes", work, task, size)

    def _read_only(self) -> None:
        for task in self.base.tasks if cases.can_mount(self.base.folder) else ():
            self._case("read only", task.name, cases.read_only, task)

    def _pairs(self) -> None:
        same = [("train", "train"), ("resume", "resume"), ("overwrite", "overwrite"), ("resume", "overwrite")]
        same += [("predict", "predict"), ("embed", "embed"), ("report", "report"), ("data get", "data get")]
        same += [("data make", "data make"), ("data pack", "data pack"), ("embed pack", "embed pack")]
        for number in range(self.sizes["pairs"]):
            one, other = (self.tasks[name] for name in same[number % len(same)])
            self._case("pairs", f"{one.name} and {other.name}", cases.pair, one, other)

    def results(self, seed: int) -> dict[str, Any]:
        """The counts, as results/torture.json has them."""
        kinds = {kind: dict(sorted(count.items())) for kind, count in self.counts.items()}
        return {"seed": seed, "failures": len(self.failures), "cases": kinds}


def table(results: dict[str, Any]) -> str:
    """The counts as a table in Markdown."""
    rows = ["| what was done | cases | how they ended |", "|---|---|---|"]
    for kind, counts in results["cases"].items():
        ends = ", ".join(f"{number:,} {_ENDS.get(end, end)}" for end, number in counts.items() if number)
        rows.append(f"| {TITLES[kind]} | {sum(counts.values()):,} | {ends} |")
    kinds = ("steps", "kills", "signals", "cuts")
    total = sum(sum(results["cases"][kind].values()) for kind in kinds)
    rows += ["", f"Kills, signals and power cuts: {total:,} in all. Cases that ended wrongly: {results['failures']}."]
    return "\n".join(rows)


_ENDS = {
    "older run": "with the older run still there",
    "new run": "with the new run, which went on",
    "no run": "before the first epoch was saved",
    "the run": "in the same bits after the next command",
    "enough room": "in which the room was enough",
    "both": "in which both ended with the same files",
    "refused": "refused in one line",
    "wrong": "**wrong**",
}


def cost_table(results: dict[str, Any]) -> str:
    """What checkpoints cost, as a table in Markdown."""
    rows = ["| Cora with | share of an epoch's time | share of an epoch's processor time |", "|---|---|---|"]
    for title, shares in results["cost"].items():
        rows.append(f"| {title} | {' | '.join(f'{share:.1%}' for share in shares.values())} |")
    return "\n".join(rows)


def with_counts(page: str, results: dict[str, Any]) -> str:
    """The text of the page with the tables between their comments replaced."""
    for name, text in (("counts", table(results)), ("cost", cost_table(results))):
        begin, end = BEGIN.format(name), END.format(name)
        page = re.sub(
            f"{re.escape(begin)}.*{re.escape(end)}",
            lambda _, whole=f"{begin}\n{text}\n{end}": whole,
            page,
            flags=re.DOTALL,
        )
    return page


def torture(size: str, seed: int, share: float = 1.0) -> Campaign:
    """Run a campaign in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="bgcl-torture-") as folder:
        campaign = Campaign(Path(folder), size, seed, share)
        campaign.run()
    return campaign


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a minute; writes no files")
    parser.add_argument("--tiny", action="store_true", help="a few cases of each kind; writes no files")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cases. Default: 0")
    parser.add_argument("--share", type=float, default=1.0, help="share of the cases, on a busy machine. Default: 1")
    options = parser.parse_args()
    size = "tiny" if options.tiny else "quick" if options.quick else "full"
    campaign = torture(size, options.seed, options.share)
    results = campaign.results(options.seed)
    if size == "full":
        with tempfile.TemporaryDirectory(prefix="bgcl-cost-") as folder:
            results["cost"] = cost(Path(folder))
    print(table(results))
    if size == "full":
        write_text(RESULTS, json.dumps(results, indent=1) + "\n")
        write_text(PAGE, with_counts(PAGE.read_text("utf-8"), results))
    sys.exit(bool(campaign.failures))
