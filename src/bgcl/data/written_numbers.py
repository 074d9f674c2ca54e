"""Numbers that are written as text: with decimal commas, separated thousands, or a unit."""

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bgcl.data.spelling import tidy
from bgcl.errors import BGCLError

_UNITS = (
    "EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|€|\\$|£|¥|%|‰|°C|°F|°|kg|mg|lbs?|oz|km|cm|mm|nm|mi|ft|m²|km²|ml|mL|"
    "ms|sec|min|hrs?|kB|KB|MB|GB|TB|Hz|kHz|MHz|GHz|kW|mA"
)
# A sign or a code of a currency, the number, and a unit: a known one, or any short word after a blank.
_PARTS = (
    r"^(?P<sign>[+-]?)(?P<before>(?:[€$£¥]|EUR|USD|GBP|CHF)?) ?"
    "(?P<number>[+-]?[0-9.,][0-9.,'\u2019 ]*(?:[eE][+-]?[0-9]+)?)"
    r"(?P<after>(?: ?(?:%s)|%s)?)$"
)
_ANY_UNIT, _KNOWN_UNIT = _PARTS % (_UNITS, r" [\p{L}/²³]{1,12}"), _PARTS % (_UNITS, r" [ghlmsd]")
_NUMBER = {
    ".": "^[+-]?(?:[1-9][0-9]{0,2}(?:[,'\u2019 ][0-9]{3})+|[0-9]+|[0-9]*[.])(?:[.]?[0-9]*)(?:[eE][+-]?[0-9]+)?$",
    ",": "^[+-]?(?:[1-9][0-9]{0,2}(?:[.'\u2019 ][0-9]{3})+|[0-9]+|[0-9]*,)(?:,?[0-9]*)(?:[eE][+-]?[0-9]+)?$",
}
_DIGIT = r"[0-9]"


@dataclass(frozen=True)
class Writing:
    """How the numbers of a column are written. As text: the mark of decimals, and the unit if there is one."""

    decimal: str
    unit: str = ""

    @classmethod
    def of(cls, text: str) -> "Writing":
        """The writing that `str` made a text of."""
        return cls(text[0], text[1:].strip())

    def __str__(self) -> str:
        return f"{self.decimal} {self.unit}".strip()

    def in_words(self) -> str:
        """What the user should know about it."""
        parts = ["with decimal commas"] if self.decimal == "," else []
        return " and ".join([*parts, *([f"with the unit {self.unit}"] if self.unit else [])])


def find_writing(texts: Any, decimal: str | None, where: str) -> Writing | None:
    """How different texts are written, if all are numbers.

    Args:
        texts: different values of a column.
        decimal: the mark of decimals that the user names, or None.
        where: table and column, the beginning of an error.

    Raises:
        BGCLError: if it is not clear what the numbers are: 1,234 may be 1234, and 3 kg is not 3 g.
    """
    plain = tidy(texts)
    parts = pc.extract_regex(plain, _ANY_UNIT)
    if parts.null_count or not len(parts):
        return None
    numbers = _number(parts)
    units = _units(parts)
    if len(units) > 1 and not pc.all(look_like_numbers(plain)).as_py():
        return None  # such as 12 Oak and 14 Elm
    if not pc.all(pc.match_substring_regex(numbers, _DIGIT)).as_py():
        return None
    fits = {d for d in _NUMBER if pc.all(pc.match_substring_regex(numbers, _NUMBER[d])).as_py()}
    fits &= {decimal} if decimal else fits
    if not fits:
        return None
    if len(fits) == 2 and pc.any(pc.match_substring(numbers, ",")).as_py():
        example = pc.filter(plain, pc.match_substring(numbers, ","))[0].as_py()
        raise BGCLError(
            f"{where}: is {example!r} a number with a decimal comma, or with thousands? Use --decimal , or --decimal . "
            "to say so."
        )
    if len(units) > 1:
        raise BGCLError(
            f"{where}: the numbers have several units, {units[0]} and {units[1]}. Write all in one unit, or read the "
            "column with --categorical, --text or --ignore."
        )
    return Writing("." if "." in fits else ",", units[0] if units else "")


def look_like_numbers(texts: Any) -> Any:
    """For each text whether it is a number, perhaps with a known unit."""
    return pc.match_substring_regex(tidy(texts), _KNOWN_UNIT)


def _number(parts: Any) -> Any:
    joined = pc.binary_join_element_wise(pc.struct_field(parts, "sign"), pc.struct_field(parts, "number"), "")
    return pc.utf8_trim_whitespace(joined)


def _units(parts: Any) -> list[str]:
    """The different units. `star` and `stars` are one."""
    after = pc.utf8_trim_whitespace(pc.struct_field(parts, "after"))
    found = pc.unique(pc.binary_join_element_wise(pc.struct_field(parts, "before"), after, "")).to_pylist()
    one = {unit if len(unit) < 4 else unit.removesuffix("s"): unit for unit in found if unit}
    return list(one.values())


def parse(texts: Any, writing: Writing) -> Any:
    """Arrow texts as float64, null where a text is missing or is not a number of this writing."""
    parts = pc.extract_regex(tidy(texts), _ANY_UNIT)
    numbers = _number(parts)
    numbers = pc.if_else(pc.match_substring_regex(numbers, _NUMBER[writing.decimal]), numbers, None)
    numbers = pc.replace_substring_regex(numbers, f"['\u2019 {'.' if writing.decimal == ',' else ','}]", "")
    numbers = pc.replace_substring(numbers, ",", ".") if writing.decimal == "," else numbers
    numbers = pc.replace_substring_regex(numbers, r"^\+", "")
    return pc.if_else(pc.match_substring_regex(numbers, _DIGIT), numbers, None).cast(pa.float64())


_ONE = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_LIST = re.compile(rf"\s*{_ONE}(?:\s*[,;]\s*{_ONE}|\s+{_ONE})*,?\s*")
_BRACKETED = rf"^\s*[\[(](?:{_LIST.pattern})?[\])]\s*$"
_BARE = rf"^\s*{_ONE}(?:[;|]\s*{_ONE}|\s+{_ONE})+\s*$"


def are_lists(texts: Any) -> Any:
    """For each text whether it is a list of numbers: `[0.12, -0.3]`, or `0.12 -0.3` with a fraction."""
    bare = pc.and_(pc.match_substring_regex(texts, _BARE), pc.match_substring_regex(texts, r"[0-9]\.[0-9]"))
    return pc.or_(pc.match_substring_regex(texts, _BRACKETED), bare)


def parse_lists(texts: Any) -> Any:
    """Texts that are lists of numbers as Arrow lists of float64, null where a text is missing."""
    inner = pc.utf8_trim(texts, "[]() \t\r\n,")
    spaced = pc.replace_substring_regex(inner, r"[\s,;|]+", " ")
    lists = pc.split_pattern(pc.if_else(pc.equal(spaced, ""), None, spaced), " ")
    return lists.cast(pa.list_(pa.float64()))
