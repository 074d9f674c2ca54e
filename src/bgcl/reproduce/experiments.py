"""The cells of each table and figure of the paper, of the ablations, and of the comparison with the field."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bgcl.errors import BGCLError, nearest
from bgcl.reproduce import draw_rates, field, paper, rate_grid, trust
from bgcl.reproduce.cells import Cell
from bgcl.settings import Settings, presets

TITLES = {
    "majority-class": "Most frequent class",
    "neighbor-vote": "Vote of neighbors",
    "raw-features": "Raw features",
    "propagated-features": "Propagated features, no training",
    "random-encoder": "BGCL's encoder, untrained",
    "node2vec": "node2vec",
    "deepwalk": "DeepWalk",
    "deepwalk-features": "DeepWalk + features",
    "gae": "GAE",
    "vgae": "VGAE",
    "dgi": "DGI",
    "bgrl": "BGRL",
    "grace": "GRACE",
    "cca-ssg": "CCA-SSG",
    "signa": "SIGNA, few steps",
    "bgcl": "BGCL",
    "bgcl-default": "BGCL, default",
    "bgcl-fixed": "BGCL, non-Bayesian",
    "bgcl-batches": "BGCL, non-Bayesian, batches and epochs of the paper",
    "bgcl-bold": "BGCL, head for PAvPU",
    "gcn": "Supervised GCN",
    "mc-dropout-gcn": "GCN with MC dropout",
    "ensemble-gcn": "Ensemble of GCNs",
    "gdc-gcn": "Bayesian GCN with GDC",
    "gnnsafe": "GNNSafe",
    "gpn": "GPN",
}
METHODS = tuple(TITLES)
FLOORS = ("majority-class", "neighbor-vote", "raw-features", "propagated-features", "random-encoder")  # no training
POINTS = ("bgcl-fixed", "bgcl-batches")  # embeddings without masks
PROTOCOLS = {"cora": ("grace", 50), "citeseer": ("grace", 50), "wikics": ("wikics", 20)}  # all others: bgrl, 20
SEEDS = {"cora": 5, "citeseer": 5}  # all others: 3
# One seed is enough: the results hardly depend on it, or training takes long, or each split has its own seed.
ONE_SEED = (*FLOORS, "node2vec", "deepwalk", "deepwalk-features", "dgi", "bgrl", "gcn", "mc-dropout-gcn",
            "ensemble-gcn", "gdc-gcn")  # fmt: skip
# Why a baseline may differ from the paper. Each variant has its methods, settings and evaluation.
REASONS: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]] = {
    "the paper's head": (
        ("raw-features", "node2vec", "deepwalk", "deepwalk-features", "gae", "vgae", "dgi", "bgrl"),
        {}, {"head": "paper"},
    ),
    "widths of 32 and 16": (("gae", "vgae"), {"widths": (32, 16)}, {}),
    "these widths, 15 % of the edges held out": (("gae", "vgae"), {"widths": (32, 16), "held_out": 0.15}, {}),
    "a width of 128": (("dgi",), {"width": 128}, {}),
    "a learning rate of 0.001": (("grace",), {"lr": 0.001}, {}),
    "parts as they come, the paper's head": (("deepwalk-features",), {"balanced": False}, {"head": "paper"}),
}  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """A table or a figure: its methods and its data sets."""

    name: str
    title: str
    methods: tuple[str, ...]
    datasets: tuple[str, ...]


TABLE1 = Experiment(
    "table1", "Accuracy, %",
    (
        *FLOORS, "node2vec", "deepwalk", "deepwalk-features", "gae", "vgae", "dgi", "bgrl", "grace", "bgcl", "gcn",
    ),
    ("cora", "citeseer", "amazon-photo"),
)  # fmt: skip
TABLE2 = Experiment(
    "table2", "Accuracy in the non-Bayesian setting, %",
    (*FLOORS, "deepwalk", "deepwalk-features", "dgi", "grace", "bgcl-fixed", "bgcl-batches"),
    ("wikics", "amazon-computers", "coauthor-cs"),
)  # fmt: skip
PAVPU = Experiment(
    "pavpu", "Area under the curve of PAvPU",
    ("gdc-gcn", "mc-dropout-gcn", "ensemble-gcn", "bgcl", "bgcl-bold"), ("cora", "citeseer", "amazon-photo"),
)  # fmt: skip
ASTD = Experiment("astd", "Increase of ASTD", ("bgcl",), ("cora", "citeseer", "amazon-photo"))
ABLATIONS = Experiment("ablations", "Accuracy of variants, %", ("bgcl",), ("cora",))
FIELD = Experiment("field", "Accuracy in the field, %", field.METHODS, field.DATASETS)
RATES = Experiment("rates", "Accuracy on the grid of rates, %", ("bgcl-default",), rate_grid.DATASETS)
DRAWS = Experiment("draws", "Draws at other rates", (draw_rates.METHOD,), draw_rates.DATASETS)
TRUST = Experiment("trust", "Unknown nodes, sets and shifts", trust.METHODS, trust.DATASETS)
EXPERIMENTS = {
    experiment.name: experiment for experiment in (TABLE1, TABLE2, PAVPU, ASTD, ABLATIONS, FIELD, RATES, DRAWS, TRUST)
}


def title_of(experiment: str, method: str) -> str:
    """The name of a method in the tables of an experiment."""
    own = {"field": field.TITLES, "trust": trust.TITLES}.get(experiment, {})
    return own.get(method, TITLES[method])


def settings_of(dataset: str) -> dict[str, Any]:
    """The settings of the paper's preset for a data set; the paper's encoder and objective if it has none."""
    return dict(presets().get(f"paper-{dataset}", {"encoder": "gcn"}))


def cells(
    name: str, *, methods: Sequence[str] | None = None, datasets: Sequence[str] | None = None, seeds: int | None = None,
    splits: int | None = None, quick: bool = False,
) -> list[Cell]:  # fmt: skip
    """The cells of an experiment.

    Args:
        name: name of the experiment.
        methods: names of methods. Default: all methods of the experiment.
        datasets: names of data sets. Default: all data sets of the experiment.
        seeds: number of training seeds. Default: depends on data set and method.
        splits: number of splits. Default: depends on data set and method.
        quick: only the first data set, one seed, three splits and few epochs, to test the program.

    Returns:
        The cells, grouped by data set.

    Raises:
        BGCLError: the experiment does not have a method or data set of this name.
    """
    experiment = EXPERIMENTS[name]
    chosen_methods = _chosen("method", methods, experiment.methods, name)
    chosen_datasets = _chosen("data set", datasets, experiment.datasets[:1] if quick else experiment.datasets, name)
    make = {
        "astd": _noise_cells, "ablations": _ablation_cells, "field": _field_cells, "rates": _rate_cells,
        "draws": _draw_cells, "trust": _trust_cells,
    }.get(name, _accuracy_cells)  # fmt: skip
    found = []
    for dataset in chosen_datasets:
        for method in chosen_methods:
            found += make(experiment, method, dataset, seeds, splits, quick)
    return found


def _chosen(what: str, given: Sequence[str] | None, known: Sequence[str], experiment: str) -> Sequence[str]:
    every = EXPERIMENTS[experiment].methods if what == "method" else EXPERIMENTS[experiment].datasets
    for one in given or ():
        if one not in every:
            raise BGCLError(f"'{experiment}' has no {what} '{one}'. {nearest(one, every)}")
    return [one for one in every if one in given] if given else known


def _accuracy_cells(
    experiment: Experiment, method: str, dataset: str, seeds: int | None, splits: int | None, quick: bool
) -> list[Cell]:
    ours = method.startswith("bgcl")
    settings = settings_of(dataset) if ours else {}
    if method == "bgcl-batches":
        table = paper.hyperparameters()[dataset]
        settings |= {name: table[name] for name in ("batches", "epochs")}
        settings.pop("loss_nodes", None)
        if settings == settings_of(dataset):
            return []
    many = 1 if method in ONE_SEED else seeds or SEEDS.get(dataset, 3)
    count = splits
    if count is None and experiment.name == "pavpu" and not ours:
        count = 10 if dataset in SEEDS else 3  # a supervised method trains one or ten networks for each split
    elif count is None and method == "gcn" and dataset not in SEEDS:
        count = 10
    how = {"head": "pavpu"} if method == "bgcl-bold" else {}
    found = [_cell(method, dataset, seed, settings, count, quick, **how) for seed in range(1 if quick else many)]
    for label, (which, change, otherwise) in REASONS.items():
        if method in which and not quick:
            found.append(_cell(method, dataset, 0, settings | change, count, quick, label, **otherwise))
    return found


def _cell(
    method: str, dataset: str, seed: int, settings: dict[str, Any], splits: int | None, quick: bool, label: str = "",
    **more: Any,
) -> Cell:  # fmt: skip
    protocol, count = PROTOCOLS.get(dataset, ("bgrl", 20))
    evaluation = {"samples": 100} if method in ("bgcl", "bgcl-bold") else {}
    evaluation |= more
    if quick:
        settings, count = settings | QUICK.get(method, {}), 3
        if "samples" in evaluation:
            evaluation |= {"samples": evaluation.get("training_draws", 20) + 4}
    return Cell(method, dataset, seed, protocol, splits or count, settings, evaluation, label=label)


QUICK: dict[str, dict[str, Any]] = {
    "propagated-features": {"width": 16},
    "node2vec": {"walks": 2},
    "deepwalk": {"walks": 2},
    "deepwalk-features": {"walks": 2},
    **{method: {"epochs": 10} for method in ("gae", "vgae", "dgi", "bgrl", "grace", "gcn")},
    "cca-ssg": {"epochs": 3},
    "signa": {"steps": 3, "widths": (64, 32)},
    "bgcl-default": {"epochs": 1, "part_width": 16, "widths": (32, 16)},
    **{method: {"epochs": 10} for method in ("bgcl", *POINTS, "bgcl-bold")},
    "mc-dropout-gcn": {"epochs": 10, "samples": 10},
    "ensemble-gcn": {"epochs": 10, "members": 3},
    "gdc-gcn": {"epochs": 10, "samples": 10},
    "gnnsafe": {"epochs": 10},
    "gpn": {"epochs": 10},
}


def _field_cells(
    experiment: Experiment, method: str, dataset: str, seeds: int | None, splits: int | None, quick: bool
) -> list[Cell]:
    short = QUICK.get(method, {}) if quick else None
    return field.field_cells(method, dataset, settings_of(dataset), seeds=seeds, splits=splits, quick=short)


def _rate_cells(
    experiment: Experiment, method: str, dataset: str, seeds: int | None, splits: int | None, quick: bool
) -> list[Cell]:
    return rate_grid.rate_cells(dataset, seeds=seeds, splits=splits, quick=QUICK[method] if quick else None)


def _draw_cells(
    experiment: Experiment, method: str, dataset: str, seeds: int | None, splits: int | None, quick: bool
) -> list[Cell]:
    return draw_rates.draw_cells(dataset, splits=splits, quick=QUICK[method] if quick else None)


def _trust_cells(
    experiment: Experiment, method: str, dataset: str, seeds: int | None, splits: int | None, quick: bool
) -> list[Cell]:
    return trust.trust_cells(method, dataset, seeds=seeds, splits=splits, quick=QUICK[method] if quick else None)


def _noise_cells(
    experiment: Experiment, method: str, dataset: str, seeds: int | None, splits: int | None, quick: bool
) -> list[Cell]:
    """As in the paper: 10 nodes with noise N(0, 1); on Amazon-Photo 100 nodes with noise N(0, 1) and N(0, 10)."""
    photo = dataset == "amazon-photo"
    settings = settings_of(dataset) | (QUICK["bgcl"] if quick else {})
    return [
        Cell(
            method, dataset, seed, "", 0, settings, {}, {"nodes": 100 if photo else 10, "std": std},
            f"N(0, {std:g})",
        )
        for std in ((1.0, 10.0) if photo else (1.0,))
        for seed in range(1 if quick else seeds or 1)
    ]  # fmt: skip


GRID = (0.1, 0.3, 0.5, 0.7, 0.9)
LEARNED = "learned or a grid of fixed rates"
SHORT = {"epochs": 60}  # variants have fewer epochs than the models in the tables


def variants() -> dict[str, dict[str, dict[str, Any]]]:
    """The ablations: for each question, its answers and the settings that differ from the library's defaults."""
    edges, entries = Settings(encoder="gcn").drop
    return {
        "defaults": {"as they are": {}},
        LEARNED: {"learned": {}} | {
            f"{c} and {f}": {"drop": [f"{edges} at {c}", f"{entries} at {f}"]} for c in GRID for f in GRID
        },
        "the KL's weight": {f"{weight:g}": {"kl_weight": weight} for weight in (0.01, 0.1, 1.0, 10.0)},
        "the KL's weight without a ceiling": {
            f"{weight:g}": {"kl_weight": weight, "shared_information": 0.0} for weight in (0.1, 1.0, 10.0)
        },
        "share of information that views keep": {
            f"{share:g}": {"shared_information": share} for share in (0.15, 0.3, 0.45, 0.6)
        },
        "share of the rates at which embeddings are drawn": {
            f"{scale:g}": {"draw_scale": scale} for scale in (0.2, 0.4, 0.6, 1.0)
        },
        "rate that masks are drawn at": {
            "median of the posterior": {}, "a draw from the posterior": {"rate_draw": "sample"},
        },
        "normalizing": {"after masking": {}, "before masking": {"normalize": "before"}},
        "self-connections": {"kept": {}, "masked": {"drop": ["connections shared", entries]}},
        "masks": {"hard": {}, "relaxed": {"mask_values": "relaxed"}},
        "attributes": {"of length one": {}, "that sum to one": {"row_norm": "sum"}},
        "layers": {"share a mask": {}, "have their own": {"drop": ["edges anew", entries]}},
        "blocks of connections, self-connections masked": {
            f"{blocks}": {"drop": [f"connections in {blocks} blocks shared", entries]} for blocks in (1, 2, 8, 32)
        },
        "one rate per": {
            "view": {}, "layer": {"drop": ["edges per layer", entries]},
            "block": {"drop": ["connections in 8 blocks shared per block", entries]},
        },
        "what is dropped": {
            "edges and entries": {}, "edges": {"drop": [edges]}, "entries": {"drop": [entries]},
            "edges and features": {"drop": [edges, "features"]},
            "connections and features": {"drop": ["connections shared", "features"]},
            "nodes and entries": {"drop": ["nodes", entries]},
        },
        "draws that train the head": {
            f"{draws}": {"evaluation": {"training_draws": draws, "samples": 100}} for draws in (1, 5, 20, 50)
        },
        "draws that predict": {
            f"{draws}": {"evaluation": {"training_draws": 20, "samples": 20 + draws}} for draws in (1, 5, 80)
        },
        "the paper's text": {"to the letter, 250 epochs": paper.settings("cora")},
    }  # fmt: skip


def _ablation_cells(
    experiment: Experiment, method: str, dataset: str, seeds: int | None, splits: int | None, quick: bool
) -> list[Cell]:
    found = []
    for question, answers in variants().items():
        for answer, change in list(answers.items())[-1 if quick else 0 :]:
            settings = settings_of(dataset) | SHORT | {k: v for k, v in change.items() if k != "evaluation"}
            for seed in range(1 if quick else seeds or 2):
                label, how = f"{question}: {answer}", change.get("evaluation", {})
                found.append(_cell(method, dataset, seed, settings, splits or 20, quick, label, **how))
    return found
