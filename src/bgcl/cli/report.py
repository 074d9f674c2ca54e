"""`bgcl report`: one HTML page that shows what a model knows about its nodes, and how sure it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgcl.cli.floors_shown import beside, floors_of_fold
from bgcl.cli.later_labels import LabelChoice, refuse_small_classes, relabeled, settled
from bgcl.cli.opening import kept_in, open_run
from bgcl.cli.options import (
    SMALL,
    DrawSeed,
    Floors,
    ForgetLabels,
    Json,
    Keep,
    LaterId,
    LaterLabel,
    LaterLabels,
    LaterMissing,
    LaterTask,
    LaterUnknown,
    Quiet,
    RunFolder,
    Samples,
    SmallClasses,
    TrainingGraph,
)
from bgcl.cli.printing import print_json, say
from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_geometric.data import Data

    from bgcl.downstream.kept_results import KeptResults
    from bgcl.downstream.node_predictions import NodePredictions
    from bgcl.reporting.report.figures import Figures


def report(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option(help="HTML file to write. Default: report.html in the folder of the run.")
    ] = None,
    samples: Samples = 100,
    seed: DrawSeed = None,
    graph: TrainingGraph = None,
    labels: LaterLabels = None,
    label: LaterLabel = None,
    id_: LaterId = None,
    missing_label: LaterMissing = None,
    skip_unknown: LaterUnknown = False,
    forget_labels: ForgetLabels = False,
    task: LaterTask = None,
    small_classes: SmallClasses = SMALL,
    floors: Floors = None,
    keep: Keep = True,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write one HTML page that works offline: map of the nodes, uncertainty, nodes to review, training."""
    from bgcl.downstream.splits import has_label_sets, has_numbers
    from bgcl.reporting.report.page import check_out
    from bgcl.reporting.report.page import report as write

    page = run / "report.html" if out is None else out
    check_out(page)
    choice = LabelChoice(labels, label, id_, missing_label, skip_unknown, forget_labels, task)
    choice.check(None)
    model, data = open_run(run, graph, quiet)
    data, of_labels = relabeled(data, choice, quiet)
    if has_label_sets(data):
        raise BGCLError(
            "The page shows one label per node, and here a node may have several. Use bgcl evaluate, predict and rank."
        )
    if has_numbers(data):
        refuse_small_classes(small_classes)
    elif data.y is not None and not data.y.is_floating_point() and bool((data.y >= 0).any()):
        data, _, of_classes = settled(data, None, small_classes, quiet)
        of_labels |= of_classes
    show = not (quiet or json)
    with kept_in(run, model, keep, not show) as kept:
        compare = _comparison(data, kept) if floors is not False else None
        write(model, data, page, samples=samples, seed=seed, progress=show, kept=kept, compare=compare)
    size = page.stat().st_size
    if json:
        print_json({"file": str(page), "nodes": data.num_nodes, "bytes": size, **of_labels})
    else:
        say(f"{page}: {data.num_nodes:,} nodes, {size / 1e6:.1f} MB")


def _comparison(data: "Data", kept: "KeptResults | None") -> "Callable[[NodePredictions], Figures | None]":
    """A function that puts predictions that need no training next to those of the model."""

    def compare(predictions: "NodePredictions") -> "Figures | None":
        from bgcl.reporting.report.figures import floor_figures

        found = beside(predictions, data, floors_of_fold(data, kept))
        return floor_figures(found["floors"], found["verdict"], found["floor_nodes"]) if found else None

    return compare
