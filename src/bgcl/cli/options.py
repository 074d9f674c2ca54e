"""Options that several commands share. The options of a single command are in its file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bgcl.errors import BGCLError

_TABLES = "Your own tables (columns that you do not name are inferred and reported)"
WORDS = 2000  # default of --words
SMALL = "leave-out"  # what becomes of small classes if nobody says
MOST_SAMPLES = 10_000  # a hundred are enough; a million take hours, also on a small graph


def _check_seed(seed: int | None) -> int | None:
    from bgcl.arguments import seed_or

    return None if seed is None else seed_or(seed, 0)


def _check_samples(samples: int | None) -> int | None:
    if samples is not None and samples > MOST_SAMPLES:
        raise BGCLError(f"--samples must be at most {MOST_SAMPLES:,}. Got {samples} instead.")
    return samples


def _check_level(level: float | None) -> float | None:
    if level is not None:
        from bgcl.measures.levels import check_level

        check_level(level)
    return level


def _check_way(small: str) -> str:
    if small != SMALL:
        from bgcl.downstream.small_classes import check_way

        check_way(small)
    return small


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
        help="Name of a data set (see 'bgcl data list'), folder with edges.csv, nodes.csv or features.csv, and "
        "labels.csv or target.csv (or .tsv, .txt, .parquet; .gz or .zst), table of edges, .graphml or .npz file.",
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

Labels = Annotated[
    str | None,
    typer.Option("--labels", metavar="FILE", rich_help_panel=_TABLES,
                 help="Table with an id and a label. Default: labels.csv or target.csv in the folder, or none."),
]  # fmt: skip
Weight = Annotated[
    str | None,
    _column("--weight", "Weight of an edge. '' to use no weights. Default: a column of numbers that is called weight."),
]
Directed = Annotated[
    bool,
    typer.Option("--directed", rich_help_panel=_TABLES,
                 help="Use the directions of edges: the nodes that a node leads to, and those that lead to it, are "
                 "told apart. Default: edges have no direction."),
]  # fmt: skip
EdgeType = Annotated[
    str | None,
    _column("--edge-type", "Type of an edge. '' to use no types. Default: a column of words that is called type, "
            "edge_type, relation, ..., with at most 16 different ones."),
]  # fmt: skip
NodeType = Annotated[
    str | None,
    _column("--node-type", "Type of a node: edges between nodes of different types are told apart. Default: none."),
]
Bipartite = Annotated[
    bool | None,
    typer.Option("--bipartite/--no-bipartite", rich_help_panel=_TABLES,
                 help="Whether the ends of an edge are nodes of two kinds, such as users and items, so that user 3 and "
                 "item 3 are two nodes. Default: no, and an error if the names of the columns say so."),
]  # fmt: skip
MissingLabel = Annotated[
    str | None,
    typer.Option("--missing-label", metavar="VALUES", rich_help_panel=_TABLES,
                 help="Labels that mean no label, separated by commas; '' if all values are classes. Default: "
                 "inferred, such as NA, unknown, ? and -1."),
]  # fmt: skip
Exact = Annotated[
    bool,
    typer.Option("--exact", rich_help_panel=_TABLES,
                 help="Compare ids and labels letter by letter. Default: blanks around them, upper and lower case of "
                 "labels, and 24.0 instead of 24 make no difference."),
]  # fmt: skip
Feature = Annotated[
    str | None,
    _column("--feature", "Feature, in a table of nodes with a row for each node and feature. Default: inferred."),
]
Value = Annotated[str | None, _column("--value", "Value of the feature in such a table. Default: inferred.")]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHARACTER", rich_help_panel=_TABLES,
                 help="What separates values: comma, semicolon, tab, pipe, space, or a character. Default: inferred."),
]  # fmt: skip
Header = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="TABLE", rich_help_panel=_TABLES,
                 help="Table whose first row names the columns: edges, nodes or labels. Default: inferred."),
]  # fmt: skip
NoHeader = Annotated[
    list[str] | None,
    typer.Option("--no-header", metavar="TABLE", rich_help_panel=_TABLES,
                 help="Table whose first row holds values: edges, nodes or labels. Default: inferred."),
]  # fmt: skip
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", metavar="MARK", rich_help_panel=_TABLES,
                 help="Mark of decimals in numbers: . or ,. Default: inferred."),
]  # fmt: skip
Dates = Annotated[
    str | None,
    typer.Option("--dates", metavar="ORDER", rich_help_panel=_TABLES,
                 help="Order of day, month and year in dates: dmy, mdy or ymd. Default: inferred."),
]  # fmt: skip

Task = Annotated[
    str | None,
    typer.Option("--task", metavar="WHAT", rich_help_panel=_TABLES,
                 help="What labels are: classes or numbers. Default: inferred. A fraction makes numbers, and so do "
                 "more than 64 different whole numbers, unless they count without a gap from 0 or 1."),
]  # fmt: skip

ManyLabels = Annotated[
    str | None,
    typer.Option("--many-labels", metavar="HOW", rich_help_panel=_TABLES,
                 help="A node may have several labels: rows if each row of the table of labels has one of them, lists "
                 "if a cell is a list such as [a, b], or what separates them in a cell: semicolon, comma, pipe, space, "
                 "tab, or a character. Default: a node has one label."),
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
    typer.Option(
        "--samples",
        callback=_check_samples,
        help="Number of draws from the posterior. Default: 100, and 20 at each level of --shift.",
    ),
]
DrawSeed = Annotated[
    int | None,
    typer.Option("--seed", callback=_check_seed, help="Seed of the draws. Default: the seed of the run."),
]
_LATER = "Labels that come later (columns that you do not name are inferred and reported)"
LaterLabels = Annotated[
    str | None,
    typer.Option("--labels", metavar="FILE", rich_help_panel=_LATER,
                 help="Table with an id and a label. Its labels replace those of the nodes that it names. Default: the "
                 "labels of the graph."),
]  # fmt: skip
LaterLabel = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", rich_help_panel=_LATER,
                 help="Label in the table of --labels. Default: inferred."),
]  # fmt: skip
LaterId = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", rich_help_panel=_LATER,
                 help="Id of a node in the table of --labels. Default: inferred."),
]  # fmt: skip
LaterMissing = Annotated[
    str | None,
    typer.Option("--missing-label", metavar="VALUES", rich_help_panel=_LATER,
                 help="Labels in the table of --labels that mean no label, separated by commas; '' if all values are "
                 "classes. Default: as at training, or inferred."),
]  # fmt: skip
LaterUnknown = Annotated[
    bool,
    typer.Option("--skip-unknown", rich_help_panel=_LATER,
                 help="Skip rows of --labels whose id is no node of the graph. Default: such a row is an error."),
]  # fmt: skip
ForgetLabels = Annotated[
    bool,
    typer.Option("--forget-labels", rich_help_panel=_LATER,
                 help="Use only the new labels, and none that the training graph has. Default: both."),
]  # fmt: skip
LaterTask = Annotated[
    str | None,
    typer.Option("--task", metavar="WHAT", rich_help_panel=_LATER,
                 help="What labels are: classes or numbers. Default: as at training, or inferred."),
]  # fmt: skip
LaterMany = Annotated[
    str | None,
    typer.Option("--many-labels", metavar="HOW", rich_help_panel=_LATER,
                 help="A node may have several labels in the table of --labels: rows, lists, or what separates them in "
                 "a cell. Default: as at training."),
]  # fmt: skip
Level = Annotated[
    float | None,
    typer.Option("--level", metavar="SHARE", callback=_check_level,
                 help="Share of the nodes whose set of classes has the true class, or whose interval has the number if "
                 "labels are numbers. Default: no sets, and intervals of 0.9."),
]  # fmt: skip
ByClass = Annotated[
    bool,
    typer.Option("--by-class", help="The --level holds in each class, and not only over all nodes. Default: off."),
]
Abstain = Annotated[
    str | None,
    typer.Option("--abstain", metavar="sets|RISK",
                 help="Give no answer for some nodes: those whose set of --level has not exactly one class (sets), or "
                 "the most uncertain ones, so that at most a share RISK of the answers is wrong. Default: no such "
                 "column."),
]  # fmt: skip
WithNovelty = Annotated[
    bool | None,
    typer.Option("--novelty/--no-novelty", help="Write the novelty of each node: the share of known nodes that are as "
                 "strange. Default: on if the graph of known nodes can be read, and is no pack."),
]  # fmt: skip
Floors = Annotated[
    bool | None,
    typer.Option(
        "--floors/--no-floors",
        help="Compare with predictions that need no training, on a fifth of the labels. Default: on if labels are "
        "classes, and no other graph has some of them.",
    ),
]
SmallClasses = Annotated[
    str,
    typer.Option("--small-classes", metavar="WAY", callback=_check_way,
                 help="What becomes of classes with fewer than 3 labeled nodes: leave-out (their nodes count as "
                 "unlabeled), merge (one class of them) or keep (no node of theirs is held out). If fewer than two "
                 "classes would be left, all are kept."),
]  # fmt: skip
Keep = Annotated[
    bool,
    typer.Option("--keep/--no-keep", help="Keep predictions, and mean and deviation of the draws, in RUN/kept, and use "
                 "what another command kept there."),
]  # fmt: skip
SpreadLabels = Annotated[
    bool | None,
    typer.Option("--spread-labels/--no-spread-labels", help="Also use the labels of training nodes that are near in "
                 "the graph. Default: on if the embedding has several parts, as in the default model, all labels "
                 "are of one graph, and it is no pack."),
]  # fmt: skip
TABLE_FILE = "File to write: .csv, .parquet or .json."
Processes = Annotated[
    int | None,
    typer.Option(
        help="Processes on this machine that share the draws. Nothing is kept in the run then. Default: 1, or as many "
        "as torchrun has started."
    ),
]
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
