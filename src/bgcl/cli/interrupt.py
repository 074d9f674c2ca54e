"""Ctrl-C, SIGTERM and SIGHUP: a command ends at once, but never in the middle of an import.

An exception inside the import of torch or NumPy leaves them half made. They answer with errors of their own, or go on.
So a signal that comes during an import waits until the import is done.
"""

import signal
from types import FrameType

WAIT = 0.05  # seconds until a signal that came during an import is looked at again
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")

_asked = False  # whether a signal came


def listen() -> None:
    """Turn signals into `KeyboardInterrupt`. A signal that the parent told to ignore, as nohup does, stays ignored."""
    global _asked  # a signal handler has no other way to hand on what it saw
    _asked = False
    for name in SIGNALS:
        number = getattr(signal, name)
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    signal.signal(signal.SIGALRM, _interrupt)


def stop() -> None:
    """Leave signals to the system again, which ends the process without a word: the command has said all it had to."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for name in (*SIGNALS, "SIGALRM"):
        if signal.getsignal(getattr(signal, name)) == _interrupt:
            signal.signal(getattr(signal, name), signal.SIG_DFL)


def was_asked() -> bool:
    """Whether a signal came. An error after it is the work of the signal, whatever its type is."""
    return _asked


def _interrupt(_: int, frame: FrameType | None) -> None:
    global _asked
    _asked = True
    if _is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, WAIT)
        return
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
