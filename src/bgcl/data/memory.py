"""How much memory is free, and a refusal in words before something is read that would not fit."""

import os
from pathlib import Path

from bgcl.errors import BGCLError

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def free_memory() -> int | None:
    """Bytes that a process may still take, as far as the system tells: None where it does not."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError):
        try:
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (ValueError, OSError, AttributeError):
            return None
    for path in _CGROUP_LIMITS:  # the limit of a container
        try:
            found.append(int(Path(path).read_text("ascii")))
        except (OSError, ValueError):
            continue
    return min(found) if found else None


def check_fits(needed: int, what: str, remedy: str) -> None:
    """Refuse `what` if it needs more bytes than are free."""
    free = free_memory()
    if free is not None and needed > free:
        raise BGCLError(f"{what} would need about {in_words(needed)} of memory; {in_words(free)} are free. {remedy}")


def in_words(size: int) -> str:
    """
    >>> in_words(3_500_000_000)
    '3.5 GB'
    """
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size / 1000:.3g} kB"
