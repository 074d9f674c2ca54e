"""Progress of an experiment: on a terminal a table that fills in place, in a log one line for each cell."""

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from bgcl.reproduce import paper
from bgcl.reproduce.cells import Cell
from bgcl.reproduce.experiments import title_of


@contextmanager
def live_table(name: str, cells: Sequence[Cell], *, show: bool = True) -> Iterator["LiveTable"]:
    """Show the progress of an experiment while the context is open.

    Args:
        name: name of the experiment.
        cells: all cells that will be computed.
        show: False shows nothing.
    """
    console = Console(stderr=True)
    table = LiveTable(name, cells, console if show else None)
    if not (show and console.is_terminal):
        yield table
        return
    with Live(console=console, refresh_per_second=4, transient=True, get_renderable=table.render):
        yield table


class LiveTable:
    """The state of each cell: running, computed or failed."""

    def __init__(self, name: str, cells: Sequence[Cell], console: Console | None) -> None:
        self.name, self.cells, self.console = name, cells, console
        self.state: dict[Cell | tuple[Any, ...], Any] = {}

    def begins(self, cell: Cell) -> None:
        """Mark a cell as running."""
        self.state[cell.place()] = "running"

    def ends(self, cell: Cell, result: dict[str, Any] | None, reason: str) -> None:
        """Set the result of a cell, or the reason why it has none."""
        self.state[cell.place()] = reason if result is None else result
        if self.console is not None and not self.console.is_terminal:
            done = sum(not isinstance(state, str) or state != "running" for state in self.state.values())
            text = f"not computed: {reason}" if result is None else f"{_figure(result)}, {result['seconds']:.0f} s"
            self.console.print(f"[{done}/{len(self.cells)}] {cell}: {text}", highlight=False, markup=False)

    def render(self) -> Table:
        """One row for each method or variant, one column for each data set, the paper's numbers in brackets."""
        datasets = list(dict.fromkeys(cell.dataset for cell in self.cells))
        rows = list(dict.fromkeys((cell.method, cell.label) for cell in self.cells))
        table = Table(box=None, pad_edge=False, title=self.name, title_justify="left")
        table.add_column("")
        for dataset in datasets:
            table.add_column(dataset, justify="right")
        for method, label in rows:
            title = title_of(self.name, method)
            name = title if not label else label if self.name == "ablations" else f"{title}, {label}"
            table.add_row(name, *(self._text(method, label, dataset) for dataset in datasets))
        return table

    def _text(self, method: str, label: str, dataset: str) -> str:
        wanted = [c for c in self.cells if (c.method, c.label, c.dataset) == (method, label, dataset)]
        states = [self.state.get(cell.place()) for cell in wanted]
        done = [state for state in states if isinstance(state, dict)]
        failed = [state for state in states if isinstance(state, str) and state != "running"]
        if failed:
            return "[red]missing[/red]"
        if not done:
            return "..." if "running" in states else ""
        text = _mean_figure(done)
        if len(done) < len(wanted):
            text += f" ({len(done)}/{len(wanted)})"
        theirs = None if label else paper.number(self.name, method, dataset)
        return text + (f" [dim]\\[{theirs[0]:g}][/dim]" if theirs else "")


def _figure(result: dict[str, Any]) -> str:
    return _mean_figure([result])


def _mean_figure(found: Sequence[dict[str, Any]]) -> str:
    if "headline" in found[0]:
        return "; ".join(dict.fromkeys(result["headline"] for result in found))
    if "quantiles" in found[0]:
        return f"{statistics.mean(result['quantiles'][0][2] for result in found):.3f} at the noisy nodes"
    return f"{100 * statistics.mean(statistics.mean(result['accuracy']) for result in found):.2f} %"
