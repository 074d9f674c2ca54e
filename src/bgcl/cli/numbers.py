"""What `bgcl evaluate` and `bgcl predict` do if labels are numbers to predict."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgcl.cli.many import leave_to_main
from bgcl.cli.printing import print_json, print_table, say
from bgcl.progress import counted

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.downstream.number_results import NumberResult, PredictedNumbers
    from bgcl.estimator import BGCL

FLOOR_SPLITS = 5
MEANINGS = {
    "rmse": "RMSE (lower is better)",
    "mae": "MAE (lower is better)",
    "r2": "R2 (higher is better, at most 1)",
    "crps": "CRPS (lower is better)",
    "coverage": "coverage of 90 % intervals",
    "width": "width of 90 % intervals",
    "calibration": "calibration error of quantiles",
}


def evaluate_numbers(
    models: "list[BGCL]", graphs: "list[Data]", facts: dict[str, Any], *, splits: int | None, samples: int,
    seed: int | None, floors: bool, out: Path | None, show: bool, json: bool,
) -> None:  # fmt: skip
    """Evaluate models on numbers, and print or write the scores."""
    from bgcl.data.output import write_table
    from bgcl.downstream.evaluation import summary
    from bgcl.downstream.numbers import evaluate_numbers as evaluate
    from bgcl.downstream.splits import in_words

    results = [
        evaluate(model, data, facts["protocol"], splits, samples=samples, seed=seed, progress=show)
        for model, data in zip(models, graphs, strict=True)
    ]
    leave_to_main()
    scores = summary(results)  # type: ignore[arg-type]
    facts |= {"task": "numbers", "splits": len(results[0]), "samples": samples}
    if out is not None:
        rows = [{"score": name, **score} for name, score in scores.items()]
        write_table(out, {name: [row[name] for row in rows] for name in rows[0]})
    if floors:
        facts |= _compared(graphs[0], facts["protocol"], results[0], show)
    if json:
        print_json({**facts, "scores": scores})
        return
    say(f"{counted(len(models), 'run')}, {in_words(facts['protocol'], facts['splits'])}. Labels are numbers.")
    several = len(models) > 1
    print_table([
        {"score": MEANINGS[name], "mean": _digits(score["mean"]), "std over splits": _digits(score["over_splits"])}
        | ({"std over seeds": _digits(score["over_seeds"])} if several else {})
        for name, score in scores.items()
    ])  # fmt: skip
    if floors:
        say("")
        say(f"Predictions that need no training, on the first {counted(facts['floor_splits'], 'split')}:")
        print_table([{k: v if isinstance(v, str) else _digits(v) for k, v in row.items()} for row in facts["floors"]])
        say(facts["verdict"])


def _digits(value: float) -> str:
    """A number of any size, with four digits."""
    return f"{value:.4g}"


def _compared(data: "Data", protocol: str, results: "list[NumberResult]", show: bool) -> dict[str, Any]:
    """The model next to predictions that need no training, on the same splits."""
    from rich.console import Console

    from bgcl.baselines.number_floors import NumberFloor, number_floors, number_verdict
    from bgcl.downstream.splits import splits

    few = results[:FLOOR_SPLITS]
    with Console(stderr=True, quiet=not show).status("Comparing with predictions that need no training"):
        found = number_floors(data, splits(data, protocol, len(few)))
    model = NumberFloor.of("this model", few)
    rows = [
        {"prediction": f.name, "RMSE": f.rmse, "R2": f.r2, "CRPS": f.crps, "coverage of 90 %": f.coverage}
        for f in [*found, model]
    ]
    return {"floors": rows, "floor_splits": len(few), "verdict": number_verdict(model, found)}


def facts_of(found: "PredictedNumbers", level: float) -> tuple[dict[str, Any], str]:
    """What `bgcl predict` says about predicted numbers: for JSON, and in a sentence."""
    import numpy as np

    labeled = int((~np.isnan(found.label)).sum())
    scores = found.scores()
    facts = {"task": "numbers", "nodes": len(found.label), "labeled": labeled, "level": level, **scores}
    return facts, (
        f"{len(found.label):,} nodes, of which {labeled:,} have a number; {scores['coverage']:.1%} of these are in "
        f"their {100 * level:.4g} % interval, R2 {scores['r2']:.3f}"
    )
