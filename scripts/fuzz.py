"""Feed damaged files to every reader: `python scripts/fuzz.py --seconds 600 [--reader NAME] [--seed 0]`.

Each reader begins with small files in `tests/fuzz/corpus/NAME/`. One of these is changed at random, and the reader must
answer with a result or with a `BGCLError`. A finding is

- any other exception;
- an abort of the process: inputs are read in a child process;
- an answer after more than 10 seconds of the processor's time, or later than a minute;
- more than 1 GiB of memory.

The input of each finding is saved in `build/fuzz/`, with what happened. The same seed gives the same inputs. A run of
all readers for at least ten minutes writes its counts to `results/fuzz.json` and to the page on reliability. If atheris
is installed (`bgcl[fuzz]`) and a reader is named, atheris chooses the inputs instead, guided by the code that they
reach.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fuzz_mutator import LARGEST, Mutator

ROOT = Path(__file__).resolve().parent.parent
CORPUS, FOUND = ROOT / "tests" / "fuzz" / "corpus", ROOT / "build" / "fuzz"
RESULTS, PAGE = ROOT / "results" / "fuzz.json", ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- fuzz: made by scripts/fuzz.py -->", "<!-- end of fuzz -->"
LONG = 600  # seconds of a run whose counts are kept
SECONDS, MEMORY, BATCH = 10, 1 << 30, 25  # the limits of an answer, and the inputs of one child process
PATIENCE = 6  # how many times longer an answer may take if others use the processors


@dataclass(frozen=True)
class Reader:
    """A reader of a folder with the files of its corpus, one of them changed."""

    name: str  # of its folder in the corpus
    read: Callable[[Path], object]

    def files(self) -> dict[str, bytes]:
        """The files of its corpus by name."""
        return {path.name: path.read_bytes() for path in sorted((CORPUS / self.name).iterdir())}


def readers() -> dict[str, Reader]:
    """Every reader by its name. The packages are imported here, before any child process."""
    import networkx  # noqa: F401  (the readers import these when they need them)
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    from bgcl import BGCL
    from bgcl.augmentation.language import parse_mask
    from bgcl.cli.train import parse_setting
    from bgcl.data import planetoid, wikics
    from bgcl.data.inspection import inspect
    from bgcl.data.own import read_files
    from bgcl.data.pyg import read_npz
    from bgcl.data.recipe import Recipe
    from bgcl.model.parts import parse_part
    from bgcl.settings import make_settings

    def text(path: Path) -> str:
        return " ".join(path.read_bytes().decode("utf-8", "surrogateescape").splitlines())

    def folder(path: Path) -> object:
        return inspect(read_files(path))

    def sentences(path: Path) -> object:
        name, value = parse_setting(text(path / "setting.txt"))
        return parse_mask(text(path / "mask.txt")), parse_part(text(path / "part.txt")), make_settings(**{name: value})

    def recipe(path: Path) -> object:
        made = Recipe.from_json((path / "graph.json").read_bytes().decode("utf-8", "replace"), "graph.json")
        return read_files(path, recipe=made)

    found = {
        "csv": folder, "gzip": folder, "parquet": folder, "tsv": folder, "european": folder, "long": folder,
        "matrix": folder, "sentences": sentences, "recipe": recipe,
        "edges": lambda path: inspect(read_files(path / "edges.csv")),
        "graphml": lambda path: inspect(read_files(path / "graph.graphml")),
        "npz": lambda path: read_npz(path / "graph.npz"),
        "planetoid": lambda path: planetoid.read("tiny", path),
        "wikics": lambda path: wikics.read(path / "data.json"),
        "run": lambda path: BGCL.load(path),
    }  # fmt: skip
    return {name: Reader(name, read) for name, read in found.items()}


@dataclass(frozen=True)
class Input:
    """A folder of files for a reader, of which one was changed."""

    reader: Reader
    changed: str  # the name of this file
    files: dict[str, bytes]

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)


def inputs(chosen: list[Reader], seed: int) -> Iterator[Input]:
    """Inputs without end, in turn for each reader: first its corpus as it is, then changed."""
    mutator, corpus = Mutator(seed), {reader.name: reader.files() for reader in chosen}
    for reader in chosen:
        yield Input(reader, "", corpus[reader.name])
    while True:
        for reader in chosen:
            files = dict(corpus[reader.name])
            name = mutator.random.choice(list(files))
            files[name] = mutator.change(name, files[name], list(files.values()))
            yield Input(reader, name, files)


def answer(given: Input, folder: Path) -> str:
    """Read an input. Returns "" for a result or a `BGCLError` of one line, otherwise what is wrong."""
    from bgcl.errors import BGCLError

    shutil.rmtree(folder, ignore_errors=True)
    given.write(folder)
    try:
        given.reader.read(folder)
    except BGCLError as error:
        if not given.changed:
            return f"the corpus is refused: {error}"
        return "" if str(error).strip() and "\n" not in str(error) else f"not one line: {str(error)!r}"
    except BaseException:  # whatever it is
        return traceback.format_exc()
    return ""


def run_batch(batch: list[Input], folder: Path) -> Iterator[tuple[Input, str]]:
    """Read a batch in a child process, and yield each input with what is wrong. After an abort the rest is left out."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(batch, folder, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb", buffering=0) as answers:  # `select` does not see what is in a buffer
            for given in batch:
                if not _answers_in_time(child, answers):
                    yield given, f"no answer after {SECONDS} seconds"
                    return
                line = answers.readline()
                if not line:
                    _, status = os.waitpid(child, 0)
                    child = 0
                    yield (
                        given,
                        f"the process ended with {signal.Signals(status & 127).name if status & 127 else status}",
                    )
                    return
                yield given, json.loads(line)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _answers_in_time(child: int, answers: IO[bytes]) -> bool:
    """Wait for the next answer of a child. Only time in which the child works counts, or all time much later."""
    begin, worked = time.monotonic(), _worked(child)
    while not select.select([answers], [], [], SECONDS / 10)[0]:
        if _worked(child) - worked > SECONDS or time.monotonic() - begin > PATIENCE * SECONDS:
            return False
    return True


