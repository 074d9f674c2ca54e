"""Tables from result files: Markdown for `docs/results.md` and the README, plain text for the terminal.

No number on these pages is typed by hand: a test makes the pages again and compares.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bgcl.reproduce import draws_page, field_page, paper, rates_page, results, trust_page
from bgcl.reproduce.experiments import EXPERIMENTS, LEARNED, REASONS, TITLES, Experiment, variants
from bgcl.reproduce.figures import FIGURES, panels
from bgcl.reproduce.results import Result, accuracy_text

Rows = list[list[str]]


def accuracy_rows(experiment: Experiment, found: Sequence[Result]) -> Rows:
    """One row for each method: our accuracy, and the paper's in brackets. The first row is the header."""
    rows = [["method", *experiment.datasets]]
    for method in experiment.methods:
        cells = []
        for dataset in experiment.datasets:
            ours = results.of(found, method, dataset)
            theirs = paper.number(experiment.name, method, dataset)
            cells.append(f"{accuracy_text(ours)} [{_paper(theirs)}]")
        rows.append([TITLES[method], *cells])
    return rows


def _paper(theirs: list[float] | None) -> str:
    return "-" if theirs is None else " ± ".join(f"{value:g}" for value in theirs)


def against_rows(found: Sequence[Result], datasets: Sequence[str], ours: str, theirs: str) -> Rows:
    """The difference in percentage points on the same splits, and one-sided t-tests over the training seeds."""
    difference = f"{TITLES[ours]} minus {TITLES[theirs]}, points"
    rows = [["data set", "seeds", difference, "p-value, paired by seed", "p-value, Welch"]]
    for dataset in datasets:
        test = results.compare(results.of(found, ours, dataset), results.of(found, theirs, dataset))
        if test is not None:
            p = ["below 0.0001" if p < 1e-4 else f"{p:.4f}" for p in (test.paired, test.welch)]
            rows.append([dataset, str(test.seeds), f"{test.difference:+.2f}", *p])
    return rows


def far_rows(experiment: Experiment, found: Sequence[Result], points: float = 1.0) -> Rows:
    """Baselines whose accuracy differs from the paper's by more than some points, and the accuracy of their variants.

    A difference is explained if a variant is within these points of the paper's number, and bracketed if the paper's
    number lies between those of the method and its variants.
    """
    rows = [["method", "data set", "ours", "paper", "difference", "variants", "explained"]]
    for method in experiment.methods:
        for dataset in experiment.datasets:
            theirs, ours = paper.number(experiment.name, method, dataset), results.of(found, method, dataset)
            if not (theirs and ours) or method.startswith("bgcl"):
                continue
            mean = results.accuracy(ours)[0]
            if abs(mean - theirs[0]) > points:
                variants = {
                    label: results.accuracy(other)[0]
                    for label in REASONS
                    if (other := results.of(found, method, dataset, label))
                }
                near = any(abs(value - theirs[0]) <= points for value in variants.values())
                between = min(every := [mean, *variants.values()]) < theirs[0] < max(every)
                rows.append([
                    TITLES[method], dataset, f"{mean:.2f}", f"{theirs[0]:g}", f"{mean - theirs[0]:+.2f}",
                    "; ".join(f"{label}: {value:.2f}" for label, value in variants.items()),
                    "yes" if near else "bracketed" if between else "no",
                ])  # fmt: skip
    return rows


def detail_rows(found: Sequence[Result], datasets: Sequence[str], method: str) -> Rows:
    """Details of BGCL: blind accuracy, calibration, error detection, learned rates and training time."""
    rows = [[
        "data set", "accuracy, %", "blind accuracy, %", "ECE", "AUROC of errors", "area under PAvPU", "drop rates",
        "training, s",
    ]]  # fmt: skip
    for dataset in datasets:
        if ours := results.of(found, method, dataset):
            scores = _means(ours, "ece", "auroc:least_confidence", "pavpu:predictive_entropy")
            rows.append([dataset, accuracy_text(ours), f"{_blind(ours):.2f}", *scores, _rates(ours), _training(ours)])
    return rows


def pavpu_rows(found: Sequence[Result]) -> Rows:
    """Areas under PAvPU, accuracy, and at how many of the 11 thresholds BGCL is above, with each of its two heads."""
    experiment = EXPERIMENTS["pavpu"]
    names = ("pavpu:predictive_entropy", "pavpu:mutual_information", "ece", "auroc:least_confidence")
    rows = [[
        "data set", "method", "accuracy, %", "area under PAvPU", "area by mutual information", "ECE", "AUROC of errors",
        "thresholds with BGCL above, of 11", "with the head for PAvPU above, of 11",
    ]]  # fmt: skip
    for dataset in experiment.datasets:
        for method in experiment.methods:
            if theirs := results.of(found, method, dataset):
                above = ["" if method.startswith("bgcl") else _above(found, ours, theirs, dataset) for ours in BAYESIAN]
                rows.append([dataset, TITLES[method], accuracy_text(theirs), *_means(theirs, *names), *above])
    return rows


