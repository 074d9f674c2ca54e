"""Processes of one start find each other in a store that has the entries of an older start."""

import threading
import time

import pytest
import torch.distributed as dist

from bgcl.errors import LostProcessError
from bgcl.processes.meeting import meet


def start(store: dist.Store, size: int, delays: dict[int, float]) -> list[str]:
    """What `meet` returns in each of several threads, which start with delays."""
    found = [""] * size

    def work(rank: int) -> None:
        time.sleep(delays.get(rank, 0))
        found[rank] = meet(store, rank, size, 20)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("late", [0, 1, 2])
def test_all_processes_of_a_start_know_one_text_and_no_other_start_does(late):
    store = dist.HashStore()
    texts = [start(store, 3, {late: 0.1 * number}) for number in range(4)]
    assert all(len(set(found)) == 1 for found in texts)
    assert len({found[0] for found in texts}) == 4


@pytest.mark.parametrize("missing", [0, 1])
def test_a_process_of_an_older_start_does_not_count(missing):
    """With the plain store, the other process would go on with the address of one that is gone."""
    store = dist.HashStore()
    start(store, 2, {})
    with pytest.raises(LostProcessError, match="Not all of the 2 processes"):
        meet(store, 1 - missing, 2, 0.3)


def test_a_start_that_was_given_up_does_not_disturb_the_next():
    store = dist.HashStore()
    for rank in (0, 1):
        with pytest.raises(LostProcessError):
            meet(store, rank, 2, 0.1)
    assert len(set(start(store, 2, {0: 0.1}))) == 1
