"""Ten seconds of damaged files for every reader, and whether the fuzzer notices what it looks for."""

import json
import os
import signal
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from bgcl import BGCLError

SCRIPTS = str(Path(__file__).resolve().parents[2] / "scripts")


@pytest.fixture
def fuzz(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(SCRIPTS)
    import fuzz

    monkeypatch.setattr(fuzz, "FOUND", tmp_path / "found")
    return fuzz


def test_no_reader_stumbles_in_ten_seconds(fuzz):
    known = fuzz.readers()
    counts, found = fuzz.fuzz(list(known.values()), 10, seed=13)
    assert {folder.name: (folder / "what_happened.txt").read_text() for folder in found} == {}
    assert counts.keys() == known.keys()


def test_every_reader_has_a_corpus_of_small_files_that_it_accepts(fuzz, tmp_path):
    known = fuzz.readers()
    assert {path.name for path in fuzz.CORPUS.iterdir()} == known.keys()
    for reader in known.values():
        assert all(len(data) < 4000 for data in reader.files().values())
        assert fuzz.answer(fuzz.Input(reader, "", reader.files()), tmp_path / reader.name) == ""


def test_the_same_seed_gives_the_same_inputs_and_another_seed_others(fuzz):
    chosen = [fuzz.Reader(name, print) for name in ("csv", "npz", "run", "gzip")]
    one, same, other = ([given.files for given in islice(fuzz.inputs(chosen, seed), 40)] for seed in (1, 1, 2))
    assert one == same
    assert one != other


def raises_a_type_error(_: Path) -> None:
    raise TypeError("unexpected")


def says_two_lines(_: Path) -> None:
    raise BGCLError("first\nsecond")


def aborts(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(_: Path) -> None:
    time.sleep(60)


def takes_memory(_: Path) -> None:
    np.ones(100 << 17)  # 100 MiB


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (raises_a_type_error, "TypeError: unexpected"),
        (says_two_lines, "not one line"),
        (aborts, "SIGKILL"),
        (hangs, "no answer after"),
        (takes_memory, "MiB of memory"),
    ],
)
def test_a_finding_is_noticed_and_saved(fuzz, monkeypatch, read, message):
    monkeypatch.setattr(fuzz, "MEMORY", 64 << 20)
    if read is hangs:
        monkeypatch.setattr(fuzz, "SECONDS", 1)
    _, found = fuzz.fuzz([fuzz.Reader("csv", read)], 0.5, seed=0)
    assert message in (found[-1] / "what_happened.txt").read_text()
    assert (found[-1] / "nodes.csv").exists()


def test_only_time_in_which_the_reader_works_counts_and_the_right_input_is_blamed(fuzz, monkeypatch, tmp_path):
    monkeypatch.setattr(fuzz, "SECONDS", 0.3)

    def read(folder: Path) -> None:
        number = int((folder / "number").read_text())
        time.sleep(0.6 if number == 1 else 0)
        while number == 3:
            pass

    reader = fuzz.Reader("csv", read)
    batch = [fuzz.Input(reader, "number", {"number": str(number).encode()}) for number in range(5)]
    found = [(given.files["number"], wrong) for given, wrong in fuzz.run_batch(batch, tmp_path / "input")]
    assert found == [(b"0", ""), (b"1", ""), (b"2", ""), (b"3", "no answer after 0.3 seconds")]


def test_a_refusal_in_one_line_is_no_finding(fuzz):
    def refuse(folder: Path) -> None:
        if (folder / "nodes.csv").read_bytes() != (fuzz.CORPUS / "csv" / "nodes.csv").read_bytes():
            raise BGCLError("one line")

    assert fuzz.fuzz([fuzz.Reader("csv", refuse)], 0.3, seed=0)[1] == []


def test_the_page_has_the_counts_of_the_last_long_run_in_which_nothing_was_found(fuzz):
    results, page = json.loads(fuzz.RESULTS.read_text("utf-8")), fuzz.PAGE.read_text("utf-8")
    assert fuzz.with_counts(page, results) == page
    assert results["inputs"].keys() == fuzz.readers().keys()
    assert results["findings"] == 0
    assert results["seconds"] >= fuzz.LONG
