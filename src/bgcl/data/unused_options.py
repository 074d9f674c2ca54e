"""Options for tables that have nothing to act on. They are refused, so that nobody relies on one in vain."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgcl.data.columns import Number, Words
from bgcl.data.options import Options, given_options
from bgcl.data.written_dates import ORDERS
from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from bgcl.data.reading import Reading

OF_FILES = ("delimiter", "header", "no_header")  # how a file is written


def check_used(reading: "Reading", options: Mapping[str, Any]) -> None:
    """Refuse options without which the graph would have been read in the same way, whatever its tables hold."""
    given, recipe = given_options(options), reading.recipe
    if "skip_unknown" in given and reading.nodes is None:
        raise BGCLError("There is no table of nodes, so no node is unknown: leave out --skip-unknown.")
    if "words" in given and not any(isinstance(column, Words) for column in recipe.columns):
        raise BGCLError("No column is text, so there are no words to limit: leave out --words, or name it with --text.")
    if "value" in given and recipe.long_form() is None:
        raise BGCLError(
            "No table has a row for each node and feature: leave out --value, or name the column of features with "
            "--feature."
        )
    if "missing_label" in given and recipe.label is None:
        raise BGCLError("The nodes have no labels: leave out --missing-label, or name their column with --label.")
    if "many_labels" in given and recipe.label is None:
        raise BGCLError("The nodes have no labels: leave out --many-labels, or name their column with --label.")
    if "dates" in given and not any(isinstance(each, Number) and each.writing in ORDERS for each in recipe.columns):
        raise BGCLError("No column has dates that could be read in several ways: leave out --dates.")


def check_files(tables: Mapping[str, Path | None], options: Options) -> None:
    """Refuse options on how a file is written, if there is no such file or if it says so itself.

    Args:
        tables: the file of each table that `--header` can name; None if there is none.
        options: what the user says.
    """
    for table in (*options.header, *options.no_header):
        path, name = tables.get(table), "--header" if table in options.header else "--no-header"
        if path is None:
            raise BGCLError(f"There is no file of {table}: leave out {name} {table}.")
        if not _is_text(path):
            raise BGCLError(f"{path} names its columns itself: leave out {name} {table}.")
    if any(path is not None and _is_text(path) for path in tables.values()):
        return
    for name in ("delimiter", "decimal"):
        if getattr(options, name) is not None:
            raise BGCLError(f"No table is written as text: leave out --{name}.")


def _is_text(path: Path) -> bool:
    return path.suffix.lower() not in (".parquet", ".graphml")
