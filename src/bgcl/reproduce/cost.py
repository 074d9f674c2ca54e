"""What training costs: the time and the peak memory of one fit, measured in a process of its own."""

import json
import multiprocessing
import os
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bgcl.errors import BGCLError
from bgcl.files import exclusive, write_text
from bgcl.reproduce.cache import Cache
from bgcl.reproduce.fitting import embeddings_file, fitted, run_folder, trained
from bgcl.reproduce.graphs import open_graph
from bgcl.settings import Settings

if TYPE_CHECKING:
    from torch_geometric.data import Data

Cost = dict[str, Any]


def measured_fit(name: str, method: Any, dataset: str, data: "Data", cache: Cache) -> Cost:
    """Train a method in a process of its own, and store its embeddings or its run in the cache.

    What was measured is kept beside them. Embeddings that were not measured are made again. A run that was not measured
    goes on where it stopped: then the time is the sum of its epochs, and the memory is not known.

    Args:
        name: name of the method.
        method: a baseline, or the settings of BGCL.
        dataset: name of the graph, which the process opens by itself.
        data: the graph.
        cache: the cache.

    Returns:
        A dictionary: "fit_seconds", the time with preparing the graph and saving; "peak_mib", the greatest memory of
        the process in MiB, with Python and all libraries, 0 if it is not known; "cost_note", why it is not.

    Raises:
        BGCLError: the training failed.
    """
    ours = isinstance(method, Settings)
    place = run_folder(method, data, cache) if ours else embeddings_file(name, method, data, cache)
    record = place.with_suffix(".cost.json")
    with exclusive(record):  # so that two cells do not measure the same fit
        if (known := _read(record)) is not None:
            return known
        if not ours:
            place.unlink(missing_ok=True)
        found = _in_child(dataset, name, method, cache.folder)
        write_text(record, json.dumps(found))
    return found


def _read(record: Path) -> Cost | None:
    try:
        return dict(json.loads(record.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _in_child(dataset: str, name: str, method: Any, cache: Path) -> Cost:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _end_with_parent) as pool:
        try:
            return pool.submit(_fit, dataset, name, method, cache, torch.get_num_threads()).result()
        except BrokenProcessPool:
            raise BGCLError(f"The process that trains {name} was ended. Perhaps there was not enough memory.") from None
        except BaseException:
            for process in list(pool._processes.values()):
                process.terminate()
            raise


def _end_with_parent() -> None:
    """End this process as soon as its parent is gone, also if the parent was killed."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _fit(dataset: str, name: str, method: Any, folder: Path, threads: int) -> Cost:
    """Fit in this process, and measure it."""
    torch.set_num_threads(threads)
    data, cache = open_graph(dataset), Cache(folder)
    start, earlier = time.perf_counter(), 0.0
    if isinstance(method, Settings):
        earlier = sum(record.seconds for record in trained(data, method, cache).history_)
    else:
        fitted(name, method, data, cache)
    seconds = time.perf_counter() - start
    if seconds < earlier:  # epochs of an earlier process
        return _cost(earlier, 0.0, "the training was resumed")
    peak = peak_mib()
    return _cost(seconds, peak, "" if peak else "this platform does not say how much memory a process used")


def _cost(seconds: float, peak: float, note: str) -> Cost:
    return {"fit_seconds": round(seconds, 1), "peak_mib": round(peak), "cost_note": note}


def peak_mib() -> float:
    """The greatest resident memory of this process so far, in MiB; 0 if the platform does not say.

    On Linux, `ru_maxrss` of a new process starts at the memory of the process that started it, so `VmHWM` is used.
    """
    try:
        status = Path("/proc/self/status").read_text("utf-8")
        return float(status.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, IndexError, ValueError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 2**10