BAYESIAN = ("bgcl", "bgcl-bold")


def _above(found: Sequence[Result], ours: str, theirs: list[Result], dataset: str) -> str:
    """At how many thresholds our mean PAvPU curve is above theirs."""
    if not (bgcl := results.of(found, ours, dataset)):
        return ""
    return str(int((results.curve(bgcl, "pavpu") > results.curve(theirs, "pavpu")).sum()))


def astd_rows(found: Sequence[Result]) -> Rows:
    """The median increase of ASTD at each distance from the noisy nodes."""
    hops = range(6)
    rows = [["data set", "noise", *("1 hop" if hop == 1 else f"{hop} hops" for hop in hops)]]
    for dataset, label in panels(found):
        ours = results.of(found, "bgcl", dataset, label)
        rows.append([dataset, label, *(_median(ours, hop) for hop in hops)])
    return rows


def _median(ours: list[Result], hop: int) -> str:
    medians = [result["quantiles"][hop][2] for result in ours if result["quantiles"][hop]]
    return f"{np.mean(medians):.4f}" if medians else "no nodes"


def ablation_rows(found: Sequence[Result]) -> dict[str, Rows]:
    """A table for each question, with one row for each answer."""
    tables = {}
    for question, answers in variants().items():
        rows = [[question, "accuracy, %", "ECE", "AUROC of errors", "drop rates at the end", "training, s"]]
        for answer in answers:
            if ours := results.of(found, "bgcl", "cora", f"{question}: {answer}"):
                scores = _means(ours, "ece", "auroc:least_confidence")
                rows.append([answer, accuracy_text(ours), *scores, _rates(ours), _training(ours)])
        if len(rows) > 1:
            tables[question] = rows
    return tables


