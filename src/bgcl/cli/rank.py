"""`bgcl rank`: the nodes to review or to label next."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgcl.cli.later_labels import LabelChoice, relabeled, settled, training_labels
from bgcl.cli.opening import kept_in, open_run_on
from bgcl.cli.options import (
    TABLE_FILE,
    DrawSeed,
    ForgetLabels,
    Json,
    Keep,
    LaterId,
    LaterLabel,
    LaterLabels,
    LaterMissing,
    LaterUnknown,
    OtherGraph,
    OtherNodes,
    Quiet,
    RunFolder,
    Samples,
    SmallClasses,
    SpreadsheetSafe,
)
from bgcl.cli.output_place import check_not_read
from bgcl.cli.printing import print_json, print_table, say
from bgcl.errors import BGCLError, nearest

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data


LABEL_FREE = ("astd", "disagreement")  # measures that need no labels


def rank(
    run: RunFolder,
    by: Annotated[
        str,
        typer.Option(
            help="Measure of uncertainty: least-confidence, entropy, mutual-information, expected-entropy, margin, "
            "variation-ratio; or astd or disagreement, which need no labels."
        ),
    ] = "least-confidence",
    top: Annotated[int, typer.Option(help="Number of nodes to list.")] = 20,
    unlabeled: Annotated[
        bool, typer.Option("--unlabeled", help="List only nodes without a label. Default: all nodes.")
    ] = False,
    diverse: Annotated[
        bool,
        typer.Option(
            "--diverse", help="Choose uncertain nodes that differ from each other, as a batch to label. Default: off."
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help=f"{TABLE_FILE} Default: print the list.")] = None,
    samples: Samples = 100,
    seed: DrawSeed = None,
    graph: OtherGraph = None,
    nodes: OtherNodes = None,
    labels: LaterLabels = None,
    label: LaterLabel = None,
    id_: LaterId = None,
    missing_label: LaterMissing = None,
    skip_unknown: LaterUnknown = False,
    forget_labels: ForgetLabels = False,
    small_classes: SmallClasses = "leave-out",
    spreadsheet_safe: SpreadsheetSafe = False,
    keep: Keep = True,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """List the nodes to review or to label next, the most uncertain first."""
    import numpy as np

    from bgcl.data.output import check_ending, write_table
    from bgcl.downstream.kept_results import moments_of
    from bgcl.downstream.prediction import predict
    from bgcl.downstream.splits import labels_of
    from bgcl.measures.acquisition import acquire
    from bgcl.measures.acquisition import rank as order_of

    measure = _measure(by)
    if out is not None:
        check_ending(out, spreadsheet_safe=spreadsheet_safe)
    elif spreadsheet_safe:
        raise BGCLError("--spreadsheet-safe is for a .csv file: name one with --out, or leave it out.")
    choice = LabelChoice(labels, label, id_, missing_label, skip_unknown, forget_labels)
    choice.check(graph)
    model, data = open_run_on(run, graph, nodes, quiet)
    check_not_read(out, run, model, graph, nodes, labels)
    data, _ = relabeled(data, choice, quiet)
    if measure not in LABEL_FREE and graph is None:
        labels_of(data)
    among = _unlabeled(data) if unlabeled else None
    if not 1 <= top <= (data.num_nodes if among is None else len(among)):
        raise BGCLError(f"--top must be between 1 and the number of nodes to choose from. Got {top} instead.")
    columns: dict[str, Any]
    show = not (quiet or json)
    if measure == "disagreement":
        columns = {"disagreement": model.disagreement(data, samples, seed=seed, progress=show)}
    elif measure == "astd":
        if samples < 2:
            raise BGCLError(f"A standard deviation needs 2 samples or more. Got {samples} instead.")
        with kept_in(run, model, keep, not show) as kept:
            found = moments_of(model, data, samples, seed=seed, kept=kept, progress=show)
        columns = {"astd": found.astd.cpu().numpy()}
    else:
        labels_from = training_labels(model, data, run, graph, choice, quiet)
        data, labels_from, _ = settled(data, labels_from, small_classes, quiet)
        with kept_in(run, model, keep, not show) as kept:
            predicted = predict(
                model, data, samples=samples, seed=seed, labels_from=labels_from, progress=show, kept=kept
            )
        columns = dict(predicted.columns())
    values = np.asarray(columns[measure])
    chosen = acquire(values, model.embed(data).numpy(), top, among=among) if diverse else order_of(values, among)
    best = chosen[:top]
    table = {"id": np.asarray(data.ids)[best]} if "ids" in data else {}
    table |= {"rank": np.arange(1, top + 1), "node": best}
    shown = [name for name in ("label", "predicted", "probability") if name in columns]
    table |= {name: np.asarray(columns[name])[best] for name in [*shown, measure]}
    rows = [dict(zip(table, row, strict=True)) for row in zip(*(c.tolist() for c in table.values()), strict=True)]
    if out is not None:
        write_table(out, table, spreadsheet_safe=spreadsheet_safe)
    if json:
        print_json(rows)
    elif out is None:
        print_table(rows)
    else:
        say(f"{out}: {top} nodes by {measure.replace('_', ' ')}")


def _measure(by: str) -> str:
    """The library's name of a measure."""
    from bgcl.measures.uncertainty import MEASURES

    measure = {"entropy": "predictive_entropy"}.get(by, by.replace("-", "_"))
    if measure not in (*MEASURES, *LABEL_FREE):
        raise BGCLError(f"Unknown measure '{by}'. {nearest(measure, (*MEASURES, *LABEL_FREE))}")
    return measure


def _unlabeled(data: "Data") -> "np.ndarray[Any, Any]":
    import numpy as np

    if data.y is None or not bool((data.y < 0).any()):
        raise BGCLError("No node lacks a label, or the graph has no labels: leave out --unlabeled.")
    return np.flatnonzero(data.y.cpu().numpy() < 0)