def _worked(process: int) -> float:
    """The seconds that the processors have worked for a process."""
    about = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(about[11]) + int(about[12])) / os.sysconf("SC_CLK_TCK")


def _in_child(batch: list[Input], folder: Path, writing: int) -> None:
    """Answer each input on a pipe, a line of JSON each. An input that takes much memory is stopped by the system."""
    with contextlib.suppress(OSError):  # forget the greatest memory of the parent, which the child begins with
        Path("/proc/self/clear_refs").write_text("5")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    virtual = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (virtual + 3 * MEMORY, resource.RLIM_INFINITY))
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 -- until the process ends
    for given in batch:
        wrong = answer(given, folder)
        used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) * 1024
        if not wrong and used > MEMORY:
            wrong = f"it took {used / 2**20:.0f} MiB of memory"
        os.write(writing, json.dumps(wrong).encode() + b"\n")
        if wrong:
            break  # the next ones begin in a clean process
    os._exit(0)


def save(given: Input, wrong: str, number: int) -> Path:
    """Save the input of a finding, with what happened."""
    folder = FOUND / f"{given.reader.name}-{number:03d}"
    shutil.rmtree(folder, ignore_errors=True)
    given.write(folder)
    (folder / "what_happened.txt").write_text(f"changed: {given.changed}\n{wrong}\n", "utf-8")
    return folder


