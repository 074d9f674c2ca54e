"""A live line for a training under way: epoch, loss, expected drop rates, time left."""

import html
import importlib
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn, track

from bgcl.model.training import Record

T = TypeVar("T")


def describe_rates(rates: dict[str, list[dict[str, object]]]) -> str:
    """The expected drop rate of each view's masks, such as `o 0.52 0.31, t 0.55 0.30`."""
    means = {view: " ".join(f"{average(mask['mean']):.2f}" for mask in masks) for view, masks in rates.items()}
    return ", ".join(f"{view} {mean}" for view, mean in means.items())


def average(rates: object) -> float:
    """The mean of rates `(layers, blocks)`."""
    rows: list[list[float]] = rates  # type: ignore[assignment]
    flat = [rate for row in rows for rate in row]
    return sum(flat) / len(flat)


@contextmanager
def live(epochs: int, start: int) -> Iterator["_Shown"]:
    """On a terminal, and in a notebook, one line that changes in place; elsewhere, in a log, about ten lines in all."""
    console = Console(stderr=True)
    if console.is_jupyter:
        yield _Notebook(epochs)
        return
    if not console.is_terminal:
        yield _Line(epochs, None, console)
        return
    columns = (
        TextColumn("epoch"), MofNCompleteColumn(), BarColumn(bar_width=24), TextColumn("loss {task.fields[loss]}"),
        TextColumn("drop rates {task.fields[rates]}"), TimeRemainingColumn(), TextColumn("left"),
    )  # fmt: skip
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=epochs, completed=start, loss="-", rates="-")
        yield _Line(epochs, (bar, task), console)


def counted(stream: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Hand a stream on, with a bar on a terminal that shows how far it is."""
    console = Console(stderr=True)
    yield from track(stream, what, total, console=console, transient=True, disable=not console.is_terminal)


class _Shown(Protocol):
    def __call__(self, record: Record) -> None: ...


class _Notebook:
    """One output of a notebook's cell, changed in place a few times a second. Needs no widgets."""

    def __init__(self, epochs: int) -> None:
        notebook: Any = importlib.import_module("IPython.display")  # a notebook has it; nothing else needs it
        self.epochs, self.html, self.last = epochs, notebook.HTML, float("-inf")
        self.output = notebook.display(notebook.HTML("epoch 0"), display_id=True)

    def __call__(self, record: Record) -> None:
        now = time.monotonic()
        if self.output is None or (now - self.last < 0.25 and record.epoch < self.epochs):
            return
        self.last = now
        rates = html.escape(describe_rates(record.rates))
        self.output.update(
            self.html(
                f'<progress value="{record.epoch}" max="{self.epochs}"></progress> epoch {record.epoch}/{self.epochs}, '
                f"loss {record.loss:.3f}, drop rates {rates}"
            )
        )


class _Line:
    def __init__(self, epochs: int, bar: tuple[Progress, int] | None, console: Console) -> None:
        self.epochs, self.bar, self.console = epochs, bar, console
        self.seconds = 0.0

    def __call__(self, record: Record) -> None:
        self.seconds += record.seconds
        rates = describe_rates(record.rates)
        if self.bar is not None:
            bar, task = self.bar
            bar.update(task, completed=record.epoch, loss=f"{record.loss:.3f}", rates=rates)  # type: ignore[arg-type]
        elif record.epoch % max(self.epochs // 10, 1) == 0 or record.epoch == self.epochs:
            self.console.print(
                f"epoch {record.epoch}/{self.epochs}  loss {record.loss:.3f}  drop rates {rates}  {self.seconds:.0f} s",
                highlight=False,
            )
