"""`bgcl predict`: the class of every node, its probability and its uncertainty."""

from pathlib import Path
from typing import Annotated

import typer

from bgcl.cli.floors_shown import beside, floors_of_fold
from bgcl.cli.known_nodes import HowToPredict, known_graph, novelty_columns, novelty_of, refuse_pack
from bgcl.cli.label_sets import facts_of as facts_of_sets
from bgcl.cli.label_sets import refuse_for_label_sets
from bgcl.cli.later_labels import LabelChoice, refuse_small_classes, relabeled, settled, training_labels
from bgcl.cli.many import leave_to_main
from bgcl.cli.numbers import facts_of
from bgcl.cli.opening import kept_in, open_run_on
from bgcl.cli.options import (
    SMALL,
    TABLE_FILE,
    Abstain,
    ByClass,
    DrawSeed,
    Floors,
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
    Level,
    OtherGraph,
    OtherNodes,
    Processes,
    Quiet,
    RunFolder,
    Samples,
    SmallClasses,
    SpreadLabels,
    SpreadsheetSafe,
    WithNovelty,
)
from bgcl.cli.output_place import check_not_read
from bgcl.cli.printing import print_json, print_table, say
from bgcl.cli.trust import Promises, trust_in_classes, trust_in_numbers
from bgcl.errors import BGCLError


def predict(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help=TABLE_FILE)],
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
    level: Level = None,
    by_class: ByClass = False,
    abstain: Abstain = None,
    novelty: WithNovelty = None,
    floors: Floors = None,
    spread_labels: SpreadLabels = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    processes: Processes = None,
    keep: Keep = True,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the predicted class, its probability and the uncertainty of every node.

    If labels are numbers: the predicted number, its interval, and its variance with the part that comes from the model.
    A labeled node is predicted by a classifier that has not seen its label.
    The classifiers are trained on the labels of the training graph, and on those of --graph and --labels.
    """
    from bgcl.data.output import check_ending, write_table
    from bgcl.downstream.known_labels import gather_labels
    from bgcl.downstream.label_sets import predict_label_sets
    from bgcl.downstream.node_predictions import class_names
    from bgcl.downstream.numbers import predict_numbers
    from bgcl.downstream.prediction import predict as predict_nodes
    from bgcl.downstream.splits import has_label_sets, has_numbers

    check_ending(out, spreadsheet_safe=spreadsheet_safe)
    promises = Promises(level, by_class, abstain)
    promises.check()
    choice = LabelChoice(labels, label, id_, missing_label, skip_unknown, forget_labels, task, many_labels)
    choice.check(graph)
    model, data = open_run_on(run, graph, nodes, quiet)
    check_not_read(out, run, model, graph, nodes, labels)
    data, of_labels = relabeled(data, choice, quiet)
    labels_from = training_labels(model, data, run, graph, choice, quiet)
    show = not (quiet or json)
    refuse_pack(model, data, novelty)
    if has_label_sets(data) or (labels_from is not None and has_label_sets(labels_from)):
        promises.refuse_for_label_sets()
        refuse_for_label_sets({"--small-classes": small_classes != SMALL})
        with kept_in(run, model, keep, not show) as kept:
            sets = predict_label_sets(
                model, data, samples=samples, seed=seed, labels_from=labels_from, progress=show, kept=kept,
                spread_labels=spread_labels,
            )  # fmt: skip
        known = known_graph(
            model, data, None, run=run, graph=graph, labels_from=labels_from, wanted=novelty, quiet=quiet
        )
        columns = sets.columns()
        if known is not None:
            columns |= novelty_columns(novelty_of(model, data, None, known, seed)[0])
        write_table(out, columns, spreadsheet_safe=spreadsheet_safe)
        of_sets, sentence = facts_of_sets(sets)
        if json:
            print_json({"file": str(out), **of_sets, "columns": list(columns), **of_labels})
        else:
            say(f"{out}: {sentence}")
        return
    if has_numbers(data) or (labels_from is not None and has_numbers(labels_from)):
        if spread_labels is not None:
            raise BGCLError("--spread-labels is for classes, and the labels are numbers: leave it out.")
        if floors:
            raise BGCLError("--floors is for classes, and the labels are numbers: leave it out.")
        refuse_small_classes(small_classes)
        promises.refuse_for_numbers()
        numbers = predict_numbers(
            model, data, samples=samples, level=promises.share, seed=seed, labels_from=labels_from, progress=show
        )
        known = known_graph(
            model, data, None, run=run, graph=graph, labels_from=labels_from, wanted=novelty, quiet=quiet
        )
        trust = trust_in_numbers(model, data, numbers, promises, known=known, seed=seed, quiet=quiet)
        leave_to_main()
        columns = numbers.columns() | trust.columns
        write_table(out, columns, spreadsheet_safe=spreadsheet_safe)
        of_numbers, sentence = facts_of(numbers, promises.share)
        if json:
            print_json({"file": str(out), **of_numbers, "columns": list(columns), **of_labels, **trust.facts})
        else:
            say(f"{out}: {sentence}")
        return
    blocks = model.in_blocks(data) is not None
    for name, wanted in (("--spread-labels", spread_labels), ("--floors", floors)):
        if wanted and labels_from is not None:
            raise BGCLError(
                f"{name} needs all labels in one graph, and those of the training graph count too: leave it out, or "
                "use the labels of the other graph alone (--forget-labels)."
            )
        if wanted and blocks:
            raise BGCLError(f"{name} needs the whole graph in memory, and this one is a pack: leave it out.")
    given = gather_labels(data, labels_from)
    data, labels_from, of_classes = settled(data, labels_from, small_classes, quiet)
    if promises:
        promises.check_labels(gather_labels(data, labels_from), labels_from, novelty)
    with kept_in(run, model, keep, not show) as kept:
        found = predict_nodes(
            model, data, samples=samples, seed=seed, labels_from=labels_from, progress=show, kept=kept,
            spread_labels=spread_labels,
        )  # fmt: skip
        known = known_graph(
            model, data, found, run=run, graph=graph, labels_from=labels_from, wanted=novelty, quiet=quiet,
            how=HowToPredict(samples, seed, kept, show),
        )  # fmt: skip
        with_floors = floors is not False and model.team.is_main and labels_from is None and not blocks
        compared = beside(found, data, floors_of_fold(data, kept)) if with_floors else {}
    trust = trust_in_classes(model, data, found, promises, known=known, seed=seed, quiet=quiet)
    leave_to_main()
    columns = found.columns() | trust.columns
    if of_classes:  # a label that was left out is still the label of its node
        columns["label"] = class_names(given.of_nodes(len(found.label)), given.names)
    write_table(out, columns, spreadsheet_safe=spreadsheet_safe)
    labeled = found.label >= 0
    facts = {
        "file": str(out), "nodes": len(found.label), "labeled": int(labeled.sum()),
        "agree_with_label": int((found.predicted == found.label)[labeled].sum()), "columns": list(columns),
        **of_labels, **of_classes, **trust.facts, **compared,
    }  # fmt: skip
    if json:
        print_json(facts)
    else:
        say(
            f"{out}: {facts['nodes']:,} nodes, of which {facts['labeled']:,} have a label; "
            f"for {facts['agree_with_label']:,} of these the prediction agrees with the label"
        )
        for sentence in trust.sentences:
            say(sentence)
        if compared:
            say(f"Predictions that need no training, on {compared['floor_nodes']:,} labeled nodes:")
            print_table(compared["floors"])
            say(compared["verdict"])
