"""The cases of the campaign. Each ends in the same bits as an undisturbed run, or is refused with the reason."""

import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import torture_disk
from bgcl import BGCLError, checkpoint
from bgcl.checkpoint.kept import KEPT
from bgcl.data.pack import open_pack
from torture_children import SEED, Base, Task, command, contents, start, wait

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Failure(Exception):  # noqa: N818
    """A case that did not end as it must."""


def finish(base: Base, task: Task, case: Path, saved: int) -> str:
    """Run the next command after a disturbance, and compare the folder with the one of an undisturbed run.

    Args:
        saved: epochs that must be in the run at least.

    Returns:
        What the folder had: "older run", "new run" or "no run".
    """
    found = wait(start(lambda: print(_state(saved, task)), case))
    if task.trains and found[0] != 0:
        raise Failure(f"the folder cannot be used: {found[1]}")
    state = found[1].strip() if task.trains else "the run"
    arguments = task.arguments
    if state == "new run":
        arguments = base.tasks[1].arguments
    elif state == "no run":
        arguments = base.tasks[0].arguments
    code, text = wait(start(lambda: command(arguments), case))
    if code != 0 and not (task.once and code == 2 and "already holds" in text):
        raise Failure(f"the next command ended with {code}: {text}")
    if wrong := different(contents(case), base.expected[task.name]):
        raise Failure(f"other contents than after an undisturbed run: {', '.join(wrong)}")
    return state


def different(after: dict[str, str], expected: dict[str, str]) -> list[str]:
    """The names of the files that are not as they must be. What a run keeps to be faster may be gone, but not wrong."""
    names = [name for name in after.keys() | expected.keys() if after.get(name) != expected.get(name)]
    return sorted(name for name in names if name in after or KEPT not in Path(name).parts)


def _state(saved: int, task: Task) -> str:
    """In a child: read the run in the folder, and check that it has what was saved."""
    if not checkpoint.is_run("r"):
        if saved or task.state in ("older", "half"):
            raise SystemExit("the run is gone")
        return "no run"
    run = checkpoint.read("r")
    if str(run.settings.seed) != SEED:
        if saved:
            raise SystemExit("the new run is gone")
        return "older run"
    if len(run.history) < saved + 2 * (task.state == "half"):
        raise SystemExit(f"only epoch {len(run.history)} of {saved} is there")
    return "new run"


def steps_of(base: Base, task: Task) -> list[dict]:
    """The steps on the disk of an undisturbed task."""
    case, file = base.case(task), str(base.folder / "steps.jsonl")

    def work() -> None:
        torture_disk.record(file)
        command(task.arguments)

    code, text = wait(start(work, case))
    if code != 0:
        raise Failure(f"{task.name} ended with {code}: {text}")
    return torture_disk.recorded(file)


def killed_at(base: Base, task: Task, step: int, torn: float | None) -> str:
    """Kill a process at a step on the disk, then run the next command."""
    case = base.case(task)

    def work() -> None:
        torture_disk.end_at(step, torn)
        command(task.arguments)

    code, text = wait(start(work, case))
    if code != -signal.SIGKILL:
        raise Failure(f"the process was to be killed, but ended with {code}: {text}")
    return finish(base, task, case, base.saved_epochs())


def signaled(base: Base, task: Task, number: signal.Signals, seconds: float) -> str:
    """Send a signal at some moment, then run the next command."""
    case = base.case(task)
    child = start(lambda: command(task.arguments), case)
    time.sleep(seconds)
    os.kill(child.pid, number)
    code, text = wait(child)
    if code not in (0, 130, -number):  # 0: it had finished; -number: it had not begun
        raise Failure(f"{number.name} ended it with {code}: {text}")
    if code == 130 and (text.count("\n") != 1 or "bgcl: interrupted" not in text):
        raise Failure(f"{number.name} must be reported in one line: {text}")
    return finish(base, task, case, base.saved_epochs())


def power_cut(base: Base, task: Task, steps: list[dict], step: int, chance: random.Random) -> str:
    """Cut the power at a step on the disk, then run the next command."""
    disk = torture_disk.Disk.of(base.folder / task.state)
    disk.run(steps, step)
    case = base.case(task)
    shutil.rmtree(case)
    case.mkdir()
    for name, content in disk.after_cut(step, chance).items():
        if content is None:
            (case / name).mkdir()
        else:
            (case / name).write_bytes(content)
    return finish(base, task, case, disk.saved)


def pair(base: Base, one: Task, other: Task) -> str:
    """Two commands at once in one folder: one wins and the other is refused, or both do the same."""
    case = base.case(one)
    reading, writing = os.pipe()

    def work(task: Task) -> Callable[[], None]:
        return lambda: (os.close(writing), os.read(reading, 1), command(task.arguments))[0]

    children = [start(work(task), case) for task in (one, other)]
    os.close(reading)
    os.close(writing)
    outcomes = [wait(child) for child in children]
    codes = sorted(code for code, _ in outcomes)
    refusals = [text for code, text in outcomes if code == 2]
    if codes not in ([0, 2],) if one.once else codes not in ([0, 0], [0, 2]):
        raise Failure(f"exit codes {codes}: {outcomes}")
    if (one.trains or one.once) and not all("is in use by process" in t or "already holds" in t for t in refusals):
        raise Failure(f"refused for another reason: {refusals}")
    finish(base, one, case, 0)
    return "refused" if refusals else "both"


