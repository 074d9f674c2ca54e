"""Files are written completely or not at all, and a lock lets one process at a time in."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from bgcl.errors import BGCLError
from bgcl.files import LOCK, atomic_write, exclusive, sole_use, write_text


def test_a_file_is_written_with_its_folders(tmp_path):
    path = tmp_path / "a" / "b" / "text.txt"
    write_text(path, "first")
    write_text(path, "second ü")
    assert path.read_text("utf-8") == "second ü"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_file_has_the_permissions_that_the_users_umask_leaves(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "text.txt", "")
    finally:
        os.umask(before)
    assert (tmp_path / "text.txt").stat().st_mode & 0o777 == 0o666 & ~umask


def test_contents_and_name_are_on_the_disk_in_this_order(tmp_path, monkeypatch):
    """A power cut leaves the old file or the whole new one."""
    path, done = tmp_path / "text.txt", []
    kinds = {True: "folder", False: "file"}
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda handle: (done.append(kinds[stat.S_ISDIR(os.fstat(handle).st_mode)]), sync(handle))
    )
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("name"), replace(*names)))
    write_text(path, "new")
    assert done == ["file", "name", "folder"]


def test_what_a_killed_process_left_behind_is_removed_and_a_file_in_use_is_not(tmp_path):
    code = (
        "import os, signal, sys; from bgcl.files import atomic_write\n"
        "with atomic_write(sys.argv[1]) as part: part.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "text[1].txt"
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    [left] = tmp_path.iterdir()
    other = tmp_path / f".another.{left.name}"  # of another file
    other.write_text("")
    with atomic_write(path) as in_use:
        assert not left.exists()
        write_text(path, "second")
        assert in_use.exists()
    assert sorted(tmp_path.iterdir()) == sorted([path, other])


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_leaves_the_old_file_and_no_temporary_one(tmp_path, error):
    path = tmp_path / "text.txt"
    write_text(path, "old")

    def write_half():
        with atomic_write(path) as part:
            part.write_text("half")
            assert part.parent == path.parent
            assert part.suffix == path.suffix
            assert path.read_text() == "old"
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_one_clear_error(tmp_path):
    path = tmp_path / "text.txt"
    message = r"Cannot write .*text.txt: No space left on device. Nothing was changed"
    with pytest.raises(BGCLError, match=message), atomic_write(path):
        raise OSError(28, os.strerror(28))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_a_file_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BGCLError, match=r"Cannot write .*: .*\. Choose another folder"):
        write_text(tmp_path / "file" / "text.txt", "")


def test_threads_take_turns(tmp_path):
    inside, most = [], []

    def work():
        for _ in range(20):
            with exclusive(tmp_path / "x"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 80
    assert set(most) == {1}


def test_another_process_waits_until_the_lock_is_free(tmp_path):
    code = (
        "import sys; from bgcl.files import exclusive\n"
        "print('waiting', flush=True)\n"
        "with exclusive(sys.argv[1]): print(open(sys.argv[1]).read(), flush=True)"
    )
    path = tmp_path / "x"
    path.write_text("before")
    with exclusive(path):
        process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "waiting\n"
        path.write_text("after")
    output, _ = process.communicate(timeout=60)
    assert output == "after\n"


# A folder for one process


HOLD = (
    "import sys, time; from bgcl.files import sole_use\n"
    "with sole_use(sys.argv[1]): print('inside', flush=True); time.sleep(60)"
)


@pytest.fixture
def holder(tmp_path):
    """A process that has the folder `run`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "inside\n"
    yield process
    process.kill()
    process.wait()


def test_a_folder_in_use_is_refused_with_the_name_of_its_process(tmp_path, holder):
    message = rf"run is in use by process {holder.pid} on .*, since 20\d\d-.*\. Wait until it has finished"
    with pytest.raises(BGCLError, match=message), sole_use(tmp_path / "run"):
        pass
    assert (tmp_path / "run" / LOCK).exists()


