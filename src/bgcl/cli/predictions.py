"""`bgcl embed`, `evaluate`, `predict` and `rank`: what a trained model says of its nodes, and how sure it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgcl.cli.common import (
    AnyGraph,
    DrawSeed,
    GraphOf,
    Json,
    NodesOf,
    Quiet,
    RunFolder,
    Samples,
    open_run,
    open_run_on,
    print_json,
    print_table,
    versions,
)
from bgcl.cli.graphs import graph_of
from bgcl.errors import BGCLError, nearest

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

MEASURES_HELP = (
    "least-confidence, entropy, mutual-information, expected-entropy, margin, variation-ratio; "
    "or astd or disagreement, which need no labels."
)
TABLE = "File to write, ending in .csv, .parquet or .json."


def embed(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="File to write, ending in .npz, .csv, .parquet or .json.")],
    samples: Samples = 100,
    draws: Annotated[bool, typer.Option(help="Whether a .npz has every draw, or mean and deviation alone.")] = True,
    hard: Annotated[
        bool, typer.Option("--hard", help="Bernoulli masks, even if the model was trained with relaxed ones.")
    ] = False,
    seed: DrawSeed = None,
    graph: AnyGraph = None,
    nodes: NodesOf = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Draw embeddings: mean, deviation and ASTD of each node; in a .npz also the draws and the fixed embedding."""
    from bgcl.data.output import check_ending

    if out.suffix != ".npz":
        check_ending(out)
    import numpy as np

    from bgcl.data.output import storable, write_table
    from bgcl.files import whole
    from bgcl.model.posterior import RunningMoments

    model, data = open_run_on(run, graph, nodes, quiet)
    if samples < 2:
        raise BGCLError(f"A deviation needs 2 samples or more. Got {samples} instead.")
    running = RunningMoments()
    keep = draws and out.suffix == ".npz"
    drawn = []
    for draw in model.draws(data, samples, hard=hard, seed=seed):
        running.add(draw)
        if keep:
            drawn.append(draw.cpu().numpy())
    found = running.moments()
    parts = {"mean": found.mean, "deviation": found.deviation, "astd": found.astd}
    arrays: dict[str, Any] = {"ids": storable(data.ids)} if "ids" in data else {}
    arrays |= {name: tensor.cpu().numpy() for name, tensor in parts.items()}
    if out.suffix == ".npz":
        arrays |= {"fixed": model.embed(data).numpy()} | ({"draws": np.stack(drawn)} if keep else {})
        with whole(out) as part:
            np.savez(part, **arrays)
    else:
        columns = {"id": data.ids} if "ids" in data else {}
        columns |= {"node": np.arange(len(arrays["astd"])), "astd": arrays["astd"]}
        for name in ("mean", "deviation"):
            columns |= {f"{name}_{i}": column for i, column in enumerate(arrays[name].T)}
        write_table(out, columns)
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    if json:
        print_json({"file": str(out), "arrays": shapes})
    else:
        print(f"{out}: " + ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items()))


