"""A progress bar on a terminal, and a line for work of unknown length."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


def with_progress(stream: Iterable[T], total: int, what: str, *, show: bool = True) -> Iterator[T]:
    """Yield the items of a stream. On a terminal, also show a bar with the text `what`, unless `show` is False."""
    console = Console(stderr=True)
    yield from track(stream, what, total, console=console, transient=True, disable=not (show and console.is_terminal))


@contextmanager
def status(what: str, *, show: bool = True) -> Iterator[None]:
    """Show on a terminal what is being done, until it is done."""
    console = Console(stderr=True)
    if not (show and console.is_terminal):
        yield
        return
    with console.status(what):
        yield
