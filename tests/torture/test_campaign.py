"""A few cases of the torture campaign, the page with its counts, and what the campaign itself would notice."""

import json
import random
import subprocess
import sys

import pytest

import torture
import torture_cases
import torture_disk

# Replaces a file, as a process of its own, because it changes functions of the operating system.
REPLACE = """
import sys
sys.path.insert(0, sys.argv[1])
import torture_disk
import bgcl.files
if sys.argv[3] != "as it is":
    bgcl.files.sync = lambda path: None
torture_disk.record(sys.argv[2])
bgcl.files.write_text("text.txt", "new" * 1000)
"""


def test_a_few_cases_of_each_kind_end_as_they_must():
    command = [sys.executable, torture.ROOT / "scripts" / "torture.py", "--tiny"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "Cases that ended wrongly: 0." in found.stdout


@pytest.mark.parametrize(("how", "whole"), [("as it is", True), ("without fsync", False)])
def test_a_power_cut_without_fsync_would_be_noticed(tmp_path, how, whole):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "text.txt").write_text("old")
    steps_file = str(tmp_path / "steps.jsonl")
    command = [sys.executable, "-c", REPLACE, str(torture.ROOT / "scripts"), steps_file, how]
    before = torture_disk.Disk.of(tmp_path / "folder")
    subprocess.run(command, cwd=tmp_path / "folder", check=True)
    steps = torture_disk.recorded(steps_file)
    chance, found = random.Random(0), set()
    for cut in range(1, len(steps) + 1):
        for _ in range(30):
            disk = torture_disk.Disk(dict(before.names), dict(before.safe))
            disk.run(steps, cut)
            found.add(disk.after_cut(cut, chance).get("text.txt"))
    assert (found <= {b"old", b"new" * 1000}) == whole
    assert b"old" in found
    assert (b"new" * 1000 in found) == whole  # without fsync, nothing is known of the content


def test_what_is_kept_to_be_faster_may_be_gone_but_not_wrong_and_nothing_else_may():
    expected = {"r": "folder", "r/kept": "folder", "r/kept/a": "1", "r/model.toml": "2"}
    assert torture_cases.different({"r": "folder", "r/model.toml": "2"}, expected) == []
    assert torture_cases.different(expected | {"r/kept/a": "3"}, expected) == ["r/kept/a"]
    assert torture_cases.different(expected | {"r/kept/.b.part": "3"}, expected) == ["r/kept/.b.part"]
    assert torture_cases.different({"r": "folder"}, expected) == ["r/model.toml"]


def test_the_page_has_the_counts_of_the_last_campaign():
    results, page = json.loads(torture.RESULTS.read_text("utf-8")), torture.PAGE.read_text("utf-8")
    assert torture.with_counts(page, results) == page


def test_the_last_campaign_was_large_enough_and_nothing_went_wrong():
    results = json.loads(torture.RESULTS.read_text("utf-8"))
    count = {kind: sum(ends.values()) for kind, ends in results["cases"].items()}
    assert results["failures"] == 0
    assert count["steps"] + count["kills"] + count["signals"] + count["cuts"] >= 300
    assert count["pairs"] >= 50
    assert count["flips"] >= 1000
    assert count["disks"] >= 20
    assert count["read only"] > 0