def test_a_process_that_has_just_taken_the_folder_is_named_too(tmp_path):
    handle = os.open(tmp_path / LOCK, os.O_CREAT | os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    writer = threading.Timer(0.05, lambda: os.write(handle, b"process 7"))
    writer.start()
    with pytest.raises(BGCLError, match="is in use by process 7"), sole_use(tmp_path):
        pass
    writer.join()
    os.close(handle)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_an_old_lock_does_not_block(tmp_path, holder, how):
    holder.send_signal(how)
    holder.wait()
    with sole_use(tmp_path / "run"):
        assert str(os.getpid()) in (tmp_path / "run" / LOCK).read_text()
    assert not list((tmp_path / "run").iterdir())


def test_the_thread_that_has_a_folder_may_ask_again_and_another_may_not(tmp_path):
    refused = []

    def ask():
        try:
            with sole_use(tmp_path):
                pass
        except BGCLError as error:
            refused.append(str(error))

    with sole_use(tmp_path):
        with sole_use(tmp_path / "." / "x" / ".."):
            pass
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert len(refused) == 1
    with sole_use(tmp_path):
        pass


def test_a_folder_with_files_stays_and_the_lock_is_gone(tmp_path):
    with sole_use(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b" / "file").write_text("")
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["file"]


def test_a_place_that_cannot_be_a_folder_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(BGCLError, match=r"Cannot write .*file: .*\. Choose another folder"),
        sole_use(tmp_path / "file"),
    ):
        pass


def test_names_of_new_folders_are_on_the_disk_too(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: (synced.append(os.readlink(f"/proc/self/fd/{handle}")), sync(handle))
    )
    with sole_use(tmp_path / "a" / "b"):
        pass
    assert synced == [str(tmp_path / "a"), str(tmp_path)]
    synced.clear()
    write_text(tmp_path / "c" / "text.txt", "")
    assert synced[0] == str(tmp_path)


def test_a_folder_of_its_own_loses_the_temporary_files_of_every_dead_process(tmp_path):
    left, mine = tmp_path / ".graph.json.0123abcd.part.json", tmp_path / "notes.part.txt"
    left.write_text("")
    mine.write_text("")
    with sole_use(tmp_path):
        assert not left.exists()
    assert list(tmp_path.iterdir()) == [mine]


def test_a_folder_that_another_process_removes_meanwhile_is_made_again(tmp_path, monkeypatch):
    """A process that was refused by its settings removes the folder that it had made."""
    opened, real = [], os.open

    def open_(path, *arguments):
        if str(path).endswith(LOCK) and not opened:
            opened.append(path)
            (tmp_path / "run").rmdir()
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", open_)
    with sole_use(tmp_path / "run"):
        assert (tmp_path / "run" / LOCK).exists()


def test_a_lock_that_was_removed_after_it_was_opened_is_no_lock(tmp_path, monkeypatch):
    """Else two processes could have the folder: one the lock of old, one a new one."""
    real, removed = fcntl.flock, []

    def lock(handle, how):
        if not removed:
            removed.append((tmp_path / LOCK).unlink())
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", lock)
    with sole_use(tmp_path):
        assert str(os.getpid()) in (tmp_path / LOCK).read_text()


def test_only_folders_that_were_made_are_removed(tmp_path):
    (tmp_path / "mine").mkdir()
    with sole_use(tmp_path / "mine"):
        pass
    assert (tmp_path / "mine").is_dir()
    with sole_use(tmp_path / "a" / "b" / "c"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_new_file_that_another_process_takes_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    """The other process may open and lock it before this one has locked it, and remove it after."""
    real, cleaners = os.open, []

    def open_(path, flags, *arguments):
        handle = real(path, flags, *arguments)
        if flags & os.O_EXCL and not cleaners:
            other = real(path, os.O_RDWR)
            fcntl.flock(other, fcntl.LOCK_EX)
            cleaners.append(threading.Timer(0.2, lambda: (os.unlink(path), os.close(other))))
            cleaners[0].start()
        return handle

    monkeypatch.setattr(os, "open", open_)
    with atomic_write(tmp_path / "text.txt") as part:
        part.write_text("whole")
        cleaners[0].join()  # the file that was written must not be the one that it removes
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]
    assert (tmp_path / "text.txt").read_text() == "whole"
