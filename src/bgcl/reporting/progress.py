"""The progress of a training on one line: epoch, loss, expected drop rates, time left."""

import html
import importlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar

from bgcl.arguments import shown
from bgcl.augmentation.drop_rates import RatePosterior
from bgcl.errors import BGCLError
from bgcl.model.training import Record

log = logging.getLogger("bgcl")

Reporter = Callable[[Record], None]  # called with the record of each epoch
Progress = bool | Reporter | Sequence[bool | Reporter]


def describe_rates(rates: dict[str, list[RatePosterior]]) -> str:
    """The expected drop rate of each mask by view, such as `o 0.52 0.31, t 0.55 0.30`."""
    return ", ".join(
        f"{view} {' '.join(f'{rate.average:.2f}' for rate in masks)}" for view, masks in rates.items()
    )  # fmt: skip


def shows_line(progress: Progress) -> bool:
    """Whether a live line is wanted."""
    return any(one is True for one in (progress if isinstance(progress, Sequence) else [progress]))


def check_progress(progress: object) -> None:
    """Raise an error unless everything in `progress` is True, False or a function."""
    wanted = progress if isinstance(progress, list | tuple) else [progress]
    for one in wanted:
        if not (one is None or isinstance(one, bool) or callable(one)):
            raise BGCLError(
                f"'progress' must be True, False, a function, or a list of these. Got {shown(one)} instead."
            )


@contextmanager
def reporter(progress: Progress, epochs: int, start: int) -> Iterator[Reporter]:
    """One function that logs an epoch and reports it to everything in `progress`.

    Args:
        progress: True for a live line, False for nothing, a function of a `Record`, or a list of these.
        epochs: number of epochs in all.
        start: number of epochs that were trained before.
    """
    wanted = progress if isinstance(progress, Sequence) else [progress]
    with ExitStack() as stack:
        reporters = [one if callable(one) else stack.enter_context(live_line(epochs, start)) for one in wanted if one]

        def report(record: Record) -> None:
            log.debug("epoch %d of %d: loss %.4f", record.epoch, epochs, record.loss)
            for one in reporters:
                one(record)

        yield report


@contextmanager
def live_line(epochs: int, start: int) -> Iterator[Reporter]:
    """A function that shows an epoch: on one line that is updated, or on about ten lines if the output is a file."""
    console = Console(stderr=True)
    if console.is_jupyter:
        yield _Notebook(epochs)
        return
    if not console.is_terminal:
        yield _Log(epochs, console)
        return
    columns = (
        TextColumn("epoch"), MofNCompleteColumn(), BarColumn(bar_width=24),
        TextColumn("loss {task.fields[loss]}{task.fields[more]}"),
        TextColumn("drop rates {task.fields[rates]}"), TimeRemainingColumn(), TextColumn("left"),
    )  # fmt: skip
    with ProgressBar(*columns, console=console) as bar:
        task = bar.add_task("", total=epochs, completed=start, loss="-", more="", rates="-")

        def report(record: Record) -> None:
            bar.update(
                task, completed=record.epoch, loss=f"{record.loss:.3f}", more=_recognized(record),
                rates=describe_rates(record.rates),
            )  # fmt: skip

        yield report


def _recognized(record: Record) -> str:
    """How well nodes are recognized, which decides when training ends."""
    return "" if record.recognized is None else f", recognized {record.recognized:.3f}"


class _Notebook:
    """One output of a notebook cell that is updated a few times per second. It needs no widgets."""

    def __init__(self, epochs: int) -> None:
        notebook: Any = importlib.import_module("IPython.display")  # every notebook has it, and nothing else needs it
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
                f"loss {record.loss:.3f}{_recognized(record)}, drop rates {rates}"
            )
        )


class _Log:
    """About ten lines in all, for output that is not a terminal."""

    def __init__(self, epochs: int, console: Console) -> None:
        self.epochs, self.console, self.seconds = epochs, console, 0.0

    def __call__(self, record: Record) -> None:
        self.seconds += record.seconds
        if record.epoch % max(self.epochs // 10, 1) == 0 or record.epoch == self.epochs:
            self.console.print(
                f"epoch {record.epoch}/{self.epochs}  loss {record.loss:.3f}{_recognized(record)}  "
                f"drop rates {describe_rates(record.rates)}  {self.seconds:.0f} s",
                highlight=False,
                soft_wrap=True,
            )
