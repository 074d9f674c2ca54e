"""Processes find out that all of them are there, and are those of the same start.

When torchrun starts all processes again, it can give them the store of the start before, with what processes that are
gone have written into it. Nobody can tell by the time of an entry whether it is old. So each process has a random name:

1. each process says its name, and the main process keeps publishing the list of the names that it has read;
2. a process that finds its own name on the list says so, for that list;
3. when all have said so, the main process says for that list that they begin.

A list with an old name is never confirmed by all, and a list of an old main process has no new name.
"""

import hashlib
import secrets
import time
from typing import Protocol

from bgcl.errors import LostProcessError

PAUSE = 0.02  # seconds between two looks


class Store(Protocol):
    """What is used of a store of `torch.distributed`."""

    def set(self, key: str, value: str, /) -> None: ...
    def get(self, key: str, /) -> bytes: ...
    def check(self, keys: list[str], /) -> bool: ...


def meet(store: Store, rank: int, size: int, seconds: float) -> str:
    """Wait for all processes, and return a text that only those of this start know.

    Args:
        store: a store that all processes have, perhaps with old entries.
        rank: the rank of this process.
        size: how many processes there are.
        seconds: how long to wait.

    Raises:
        LostProcessError: a process did not come.
    """
    own, end, published = secrets.token_hex(8), time.monotonic() + seconds, ""
    store.set(f"bgcl/name/{rank}", own)
    while time.monotonic() < end:
        if rank == 0:
            names = _read(store, [f"bgcl/name/{each}" for each in range(size)])
            listed = "/".join(names)
            if names and listed != published:
                store.set("bgcl/names", listed)
                published = listed
            if names and store.check([f"bgcl/confirmed/{listed}/{each}" for each in range(1, size)]):
                store.set(f"bgcl/begin/{listed}", "yes")
                return _short(listed)
        else:
            listed = "".join(_read(store, ["bgcl/names"]))
            if own in listed.split("/"):
                store.set(f"bgcl/confirmed/{listed}/{rank}", "yes")
                if store.check([f"bgcl/begin/{listed}"]):
                    return _short(listed)
        time.sleep(PAUSE)
    raise LostProcessError(f"Not all of the {size} processes of this work have started.")


def _read(store: Store, keys: list[str]) -> list[str]:
    """The entries, or nothing if one is missing."""
    return [store.get(key).decode() for key in keys] if store.check(keys) else []


def _short(listed: str) -> str:
    return hashlib.sha256(listed.encode()).hexdigest()[:16]
