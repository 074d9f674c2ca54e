"""A process that torchrun has started finds the others, and leaves them at the end."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from bgcl.errors import BGCLError, LostProcessError, SaidElsewhereError

if TYPE_CHECKING:
    from torch.distributed import Store  # type: ignore[attr-defined]

    from bgcl.processes.team import Team

PATIENCE = timedelta(hours=6)  # for a process that works on; one that has ended is noticed at once
MEETING = timedelta(minutes=15)  # for a process that starts
SOON = timedelta(seconds=3)  # for an error that all processes have
FAILED = "bgcl/failed"  # the key of the main process's error


def started_together() -> int:
    """How many processes torchrun has started together with this one; 1 if it did not start this one.

    >>> started_together()
    1
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return 1
    return _whole("WORLD_SIZE")


def is_main() -> bool:
    """Whether this process is the main one of those that torchrun has started, or none of them.

    >>> is_main()
    True
    """
    return "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("RANK", "0") == "0"


def restarts() -> int:
    """How often torchrun has started all processes again, because one had died."""
    return _whole("TORCHELASTIC_RESTART_COUNT") if "TORCHELASTIC_RUN_ID" in os.environ else 0


def start_again() -> bool:
    """Whether torchrun starts all processes again if this one fails."""
    return "TORCHELASTIC_RUN_ID" in os.environ and restarts() < _whole("TORCHELASTIC_MAX_RESTARTS")


def _whole(name: str) -> int:
    value = os.environ.get(name, "")
    if not value.isdecimal():
        raise BGCLError(f"The environment says {name}='{value}', but torchrun sets it to a whole number. Unset it.")
    return int(value)


@contextlib.contextmanager
def joined() -> Iterator["Team"]:
    """The team of all processes that torchrun has started, or this process alone."""
    from bgcl.processes.team import Team  # it needs torch, which a command imports when it runs

    if started_together() == 1:
        yield Team.current()
        return
    import torch
    import torch.distributed as dist
    from torch.distributed.rendezvous import rendezvous

    from bgcl.processes.meeting import meet

    rank = _whole("LOCAL_RANK")
    on_gpus = torch.cuda.is_available() and dist.is_nccl_available() and rank < torch.cuda.device_count()
    if on_gpus:
        torch.cuda.set_device(rank)
    try:
        store, number, size = next(rendezvous("env://", timeout=MEETING))
        prefix = meet(store, number, size, MEETING.total_seconds())
        own = dist.PrefixStore(prefix, store)  # type: ignore[attr-defined]
        backend = "cpu:gloo,cuda:nccl" if on_gpus else "gloo"
        dist.init_process_group(backend, store=own, rank=number, world_size=size, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise LostProcessError(f"The processes of this work cannot find each other ({why}).") from error
    team = Team.current()
    if not team.is_main:
        logging.getLogger("bgcl").setLevel(logging.ERROR)  # the main process has the same warnings
    try:
        yield team
    except (BGCLError, OSError, MemoryError) as error:
        text = str(error) or type(error).__name__
        if team.is_main:
            own.set(FAILED, text)
        elif not (isinstance(error, SaidElsewhereError) or _main_says(own, text)):
            print(f"bgcl: Process {team.rank}: {text}", file=sys.stderr)
        raise
    finally:
        dist.destroy_process_group()


def _main_says(store: "Store", text: str) -> bool:
    """Whether the main process ends with the same error. It may be a little later."""
    try:
        store.wait([FAILED], SOON)
        return store.get(FAILED).decode() == text
    except RuntimeError:  # it does not end, or is gone
        return False


def check_device_of_team(team: "Team", device: str) -> None:
    """Raise an error unless each process of this machine has a GPU of its own, if they compute on GPUs."""
    if team.size == 1 or not device.startswith("cuda"):
        return
    import torch

    here, there = int(os.environ.get("LOCAL_WORLD_SIZE", team.size)), torch.cuda.device_count()
    if here > there:
        raise BGCLError(f"{here} processes on this machine need as many GPUs, but it has {there}: start {there}.")
    if device != "cuda":
        raise BGCLError(f"With several processes each takes its own GPU: give device = 'cuda', not '{device}'.")
