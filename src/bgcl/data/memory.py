"""Check that data fits into memory before it is read."""

from pathlib import Path

from bgcl.errors import BGCLError

# A packed file may need this much memory, or this many times its size. More is a mistake, or meant to do harm.
PACKED_BYTES, PACKED_TIMES = 10**9, 100
# psutil reports the memory of the machine, not the limit of a container.
_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def free_memory() -> int:
    """Bytes of free memory on the machine, or the memory limit of the container if that is less."""
    import psutil  # here, because most graphs are found without it

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


def check_unpacked(path: Path, needed: int, remedy: str) -> None:
    """Raise an error if a file needs much more memory than its size can explain, or more than is free."""
    size = path.stat().st_size
    if needed > packed_limit(size):
        limit = in_words(packed_limit(size))
        raise BGCLError(f"{path} is {in_words(size)} large, but would need more than {limit} of memory. {remedy}")
    check_fits(needed, f"{path} is {in_words(size)} large and", remedy)


def packed_limit(size: int) -> int:
    """How much memory a packed file of this size may need, in bytes."""
    return max(PACKED_BYTES, PACKED_TIMES * size)


def in_words(size: int) -> str:
    """A number of bytes with a unit.

    >>> in_words(3_500_000_000)
    '3.5 GB'
    """
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size / 1000:.3g} kB"
