"""Errors that users can fix. The message is one line: what is wrong, and what to do."""

import difflib
from collections.abc import Iterable


class BGCLError(ValueError):
    """Invalid input. The command line prints only the message, and exits with code 2.

    >>> import bgcl
    >>> bgcl.Settings(tua=0.5)
    Traceback (most recent call last):
    bgcl.errors.BGCLError: Unknown setting 'tua'. Did you mean tau?
    """


class InterruptedRunError(Exception):
    """The user stopped a run. The message says what was saved and how to continue. The exit code is 130."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggest the known words that are most similar to a misspelled one, or list all of them.

    >>> nearest("coar", ["cora", "citeseer"])
    'Did you mean cora?'
    """
    known = list(known)
    close = difflib.get_close_matches(word, known, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(known)}."
