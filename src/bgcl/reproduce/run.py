"""Compute the cells of an experiment, one after the other or in several processes."""

import logging
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgcl.errors import BGCLError
from bgcl.reproduce.cache import Cache
from bgcl.reproduce.cells import Cell
from bgcl.reproduce.compute import compute
from bgcl.reproduce.graphs import check_graph_is_here, open_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data

log = logging.getLogger("bgcl")

Outcome = tuple[Cell, dict[str, Any] | None, str]  # a cell, its result, and the reason if there is none


def run(
    cells: Sequence[Cell], cache: Cache, *, jobs: int = 1, begins: Callable[[Cell], None] = lambda _: None
) -> Iterator[Outcome]:
    """Compute cells. If a data set is missing or a method fails, the other cells are still computed.

    Args:
        cells: the cells.
        cache: the cache of results.
        jobs: the number of processes.
        begins: called with each cell when its computation begins.

    Yields:
        Each cell with its result, as soon as it is computed, or with None and the reason.
    """
    missing = _missing({cell.dataset for cell in cells})
    for cell in cells:
        if cell.dataset in missing:
            yield cell, None, missing[cell.dataset]
    todo = [cell for cell in cells if cell.dataset not in missing]
    if jobs == 1:
        graphs: dict[str, Data] = {}
        for cell in todo:
            begins(cell)
            if cell.dataset not in graphs:
                graphs = {cell.dataset: open_graph(cell.dataset)}
            yield _outcome(cell, partial(compute, cell, graphs[cell.dataset], cache))
        return
    yield from _in_parallel(todo, cache.folder, jobs, begins)


def _missing(datasets: set[str]) -> dict[str, str]:
    """The data sets that are not available, with the reason."""
    reasons = {}
    for dataset in sorted(datasets):
        try:
            check_graph_is_here(dataset)
        except BGCLError as error:
            reasons[dataset] = str(error)
    return reasons


def _outcome(cell: Cell, result: Callable[[], dict[str, Any]]) -> Outcome:
    try:
        return cell, result(), ""
    except BGCLError as error:
        return cell, None, str(error)


def _in_parallel(cells: Sequence[Cell], folder: Path, jobs: int, begins: Callable[[Cell], None]) -> Iterator[Outcome]:
    """Compute cells in separate processes, which share the threads of this machine."""
    import torch

    threads = max(torch.get_num_threads() // jobs, 1)
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _start_process, (threads,)) as pool:
        waiting, running = list(reversed(cells)), dict[Future[dict[str, Any]], Cell]()
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    cell = waiting.pop()
                    begins(cell)
                    running[pool.submit(_in_process, cell, folder)] = cell
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield _outcome(running.pop(future), future.result)
        except BaseException:
            for process in list(pool._processes.values()):  # a run that is training was saved after its last epoch
                process.terminate()
            raise


def _start_process(threads: int) -> None:
    import signal

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets the interrupt and ends its processes
    torch.set_num_threads(threads)


def _in_process(cell: Cell, folder: Path) -> dict[str, Any]:
    return compute(cell, open_graph(cell.dataset), Cache(folder))
