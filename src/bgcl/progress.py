"""What is being done, for a terminal: a progress bar, a line for work of unknown length, and the name of a stage."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

T = TypeVar("T")

_bars: list[tuple[Progress, Callable[[str], None]]] = []  # the bars on the terminal, and what sets their texts
_stages: list[str] = []


def with_progress(
    stream: Iterable[T] | Callable[[], Iterable[T]], total: int, what: str, *, show: bool = True
) -> Iterator[T]:
    """Yield the items of a stream. On a terminal, also show a bar with the text `what`, unless `show` is False.

    The stream may be a function that makes it. Then the bar is there already while that takes time.
    """
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not (show and console.is_terminal)) as bar:
        task = bar.add_task(what, total=total)
        _bars.append((bar, lambda text: bar.update(task, description=text)))
        try:
            if callable(stream):
                with stage("preparing the graph"):
                    stream = stream()
            for item in stream:
                yield item
                bar.advance(task)
        finally:
            _bars[:] = [each for each in _bars if each[0] is not bar]


@contextmanager
def status(what: str, *, show: bool = True) -> Iterator[None]:
    """Show on a terminal what is being done, until it is done."""
    console = Console(stderr=True)
    if not (show and console.is_terminal):
        yield
        return
    with console.status(what):
        yield


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Name what is being done. A bar that is on the terminal shows it, or the line of a command that works silently."""
    _stages.append(what)
    set_text = _bars[-1][1] if _bars else None
    before = _bars[-1][0].tasks[0].description if _bars else ""
    if set_text is not None:
        set_text(what)
    try:
        yield
    finally:
        _stages.remove(what)
        if set_text is not None:
            set_text(before)


def counted(count: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "head"), counted(1200, "head")
    ('1 head', '1,200 heads')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def current_stage() -> str | None:
    """The innermost stage; None if nobody named one."""
    return _stages[-1] if _stages else None
