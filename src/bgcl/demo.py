"""`bgcl demo`: train on Cora, classify its nodes from the draws, and show what was learned."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from bgcl.data import load
from bgcl.estimator import BGCL
from bgcl.pictures import posterior_figure, save, training_figure

SPLITS, DRAWS, TRAINING_DRAWS = 10, 40, 10


def run_demo(out: Path, *, seed: int, quiet: bool, json: bool, **settings: Any) -> None:
    """Train, evaluate, print a short table, and save two pictures in the run's folder."""
    data = load("cora")
    console = Console(quiet=quiet or json)
    console.print(f"Cora: {data.num_nodes:,} papers, {data.num_edges // 2:,} citations. Training without labels.")
    model = BGCL(preset="cora", seed=seed, **settings).fit(data, out=out, progress=not (quiet or json))
    draws = model.sample(data, DRAWS)
    accuracies, certainty = classify(draws, data.y, seed)
    pictures = {"training": out / "training.png", "drop_rates": out / "drop_rates.png"}
    save(training_figure(model.history_), pictures["training"])
    save(posterior_figure(model.history_), pictures["drop_rates"])
    order = certainty.argsort()
    result = {
        "accuracy": {"mean": float(np.mean(accuracies)), "spread": float(np.std(accuracies, ddof=1)), "splits": SPLITS},
        "drop_rates": model.drop_rates_,
        "most_certain": order[-3:].flip(0).tolist(),
        "least_certain": order[:3].tolist(),
        "pictures": {name: str(path) for name, path in pictures.items()},
    }
    if json:
        from bgcl.cli.common import print_json

        print_json(result)
        return
    _print(Console(), result, model, certainty)


def classify(draws: Tensor, labels: Tensor, seed: int) -> tuple[list[float], Tensor]:
    """Logistic regression on draws `(S, N, d)` of 10 % of the nodes, for several random splits.

    The classifier learns from a few draws of each training node; its prediction is the mean over all draws. Gives
    the accuracy on the other nodes, one for each split, and the probability of the likeliest class, `(N,)`, averaged
    over the splits.
    """
    unit = torch.nn.functional.normalize(draws, dim=-1).numpy()
    nodes, width = unit.shape[1:]
    y = labels.numpy()
    accuracies, certainty = [], np.zeros(nodes)
    for split in range(SPLITS):
        shuffled = np.random.default_rng((seed, split)).permutation(nodes)
        train, test = np.split(shuffled, [nodes // 10])
        learn = min(TRAINING_DRAWS, len(unit))
        head = LogisticRegression(C=10, max_iter=1000)
        head.fit(unit[:learn, train].reshape(-1, width), np.tile(y[train], learn))
        probability = head.predict_proba(unit.reshape(-1, width)).reshape(len(unit), nodes, -1).mean(0)
        accuracies.append(float((head.classes_[probability.argmax(1)] == y)[test].mean()))
        certainty += probability.max(1) / SPLITS
    return accuracies, torch.from_numpy(certainty)


def _print(console: Console, result: dict[str, Any], model: BGCL, certainty: Tensor) -> None:
    from bgcl.cli.common import print_rates

    table = Table(box=None, pad_edge=False, show_header=False)
    accuracy = result["accuracy"]
    table.add_row(
        "accuracy", f"{accuracy['mean']:.1%}, deviation {accuracy['spread']:.1%} over {accuracy['splits']} splits"
    )
    for name in ("most_certain", "least_certain"):
        nodes = ", ".join(f"{node} ({certainty[node]:.0%})" for node in result[name])
        table.add_row(name.replace("_", " ") + " nodes", nodes)
    for name, path in result["pictures"].items():
        table.add_row(f"picture: {name.replace('_', ' ')}", path)
    console.print(table)
    console.print("\nWhat each view learned to drop:")
    print_rates(model)
