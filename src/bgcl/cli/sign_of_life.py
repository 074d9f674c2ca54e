"""A line on the terminal while a command works and prints nothing."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TextIO

from bgcl.progress import current_stage

SILENCE = 0.8  # seconds without output after which the line appears
STEP = 0.4  # seconds between two versions of the line
ERASE = "\r\x1b[2K"


class SignOfLife:
    """Watches standard output and standard error. When both are silent, a line says what is being done, and since when.

    The line is erased before anything else is printed, and at the end. Without a terminal, nothing is watched.

    Args:
        command: the name of the command.
        wanted: False if the user wants no progress.
    """

    def __init__(self, command: str, *, wanted: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self.command, self.wanted, self.clock = command, wanted, clock
        self.lock, self.ended, self.shown = threading.RLock(), threading.Event(), False
        self.last = self.began = clock()
        self._stage: str | None = None
        self.begun = False

    def __enter__(self) -> Self:
        self.out, self.err = sys.stdout, sys.stderr
        self.wanted = self.wanted and self.err.isatty()
        if self.wanted:
            sys.stdout, sys.stderr = _Watched(self.out, self), _Watched(self.err, self)
            self.thread = threading.Thread(target=self._run, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.wanted:
            self.ended.set()
            self.thread.join()
            self.erase()
            sys.stdout, sys.stderr = self.out, self.err

    def erase(self) -> None:
        """Make room for what is printed now."""
        with self.lock:
            self.last = self.clock()
            if self.shown:
                self.err.write(ERASE)
                self.err.flush()
                self.shown = False

    def tick(self) -> None:
        """Show the line, if nothing was printed for a while."""
        with self.lock:
            # Before the first stage, the command imports what it needs.
            now, stage = self.clock(), current_stage() or ("working" if self.begun else "starting")
            self.begun = self.begun or current_stage() is not None
            if stage != self._stage:
                self._stage, self.began = stage, now if self._stage else self.last
            if self.shown or now - self.last >= SILENCE:
                self.err.write(f"{ERASE}bgcl {self.command}: {stage}, {now - max(self.began, self.last):.0f} s")
                self.err.flush()
                self.shown = True

    def _run(self) -> None:
        while not self.ended.wait(STEP):
            self.tick()


class _Watched:
    """A stream that erases the line before it prints."""

    def __init__(self, stream: TextIO, sign: SignOfLife) -> None:
        self._stream, self._sign = stream, sign

    def write(self, text: str) -> int:
        with self._sign.lock:
            self._sign.erase()
            return self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
