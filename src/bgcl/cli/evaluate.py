"""`bgcl evaluate`: accuracy, calibration, and how well the uncertainty detects errors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgcl.cli.class_tables import class_facts, print_classes
from bgcl.cli.floors_shown import floor_rows, floors_of_fold
from bgcl.cli.label_sets import evaluate_label_sets, refuse_for_label_sets
from bgcl.cli.later_labels import LabelChoice, relabeled, settled
from bgcl.cli.many import leave_to_main
from bgcl.cli.numbers import evaluate_numbers
from bgcl.cli.opening import kept_in, open_run
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
    ManySamples,
    Processes,
    Quiet,
    SmallClasses,
    SpreadLabels,
    TrainingGraph,
)
from bgcl.cli.output_place import check_not_read
from bgcl.cli.printing import print_json, print_table, say
from bgcl.cli.shifts import check_shift, evaluate_shifts
from bgcl.errors import BGCLError
from bgcl.progress import counted, stage

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.downstream.evaluation import SplitResult
    from bgcl.estimator import BGCL

FLOOR_SPLITS = 5
MEANINGS = {  # of the scores that are printed; JSON and files have the plain names
    "accuracy": "accuracy (higher is better)",
    "ece": "calibration error, ECE (lower is better)",
    "nll": "negative log likelihood, NLL (lower is better)",
    "brier": "Brier score (lower is better)",
}


def evaluate(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Folders of runs. Several runs must differ only in their seed.")
    ],
    protocol: Annotated[
        str | None,
        typer.Option(
            help="Protocol of the splits: grace, bgrl, bgrl-20, half, public, wikics or development. Default: the "
            "usual one for the data set."
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(help="Number of splits. Default: as in the protocol; 5 with --shift, else 1 for a pack."),
    ] = None,
    samples: ManySamples = None,
    appendix: Annotated[
        bool,
        typer.Option(
            "--appendix",
            help="Follow the paper's appendix: of 500 draws, 10 train the paper's classifier, 49 sets of 10 predict. "
            "Default: off.",
        ),
    ] = False,
    shift: Annotated[
        str | None,
        typer.Option(
            help="Show how the scores change with a shift: popularity, locality or density of the test nodes; "
            "bernoulli or normal noise in the attributes, missing columns; dropped or rewired edges. Default: no shift."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help=f"{TABLE_FILE} It has one row for each score. Default: none.")
    ] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for plots. Default: no plots.")] = None,
    floors: Annotated[
        bool | None,
        typer.Option(
            "--floors/--no-floors",
            help=f"Compare with predictions that need no training, on the first {FLOOR_SPLITS} splits. Default: on, "
            "unless the graph is a pack.",
        ),
    ] = None,
    seed: DrawSeed = None,
    graph: TrainingGraph = None,
    labels: LaterLabels = None,
    label: LaterLabel = None,
    id_: LaterId = None,
    missing_label: LaterMissing = None,
    skip_unknown: LaterUnknown = False,
    forget_labels: ForgetLabels = False,
    task: LaterTask = None,
    many_labels: LaterMany = None,
    small_classes: SmallClasses = SMALL,
    spread_labels: SpreadLabels = None,
    processes: Processes = None,
    keep: Keep = True,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Measure accuracy, calibration, PAvPU and the detection of errors over the splits of a protocol."""
    from bgcl.data.output import check_ending, write_table
    from bgcl.downstream.classifier import MixtureClassifier
    from bgcl.downstream.evaluation import APPENDIX, summary, versions
    from bgcl.downstream.evaluation import evaluate as evaluate_model
    from bgcl.downstream.property_splits import PROPERTIES
    from bgcl.downstream.splits import has_label_sets, has_numbers, usual_protocol

    if appendix and samples is not None:
        raise BGCLError("--appendix always draws 500 samples: leave out --samples.")
    if shift is not None:
        check_shift(shift, {"--appendix": appendix, "--plots": plots is not None, "--protocol": protocol is not None,
                            "--floors": floors is True,
                            "--spread-labels": spread_labels is not None}, runs)  # fmt: skip
    if out is not None:
        check_ending(out)
    how: dict[str, Any] = APPENDIX if appendix else {"samples": 100 if samples is None else samples}
    head = MixtureClassifier.paper if appendix else None
    choice = LabelChoice(labels, label, id_, missing_label, skip_unknown, forget_labels, task, many_labels)
    choice.check(None)
    opened = _open_runs(runs, graph, quiet)
    first = opened[0][0]
    for run, (model, _) in zip(runs, opened, strict=True):
        check_not_read(out, run, model, graph, labels)
    graphs, of_labels = [], dict[str, Any]()
    for i, (_, data) in enumerate(opened):
        labeled, counts = relabeled(data, choice, quiet or i > 0)
        labeled, _, note = settled(labeled, None, small_classes, quiet or i > 0)
        graphs.append(labeled)
        of_labels = counts | note
    data = graphs[0]
    chosen, show = protocol or usual_protocol(data), not quiet and not json
    facts: dict[str, Any] = {"runs": [str(run) for run in runs], "graph": first.graph_.name, "protocol": chosen}
    facts |= of_labels | {"settings": [model.settings_.to_json() for model, _ in opened], "versions": versions()}
    if shift is not None:
        if first.team.size > 1:
            raise BGCLError("One process evaluates a shift: leave out --processes, or --shift.")
        evaluate_shifts(
            first, data, shift, {k: v for k, v in facts.items() if k != "protocol" or shift not in PROPERTIES},
            protocol=None if shift in PROPERTIES else chosen, splits=splits, samples=samples, seed=seed, out=out,
            json=json,
        )  # fmt: skip
        return
    if has_label_sets(data):
        refuse_for_label_sets({
            "--appendix": appendix, "--plots": plots is not None, "--small-classes": small_classes != SMALL,
        })  # fmt: skip
        evaluate_label_sets(
            [model for model, _ in opened], graphs, facts, splits=splits, samples=how["samples"], seed=seed,
            spread_labels=spread_labels, floors=floors is not False, out=out, show=show, json=json,
        )  # fmt: skip
        return
    if has_numbers(data):
        if appendix or plots is not None or spread_labels is not None:
            raise BGCLError(
                "--appendix, --plots and --spread-labels are for classes, and the labels are numbers: leave them out."
            )
        evaluate_numbers(
            [model for model, _ in opened], graphs, facts, splits=splits, samples=how["samples"], seed=seed,
            floors=floors is not False, out=out, show=show, json=json,
        )  # fmt: skip
        return
    blocks = first.in_blocks(data) is not None
    if floors and blocks:
        raise BGCLError("--floors needs the whole graph in memory, and this one is a pack: leave it out.")
    results = []
    for run, (model, _), labeled in zip(runs, opened, graphs, strict=True):
        with kept_in(run, model, keep and not appendix, not show) as kept:
            found = evaluate_model(
                model, labeled, chosen, splits, head=head, seed=seed, progress=show, kept=kept,
                spread_labels=spread_labels, **how,
            )  # fmt: skip
        results.append(found)
    leave_to_main()
    scores = summary(results)
    facts |= {"splits": len(results[0]), **how}
    facts |= class_facts([result for run in results for result in run], getattr(data, "classes", None))
    if plots is not None:
        from bgcl.reporting.plots import save_evaluation

        with stage("drawing plots"):
            facts["plots"] = [str(path) for path in save_evaluation([r for run in results for r in run], plots)]
    if out is not None:
        rows = [{"score": name, **score} for name, score in scores.items()]
        write_table(out, {name: [row[name] for row in rows] for name in rows[0]})
    if floors is not False and not blocks:  # they need a graph in memory
        with kept_in(runs[0], first, keep and not appendix, not show) as kept:
            if kept is not None:  # for predict and report, which show the floors of another split
                floors_of_fold(data, kept)
        facts |= _compared(data, chosen, results[0], show)
    if json:
        print_json({**facts, "scores": scores})
        return
    _print(facts, scores)


