"""Results on the terminal: as tables, or as JSON."""

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from bgcl.augmentation.drop_rates import RatePosterior
    from bgcl.estimator import BGCL


NAMES = ("id", "node", "label", "predicted")  # columns whose numbers are names
JOINERS = "\u200c\u200d"  # without width, but part of how Persian words and some emoji are written


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print rows with equal keys as a table, with numbers aligned to the right.

    Text is printed as it is, whatever it contains. In a pipe or a file, lines are as long as they have to be.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name, value in rows[0].items():
        table.add_column(Text(visible(name)), justify="left" if _is_words(value) else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_text(name, value)) for name, value in row.items()))
    print_rich(table)


def print_rich(table: "Table") -> None:
    """Print a table of rich. In a pipe or a file, lines are as long as they have to be, without blanks at their end."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if console.is_terminal:
        console.print(table)
        return
    wide = Console(highlight=False, markup=False, width=1_000_000)
    with wide.capture() as captured:
        wide.print(table)
    for line in captured.get().removesuffix("\n").split("\n"):
        print(line.rstrip(" "))


def _is_words(value: Any) -> bool:
    """Whether a value is a text, and not a number that was written before."""
    return isinstance(value, str) and not re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?", value)


def _text(name: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    counts = isinstance(value, int) and not isinstance(value, bool) and name not in NAMES
    return f"{value:,}" if counts else visible(str(value))


def visible(text: str) -> str:
    r"""A text whose control characters are escaped, and characters that nobody sees.

    It cannot move the cursor, begin a line or change the direction, and two different texts do not look the same.

    >>> visible("a\tb \x1b[31mred")
    'a\\tb \\x1b[31mred'
    """
    return "".join(c.encode("unicode_escape").decode("ascii") if _moves(c) else c for c in text)


def _moves(character: str) -> bool:
    category = unicodedata.category(character)
    return category in ("Cc", "Cs", "Zl", "Zp") or (category == "Cf" and character not in JOINERS)


def print_all_rates(model: "BGCL") -> None:
    """Print the drop rates of training and, if they have rates of their own, those of draws."""
    relations = model.graph_.relations
    print_rates(model.drop_rates_, relations)
    if model.settings_.draw_scale is None:
        print("Rates at which embeddings are drawn:")
        print_rates(model.draw_rates_, relations)


def print_rates(drop_rates: "dict[str, list[RatePosterior]]", relations: Sequence[str] = ()) -> None:
    """Print the posterior of each drop rate as a table.

    Args:
        drop_rates: for each view, the posterior of each mask's rates.
        relations: names of the relations of the graph, which have a column if there are some.
    """
    rows = []
    for view, rates in drop_rates.items():
        for rate in rates:
            layers, blocks = len(rate.mean), len(rate.mean[0])
            for i, j, _ in rate.places():
                row = {"view": view, "drops": rate.mask}
                row["layer"] = str(i + 1) if layers > 1 else ""
                if relations:
                    row["relation"] = relations[j] if "per relation" in rate.mask else ""
                row["block"] = str(j + 1) if blocks > 1 and not row.get("relation") else ""
                std = rate.std[i][j] if rate.learned else "fixed"
                rows.append({**row, "rate": rate.mean[i][j], "std": std})
    print_table(rows)


def rates_as_json(drop_rates: "dict[str, list[RatePosterior]]") -> dict[str, Any]:
    """The posterior of each drop rate as JSON can hold it."""
    return {view: [rate.to_dict() for rate in rates] for view, rates in drop_rates.items()}


def say(text: str) -> None:
    """Print one line."""
    print(visible(text))


def print_json(value: Any) -> None:
    """Print JSON, with null for NaN."""
    print(json.dumps(_with_null(value), indent=2, allow_nan=False))


def _with_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_null(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_with_null(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value
