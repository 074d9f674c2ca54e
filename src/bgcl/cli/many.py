"""Commands in several processes: `--processes`, and processes that torchrun has started."""

import sys

from bgcl.errors import BGCLError
from bgcl.processes.joining import started_together
from bgcl.processes.launch import REFUSED, launch

MOST = 1024  # processes on one machine


def in_processes(processes: int | None) -> int | None:
    """Run this command in several processes, if that is asked for, and return its exit code.

    None: this process is one of several, or the only one. It has to do the work.
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
    return launch(run_command, sys.argv[1:], processes) if processes > together else None


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
