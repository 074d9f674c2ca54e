"""The room of an older version of a file is used anew, and nothing that somebody may need is overwritten."""

import contextlib
import os
from pathlib import Path

import pytest

from bgcl import files
from bgcl.errors import BGCLError
from bgcl.files import Spare, atomic_write
from trained import small_data, small_model


def write(path: Path, text: str, spare: Spare) -> int:
    """Write a version of a file, and return the number of its inode."""
    with atomic_write(path, spare) as part, part.open("r+b") as file:
        file.write(text.encode())
        file.truncate()
    assert path.read_text() == text
    return path.stat().st_ino


def test_two_files_take_turns_and_only_the_last_version_is_left(tmp_path):
    path = tmp_path / "text.txt"
    with Spare() as spare:
        places = [write(path, text, spare) for text in ("one", "version two", "3", "four", "5")]
        assert places[0] == places[2] == places[4]
        assert places[1] == places[3] != places[0]
        assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_the_last_version_is_there_until_the_next_one_is_whole(tmp_path):
    path = tmp_path / "text.txt"
    with Spare() as spare:
        for text in ("one", "two", "three"):
            write(path, text, spare)
        with contextlib.suppress(ZeroDivisionError), atomic_write(path, spare) as part:
            part.write_text("half of a ver")
            assert path.read_text() == "three"
            raise ZeroDivisionError
        assert path.read_text() == "three"
        write(path, "four", spare)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("later", [0, 1, 5])
def test_a_version_that_another_reads_is_not_overwritten(tmp_path, later):
    path = tmp_path / "text.txt"
    with Spare() as spare:
        write(path, "one", spare)
        write(path, "two", spare)
        with path.open("rb") as reader:
            for number in range(1 + later):
                write(path, f"version {number}", spare)
            assert reader.read() == b"two"


def test_a_backup_of_hard_links_is_not_overwritten(tmp_path):
    path, backup = tmp_path / "text.txt", tmp_path / "backup.txt"
    with Spare() as spare:
        write(path, "one", spare)
        os.link(path, backup)
        for number in range(4):
            write(path, f"version {number}", spare)
    assert backup.read_text() == "one"


@pytest.mark.parametrize("missing", ["link", "lease", "sync of folders"])
def test_where_the_system_cannot_do_it_each_version_is_a_new_file(tmp_path, monkeypatch, missing):
    def refuse(*_: object) -> None:
        raise OSError("not here")

    if missing == "link":
        monkeypatch.setattr(os, "link", refuse)
    elif missing == "lease":
        monkeypatch.delattr(files.fcntl, "F_SETLEASE")
    else:
        real = files.sync
        monkeypatch.setattr(files, "sync", lambda path: real(path) and not path.is_dir())
    path, taken = tmp_path / "text.txt", []
    take = Spare.take
    monkeypatch.setattr(Spare, "take", lambda spare: taken.append(take(spare)) or taken[-1])
    with Spare() as spare:
        for number in range(4):
            write(path, f"version {number}", spare)
    assert taken == [None] * 4
    assert list(tmp_path.iterdir()) == [path]


def test_a_spare_that_a_killed_process_left_is_removed(tmp_path):
    path, spare = tmp_path / "text.txt", Spare()
    write(path, "one", spare)
    write(path, "two", spare)
    os.close(spare._kept[1])  # as the end of the process does
    with atomic_write(path) as part:
        part.write_text("three")
    assert list(tmp_path.iterdir()) == [path]


def test_a_training_leaves_no_spare_whether_it_ends_or_fails(tmp_path):
    small_model(small_data(), epochs=1).fit(small_data(), out=tmp_path / "a", progress=False)
    names = {path.name for path in (tmp_path / "a").iterdir()}

    def fail(record):
        if record.epoch == 4:
            raise BGCLError("stop")

    model = small_model(small_data(), epochs=6)
    with pytest.raises(BGCLError, match="stop"):
        model.fit(small_data(), out=tmp_path / "b", progress=fail)
    assert {path.name for path in (tmp_path / "b").iterdir()} == names
