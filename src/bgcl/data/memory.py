"""Check that data fits into memory before it is read."""

from pathlib import Path

import psutil

from bgcl.errors import BGCLError

# psutil reports the memory of the machine, not the limit of a container.
_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def free_memory() -> int:
    """Bytes of free memory on the machine, or the memory limit of the container if that is less."""
    found = [int(psutil.virtual_memory().available)]
    for path in _CONTAINER_LIMITS:
        try:
            found.append(int(Path(path).read_text("ascii")))
        except (OSError, ValueError):
            continue
    return min(found)


def check_fits(needed: int, what: str, remedy: str) -> None:
    """Raise an error if `what` needs more bytes than are free. `remedy` tells the user what to do."""
    free = free_memory()
    if needed > free:
        raise BGCLError(
            f"{what} would need about {in_words(needed)} of memory, but {in_words(free)} are free. {remedy}"
        )


def in_words(size: int) -> str:
    """A number of bytes with a unit.

    >>> in_words(3_500_000_000)
    '3.5 GB'
    """
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size / 1000:.3g} kB"
