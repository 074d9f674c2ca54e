"""The tables of the experiment `field`, and what papers report, from the file `field.toml`."""

import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from bgcl.reproduce import results
from bgcl.reproduce.experiments import title_of
from bgcl.reproduce.field import (
    DATASETS,
    EMBEDDINGS_ALONE,
    FEW,
    HALF,
    LINEAR_HEAD,
    METHODS,
    MORE,
    POOLED_HEAD,
    WITHOUT_MASKS,
    labeled,
    protocols,
)
from bgcl.reproduce.results import Result

Rows = list[list[str]]

OURS = "bgcl-default"
ERRORS = "auroc:least_confidence"
SHARES = {FEW: "10 % of the labels", MORE: MORE, HALF: HALF}
VARIANTS = ("", EMBEDDINGS_ALONE, WITHOUT_MASKS, LINEAR_HEAD)
COLUMNS = [*((method, "") for method in METHODS), *((OURS, v) for v in VARIANTS[1:])]  # methods, variants
# The columns of the tables in which every method has the head of the default.
POOLED = [
    *((method, POOLED_HEAD) for method in METHODS if method not in ("neighbor-vote", "bgcl", OURS)),
    (OURS, EMBEDDINGS_ALONE),
]
REPORTED = (
    "amazon-photo", "amazon-computers", "coauthor-cs", "coauthor-physics", "pubmed", "cora", "citeseer", "wikics",
)  # fmt: skip

INTRODUCTION = """`bgcl reproduce field` compares the default of this library, `bgcl.BGCL()`, with other methods. No
method sees a label while it trains. All have the same splits, and validation nodes are not used. The head of the other
methods is logistic regression, whose penalty is chosen by cross-validation within the training nodes. The head of
propagated features chooses one part or all of them in the same way. The default has the pooled head of the library,
which has a head for each part of the embedding and two of a kernel, and which uses the labels of training nodes that
are near in the graph. So the default is also shown without these labels, without masks (and without these labels), and
with a linear head. In tables of their own the others have the pooled head too; there no method uses labels of near
nodes. The vote of neighbors has no head.

A number is the mean over splits and seeds. In brackets are the standard deviation over splits and, where there are
several seeds, over seeds. A dash means that the cell was not computed.

Each method has the settings that its authors published for the graph, or its defaults. There are three exceptions.
SIGNA has the encoder and the objective of the authors, but in batches and with 500 steps: it is not their run. BGRL
has 500 epochs instead of 10,000. GRACE has 300 steps in batches on PubMed and on graphs that its authors did not use.
"BGCL, the paper's" is the paper's encoder and objective, with a preset on five of the graphs.

The p-values are of Wilcoxon's signed-rank test, two-sided, over the splits, each averaged over the seeds. Splits of one
graph share nodes, so the p-values are smaller than those of independent samples would be.

The time of a training was measured in a process with one thread, while other processes computed beside it. On the
larger graphs there were more of them for the default than for the others, so its time there is too long. So compare
the methods, not the seconds."""


def tables(found: Sequence[Result]) -> dict[str, Rows]:
    """All tables by title."""
    every: dict[str, Rows] = {}
    for label, share in SHARES.items():
        shown = [result for result in found if result["cell"]["label"] in [labeled(name, label) for name in VARIANTS]]
        if shown:
            for score, text in _SCORES.items():
                every[f"{score} with {share}"] = _rows(shown, label, text)
            every[f"{title_of('field', OURS)} minus the others with {share}, points (p-value)"] = _against(shown, label)
        pooled = [result for result in found if result["cell"]["label"] == labeled(POOLED_HEAD, label)]
        if pooled:
            pooled += [result for result in shown if result["cell"]["method"] == OURS]
            for score, text in _SCORES.items():
                every[f"{score}, the pooled head for all, {share}"] = _rows(pooled, label, text, POOLED)
    others = {
        "AUROC of the rare class": _rare(found),
        "Drop rates that the default learned": learned_rates(found),
        "Time and memory of training": _costs(found),
    }
    for title, rows in others.items():
        if len(rows) > 1:
            every[title] = rows
    return every | {"What papers report, %": claims(), "What their code does": findings()}


def _graphs(label: str) -> list[str]:
    return [dataset for dataset in DATASETS if label in protocols(dataset)]


def _titles(columns: Sequence[tuple[str, str]] = COLUMNS) -> list[str]:
    return [labeled(title_of("field", method), variant) for method, variant in columns]


def _rows(
    found: Sequence[Result], label: str, text: Callable[[list[Result]], str],
    columns: Sequence[tuple[str, str]] = COLUMNS,
) -> Rows:  # fmt: skip
    """One row for each graph with results, and one column for each method. The first row is the header."""
    rows = [["graph", *_titles(columns)]]
    for dataset in _graphs(label):
        cells = [text(results.of(found, method, dataset, labeled(variant, label))) for method, variant in columns]
        rows += _unless_empty([dataset], cells)
    return rows


def _unless_empty(begin: list[str], cells: list[str]) -> Rows:
    return [] if set(cells) == {"-"} else [[*begin, *cells]]


def _mean(ours: list[Result], score: str) -> str:
    values = [result["scores"][score][0] for result in ours if score in result["scores"]]
    return f"{np.mean(values):.3f}" if values else "-"