def full_disk(base: Base, task: Task, size: int) -> str:
    """No file can be longer than some bytes, as on a full disk: one line, and the next command ends as ever."""
    case = base.case(task)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        command(task.arguments)

    return _refused(base, task, case, wait(start(work, case)))


@contextlib.contextmanager
def own_disk(base: Base, task: Task) -> Iterator[tuple[Path, Callable[[str], None]]]:
    """A case on a disk of its own, and a function that changes how it is mounted. It needs the rights of root."""
    state = base.case(task).rename(base.folder / "moved")
    case = base.folder / "case"
    case.mkdir()

    def mount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", case], check=True, capture_output=True)

    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", case], check=True, capture_output=True)
    try:
        shutil.copytree(state, case, dirs_exist_ok=True)
        shutil.rmtree(state)
        yield case, mount
    finally:
        subprocess.run(["umount", "-l", case], check=True, capture_output=True)


def small_disk(base: Base, task: Task, size: int) -> str:
    """A disk with some free bytes: one line, and the next command, with more room, ends as ever."""
    with own_disk(base, task) as (case, mount):
        used = sum(-(-path.stat().st_size // 4096) * 4096 if path.is_file() else 4096 for path in case.rglob("*"))
        mount(f"size={used + max(size, 1)}")  # a size of 0 would be no limit
        outcome = wait(start(lambda: command(task.arguments), case))
        mount("size=64m")
        return _refused(base, task, case, outcome)


def can_mount(folder: Path) -> bool:
    """Whether this process may make a small disk."""
    place = folder / "mount"
    place.mkdir(exist_ok=True)
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=True, capture_output=True)
        subprocess.run(["umount", place], check=True, capture_output=True)
        return True
    return False


def read_only(base: Base, task: Task) -> str:
    """A disk that can only be read: one line, nothing is changed, and the next command ends as ever."""
    with own_disk(base, task) as (case, mount):
        before = contents(case)
        mount("ro")
        outcome = wait(start(lambda: command(task.arguments), case))
        mount("rw")
        if contents(case) != before or outcome[0] != 2:
            raise Failure(f"a folder that is only to be read was written: {outcome}")
        return _refused(base, task, case, outcome)


def _refused(base: Base, task: Task, case: Path, outcome: tuple[int, str]) -> str:
    """Check that a command had enough room or said in one line what it could not write, and run the next one."""
    code, text = outcome
    if code not in (0, 2):
        raise Failure(f"exit code {code}: {text}")
    if code == 2 and (
        text.count("\n") != 1 or not re.match("bgcl: (Cannot (read or )?write|.* on the disk of )", text)
    ):
        raise Failure(f"the reason must be one line: {text}")
    finish(base, task, case, base.saved_epochs())
    return "refused" if code == 2 else "enough room"


def flips(base: Base, count: int, chance: random.Random, *, packed: bool = False) -> dict[str, int]:
    """Flip one bit of a file of a run or a pack, and read it: it is noticed, or what is read is the same."""
    seed, name = chance.random(), "packed" if packed else "done"
    work = _flips_of_pack if packed else _flips_of_run
    code, text = wait(start(lambda: print(json.dumps(work(count, random.Random(seed)))), base.folder / name))
    if code != 0:
        raise Failure(f"bit flips ended with {code}: {text}")
    found: dict[str, int] = json.loads(text)
    return found


def _flips_of_run(count: int, chance: random.Random) -> dict[str, int]:
    return _flips(Path("r"), _read_run, count, chance)


def _flips_of_pack(count: int, chance: random.Random) -> dict[str, int]:
    return _flips(Path("k"), _read_pack, count, chance)


def _flips(folder: Path, read: Callable[[], object], count: int, chance: random.Random) -> dict[str, int]:
    whole, names = read(), sorted(path.name for path in folder.iterdir())
    outcome = {"noticed": 0, "no effect": 0, "wrong": 0}
    for number in range(count):
        path = folder / names[number % len(names)]
        before = path.read_bytes()
        flipped = bytearray(before)
        flipped[chance.randrange(len(before))] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        try:
            outcome["no effect" if read() == whole else "wrong"] += 1
        except BGCLError as error:
            outcome["noticed" if path.name in str(error) and "\n" not in str(error) else "wrong"] += 1
        path.write_bytes(before)
    return outcome


def _read_pack() -> object:
    data = open_pack("k").data()
    arrays = [np.asarray(array).tolist() for array in (data.x, data.edge_index, data.y, data.ids)]
    return data.pack, data.classes, data.attribute_names, str(arrays)


def _read_run() -> object:
    run = checkpoint.read("r")
    tensors = [
        {name: (t.dtype, t.shape, t.tolist()) for name, t in part.items()} for part in (run.network, run.training)
    ]
    return run.settings, run.graph, run.history, run.recipe, str(tensors)
