"""Compute a cell: train or fit its method, evaluate it on its splits, and say how that was done."""

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from bgcl import checkpoint as runs
from bgcl.baselines import CLASSIFIERS, EMBEDDINGS, published
from bgcl.baselines.prediction import evaluate_classifier
from bgcl.data import check_graph
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import SplitResult, evaluate, evaluate_model, summary
from bgcl.downstream.splits import development_half, labels_of, splits
from bgcl.errors import BGCLError
from bgcl.estimator import BGCL
from bgcl.files import alone, whole
from bgcl.model.training import TrainingError
from bgcl.reproduce.cache import Cache
from bgcl.reproduce.cells import Cell
from bgcl.reproduce.experiments import POINTS
from bgcl.reproduce.noise_experiment import noise_experiment
from bgcl.settings import Settings, make_settings

if TYPE_CHECKING:
    from torch_geometric.data import Data

HEADS: dict[str, Callable[[], MixtureClassifier]] = {
    "mixture": MixtureClassifier,
    "paper": MixtureClassifier.paper,
    "pavpu": partial(MixtureClassifier, criterion="pavpu"),
}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
HOPS = 5


def digest(data: "Data") -> str:
    """Of graph, attributes and labels."""
    sha = hashlib.sha256(runs.GraphFacts.of(check_graph(data)).fingerprint.encode())
    sha.update(b"" if data.y is None else data.y.cpu().numpy().tobytes())
    return sha.hexdigest()


def compute(cell: Cell, data: "Data", cache: Cache) -> dict[str, Any]:
    """A cell's result: kept, or computed and kept from now on."""
    key = cell.key(digest(data), _plain(_method(cell)))
    if (found := cache.read(key)) is not None:
        return found | {"cell": cell.to_dict()}
    start = time.perf_counter()
    result = _noise(cell, data, cache) if cell.noise else _accuracy(cell, data, cache)
    result |= {"cell": cell.to_dict(), "seconds": round(time.perf_counter() - start, 1), "versions": versions()}
    cache.write(key, result)
    return result


def versions() -> dict[str, str]:
    """What results were computed with."""
    return {name: version(name) for name in ("bgcl", "torch", "torch_geometric", "numpy", "scipy", "scikit-learn")}


def _accuracy(cell: Cell, data: "Data", cache: Cache) -> dict[str, Any]:
    how = dict(cell.evaluation)
    head = HEADS[how.pop("head", "mixture")]
    chosen = splits(data, cell.protocol, cell.splits)
    about: dict[str, Any]
    method = _method(cell)
    if cell.method in CLASSIFIERS:
        results = evaluate_classifier(lambda: method, data, chosen)
        about = {"settings": _plain(method)}
    elif cell.method in EMBEDDINGS:
        results = evaluate([_fitted(method, cell, data, cache)], labels_of(data), chosen, training_draws=1, head=head)
        about = {"settings": _plain(method)}
    else:
        model = trained(data, method.model_dump(), cache)
        if cell.method in POINTS:
            results = evaluate([model.embed(data)], labels_of(data), chosen, training_draws=1, head=head)
        else:
            results = evaluate_model(model, data, cell.protocol, cell.splits, head=head, **how)
        about = {
            "settings": _plain(method),
            "drop_rates": model.drop_rates_,
            "training_seconds": round(sum(record["seconds"] for record in model.history_), 1),
        }
    return about | scores(results, development_half(data.num_nodes))


def _fitted(method: Any, cell: Cell, data: "Data", cache: Cache) -> Any:
    """The embeddings of a baseline, which are kept: another head or other splits need no other fit."""
    name = json.dumps([cell.method, _plain(method), digest(data)], sort_keys=True)
    path = cache.embeddings(hashlib.sha256(name.encode()).hexdigest()[:20])
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):  # not there, or damaged
        embeddings = method.fit(data)
        with whole(path) as part:
            np.save(part, embeddings, allow_pickle=False)
        return embeddings


def trained(data: "Data", settings: dict[str, Any], cache: Cache) -> BGCL:
    """A model with these settings, trained on this graph: from its run's folder, which resumes where it stopped."""
    model = BGCL(**settings | {"draw_scale": 1.0})  # which has no part in training
    facts = runs.GraphFacts.of(check_graph(data))
    name = f"{facts.fingerprint}{model.settings.model_dump_json()}"
    folder = cache.run(hashlib.sha256(name.encode()).hexdigest()[:20])
    with alone(folder):
        try:
            model.fit(data, out=folder, resume=runs.is_run(folder), progress=False)
        except TrainingError:
            raise
        except BGCLError:
            if not runs.is_run(folder):
                raise
            shutil.rmtree(folder)  # damaged: begin anew
            model.fit(data, out=folder, progress=False)
    model.settings = model.network_.settings = make_settings(**settings)
    return model


def scores(results: list[SplitResult], development: Any) -> dict[str, Any]:
    """The figures of merit of one training: accuracy split by split, means and spreads, the curves of PAvPU.

    `blind` is the accuracy on test nodes outside the `development` half, which no setting was chosen on.
    """
    outside = [result.correct[~np.isin(result.test, development)] for result in results]
    curves = [result.pavpu("predictive_entropy") for result in results]
    parts = ("pavpu", "accurate_if_certain", "uncertain_if_inaccurate")
    return {
        "accuracy": [round(float(result.correct.mean()), 6) for result in results],
        "blind": round(float(np.mean([correct.mean() for correct in outside])), 6),
        "scores": {
            name: [round(score["mean"], 6), round(score["over_splits"], 6)]
            for name, score in summary([results]).items()
        },
        "curves": {
            part: np.mean([getattr(curve, part) for curve in curves], axis=0).round(6).tolist() for part in parts
        },
    }


def _noise(cell: Cell, data: "Data", cache: Cache) -> dict[str, Any]:
    settings = _plain(_method(cell))
    found = noise_experiment(
        data, **cell.noise, seed=cell.seed, **{name: value for name, value in settings.items() if name != "seed"},
        train=lambda graph: trained(graph, settings | {"normalise_rows": False}, cache),
    )  # fmt: skip
    by_hop = found.by_hop(HOPS)
    return {
        "settings": settings,
        "nodes": [len(increase) for increase in by_hop],
        "quantiles": [np.quantile(i, QUANTILES).round(7).tolist() if len(i) else [] for i in by_hop],
        "clean_astd": round(float(found.clean_astd.mean()), 7),
    }


def _method(cell: Cell) -> Any:
    """A baseline, or BGCL's settings, with all that it takes by itself."""
    if cell.method in CLASSIFIERS or cell.method in EMBEDDINGS:
        return replace(published(cell.method, cell.dataset, cell.seed), **cell.settings)
    return make_settings(**cell.settings | {"seed": cell.seed})


def _plain(method: Any) -> dict[str, Any]:
    """All settings as JSON has them."""
    if isinstance(method, Settings):
        return method.model_dump(mode="json", exclude_none=True)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(method).items()}
