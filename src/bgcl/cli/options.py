"""Options that several commands share. The options of a single command are in its file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bgcl.errors import BGCLError

_TABLES = "Your own tables (columns that you do not name are inferred and reported)"
WORDS = 2000  # default of --words
MOST_SAMPLES = 10_000  # a hundred are enough; a million take hours, also on a small graph


def _check_seed(seed: int | None) -> int | None:
    from bgcl.arguments import seed_or

    return None if seed is None else seed_or(seed, 0)


def _check_samples(samples: int | None) -> int | None:
    if samples is not None and samples > MOST_SAMPLES:
        raise BGCLError(f"--samples must be at most {MOST_SAMPLES:,}. Got {samples} instead.")
    return samples


def _column(flag: str, text: str) -> Any:
    return typer.Option(flag, metavar="COLUMN", help=text, rich_help_panel=_TABLES)


Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only results, no progress and no notes. Default: off.")
]
Json = Annotated[bool, typer.Option("--json", help="Print results as JSON. Default: as text.")]

Graph = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="Name of a data set (see 'bgcl data list'), folder with edges.csv and nodes.csv (or .tsv, .parquet), "
        "table of edges, .graphml file or .npz file.",
    ),
]
Nodes = Annotated[
    str | None,
    typer.Option("--nodes", metavar="FILE", rich_help_panel=_TABLES,
                 help="Table of nodes, if GRAPH is a table of edges. Default: none."),
]  # fmt: skip
Label = Annotated[
    str | None, _column("--label", "Class to predict. It may be empty for some nodes. Default: inferred.")
]
Id = Annotated[str | None, _column("--id", "Id of a node. Default: inferred.")]
Source = Annotated[str | None, _column("--source", "First node of an edge. Default: inferred.")]
Target = Annotated[str | None, _column("--target", "Second node of an edge. Default: inferred.")]
Ignore = Annotated[
    list[str] | None,
    _column("--ignore", "Column to leave out. For several, repeat the option or use commas. Default: none."),
]
Categorical = Annotated[
    list[str] | None, _column("--categorical", "Column of categories, even if they are numbers. Default: inferred.")
]
Text = Annotated[list[str] | None, _column("--text", "Column of text, to be split into words. Default: inferred.")]
WordLimit = Annotated[
    int | None,
    typer.Option("--words", rich_help_panel=_TABLES,
                 help=f"Maximum number of words from each column of text. Default: {WORDS:,}."),
]  # fmt: skip
SkipUnknown = Annotated[
    bool,
    typer.Option("--skip-unknown", rich_help_panel=_TABLES,
                 help="Skip edges to nodes that are not in the table of nodes. Default: such an edge is an error."),
]  # fmt: skip

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, made by 'bgcl train'.")]
TrainingGraph = Annotated[
    str | None,
    typer.Option(
        "--graph", metavar="GRAPH", help="Training graph, if it has moved. Default: where it was at training."
    ),
]
OtherGraph = Annotated[
    str | None,
    typer.Option("--graph", metavar="GRAPH", help="Another graph with the same attributes, such as one with new nodes. "
                 "Default: the training graph."),
]  # fmt: skip
OtherNodes = Annotated[
    str | None,
    typer.Option("--nodes", metavar="FILE", help="Table of nodes, if --graph is a table of edges. Default: none."),
]
Samples = Annotated[int, typer.Option(callback=_check_samples, help="Number of draws from the posterior.")]
ManySamples = Annotated[
    int | None,
    typer.Option("--samples", callback=_check_samples, help="Number of draws from the posterior. Default: 100."),
]
DrawSeed = Annotated[
    int | None,
    typer.Option("--seed", callback=_check_seed, help="Seed of the draws. Default: the seed of the run."),
]
TABLE_FILE = "File to write: .csv, .parquet or .json."
SpreadsheetSafe = Annotated[
    bool,
    typer.Option("--spreadsheet-safe", help="In a .csv file, put ' before text that a spreadsheet would compute, such "
                 "as =1+1. Default: text as it is."),
]  # fmt: skip


def names(given: list[str] | None) -> tuple[str, ...]:
    """Names from an option that may be repeated and may contain several names separated by commas."""
    found = tuple(name.strip() for part in given or [] for name in part.split(",") if name.strip())
    if given and not found:
        raise BGCLError(f"'{given[0]}' names no column. Name one, or leave the option out.")
    return found