def fuzz(chosen: list[Reader], seconds: float, seed: int) -> tuple[Counter[str], list[Path]]:
    """Read inputs for some seconds. Returns how many each reader got, and the folders of the findings."""
    end, stream, counts, found = time.monotonic() + seconds, inputs(chosen, seed), Counter[str](), list[Path]()
    seen: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="bgcl-fuzz-") as folder:
        waiting: list[Input] = []
        while time.monotonic() < end:
            waiting += [next(stream) for _ in range(BATCH - len(waiting))]
            done = 0
            for given, wrong in run_batch(waiting, Path(folder) / "input"):
                done += 1
                counts[given.reader.name] += 1
                if wrong and (kind := _kind(given, wrong)) not in seen:
                    seen.add(kind)
                    found.append(save(given, wrong, len(found)))
                    print(f"{found[-1]}: {wrong.strip().splitlines()[-1]}", flush=True)
                if wrong:
                    break
            waiting = waiting[done:]
    return counts, found


def _kind(given: Input, wrong: str) -> str:
    """What makes findings the same: the reader, the last place in the code, and the type of the error."""
    lines = wrong.strip().splitlines()
    places = [line for line in lines if line.lstrip().startswith("File ")]
    return f"{given.reader.name} {places[-1] if places else ''} {lines[-1].partition(':')[0]}"


def fuzz_with_atheris(reader: Reader, seconds: float, seed: int) -> None:
    """Let atheris choose the bytes of one reader's files. It ends at the first finding, and saves it."""
    import atheris

    files, folder = reader.files(), Path(tempfile.mkdtemp(prefix="bgcl-fuzz-"))
    names = sorted(files)

    def one_input(data: bytes) -> None:
        name = names[data[0] % len(names)] if data else names[0]  # the first byte says which file has the others
        wrong = answer(Input(reader, name, files | {name: data[1:]}), folder)
        if wrong:
            raise AssertionError(wrong)

    start = folder.with_suffix(".corpus")
    start.mkdir()
    for number, name in enumerate(names):
        (start / name).write_bytes(bytes([number]) + files[name])
    FOUND.mkdir(parents=True, exist_ok=True)
    limits = {"max_total_time": int(seconds), "timeout": SECONDS, "seed": seed + 1, "max_len": LARGEST}
    limits |= {"rss_limit_mb": 3072, "artifact_prefix": f"{FOUND}/{reader.name}-"}
    atheris.Setup([sys.argv[0], *(f"-{name}={limit}" for name, limit in limits.items()), str(start)], one_input)
    atheris.Fuzz()


def _instrumented() -> contextlib.AbstractContextManager[None]:
    """Atheris sees which lines of bgcl an input reaches, if bgcl is imported in this context."""
    import atheris

    return atheris.instrument_imports(include=["bgcl"])


def with_counts(page: str, results: dict[str, Any]) -> str:
    """The text of the page with the counts of a run between their comments."""
    counts = results["inputs"]
    rows = [
        "| reader | " + " | ".join(counts) + " |",
        "|---" * (len(counts) + 1) + "|",
        "| inputs | " + " | ".join(f"{count:,}" for count in counts.values()) + " |",
    ]
    total = (
        f"{sum(counts.values()):,} inputs in {results['seconds'] / 60:.0f} minutes. Findings: {results['findings']}."
    )
    whole = "\n".join([BEGIN, *rows, "", total, END])
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: whole, page, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (default: 60)")
    parser.add_argument("--reader", help="name of a reader (default: all, in turn)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs (default: 0)")
    given = parser.parse_args()
    guided = given.reader is not None and importlib.util.find_spec("atheris") is not None
    with _instrumented() if guided else contextlib.nullcontext():
        known = readers()
    if given.reader is not None and given.reader not in known:
        parser.error(f"unknown reader '{given.reader}'; known: {', '.join(known)}")
    if guided:
        fuzz_with_atheris(known[given.reader], given.seconds, given.seed)
        return
    chosen = list(known.values()) if given.reader is None else [known[given.reader]]
    counts, found = fuzz(chosen, given.seconds, given.seed)
    print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    print(f"{sum(counts.values()):,} inputs, {len(found)} findings")
    if given.reader is None and given.seconds >= LONG:
        results = {"seconds": given.seconds, "seed": given.seed, "findings": len(found), "inputs": dict(counts)}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        PAGE.write_text(with_counts(PAGE.read_text("utf-8"), results), "utf-8")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
