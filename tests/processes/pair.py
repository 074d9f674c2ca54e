"""Two processes that wait for work, connected by gloo. They are started once for all tests of a module."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

LONGEST = 120  # seconds for a piece of work


class Pair:
    """Two processes. Functions that they run are those of a module, because their names are sent.

    Args:
        folder: a folder, for the file in which the processes find each other.
    """

    def __init__(self, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.ends, self.processes = [], []
        for rank in range(2):
            end, far = context.Pipe()
            process = context.Process(target=_serve, args=(rank, str(folder / "meet"), far), daemon=True)
            process.start()
            self.ends.append(end)
            self.processes.append(process)

    def run(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """What a function returns in each process. An error is returned as `(its type, its text)`."""
        for end in self.ends:
            end.send((work, given))
        found = []
        for end in self.ends:
            assert end.poll(LONGEST), f"{work.__name__} does not end"
            found.append(end.recv())
        return found

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
            process.join()


def _serve(rank: int, meeting: str, end: Connection) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    while True:
        work, given = end.recv()
        try:
            end.send(work(*given))
        except Exception as error:
            end.send((type(error).__name__, str(error)))
