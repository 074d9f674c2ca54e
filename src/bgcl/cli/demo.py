"""`bgcl demo`: train on Cora, classify its nodes, and show how reliable the predictions are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgcl.cli.options import Json, Quiet
from bgcl.cli.printing import print_all_rates, print_json, print_table, rates_as_json
from bgcl.cli.train import fit_and_save
from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from bgcl.downstream.evaluation import Array, SplitResult

SPLITS = 10


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the run, the plots and the report. An older demo there is replaced.")
    ] = Path("run"),
    epochs: Annotated[
        int | None, typer.Option(help="Number of epochs. Default: until training settles, at most 300 steps.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random number.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run in the folder that is not an older demo. Default: off.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train on the bundled Cora graph, classify its nodes, and write a report page and plots."""
    import numpy as np
    from rich.console import Console

    from bgcl.data.store import load
    from bgcl.downstream.evaluation import evaluate, summary
    from bgcl.downstream.kept_results import KeptResults
    from bgcl.estimator import BGCL
    from bgcl.files import sole_use
    from bgcl.measures.uncertainty import RECOMMENDED
    from bgcl.reporting.plots import save, save_evaluation
    from bgcl.reporting.report.page import report
    from bgcl.settings import DEFAULT

    data = load("cora")
    show = not (quiet or json)
    console = Console(quiet=not show)
    console.print(f"Cora: {data.num_nodes:,} papers, {data.num_edges // 2:,} citations. Training without labels.")
    model = BGCL(seed=seed, epochs=DEFAULT if epochs is None else epochs)
    with sole_use(out):
        if not overwrite:
            _check_replaceable(out)
        fit_and_save(model, data, out, "cora", show=show)
        console.print(f"Training classifiers on the labels of 10 % of the papers, {SPLITS} random splits.")
        kept = KeptResults(out, model)  # the report shows the draws of the evaluation
        results = evaluate(model, data, "grace", SPLITS, progress=show, kept=kept)
        plots = {"training.png": model.plot_training(), "drop_rates.png": model.plot_drop_rates()}
        for name, figure in plots.items():
            save(figure, out / name)
        pictures = [*(out / name for name in plots), *save_evaluation(results, out)]
        console.print("Drawing the map of the papers for the report.")
        page = report(model, data, out / "report.html", progress=show, kept=kept)
    first = results[0]
    order = np.argsort(getattr(first.uncertainty, RECOMMENDED))
    scores = summary([results])
    found: dict[str, Any] = {
        "scores": scores,
        "drop_rates": rates_as_json(model.drop_rates_),
        "most_certain": _rows(first, order[:3]),
        "least_certain": _rows(first, order[-3:][::-1]),
        "pictures": [str(path) for path in pictures],
        "report": str(page),
    }
    if json:
        print_json(found)
        return
    _print_scores(scores, RECOMMENDED)
    print("\nThe three most certain and the three least certain test papers of the first split:")
    print_table([*found["most_certain"], *found["least_certain"]])
    print("\nWhat each view learned to drop:")
    print_all_rates(model)
    print(f"\nPlots: {', '.join(found['pictures'])}")
    print(f"Report: {page}")


def _check_replaceable(out: Path) -> None:
    """Raise a `BGCLError` if the folder has a run that is not an older demo."""
    from bgcl import checkpoint
    from bgcl.settings import Settings

    if not checkpoint.is_run(out):
        return
    saved = checkpoint.read(out)
    is_default = saved.settings.with_changes(seed=0, epochs=2) == Settings(epochs=2)
    if not (is_default and saved.graph.name == "cora" and (out / "report.html").is_file()):
        raise BGCLError(f"{out} holds a run that is no demo. Name another folder with --out, or add --overwrite.")


def _rows(result: "SplitResult", which: "Array") -> list[dict[str, Any]]:
    """Some test nodes of a split: the predicted class, its probability, and the true class."""
    probability = result.uncertainty.probability[which]
    return [
        {"node": int(node), "label": int(label), "predicted": int(row.argmax()), "probability": float(row.max())}
        for node, label, row in zip(result.test[which], result.label[which], probability, strict=True)
    ]


def _print_scores(scores: dict[str, dict[str, float]], measure: str) -> None:
    words = {
        "accuracy": "accuracy (higher is better)",
        "ece": "calibration error, ECE (lower is better)",
        f"pavpu:{measure}": "area under PAvPU (higher is better)",
        f"auroc:{measure}": "error detection, AUROC (higher is better)",
    }
    print_table([
        {"score": text, "mean": scores[name]["mean"], "std over splits": scores[name]["over_splits"]}
        for name, text in words.items()
    ])  # fmt: skip
