"""`bgcl rank`: the nodes to review or to label next."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgcl.cli.known_nodes import HowToPredict, known_graph, novelty_columns, novelty_of, refuse_pack
from bgcl.cli.label_sets import check_measure, refuse_for_label_sets
from bgcl.cli.later_labels import LabelChoice, refuse_small_classes, relabeled, settled, training_labels
from bgcl.cli.opening import kept_in, open_run_on
from bgcl.cli.options import (
    SMALL,
    TABLE_FILE,
    DrawSeed,
    ForgetLabels,
    Json,
    Keep,
    LaterId,
    LaterLabel,
    LaterLabels,
    LaterMany,
    LaterMissing,
    LaterTask,
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


OF_NUMBERS = ("variance", "epistemic")  # measures for labels that are numbers
LABEL_FREE = ("astd", "disagreement")  # measures that need no labels
NOVELTY = "novelty"


def rank(
    run: RunFolder,
    by: Annotated[
        str | None,
        typer.Option(
            help="Measure of uncertainty: least-confidence, entropy, mutual-information, expected-entropy, margin, "
            "variation-ratio; variance or epistemic for numbers; astd or disagreement, which need no labels; or "
            "novelty, which uses labels if there are some: how unlike the known nodes a node is. "
            "Default: least-confidence, or variance for numbers."
        ),
    ] = None,
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
    task: LaterTask = None,
    many_labels: LaterMany = None,
    small_classes: SmallClasses = SMALL,
    spreadsheet_safe: SpreadsheetSafe = False,
    keep: Keep = True,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """List the nodes to review or to label next, the most uncertain first."""
    import numpy as np

    from bgcl.data.output import check_ending, write_table
    from bgcl.downstream.kept_results import moments_of
    from bgcl.downstream.label_sets import predict_label_sets
    from bgcl.downstream.numbers import predict_numbers
    from bgcl.downstream.prediction import predict
    from bgcl.downstream.splits import has_label_sets, has_numbers, labels_of
    from bgcl.measures.acquisition import acquire
    from bgcl.measures.acquisition import rank as order_of

    measure = None if by is None else _measure(by)
    if measure in LABEL_FREE and small_classes != SMALL:
        raise BGCLError(f"--by {by} needs no labels, so --small-classes has no effect: leave it out.")
    if out is not None:
        check_ending(out, spreadsheet_safe=spreadsheet_safe)
    elif spreadsheet_safe:
        raise BGCLError("--spreadsheet-safe is for a .csv file: name one with --out, or leave it out.")
    choice = LabelChoice(labels, label, id_, missing_label, skip_unknown, forget_labels, task, many_labels)
    choice.check(graph)
    model, data = open_run_on(run, graph, nodes, quiet)
    check_not_read(out, run, model, graph, nodes, labels)
    data, _ = relabeled(data, choice, quiet)
    refuse_pack(model, data, measure == NOVELTY)
    labels_from = None
    if measure not in LABEL_FREE:
        labels_from = training_labels(model, data, run, graph, choice, quiet)
    numbers = has_numbers(data) or (labels_from is not None and has_numbers(labels_from))
    if numbers:
        refuse_small_classes(small_classes)
    sets = has_label_sets(data) or (labels_from is not None and has_label_sets(labels_from))
    measure = measure or ("variance" if numbers else "least_confidence")
    if sets:
        refuse_for_label_sets({"--small-classes": small_classes != SMALL})
        check_measure(by, measure, (*LABEL_FREE, NOVELTY))
    elif measure not in (*LABEL_FREE, NOVELTY):
        if numbers != (measure in OF_NUMBERS):
            what, other = ("numbers", " or ".join(OF_NUMBERS)) if numbers else ("classes", "least-confidence")
            raise BGCLError(f"--by {by} does not fit labels that are {what}: use {other}, or leave it out.")
        if graph is None and not numbers:
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
    elif measure == NOVELTY:
        with kept_in(run, model, keep, not show) as kept:
            predicted = None
            if not numbers and _has_classes(data, labels_from):
                data, labels_from, _ = settled(data, labels_from, small_classes, quiet)
                predicted = predict(
                    model, data, samples=samples, seed=seed, labels_from=labels_from, progress=show, kept=kept
                )
            known = known_graph(
                model, data, predicted, run=run, graph=graph, labels_from=labels_from, wanted=True, quiet=quiet,
                how=None if predicted is None else HowToPredict(samples, seed, kept, show),
            )  # fmt: skip
            assert known is not None
            strange, _ = novelty_of(model, data, predicted, known, seed)
        columns = ({} if predicted is None else predicted.columns()) | novelty_columns(strange)
    elif sets:
        with kept_in(run, model, keep, not show) as kept:
            found_sets = predict_label_sets(
                model, data, samples=samples, seed=seed, labels_from=labels_from, progress=show, kept=kept
            )
        columns = found_sets.columns()
    elif numbers:
        found_numbers = predict_numbers(model, data, samples=samples, seed=seed, labels_from=labels_from, progress=show)
        columns = found_numbers.columns()
    else:
        data, labels_from, _ = settled(data, labels_from, small_classes, quiet)
        with kept_in(run, model, keep, not show) as kept:
            predicted = predict(
                model, data, samples=samples, seed=seed, labels_from=labels_from, progress=show, kept=kept
            )
        columns = dict(predicted.columns())
    values = np.asarray(columns[measure]) if measure != NOVELTY else strange.strangeness  # small shares are strange
    chosen = acquire(values, model.embed(data).numpy(), top, among=among) if diverse else order_of(values, among)
    best = chosen[:top]
    table = {"id": np.asarray(data.ids)[best]} if "ids" in data else {}
    table |= {"rank": np.arange(1, top + 1), "node": best}
    shown = [name for name in ("label", "predicted", "lower", "upper", "probability") if name in columns]
    table |= {name: np.asarray(columns[name])[best] for name in [*shown, measure, "strange_by"] if name in columns}
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
    known = (*MEASURES, *OF_NUMBERS, *LABEL_FREE, NOVELTY)
    if measure not in known:
        raise BGCLError(f"Unknown measure '{by}'. {nearest(measure, known)}")
    return measure


def _has_classes(data: "Data", labels_from: "Data | None") -> bool:
    """Whether there are labels of two classes or more."""
    import numpy as np

    from bgcl.downstream.known_labels import gather_labels

    try:
        return len(np.unique(gather_labels(data, labels_from).labels)) > 1
    except BGCLError:
        return False


def _unlabeled(data: "Data") -> "np.ndarray[Any, Any]":
    import numpy as np

    y = data.y if data.y is None or data.y.dim() == 1 else data.y[:, 0]  # of several labels, none is known or all are
    missing = None if y is None else y.isnan() if y.is_floating_point() else y < 0
    if missing is None or not bool(missing.any()):
        raise BGCLError("No node lacks a label, or the graph has no labels: leave out --unlabeled.")
    return np.flatnonzero(missing.cpu().numpy())