def grid_rows(found: Sequence[Result]) -> Rows:
    """Learned rates and the best point of the grid, over the seeds that all points have.

    A user would choose the point on labeled nodes and use it for others. So one point is chosen on the development half
    and compared on the other half.
    """
    rows = [["drop rates", "accuracy, %", "blind accuracy, %", "training runs", "training, s"]]
    points = {answer: results.of(found, "bgcl", "cora", f"{LEARNED}: {answer}") for answer in variants()[LEARNED]}
    seeds = set.intersection(*({result["cell"]["seed"] for result in ours} for ours in points.values()))
    if not seeds:
        return rows
    points = {answer: [result for result in ours if result["cell"]["seed"] in seeds] for answer, ours in points.items()}
    learned, grid = points.pop("learned"), [result for ours in points.values() for result in ours]
    for name, chosen, every in (
        ("learned", learned, learned),
        ("best of the grid on the development half", max(points.values(), key=_development), grid),
        ("best of the grid on all test nodes", max(points.values(), key=lambda ours: results.accuracy(ours)[0]), grid),
    ):
        cost = sum(result["training_seconds"] for result in every) / len(seeds)
        which = f"{_rates(chosen)}: {name}"
        rows.append(
            [which, accuracy_text(chosen), f"{_blind(chosen):.2f}", str(len(every) // len(seeds)), f"{cost:.0f}"]
        )
    return rows


def _blind(ours: list[Result]) -> float:
    return float(100 * np.mean([result["blind"] for result in ours]))


def _development(ours: list[Result]) -> float:
    """Accuracy on the test nodes of the development half. The two halves have the same size."""
    return 2 * results.accuracy(ours)[0] - _blind(ours)


def _means(ours: list[Result], *names: str) -> list[str]:
    return [f"{np.mean([result['scores'][name][0] for result in ours]):.3f}" for name in names]


def _rates(ours: list[Result]) -> str:
    """The expected drop rate of each mask, averaged over views, layers, blocks and seeds."""
    masks = len(ours[0]["drop_rates"]["o"])
    return ", ".join(
        f"{np.mean([np.mean(result['drop_rates'][view][i]['mean']) for result in ours for view in 'ot']):.2f}"
        for i in range(masks)
    )


def _training(ours: list[Result]) -> str:
    return f"{np.mean([result['training_seconds'] for result in ours]):.0f}"


def text(name: str, found: Sequence[Result]) -> str:
    """The tables of an experiment for the terminal."""
    every = tables(name, found)
    if name in INTRODUCTIONS:
        return "\n\n".join(f"{title}\n{_plain(rows)}" for title, rows in every.items())
    return "\n\n".join(_plain(rows) for rows in every.values())


def tables(name: str, found: Sequence[Result]) -> dict[str, Rows]:
    """All tables of an experiment, by title."""
    experiment = EXPERIMENTS[name]
    if name == "pavpu":
        return {experiment.title: pavpu_rows(found)}
    if name == "astd":
        return {experiment.title: astd_rows(found)}
    if name == "ablations":
        against = {"Learned rates against the grid": rows} if len(rows := grid_rows(found)) > 1 else {}
        return against | ablation_rows(found)
    if name == "field":
        return field_page.tables(found)
    if name == "rates":
        return rates_page.tables(found)
    if name == "draws":
        return draws_page.tables(found)
    if name == "trust":
        return trust_page.tables(found)
    every = {experiment.title: accuracy_rows(experiment, found)}
    ours = "bgcl" if name == "table1" else "bgcl-fixed"
    for title, rows in (
        (f"{TITLES[ours]} in detail", detail_rows(found, experiment.datasets, ours)),
        ("Against GRACE on the same splits", against_rows(found, experiment.datasets, ours, "grace")),
        ("Baselines more than one point from the paper's number", far_rows(experiment, found)),
    ):
        if len(rows) > 1:
            every[title] = rows
    return every


def _plain(rows: Rows) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def markdown(rows: Rows) -> str:
    """A Markdown table. The first row is the header."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def page(folder: Path, introduction: str) -> str:
    """The text of `docs/results.md`: the introduction and a table for each result file in `folder`."""
    parts = [introduction.strip()]
    for name, title in HEADINGS.items():
        if not (found := results.read(results.path_of(folder, name))):
            continue
        parts.append(f"## {title}")
        if name in FIGURES:
            parts.append(f"![{title}](images/{name}.png)")
        if name in INTRODUCTIONS:
            parts.append(INTRODUCTIONS[name])
        for heading, rows in tables(name, found).items():
            if (name not in FIGURES or name in INTRODUCTIONS) and heading != EXPERIMENTS[name].title:
                parts.append(f"### {heading[0].upper()}{heading[1:]}")
            parts.append(markdown(rows))
        parts.append(_how(found))
    if len(search := search_rows(folder)) > 1:
        parts += ["## The search for the defaults", SEARCH, markdown(search)]
    return "\n\n".join(parts) + "\n"


SEARCH = """These are all trials in the order in which they were made, on the development half. The training nodes of a
split are 10 % of the graph, all from this half. The rest of the half are test nodes. Each trial has one seed, 0 if
the table does not name it. Differences below one point mean little. Code and defaults changed during the search, so an
early trial cannot be repeated from its settings alone. The trials with `steps` are those of today's default. They have
10 splits on Cora and Citeseer, 3 on graphs of more than 12,000 nodes, and 6 on the others. Those with `parts` are the
last ones, with 4 or 5 splits: six parts, or nine with the three among alike nodes. The first 18 of them were made
with code outside the library, in which the weights of alike nodes fell more slowly, and all nodes were looked at."""


def search_rows(folder: Path) -> Rows:
    """All trials of the search for the defaults, in order, with accuracy on the development half."""
    path = folder / "search.json"
    trials = json.loads(path.read_text("utf-8"))["trials"] if path.exists() else []
    rows = [["data set", "masks", "other settings", "embedding without masks, %", "mixture of draws, %"]]
    for trial in trials:
        settings = dict(trial["settings"])
        dropped = "; ".join(settings.pop("drop"))
        others = ", ".join(f"{name} {value}" for name, value in settings.items() if name != "widths")
        accuracies = [f"{100 * trial[kind]['accuracy']:.2f}" if kind in trial else "-" for kind in ("fixed", "mixture")]
        rows.append([trial["dataset"], dropped, others, *accuracies])
    return rows


HEADINGS = {
    "table1": "Table 1: accuracy",
    "table2": "Table 2: the non-Bayesian setting",
    "pavpu": "Figure 2: PAvPU",
    "astd": "Figures 3 and 4: noise in the attributes",
    "ablations": "Ablations",
    "field": "The field: other methods on the same splits",
    "rates": "Learned rates and a grid of fixed rates",
    "draws": "Starts, seeds and draws",
    "trust": "Trust: unknown nodes, sets and shifts",
}
INTRODUCTIONS = {
    "field": field_page.INTRODUCTION, "rates": rates_page.INTRODUCTION, "draws": draws_page.INTRODUCTION,
    "trust": trust_page.INTRODUCTION,
}  # fmt: skip


def _how(found: Sequence[Result]) -> str:
    """A sentence about runs, time, splits and versions."""
    found = list({json.dumps(result["cell"] | {"label": ""}, sort_keys=True): result for result in found}.values())
    seeds = sorted({(result["cell"]["dataset"], result["cell"]["splits"]) for result in found})
    splits = ", ".join(f"{dataset} {count}" for dataset, count in seeds if count)
    hours = sum(result["seconds"] for result in found) / 3600
    made = sorted({" ".join(f"{name} {number}" for name, number in result["versions"].items()) for result in found})
    about = f"{len(found)} runs, {hours:.1f} hours in total."
    return f"{about} Splits: {splits}. {'; '.join(made)}." if splits else f"{about} {'; '.join(made)}."
