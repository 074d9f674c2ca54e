"""Errors that users can fix. The message is one line: what is wrong, and what to do."""

import contextlib
import difflib
import os
from collections.abc import Iterable, Iterator


class BGCLError(ValueError):
    """Invalid input. The command line prints only the message, and exits with code 2.

    >>> import bgcl
    >>> bgcl.Settings(tua=0.5)
    Traceback (most recent call last):
    bgcl.errors.BGCLError: Unknown setting 'tua'. Did you mean tau?
    """


class CannotWriteError(BGCLError):
    """A file or a folder cannot be written: there is no room or no permission, or another process has the folder."""


class InterruptedRunError(Exception):
    """The user stopped a run. The message says what was saved and how to continue. The exit code is 130."""


class SaidElsewhereError(BGCLError):
    """An error of several processes, which the main process prints."""


class LostProcessError(Exception):
    """Another process of the same training has ended. The exit code is 1."""


def nearest(word: object, known: Iterable[str]) -> str:
    """Suggest the known words that are most similar to a misspelled one, or list all of them.

    >>> nearest("coar", ["cora", "citeseer"])
    'Did you mean cora?'
    """
    known = list(known)
    close = difflib.get_close_matches(str(word), known, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(known)}."


@contextlib.contextmanager
def one_line(path: str | os.PathLike[str], remedy: str = "Train again, or restore the file.") -> Iterator[None]:
    """The border of a reader: whatever goes wrong while it reads a file becomes one line that names the file.

    >>> with one_line("graph.json"):
    ...     [][0]
    Traceback (most recent call last):
    bgcl.errors.BGCLError: graph.json is damaged (list index out of range). Train again, or restore the file.
    """
    try:
        yield
    except (BGCLError, MemoryError):
        raise
    except OSError as error:
        raise BGCLError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # a damaged file can make any reader fail in any way
        why = " ".join(str(error).split()) or type(error).__name__
        raise BGCLError(f"{path} is damaged ({why[:_LONGEST]}). {remedy}") from error


_LONGEST = 200  # letters of another library's error