_SCORES: dict[str, Callable[[list[Result]], str]] = {
    "Accuracy in %": results.accuracy_text,
    "ECE": lambda ours: _mean(ours, "ece"),
    "AUROC of errors": lambda ours: _mean(ours, ERRORS),
}


def _against(found: Sequence[Result], label: str) -> Rows:
    """The difference of the default to each other method on the same splits, and the p-value of Wilcoxon's test."""
    columns = [column for column in COLUMNS if column != (OURS, "")]
    rows = [["graph", *_titles(columns)]]
    for dataset in _graphs(label):
        ours, cells = results.of(found, OURS, dataset, label), []
        for method, variant in columns:
            theirs = results.of(found, method, dataset, labeled(variant, label))
            test = results.compare_by_split(ours, theirs)
            cells.append("-" if test is None else f"{test[0]:+.2f} ({_p(test[1])})")
        rows += _unless_empty([dataset], cells)
    return rows


def _p(value: float) -> str:
    return "below 0.0001" if value < 1e-4 else f"{value:.4f}"


def _rare(found: Sequence[Result]) -> Rows:
    """The AUROC of the rare class on graphs with two classes."""
    rows = [["graph", "training nodes", *_titles()]]
    for dataset in DATASETS:
        for label in protocols(dataset):
            cells = [
                _mean(results.of(found, method, dataset, labeled(variant, label)), "rare_auroc")
                for method, variant in COLUMNS
            ]
            rows += _unless_empty([dataset, SHARES[label]], cells)
    return rows


def learned_rates(found: Sequence[Result]) -> Rows:
    """The mean of the learned posterior of each mask and view, with the standard deviation over seeds."""
    rows: Rows = []
    for dataset in DATASETS:
        of_graph = results.of(found, OURS, dataset, next(iter(protocols(dataset))))
        ours = [result for result in of_graph if "drop_rates" in result]
        if not ours:
            continue
        rates = [
            {
                f"{mask['mask']}, view {view}": np.mean(mask["mean"])
                for view, masks in result["drop_rates"].items()
                for mask in masks
            }
            for result in ours
        ]
        rows = rows or [["graph", "seeds", *rates[0]]]
        rows.append([dataset, str(len(ours)), *(_with_spread([each[name] for each in rates]) for name in rates[0])])
    return rows


def _with_spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.2f}" + (f" ({np.std(values, ddof=1):.2f})" if len(values) > 1 else "")


def _costs(found: Sequence[Result]) -> Rows:
    """Time and peak memory of one training, averaged over seeds. Both shares of labels have the same training."""
    columns = [(method, "") for method in METHODS]
    rows = [["graph", *_titles(columns)]]
    for dataset in DATASETS:
        label = next(iter(protocols(dataset)))
        cells = [_cost(results.of(found, method, dataset, label)) for method, _ in columns]
        rows += _unless_empty([dataset], cells)
    return rows


def _cost(ours: list[Result]) -> str:
    measured = [result for result in ours if "fit_seconds" in result]
    if not measured:
        return "-"
    seconds = f"{np.mean([result['fit_seconds'] for result in measured]):.0f} s"
    peaks = [result["peak_mib"] for result in measured if result["peak_mib"]]
    return f"{seconds}, {np.mean(peaks):.0f} MiB" if peaks else seconds


@cache
def _papers() -> list[dict[str, Any]]:
    text = (resources.files("bgcl.reproduce") / "field.toml").read_text("utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["papers"]
    return found


def claims() -> Rows:
    """One row for each paper: its split, and the accuracy that it reports."""
    rows = [["method", "split", *REPORTED]]
    for paper in _papers():
        accuracy = [paper["accuracy"].get(dataset, "-") for dataset in REPORTED]
        rows.append([f"{paper['method']} ({paper['venue']})", paper["split"], *accuracy])
    return rows


def findings() -> Rows:
    """What was found in the code of each paper."""
    return [["method", "in its code"]] + [[paper["method"], paper["code"]] for paper in _papers() if "code" in paper]


def readme_rows(found: Sequence[Result]) -> Rows:
    """The table of the README: the default, no training, and the best of what papers report, with few labels."""
    rows = [["graph", "BGCL, %", "no training, %", "best published, %", "ECE", "AUROC of errors"]]
    for dataset in DATASETS:
        label = next(iter(protocols(dataset)))
        if ours := results.of(found, OURS, dataset, label):
            heads = [
                results.of(found, "propagated-features", dataset, labeled(head, label)) for head in ("", POOLED_HEAD)
            ]
            floor = results.accuracy_text(max(heads, key=lambda each: results.accuracy(each)[0] if each else -1.0))
            scores = [_mean(ours, "ece"), _mean(ours, ERRORS)]
            rows.append([dataset, results.accuracy_text(ours), floor, _best_published(dataset), *scores])
    return rows


def _best_published(dataset: str) -> str:
    """The greatest accuracy that a paper reports for random splits, with the method."""
    claims = [(paper["accuracy"][dataset], paper["method"]) for paper in _papers() if dataset in paper["accuracy"]]
    random = [(float(accuracy), method) for accuracy, method in claims if "public" not in accuracy]
    return "-" if not random else "{:.2f} ({})".format(*max(random))
