"""Texts that mean the same but are written differently: blanks that nobody sees, upper and lower case."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_SPACES = "[\u00a0\u2007\u202f\u3000]"  # no-break and wide blanks
_INVISIBLE = "[\u200b\u2060\ufeff]"
_UNTIDY = f"^\\s|\\s$|{_SPACES}|{_INVISIBLE}"


def tidy(texts: Any) -> Any:
    """Arrow texts without blanks around them, without invisible letters, and with usual blanks inside."""
    plain = pc.replace_substring_regex(pc.replace_substring_regex(texts, _INVISIBLE, ""), _SPACES, " ")
    return pc.utf8_trim_whitespace(plain)


def comparable(ids: Any) -> Any:
    """Ids of any type as Arrow texts that are equal if the ids may be: without blanks, and 24 for 24.0."""
    return pc.replace_substring_regex(tidy(ids.cast(pa.string())), r"^(-?[0-9]+)\.0+$", r"\1")


def is_untidy(texts: Any) -> bool:
    """Whether `tidy` changes one of the texts."""
    return bool(pc.any(pc.match_substring_regex(texts, _UNTIDY)).as_py())


def count_different(columns: Sequence[Any]) -> int:
    """The number of different values in some Arrow columns together."""
    chunks = [chunk for c in columns for chunk in (c.chunks if isinstance(c, pa.ChunkedArray) else [c])]
    return len(pc.unique(pa.chunked_array(chunks)))
