"""Compute a cell: train its method, evaluate it on the splits, and record settings, versions and time."""

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bgcl import checkpoint
from bgcl.baselines import CLASSIFIERS, EMBEDDINGS, published
from bgcl.baselines.scoring import evaluate_classifier
from bgcl.data.facts import GraphFacts
from bgcl.data.pyg import check_graph
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import SplitResult, evaluate, evaluate_draws, summary, versions
from bgcl.downstream.parts import BestPartClassifier
from bgcl.downstream.splits import development_half, labels_of, splits
from bgcl.errors import BGCLError
from bgcl.estimator import BGCL
from bgcl.files import atomic_write, exclusive
from bgcl.model.training import TrainingError
from bgcl.reproduce.cache import Cache
from bgcl.reproduce.cells import Cell
from bgcl.reproduce.experiments import POINTS
from bgcl.reproduce.noise_experiment import noise_experiment
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


def data_digest(data: "Data") -> str:
    """A digest of edges, attributes and labels."""
    sha = hashlib.sha256(GraphFacts.of(check_graph(data)).fingerprint.encode())
    sha.update(b"" if data.y is None else data.y.cpu().numpy().tobytes())
    return sha.hexdigest()


def compute(cell: Cell, data: "Data", cache: Cache) -> dict[str, Any]:
    """The result of a cell, from the cache if it is there."""
    key = cell.key(data_digest(data), _method(cell).to_json())
    if (found := cache.read(key)) is not None:
        return found | {"cell": cell.to_dict()}
    start = time.perf_counter()
    result = _noise(cell, data, cache) if cell.noise else _accuracy(cell, data, cache)
    result |= {"cell": cell.to_dict(), "seconds": round(time.perf_counter() - start, 1), "versions": versions()}
    cache.write(key, result)
    found = json.loads(json.dumps(result))  # the same types as from the cache
    return dict(found, cell=cell.to_dict())


def _accuracy(cell: Cell, data: "Data", cache: Cache) -> dict[str, Any]:
    how = dict(cell.evaluation)
    head = HEADS[how.pop("head", "mixture")]
    chosen = splits(data, cell.protocol, cell.splits)
    about: dict[str, Any]
    method = _method(cell)
    if cell.method in CLASSIFIERS:
        results = evaluate_classifier(lambda: method, data, chosen)
        about = {"settings": method.to_json()}
    elif cell.method in EMBEDDINGS:
        if method.parts > 1:
            head = partial(BestPartClassifier, parts=method.parts)
        results = evaluate_draws(
            [_fitted(method, cell, data, cache)], labels_of(data), chosen, training_draws=1, head=head
        )
        about = {"settings": method.to_json()}
    else:
        model = trained(data, method, cache)
        if cell.method in POINTS:
            results = evaluate_draws([model.embed(data)], labels_of(data), chosen, training_draws=1, head=head)
        else:
            results = evaluate(model, data, cell.protocol, cell.splits, head=head, **how)
        about = {
            "settings": method.to_json(),
            "drop_rates": {view: [rate.to_dict() for rate in masks] for view, masks in model.drop_rates_.items()},
            "training_seconds": round(sum(record.seconds for record in model.history_), 1),
        }
    return about | scores(results, development_half(data.num_nodes))


def _fitted(method: Any, cell: Cell, data: "Data", cache: Cache) -> Any:
    """The embeddings of a baseline. They are cached, so that other heads and other splits do not fit it again."""
    name = json.dumps([cell.method, method.to_json(), data_digest(data)], sort_keys=True)
    path = cache.embeddings(hashlib.sha256(name.encode()).hexdigest()[:20])
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):  # missing or damaged
        embeddings = method.fit(data)
        with atomic_write(path) as part:
            np.save(part, embeddings, allow_pickle=False)
        return embeddings


def trained(data: "Data", settings: Settings, cache: Cache) -> BGCL:
    """Train a model. The run is stored in the cache and resumes if it was interrupted.

    Models that differ only in `draw_scale` share a run.
    """
    facts = GraphFacts.of(check_graph(data))
    name = f"{facts.fingerprint}{settings.with_changes(draw_scale=1.0).model_dump_json()}"
    folder = cache.run(hashlib.sha256(name.encode()).hexdigest()[:20])
    model = BGCL(**dict(settings))
    with exclusive(folder):
        try:
            return model.fit(data, out=folder, resume=checkpoint.is_run(folder), progress=False)
        except TrainingError:
            raise
        except BGCLError:
            if not checkpoint.is_run(folder):
                raise
            shutil.rmtree(folder)  # the run is damaged, so start again
            return model.fit(data, out=folder, progress=False)


def scores(results: list[SplitResult], development: Any) -> dict[str, Any]:
    """The scores of one training run.

    Args:
        results: a result for each split.
        development: numbers of the nodes in the development half.

    Returns:
        A dictionary: "accuracy" for each split; "blind", the mean accuracy on test nodes outside the development half,
        on which no setting was chosen; "scores", mean and standard deviation over splits by name; "curves", the mean
        PAvPU curves by predictive entropy.
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
        return published(cell.method, cell.dataset, cell.seed).with_changes(**cell.settings)
    return Settings(**cell.settings | {"seed": cell.seed})
