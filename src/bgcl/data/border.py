"""The border of reading: whatever goes wrong while a file is read ends in one line that names the file and the place.

Readers check what they read, and raise a `BGCLError` that says what is wrong. For everything else there is `readable`:
the libraries under the readers raise errors of any kind on damaged files, and warn before that.
"""

import contextlib
import os
import warnings
from collections.abc import Iterator

from bgcl.errors import BGCLError

DAMAGED = "Is it damaged, or does its ending name another format?"
_LONGEST, _LONGEST_LINE = 160, 2000  # characters of the reason, and of the whole error


@contextlib.contextmanager
def readable(where: object, remedy: str = DAMAGED) -> Iterator[None]:
    """Turn every error in the block into a `BGCLError` of one line. Warnings of libraries are not shown.

    Blocks can be nested. The innermost one names the place, because a `BGCLError` passes through the others. So does
    Ctrl-C.

    Args:
        where: the file, or the file with the row or the column: the beginning of the error.
        remedy: what the user can do, the end of the error.

    Raises:
        BGCLError: if anything goes wrong in the block.

    >>> with readable("nodes.csv", "Correct it."):
    ...     int("old")
    Traceback (most recent call last):
    bgcl.errors.BGCLError: nodes.csv cannot be read (invalid literal for int() with base 10: 'old'). Correct it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except BGCLError as error:
        text = _one_line(str(error))  # a name of a column may have several lines
        if text != str(error):
            raise type(error)(text) from error
        raise
    except FileNotFoundError as error:
        raise BGCLError(f"There is no file {_name(error, where)}.") from error
    except OSError as error:
        if error.errno is None:  # not from the system: a library has found damage
            raise _unreadable(where, error, remedy) from error
        raise BGCLError(f"Cannot read {_name(error, where)}: {_refusal(error)}") from error
    except MemoryError as error:
        raise BGCLError(f"{where} cannot be read: it needs more memory than is free. {remedy}") from error
    except RecursionError as error:
        raise BGCLError(f"{where} cannot be read: its parts are nested too deeply. {remedy}") from error
    except Exception as error:
        raise _unreadable(where, error, remedy) from error


def reason(error: BaseException) -> str:
    """The message of an error in one line. An error without a sentence of its own is named by its type.

    >>> reason(KeyError("x")), reason(ValueError("bad\\nvalue")), reason(EOFError())
    ("KeyError: 'x'", 'bad value', 'EOFError')
    """
    text = " ".join(str(error).split())
    if isinstance(error, LookupError | AttributeError | TypeError) or not text:
        text = f"{type(error).__name__}: {text}".removesuffix(": ")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _one_line(text: str) -> str:
    line = " ".join(text.splitlines())
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"


def _unreadable(where: object, error: Exception, remedy: str) -> BGCLError:
    return BGCLError(_one_line(f"{where} cannot be read ({reason(error).removesuffix('.')}). {remedy}"))


def _name(error: OSError, where: object) -> object:
    return os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else where


def _refusal(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "you have no permission. Change its permissions, or ask its owner."
    return f"{os.strerror(error.errno or 0)}."
