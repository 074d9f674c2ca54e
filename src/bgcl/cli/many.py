"""Commands in several processes: `--processes`, and processes that torchrun has started."""

import contextlib
import os
import sys
from collections.abc import Iterator

import typer

from bgcl.errors import BGCLError
from bgcl.processes.joining import joined, started_together
from bgcl.processes.launch import INTERRUPTED, REFUSED, launch

MOST = 1024  # processes on one machine


def in_processes(processes: int | None, *, again: bool = True) -> int | None:
    """Run this command in several processes, if that is asked for, and return its exit code.

    None: this process is one of several, or the only one. It has to do the work.

    Args:
        processes: how many; None: as many as there are.
        again: whether all start again if one dies.
    """
    if processes is None:
        return None
    if not 1 <= processes <= MOST:
        raise BGCLError(f"--processes must be a whole number between 1 and {MOST:,}. Got {processes} instead.")
    together = started_together()
    if together > 1 and together != processes:
        raise BGCLError(
            f"torchrun has started {together} processes, so --processes {processes} does not fit: leave it out."
        )
    if processes == together:
        return None
    code = launch(run_command, sys.argv[1:], processes, again=again)
    if code == INTERRUPTED:  # the main process has said so
        raise SystemExit(code)
    return code


@contextlib.contextmanager
def sharing(processes: int | None) -> Iterator[None]:
    """Work as one of several processes that share the draws of a command. All but the main process are silent.

    Raises:
        typer.Exit: the work has been done in other processes, which this one has started.
    """
    if (code := in_processes(processes, again=False)) is not None:
        raise typer.Exit(code)
    with joined() as team, contextlib.ExitStack() as stack:
        if not team.is_main:
            nothing = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(nothing))
            stack.enter_context(contextlib.redirect_stderr(nothing))
        yield


def leave_to_main() -> None:
    """End this process without error, unless it is the main one, which prints and writes."""
    from bgcl.processes.team import Team

    if not Team.current().is_main:
        raise typer.Exit(0)


def run_command(arguments: list[str]) -> int:
    """Run a command in this process, and return its exit code. Any end but success or bad input ends the process."""
    from bgcl.cli import main

    sys.argv = ["bgcl", *arguments]
    try:
        main()
    except SystemExit as end:
        if end.code not in (None, 0, REFUSED):
            raise
        return REFUSED if end.code else 0
    return 0