def evaluate(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs; several that differ by their seed.")],
    protocol: Annotated[
        str | None, typer.Option(help="grace, bgrl, public, wikics or development; by itself what suits the data.")
    ] = None,
    splits: Annotated[int | None, typer.Option(help="Number of splits, instead of the protocol's.")] = None,
    samples: Annotated[int | None, typer.Option(help="Number of draws from the posterior; by itself 100.")] = None,
    appendix: Annotated[
        bool,
        typer.Option("--appendix", help="The paper's procedure: 500 draws, its head on 10, 49 sets of 10 predict."),
    ] = False,
    out: Annotated[Path | None, typer.Option(help=TABLE + " A row for each score.")] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder to save pictures in.")] = None,
    seed: DrawSeed = None,
    graph: GraphOf = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Accuracy, calibration, PAvPU and the finding of errors, over the splits of a protocol."""
    from bgcl.data.output import check_ending, write_table
    from bgcl.downstream import splits as protocols
    from bgcl.downstream.classifier import MixtureClassifier
    from bgcl.downstream.evaluation import APPENDIX, evaluate_model, summary

    if appendix and samples is not None:
        raise BGCLError("--appendix has its own number of samples, 500: leave out --samples.")
    if out is not None:
        check_ending(out)
    how: dict[str, Any] = APPENDIX if appendix else {"samples": 100 if samples is None else samples}
    head = MixtureClassifier.paper if appendix else MixtureClassifier
    opened = [open_run(run, graph, quiet) for run in runs]
    first, settings = opened[0][0], [model.settings.model_dump(mode="json", exclude_none=True) for model, _ in opened]
    for run, (_, data), setting in zip(runs, opened, settings, strict=True):
        first.check_trained_on(data)
        if setting | {"seed": 0} != settings[0] | {"seed": 0}:
            raise BGCLError(
                f"{run} was trained with other settings than {runs[0]}: pooled runs must differ by seed alone."
            )
    chosen, show = protocol or protocols.suited_to(opened[0][1]), not quiet and not json
    results = [
        evaluate_model(model, data, chosen, splits, head=head, seed=seed, progress=show, **how)
        for model, data in opened
    ]
    scores = summary(results)
    facts: dict[str, Any] = {"runs": [str(run) for run in runs], "graph": first.graph_.name, "protocol": chosen}
    facts |= {"splits": len(results[0]), **how, "settings": settings, "versions": versions()}
    if plots is not None:
        from bgcl.reporting.evaluation_plots import save_evaluation

        facts["plots"] = [str(path) for path in save_evaluation([r for run in results for r in run], plots)]
    if out is not None:
        rows = [{"score": name, **score} for name, score in scores.items()]
        write_table(out, {name: [row[name] for row in rows] for name in rows[0]})
    if json:
        print_json({**facts, "scores": scores})
        return
    print(f"{len(runs)} run(s), {len(results[0])} splits of the protocol {chosen}")
    print_table(_score_rows(scores, several=len(runs) > 1))
    print()
    print_table(_measure_rows(scores))
    for path in facts.get("plots", []):
        print(path)


def _score_rows(scores: dict[str, dict[str, float]], several: bool) -> list[dict[str, Any]]:
    """Accuracy and calibration with their spreads."""
    rows = []
    for name, score in scores.items():
        if ":" not in name:
            row = {"score": name, "mean": score["mean"], "over splits": score["over_splits"]}
            rows.append(row | ({"over seeds": score["over_seeds"]} if several else {}))
    return rows


def _measure_rows(scores: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """How well each measure of uncertainty tells wrong from right; the recommended one is marked."""
    from bgcl.measures.uncertainty import MEASURES, RECOMMENDED

    heads = {"auroc": "AUROC of errors", "aupr": "AUPR of errors", "aurc": "risk-coverage", "pavpu": "PAvPU"}
    return [
        {"uncertainty": name.replace("_", " ") + (" *" if name == RECOMMENDED else "")}
        | {text: scores[f"{score}:{name}"]["mean"] for score, text in heads.items()}
        for name in MEASURES
    ]


def predict(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help=TABLE)],
    samples: Samples = 100,
    seed: DrawSeed = None,
    graph: AnyGraph = None,
    nodes: NodesOf = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Class, probability and uncertainty of every node, each by a head that has not seen the node's own label.

    For another graph, with new nodes, heads learn from its labels or, if it has none, from those at training.
    """
    from bgcl.data.output import check_ending, write_table
    from bgcl.downstream.prediction import predict_nodes

    check_ending(out)
    model, data = open_run_on(run, graph, nodes, quiet)
    prediction = predict_nodes(model, data, samples=samples, seed=seed, labels_from=_teacher(model, data, run, graph))
    columns = prediction.columns()
    write_table(out, columns)
    labelled = prediction.label >= 0
    facts = {
        "file": str(out), "nodes": len(prediction.label), "labelled": int(labelled.sum()),
        "agree_with_label": int((prediction.predicted == prediction.label)[labelled].sum()), "columns": list(columns),
    }  # fmt: skip
    if json:
        print_json(facts)
    else:
        print(
            f"{out}: {facts['nodes']:,} nodes, {facts['labelled']:,} labelled, of which the prediction agrees with "
            f"{facts['agree_with_label']:,}"
        )


def _teacher(model: "BGCL", data: "Data", run: Path, graph: str | None) -> "Data | None":
    """The graph whose labels are learned from, if it is not `data`: that of training, for one without labels."""
    if graph is None or (data.y is not None and bool((data.y >= 0).any())):
        return None
    return graph_of(model, run, None, None, quiet=True)


def rank(
    run: RunFolder,
    by: Annotated[str, typer.Option(help=MEASURES_HELP)] = "least-confidence",
    top: Annotated[int, typer.Option(help="How many nodes.")] = 20,
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="Only nodes without a label.")] = False,
    diverse: Annotated[bool, typer.Option("--diverse", help="Nodes that are not all alike: a batch to label.")] = False,
    out: Annotated[Path | None, typer.Option(help=TABLE)] = None,
    samples: Samples = 100,
    seed: DrawSeed = None,
    graph: AnyGraph = None,
    nodes: NodesOf = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """The nodes to review or to label next, the most uncertain first."""
    import numpy as np

    from bgcl.data.output import check_ending, write_table
    from bgcl.downstream.prediction import predict_nodes
    from bgcl.downstream.splits import labels_of
    from bgcl.measures.acquisition import acquire
    from bgcl.measures.acquisition import rank as order_of
    from bgcl.measures.uncertainty import MEASURES

    label_free = ("astd", "disagreement")
    measure = {"entropy": "predictive_entropy"}.get(by, by.replace("-", "_"))
    if measure not in (*MEASURES, *label_free):
        raise BGCLError(f"Unknown measure '{by}'. {nearest(measure, (*MEASURES, *label_free))}")
    if out is not None:
        check_ending(out)
    model, data = open_run_on(run, graph, nodes, quiet)
    if measure in MEASURES and graph is None:
        labels_of(data)
    among = None
    if unlabelled:
        if data.y is None or not bool((data.y < 0).any()):
            raise BGCLError("Every node has a label, or none has: --unlabelled has nothing to choose from.")
        among = np.flatnonzero(data.y.cpu().numpy() < 0)
    if not 1 <= top <= (data.num_nodes if among is None else len(among)):
        raise BGCLError(f"--top must be between 1 and the number of nodes to choose from. Got {top} instead.")
    columns: dict[str, Any]
    if measure == "disagreement":
        columns = {"disagreement": model.disagreement(data, samples, seed=seed)}
    elif measure == "astd":
        columns = {"astd": model.moments(data, samples, seed=seed).astd.cpu().numpy()}
    else:
        teacher = _teacher(model, data, run, graph)
        columns = predict_nodes(model, data, samples=samples, seed=seed, labels_from=teacher).columns()
    values = np.asarray(columns[measure])
    chosen = acquire(values, model.embed(data).numpy(), top, among=among) if diverse else order_of(values, among)
    best = chosen[:top]
    table = {"id": np.asarray(data.ids)[best]} if "ids" in data else {}
    table |= {"rank": np.arange(1, top + 1), "node": best}
    shown = [name for name in ("label", "predicted", "probability") if name in columns]
    table |= {name: np.asarray(columns[name])[best] for name in [*shown, measure]}
    rows = [dict(zip(table, row, strict=True)) for row in zip(*(c.tolist() for c in table.values()), strict=True)]
    if out is not None:
        write_table(out, table)
    if json:
        print_json(rows)
    elif out is None:
        print_table(rows)
    else:
        print(f"{out}: {top} nodes by {measure.replace('_', ' ')}")
