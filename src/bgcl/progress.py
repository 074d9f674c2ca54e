"""A progress bar on a terminal."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


def with_progress(stream: Iterable[T], total: int, what: str, *, show: bool = True) -> Iterator[T]:
    """Yield the items of a stream. On a terminal, also show a bar with the text `what`, unless `show` is False."""
    console = Console(stderr=True)
    yield from track(stream, what, total, console=console, transient=True, disable=not (show and console.is_terminal))
