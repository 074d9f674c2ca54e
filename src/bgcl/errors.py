"""The one kind of error that is the user's to fix: its text is one line that says what is wrong and what to do."""

import difflib
from collections.abc import Iterable


class BGCLError(ValueError):
    """Bad input. The command line prints the text alone and exits with code 2.

    >>> import bgcl
    >>> bgcl.BGCL(tua=0.5)
    Traceback (most recent call last):
    bgcl.errors.BGCLError: Unknown setting 'tua'. Did you mean tau?
    """


class InterruptedRunError(Exception):
    """The user stopped a run. The text says what was kept and how to go on; the exit code is 130."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A clause that names what `word` may have meant, or else all that is known.

    >>> nearest("coar", ["cora", "citeseer"])
    'Did you mean cora?'
    """
    known = list(known)
    close = difflib.get_close_matches(word, known, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(known)}."
