"""Compute a cell: train its method, evaluate it on the splits, and record settings, versions and time."""

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score

from bgcl.augmentation.noise import VERSION
from bgcl.baselines import CLASSIFIERS, EMBEDDINGS, baseline, published
from bgcl.baselines.scoring import evaluate_classifier
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import SplitResult, evaluate, evaluate_draws, head_for, summary, versions
from bgcl.downstream.label_spreading import LabelSpreading
from bgcl.downstream.parts import BestPartClassifier
from bgcl.downstream.splits import development_half, labels_of, splits
from bgcl.reproduce.cache import Cache
from bgcl.reproduce.cells import Cell
from bgcl.reproduce.cost import measured_fit
from bgcl.reproduce.experiments import POINTS
from bgcl.reproduce.fitting import data_digest, fitted, trained
from bgcl.reproduce.graphs import FILES
from bgcl.reproduce.noise_experiment import noise_experiment
from bgcl.reproduce.rate_grid import criteria, hold_out
from bgcl.reproduce.trust_results import trust_result
from bgcl.settings import Settings

if TYPE_CHECKING:
    from torch_geometric.data import Data

HEADS: dict[str, Callable[[], MixtureClassifier]] = {
    "mixture": MixtureClassifier,
    "paper": MixtureClassifier.paper,
    "pavpu": partial(MixtureClassifier, criterion="pavpu"),
}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
HOPS = 5  # the greatest distance from a noisy node


def compute(cell: Cell, data: "Data", cache: Cache) -> dict[str, Any]:
    """The result of a cell, from the cache if it is there."""
    settings = _method(cell).to_json()
    if cell.method not in {*CLASSIFIERS, *EMBEDDINGS}:
        settings["noise"] = VERSION  # of draws
    key = cell.key(data_digest(data), settings)
    if (found := cache.read(key)) is not None:
        return found | {"cell": cell.to_dict()}
    start = time.perf_counter()
    if cell.noise:
        result = _noise(cell, data, cache)
    elif "task" in cell.evaluation:
        result = trust_result(cell, data, _method(cell), cache)
    else:
        result = _accuracy(cell, data, cache)
    result |= {"cell": cell.to_dict(), "seconds": round(time.perf_counter() - start, 1), "versions": versions()}
    cache.write(key, result)
    found = json.loads(json.dumps(result))  # the same types as from the cache
    return dict(found, cell=cell.to_dict())


def _accuracy(cell: Cell, data: "Data", cache: Cache) -> dict[str, Any]:
    how = dict(cell.evaluation)
    named = how.pop("head", None)
    head = HEADS.get(named)
    masked, measure, judged = how.pop("masks", True), how.pop("measure", False), how.pop("criteria", False)
    spread = how.pop("spread_labels", False)
    chosen, labels = splits(data, cell.protocol, cell.splits), labels_of(data)
    method = _method(cell)
    about: dict[str, Any] = {"settings": method.to_json()}
    if measure:
        about |= measured_fit(cell.method, method, cell.dataset, data, cache)
    if cell.method in CLASSIFIERS:
        results = evaluate_classifier(lambda: method, data, chosen)
    elif cell.method in EMBEDDINGS:
        if named == "pool":
            head = partial(MixtureClassifier, parts=method.parts, kernel=True)
        elif method.parts > 1:
            head = partial(BestPartClassifier, parts=method.parts)
        embeddings = fitted(cell.method, method, data, cache)
        results = evaluate_draws([embeddings], labels, chosen, training_draws=1, head=head or MixtureClassifier)
    else:
        graph, held_out = hold_out(data) if judged else (data, None)
        model = trained(graph, method, cache)
        head = head or head_for(model.parts_)
        if cell.method in POINTS or not masked:
            spreading = LabelSpreading.of(model, data) if spread else None
            results = evaluate_draws(
                [model.embed(data)], labels, chosen, training_draws=1, head=head, spreading=spreading
            )
        else:
            results = evaluate(model, data, cell.protocol, cell.splits, head=head, spread_labels=spread, **how)
        about |= {
            "drop_rates": {view: [rate.to_dict() for rate in masks] for view, masks in model.drop_rates_.items()},
            "training_seconds": round(sum(record.seconds for record in model.history_), 1),
        }
        if judged:
            about["criteria"] = criteria(model, graph, held_out)
    return about | scores(results, development_half(data.num_nodes))


def scores(results: list[SplitResult], development: Any) -> dict[str, Any]:
    """The scores of one training run.

    Args:
        results: a result for each split.
        development: numbers of the nodes in the development half.

    Returns:
        A dictionary: "accuracy" for each split; "blind", the mean accuracy on test nodes outside the development half,
        on which no setting was chosen, None if there are none; "scores", mean and standard deviation over splits by
        name; "curves", the mean PAvPU curves by predictive entropy. With two classes, the scores have "rare_auroc", the
        AUROC of the rare class.
    """
    outside = [result.correct[~np.isin(result.test, development)] for result in results]
    curves = [result.pavpu("predictive_entropy") for result in results]
    parts = ("pavpu", "accurate_if_certain", "uncertain_if_inaccurate")
    rare = [rare_auroc(result) for result in results if len(result.classes) == 2]
    return {
        "accuracy": [round(float(result.correct.mean()), 6) for result in results],
        "blind": round(float(np.mean([correct.mean() for correct in outside])), 6) if outside[0].size else None,
        "scores": {
            name: [round(score["mean"], 6), round(score["over_splits"], 6)]
            for name, score in summary([results]).items()
        }
        | ({"rare_auroc": [round(statistics.mean(rare), 6), round(spread(rare), 6)]} if rare else {}),
        "curves": {
            part: np.mean([getattr(curve, part) for curve in curves], axis=0).round(6).tolist() for part in parts
        },
    }


def rare_auroc(result: SplitResult) -> float:
    """The AUROC of the probability of the rarer of two classes. It is the same for the other class."""
    rare = int(np.bincount(result.label, minlength=2).argmin())
    return float(roc_auc_score(result.label == rare, result.uncertainty.probability[:, rare]))


def spread(values: list[float]) -> float:
    """The standard deviation; NaN for one value."""
    return statistics.stdev(values) if len(values) > 1 else float("nan")


def _noise(cell: Cell, data: "Data", cache: Cache) -> dict[str, Any]:
    settings: Settings = _method(cell)
    found = noise_experiment(
        data, **cell.noise, seed=cell.seed, **{name: value for name, value in settings if name != "seed"},
        train=lambda graph: trained(graph, settings.with_changes(row_norm="none"), cache),
    )  # fmt: skip
    by_hop = found.by_hop(HOPS)
    return {
        "settings": settings.to_json(),
        "nodes": [len(increase) for increase in by_hop],
        "quantiles": [np.quantile(i, QUANTILES).round(7).tolist() if len(i) else [] for i in by_hop],
        "clean_astd": round(float(found.clean_astd.mean()), 7),
    }


def _method(cell: Cell) -> Any:
    """The method of a cell: a baseline, or the settings of BGCL, with all defaults filled in."""
    if cell.method in CLASSIFIERS or cell.method in EMBEDDINGS:
        if cell.dataset in FILES:  # it is not in the catalog, so there is no published configuration
            return baseline(cell.method, **cell.settings | {"seed": cell.seed})
        return published(cell.method, cell.dataset, cell.seed).with_changes(**cell.settings)
    return Settings(**cell.settings | {"seed": cell.seed})
