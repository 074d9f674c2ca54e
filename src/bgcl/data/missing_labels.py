"""Which labels mean that a node has no label, and which spellings are one class."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from bgcl.data.spelling import tidy
from bgcl.errors import BGCLError

# An empty cell always means that there is no label.
USUAL = ("NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None")
WORDS = frozenset({
    "unknown", "?", "??", "???", "tbd", "tba", "tbc", "-", "--", "unlabeled", "unlabelled", "not labeled", "undefined",
    "not available", "not assigned", "unassigned", "not specified", "unspecified", "not determined", "missing", "n.a.",
    "n.a", "<na>", "nat", "no label", "to do", "todo", "unclear", "not known",
})  # fmt: skip
NUMBERS = (-1, -9, -99, -999)
NINES = (9, 99, 999, 9999)  # codes of surveys for "no answer", which may be classes too


@dataclass
class LabelRules:
    """How labels are read.

    Attributes:
        missing: the labels that mean "no label"; None: inferred.
        task: "classes" or "numbers"; None: inferred.
        decimal: the mark of decimals in numbers; None: inferred.
        exact: take labels letter by letter, with blanks, upper and lower case.
        as_written: the labels are from a CSV, where NA and the like mean "no label".
        guesses: what was inferred and could be wrong; lines are added.
        inferred: the labels that were inferred to mean "no label"; labels are added.
        seen: the labels of `missing` that some node has; labels are added.
    """

    missing: tuple[str, ...] | None = None
    task: str | None = None
    exact: bool = False
    decimal: str | None = None
    as_written: bool = True
    guesses: list[str] = field(default_factory=list)
    inferred: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)

    def settled(self) -> tuple[str, ...]:
        """The labels that mean "no label", after labels were read."""
        return self.missing if self.missing is not None else (*USUAL, *sorted(self.inferred - {*USUAL}))


def spell(
    values: Sequence[str], counts: Sequence[int], known: Iterable[str], rules: LabelRules, where: str
) -> list[str | None]:
    """The name of the class for each different label, None for no label.

    Labels that differ only in blanks around them or in upper and lower case are one class. It has the name that it had
    at training, or that most nodes have.
    """
    names = list(values) if rules.exact else tidy(pa.array(values, type=pa.string())).to_pylist()
    gone = _missing(names, rules, where)
    found: list[str | None] = [None if name in gone or not name.strip() else name for name in names]
    if rules.exact:
        return found
    weight: Counter[str] = Counter()
    for name, count in zip(found, counts, strict=True):
        if name is not None:
            weight[name] += count
    for name in known:
        weight[name] += sum(counts) + 1
    spelled: dict[str, str] = {}
    for name, _ in sorted(weight.items(), key=lambda item: (-item[1], item[0])):
        spelled.setdefault(name.casefold(), name)
    merged = [name for name in weight if spelled[name.casefold()] != name]
    if merged:
        rules.guesses.append(
            f"the labels '{merged[0]}' and '{spelled[merged[0].casefold()]}' are one class (--exact if not)"
        )
    return [name if name is None else spelled[name.casefold()] for name in found]


def _missing(names: Sequence[str], rules: LabelRules, where: str) -> set[str]:
    """The labels that mean that a node has no label."""
    if rules.missing is not None:
        rules.seen |= {*rules.missing} & {*names}
        return {*rules.missing}
    usual = {name for name in names if rules.as_written and name in USUAL}
    words = {name for name in names if name.casefold() in WORDS}
    rest = {*names} - usual - words - {""}
    if "NA" in usual and len(rest) > 1 and all(re.fullmatch("[A-Z]{2}", name) for name in rest):
        raise BGCLError(
            f"{where}: is 'NA' a class, like {min(rest)!r}, or does it mean that there is no label? Use "
            "--missing-label '' if it is a class, or --missing-label NA."
        )
    if words and len({name.casefold() for name in rest}) < 2 and rest:
        word = min(words)
        raise BGCLError(
            f"{where}: is {word!r} a class, like {min(rest)!r}, or does it mean that there is no label? Use "
            f"--missing-label '' if it is a class, or --missing-label '{word}'."
        )
    if usual or words:
        shown = ", ".join(sorted(repr(name) for name in usual | words))
        rules.guesses.append(f"{shown} in the labels means no label (--missing-label '' if it is a class)")
    rules.inferred |= usual | words
    if len(rest) > 2 and (none := [name for name in rest if name.casefold() == "none"]):
        rules.guesses.append(f"the label {none[0]!r} is a class (--missing-label {none[0]} if it means no label)")
    return usual | words


def missing_number(values: Iterable[int], rules: LabelRules, where: str) -> set[int]:
    """The whole numbers that mean that a node has no label: -1, if the others are not negative."""
    numbers = {*values}
    if rules.missing is not None:
        found = {number for number in numbers if str(number) in rules.missing}
        rules.seen |= {str(number) for number in found}
        return found
    negative, rest = {n for n in numbers if n < 0}, {n for n in numbers if n >= 0}
    if not negative and len(numbers) > 2 and max(numbers) in NINES and 2 * sorted(numbers)[-2] < max(numbers):
        code = max(numbers)
        rules.guesses.append(f"{code} in the labels is a class (--missing-label {code} if it means no label)")
    if len(negative) != 1 or not negative <= {*NUMBERS} or not rest or (negative == {-1} and rest == {1}):
        return set()
    code = next(iter(negative))
    if code == -1 and rest <= {0, 1}:
        raise BGCLError(
            f"{where}: is -1 a class, like {max(rest)}, or does it mean that there is no label? Use --missing-label '' "
            "if it is a class, or --missing-label=-1."
        )
    rules.guesses.append(f"{code} in the labels means no label (--missing-label '' if it is a class)")
    rules.inferred.add(str(code))
    return negative
