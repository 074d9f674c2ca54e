"""`bgcl demo`: train on Cora, predict its nodes from the draws, and show how far the predictions can be trusted."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bgcl.cli.common import fit_and_keep, print_json, print_rates, print_table
from bgcl.data import load
from bgcl.downstream.evaluation import Array, SplitResult, evaluate_model, summary
from bgcl.estimator import BGCL
from bgcl.measures.uncertainty import RECOMMENDED
from bgcl.reporting.evaluation_plots import save_evaluation
from bgcl.reporting.report.page import report
from bgcl.reporting.training_plots import posterior_figure, save, training_figure

SPLITS = 10


def run_demo(out: Path, *, seed: int, quiet: bool, json: bool, **settings: Any) -> None:
    """Train, evaluate, print tables, and save pictures and the report in the run's folder."""
    data = load("cora")
    show = not (quiet or json)
    console = Console(quiet=not show)
    console.print(f"Cora: {data.num_nodes:,} papers, {data.num_edges // 2:,} citations. Training without labels.")
    model = BGCL(preset="cora", seed=seed, **settings)
    fit_and_keep(model, data, out, "cora", show=show)
    console.print(f"Classifying from the draws, with the labels of 10 % of the papers, {SPLITS} random splits.")
    results = evaluate_model(model, data, "grace", SPLITS, progress=show)
    save(training_figure(model.history_), out / "training.png")
    save(posterior_figure(model.history_), out / "drop_rates.png")
    pictures = [out / "training.png", out / "drop_rates.png", *save_evaluation(results, out)]
    console.print("Drawing the map of the papers for the report.")
    page = report(model, data, out / "report.html", progress=show)
    first = results[0]
    order = np.argsort(getattr(first.uncertainty, RECOMMENDED))
    scores = summary([results])
    found: dict[str, Any] = {
        "scores": scores,
        "drop_rates": model.drop_rates_,
        "most_certain": _rows(first, order[:3]),
        "least_certain": _rows(first, order[-3:][::-1]),
        "pictures": [str(path) for path in pictures],
        "report": str(page),
    }
    if json:
        print_json(found)
        return
    _print_scores(scores)
    print("\nThe most and the least certain papers whose label was not seen, in the first split:")
    print_table([*found["most_certain"], *found["least_certain"]])
    print("\nWhat each view learned to drop:")
    print_rates(model)
    print(f"\nPictures: {', '.join(str(path) for path in pictures)}")
    print(f"A page to look at: {page}")


def _rows(result: SplitResult, which: Array) -> list[dict[str, Any]]:
    """Some test nodes of a split: what was predicted, how sure, and what is true."""
    probability = result.uncertainty.probability[which]
    return [
        {"node": int(node), "label": int(label), "predicted": int(row.argmax()), "probability": float(row.max())}
        for node, label, row in zip(result.test[which], result.label[which], probability, strict=True)
    ]


def _print_scores(scores: dict[str, dict[str, float]]) -> None:
    words = {
        "accuracy": "accuracy, more is better",
        "ece": "calibration error (ECE), less is better",
        f"pavpu:{RECOMMENDED}": "PAvPU, area, more is better",
        f"auroc:{RECOMMENDED}": "AUROC of finding errors, more is better",
    }
    print_table([
        {"score": text, "mean": scores[name]["mean"], "deviation over splits": scores[name]["over_splits"]}
        for name, text in words.items()
    ])  # fmt: skip