def _open_runs(runs: list[Path], graph: str | None, quiet: bool) -> "list[tuple[BGCL, Data]]":
    """Each run's model and graph. Runs on other graphs, or with other settings than the seed, are refused."""
    for number, run in enumerate(runs):
        if any(run.resolve() == other.resolve() for other in runs[:number]):
            raise BGCLError(f"{run} is named twice: a run counts only once.")
    opened = [open_run(run, graph, quiet) for run in runs]
    first = opened[0][0]
    for run, (model, data) in zip(runs, opened, strict=True):
        first.check_trained_on(data)
        if model.settings_.with_changes(seed=0) != first.settings_.with_changes(seed=0):
            raise BGCLError(
                f"{run} was trained with other settings than {runs[0]}: runs must differ only in their seed."
            )
    return opened


def _print(facts: dict[str, Any], scores: dict[str, dict[str, float]]) -> None:
    from bgcl.downstream.splits import in_words

    several = len(facts["runs"]) > 1
    print(f"{counted(len(facts['runs']), 'run')}, {in_words(facts['protocol'], facts['splits'])}")
    print_table(_score_rows(scores, several))
    print()
    print_table(_measure_rows(scores))
    print_classes(facts)
    if "floors" in facts:
        print(f"\nPredictions that need no training, on the first {counted(facts['floor_splits'], 'split')}:")
        print_table(facts["floors"])
        print(facts["verdict"])
    for path in facts.get("plots", []):
        say(path)


def _compared(data: "Data", protocol: str, results: "list[SplitResult]", show: bool) -> dict[str, Any]:
    """The model next to predictions that need no training, on the same splits."""
    from rich.console import Console

    from bgcl.baselines.floors import MODEL, Floor, floors, verdict
    from bgcl.downstream.splits import splits

    few = results[:FLOOR_SPLITS]
    with Console(stderr=True, quiet=not show).status("Comparing with predictions that need no training"):
        found = floors(data, splits(data, protocol, len(few)))
    model = Floor.of(MODEL, few)
    return {"floors": floor_rows(model, found), "floor_splits": len(few), "verdict": verdict(model, found)}


def _score_rows(scores: dict[str, dict[str, float]], several: bool) -> list[dict[str, Any]]:
    """Accuracy and calibration, with their standard deviations."""
    rows = []
    for name, score in scores.items():
        if ":" not in name:
            row = {"score": MEANINGS.get(name, name), "mean": score["mean"], "std over splits": score["over_splits"]}
            rows.append(row | ({"std over seeds": score["over_seeds"]} if several else {}))
    return rows


def _measure_rows(scores: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """How well each measure of uncertainty separates wrong from right predictions. A star marks the recommended one."""
    from bgcl.measures.uncertainty import MEASURES, RECOMMENDED

    heads = {"auroc": "AUROC of errors", "aupr": "AUPR of errors", "aurc": "risk-coverage", "pavpu": "PAvPU"}
    return [
        {"uncertainty": name.replace("_", " ") + (" *" if name == RECOMMENDED else "")}
        | {text: scores[f"{score}:{name}"]["mean"] for score, text in heads.items()}
        for name in MEASURES
    ]
