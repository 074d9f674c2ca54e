"""Files are written completely or not at all, and a lock lets one process at a time in."""

import os
import subprocess
import sys
import threading

import pytest

from bgcl.errors import BGCLError
from bgcl.files import atomic_write, exclusive, write_text


def test_a_file_is_written_with_its_folders(tmp_path):
    path = tmp_path / "a" / "b" / "text.txt"
    write_text(path, "first")
    write_text(path, "second ü")
    assert path.read_text("utf-8") == "second ü"
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o644


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
