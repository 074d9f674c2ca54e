"""Dates that are written as text with the day, the month and the year in any order."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.spelling import tidy
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

_DATE = (
    r"^(?P<a>[0-9]{1,2}|[0-9]{4})(?P<mark>[/.-])(?P<b>[0-9]{1,2})[/.-](?P<c>[0-9]{4}|[0-9]{1,2})"
    r"(?:[ T,]+(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?)?$"
)
ORDERS = {"dmy": "abc", "mdy": "bac", "ymd": "cba"}  # where the day, the month and the year are
ORDERS_IN_WORDS = {"dmy": "the day first", "mdy": "the month first", "ymd": "the year first"}
_TIME = {"hour": 3600, "minute": 60, "second": 1}
_CENTURY = 70  # a year of two digits from here on is in the 20th century


_MONTHS = (
    "jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?", "aug(?:ust)?",
    "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?",
)  # fmt: skip
_DAY = "([0-9]{1,2})(?:st|nd|rd|th)?"


def _with_numbers(texts: Any) -> Any:
    """Texts without blanks around them, and with numbers for English months: 3 Jan 2020 is 2020-01-03."""
    found = tidy(texts)
    if not pc.any(pc.match_substring_regex(found, rf"(?i)\b(?:{'|'.join(_MONTHS)})\b")).as_py():
        return found
    for number, name in enumerate(_MONTHS, start=1):
        for pattern in (rf"^{_DAY}[ .-]+{name}[.,]?[ -]+([0-9]{{4}})", rf"^{name}[.]?[ -]+{_DAY},?[ -]+([0-9]{{4}})"):
            found = pc.replace_substring_regex(found, f"(?i){pattern}", rf"\2-{number:02}-\1")
    return found


def find_order(texts: Any, order: str | None, where: str) -> str | None:
    """The order of day, month and year in different texts, such as "dmy", if all of them are dates.

    Raises:
        BGCLError: if several orders are possible, and the user names none.
    """
    parts = pc.extract_regex(_with_numbers(texts), _DATE)
    if parts.null_count or not len(parts):
        return None
    fits = [each for each in ([order] if order else ORDERS) if not np.isnan(_seconds(parts, each)).any()]
    if len(fits) > 1 and set(pc.struct_field(parts, "mark").to_pylist()) == {"."} and "dmy" in fits:
        return "dmy"  # nobody writes the month first with points
    if len(fits) > 1:
        raise BGCLError(
            f"{where}: is the first number of {texts[0].as_py()!r} the day, the month or the year? Use "
            f"{' or '.join(f'--dates {each}' for each in fits)} to say so."
        )
    return fits[0] if fits else None


def look_like_dates(texts: Any) -> Any:
    """For each text whether it is written like a date."""
    return pc.match_substring_regex(_with_numbers(texts), _DATE)


def parse(texts: Any, order: str) -> Any:
    """Arrow texts as seconds since 1970, null where a text is missing or is not a date of this order."""
    parts = pc.extract_regex(_with_numbers(texts), _DATE)
    return pa.array(_seconds(parts, order), from_pandas=True)


def _seconds(parts: Any, order: str) -> Array:
    """Seconds since 1970 `(N,)`, NaN where there is no such date."""
    day, month, year = (_field(parts, name) for name in ORDERS[order])
    digits = pc.fill_null(pc.utf8_length(pc.struct_field(parts, ORDERS[order][2])), 0).to_numpy(zero_copy_only=False)
    slashes = pc.fill_null(pc.equal(pc.struct_field(parts, "mark"), "/"), False).to_numpy(zero_copy_only=False)
    short = (digits == 2) & slashes  # 1.2.10 is rather a version than a day
    year = np.where(short, year + np.where(year < _CENTURY, 2000, 1900), year)
    known = ~np.isnan(day + month + year) & (short | (digits == 4)) & (month >= 1) & (month <= 12) & (day >= 1)
    known &= day <= 31
    safe = np.where(known, year, 1970), np.where(known, month, 1), np.where(known, day, 1)
    months = (safe[0] - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (safe[1] - 1).astype(int)
    days = months.astype("datetime64[D]") + (safe[2] - 1).astype(int)
    known &= days.astype("datetime64[M]") == months  # there is no 31 February
    time = sum(np.nan_to_num(_field(parts, name)) * size for name, size in _TIME.items())
    return np.asarray(np.where(known, days.astype("datetime64[s]").astype(np.int64) + time, np.nan))


def _field(parts: Any, name: str) -> Array:
    text = pc.struct_field(parts, name)
    numbers = pc.if_else(pc.equal(text, ""), None, text).cast(pa.float64())
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
