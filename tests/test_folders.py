"""Files that belong together appear all or not at all, and a scratch folder goes with the process that made it."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bgcl.errors import BGCLError, CannotWriteError
from bgcl.files import sole_use
from bgcl.folders import BEGUN, MOVING, SCRATCH, Scratch, new_files, refuse_files

NAMES = ("a", "b", "last")


def write(folder: Path, text: str, names: tuple[str, ...] = NAMES, *, replace: bool = False) -> None:
    with new_files(folder, NAMES, replace=replace) as begun:
        for name in names:
            (begun / name).write_text(text)


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_new_files_are_written_beside_what_else_is_there(tmp_path):
    write(tmp_path / "x" / "out", "1")
    assert content(tmp_path / "x" / "out") == dict.fromkeys(NAMES, "1")
    (tmp_path / "mine").write_text("kept")
    write(tmp_path, "2", ("a", "last"))
    assert (tmp_path / "mine").read_text() == "kept"
    assert not (tmp_path / "b").exists()


def test_older_files_are_refused_or_replaced_and_never_mixed_with_new_ones(tmp_path):
    write(tmp_path, "old")
    with pytest.raises(CannotWriteError, match=r"already holds last\. Name another folder, or remove it"):
        write(tmp_path, "new")
    assert content(tmp_path) == dict.fromkeys(NAMES, "old")
    write(tmp_path, "new", ("a", "last"), replace=True)
    assert content(tmp_path) == {"a": "new", "last": "new"}


@pytest.mark.parametrize("error", [BGCLError("bad"), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_an_error_leaves_what_was_there(tmp_path, error):
    (tmp_path / "b").write_text("mine")

    def fail() -> None:
        with new_files(tmp_path, NAMES, replace=True) as begun:
            (begun / "last").write_text("new")
            raise error

    with pytest.raises((BGCLError, KeyboardInterrupt)):
        fail()
    assert content(tmp_path) == {"b": "mine"}


def test_the_second_process_in_a_folder_is_refused_before_it_computes(tmp_path):
    found = []

    def second() -> None:
        with pytest.raises(CannotWriteError, match="is in use by process"), new_files(tmp_path, NAMES):
            found.append("computed")

    with sole_use(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert found == []


KILLED = """
import os, signal, sys
from pathlib import Path
from bgcl.folders import new_files
step, count = int(sys.argv[2]), 0
def counted(real):
    def call(*given, **more):
        global count
        count += 1
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **more)
    return call
for name in ("mkdir", "rename", "unlink", "rmdir", "fsync"):
    setattr(os, name, counted(getattr(os, name)))
with new_files(Path(sys.argv[1]), ("a", "b", "last"), replace=True) as begun:
    for name in ("a", "last"):
        (begun / name).write_text("new")
"""


@pytest.mark.parametrize("step", range(1, 40))
def test_a_process_that_is_killed_at_any_step_leaves_old_files_or_new_ones_or_none(tmp_path, step):
    write(tmp_path, "old")
    code = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(step)], check=False).returncode
    assert code in (0, -signal.SIGKILL)
    try:
        refuse_files(tmp_path, NAMES)
        assert content(tmp_path) == {}
    except CannotWriteError:
        assert content(tmp_path) in (dict.fromkeys(NAMES, "old"), {"a": "new", "last": "new"})
    if step == 39:
        assert code == 0, "more steps than are tried"


def test_nothing_is_removed_that_no_killed_process_was_about_to_replace(tmp_path):
    (tmp_path / "a").write_text("mine")
    (tmp_path / BEGUN).mkdir()
    (tmp_path / BEGUN / "last").write_text("begun")
    with pytest.raises(CannotWriteError, match="already holds a"):
        refuse_files(tmp_path, NAMES)
    assert content(tmp_path) == {"a": "mine"}
    (tmp_path / MOVING).mkdir()
    (tmp_path / MOVING / "last").write_text("whole")
    refuse_files(tmp_path, NAMES)  # `a` was in its place already
    assert content(tmp_path) == {}


def test_a_scratch_folder_is_removed_with_its_object_and_one_of_a_killed_process_by_the_next(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; from bgcl.folders import Scratch\n"
        "kept = Scratch(Path(sys.argv[1])); (kept.path / 'x').write_text('')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert len(list(tmp_path.glob(f"{SCRATCH}*/x"))) == 1
    one, other = Scratch(tmp_path), Scratch(tmp_path)
    assert set(tmp_path.iterdir()) == {one.path, other.path}
    other.remove()
    assert list(tmp_path.iterdir()) == [one.path]
    del one
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_cannot_be_written_is_an_error_of_the_system(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        Scratch(tmp_path)
