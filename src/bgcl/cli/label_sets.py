"""What `bgcl evaluate`, `predict` and `rank` do if a node may have several labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgcl.cli.printing import print_json, print_table, say
from bgcl.errors import BGCLError
from bgcl.progress import counted, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_geometric.data import Data

    from bgcl.downstream.label_set_results import LabelSetResult, PredictedLabelSets
    from bgcl.estimator import BGCL

FLOOR_SPLITS = 2  # fewer than for classes: each label has a head of its own
MOST = 30  # labels that are printed one by one; JSON has all of them
MEASURES = ("least_confidence", "predictive_entropy", "expected_entropy", "mutual_information")
MEANINGS = {
    "micro_f1": "micro F1 (all labels together)",
    "macro_f1": "macro F1 (mean over labels)",
    "average_precision": "average precision (mean over labels)",
    "ece": "ECE (mean over labels; lower is better)",
    "right_sets": "nodes with exactly the right labels",
    "auroc": "AUROC of nodes with wrong labels",
}


def refuse_for_label_sets(given: dict[str, bool]) -> None:
    """Refuse options that are for a single label per node."""
    for name, said in given.items():
        if said:
            raise BGCLError(f"{name} is for one label per node, and here a node may have several: leave it out.")


def check_measure(by: str | None, measure: str, others: "Sequence[str]") -> None:
    """Refuse a measure that sets of labels do not have."""
    if measure not in (*MEASURES, *others):
        raise BGCLError(f"--by {by} does not fit nodes with several labels: use least-confidence, or leave it out.")


def evaluate_label_sets(
    models: "list[BGCL]", graphs: "list[Data]", facts: dict[str, Any], *, splits: int | None, samples: int,
    seed: int | None, spread_labels: bool | None, floors: bool, out: Path | None, show: bool, json: bool,
) -> None:  # fmt: skip
    """Evaluate models, and print or write the scores."""
    from bgcl.data.output import write_table
    from bgcl.downstream.evaluation import summary
    from bgcl.downstream.label_sets import evaluate_label_sets as evaluate
    from bgcl.downstream.splits import in_words

    results = [
        evaluate(
            model, data, facts["protocol"], splits, samples=samples, seed=seed, progress=show,
            spread_labels=spread_labels,
        )
        for model, data in zip(models, graphs, strict=True)
    ]  # fmt: skip
    scores = summary(results)  # type: ignore[arg-type]
    facts |= {"task": "label sets", "splits": len(results[0]), "samples": samples}
    facts["each_label"] = _each_label([each for run in results for each in run], graphs[0])
    if out is not None:
        rows = [{"score": name, **score} for name, score in scores.items()]
        write_table(out, {name: [row[name] for row in rows] for name in rows[0]})
    if floors:
        facts |= _compared(graphs[0], facts["protocol"], results[0])
    if json:
        print_json({**facts, "scores": scores})
        return
    say(f"{counted(len(models), 'run')}, {in_words(facts['protocol'], facts['splits'])}. A node may have several "
        "labels.")  # fmt: skip
    several = len(models) > 1
    print_table([
        {"score": MEANINGS[name], "mean": score["mean"], "std over splits": score["over_splits"]}
        | ({"std over seeds": score["over_seeds"]} if several else {})
        for name, score in scores.items()
    ])  # fmt: skip
    say("")
    say("Each label; support is the number of test nodes in a split that have it:")
    print_table([{**row, "support": f"{row['support']:.6g}"} for row in facts["each_label"][:MOST]])
    if len(facts["each_label"]) > MOST:
        say(f"The other {len(facts['each_label']) - MOST:,} labels, with fewer nodes, are in the output of --json.")
    if floors:
        say("")
        say(f"Predictions that need no training, on the first {counted(facts['floor_splits'], 'split')}:")
        print_table(facts["floors"])
        say(facts["verdict"])


def _each_label(results: "Sequence[LabelSetResult]", data: "Data") -> list[dict[str, Any]]:
    """The figures of each label, averaged over the splits in which they are defined; frequent labels first."""
    import numpy as np

    each = [result.each_label() for result in results]
    names = getattr(data, "classes", None) or range(data.y.shape[1])
    rows = []
    for i, name in enumerate(names):
        row: dict[str, Any] = {"label": str(name)}
        for key, title in (("f1", "F1"), ("average_precision", "average precision"), ("ece", "ECE"), ("support", "")):
            values = np.array([one[key][i] for one in each])
            values = values[~np.isnan(values)]
            row[title or key] = float(values.mean()) if len(values) else float("nan")
        rows.append(row)
    return sorted(rows, key=lambda row: -row["support"])


def _compared(data: "Data", protocol: str, results: "Sequence[LabelSetResult]") -> dict[str, Any]:
    """The model next to predictions that need no training, on the same splits."""
    from bgcl.baselines.label_set_floors import LabelSetFloor, label_set_floors, label_set_verdict
    from bgcl.downstream.splits import splits

    few = results[:FLOOR_SPLITS]
    with stage("comparing with predictions that need no training"):
        found = label_set_floors(data, splits(data, protocol, len(few)))
    model = LabelSetFloor.of("this model", few)
    rows = [
        {"prediction": f.name, "micro F1": f.micro_f1, "macro F1": f.macro_f1, "average precision": f.average_precision,
         "ECE": f.ece}
        for f in [*found, model]
    ]  # fmt: skip
    return {"floors": rows, "floor_splits": len(few), "verdict": label_set_verdict(model, found)}


def facts_of(found: "PredictedLabelSets") -> tuple[dict[str, Any], str]:
    """What `bgcl predict` says about predicted labels: for JSON, and in a sentence."""
    from bgcl.downstream.label_set_results import f1

    known = found.label[:, 0] >= 0
    facts = {"task": "label sets", "nodes": len(known), "labeled": int(known.sum()), "labels": len(found.names)}
    sentence = f"{len(known):,} nodes, each with the labels whose probability is at least one half"
    if known.any():
        share = float(f1(found.predicted[known].reshape(-1, 1) == 1, found.label[known].reshape(-1, 1))[0])
        facts["micro_f1"] = share
        sentence += f"; micro F1 on the {facts['labeled']:,} labeled ones, whose labels no head had seen: {share:.3f}"
    return facts, sentence
