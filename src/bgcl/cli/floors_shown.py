"""Predictions that need no training, next to those of a model: for `bgcl predict` and the report."""

from typing import TYPE_CHECKING, Any

from bgcl.progress import stage

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.baselines.floors import Floor
    from bgcl.downstream.kept_results import KeptResults
    from bgcl.downstream.node_predictions import NodePredictions


def floor_rows(model: "Floor", found: "list[Floor]") -> list[dict[str, Any]]:
    """A row for each floor, and one for the model."""
    return [
        {"prediction": f.name, "accuracy": f.accuracy, "ECE": f.ece, "AUROC of errors": f.auroc}
        for f in [*found, model]
    ]


def floors_of_fold(data: "Data", kept: "KeptResults | None") -> "list[Floor]":
    """The floors of the first fold that `predict` holds out, from the run if they were kept there; none without one."""
    import numpy as np

    from bgcl.baselines.floors import NAMES, Floor, floors
    from bgcl.downstream.kept_results import digest
    from bgcl.downstream.prediction import first_fold

    how = {"graph": digest(data)}
    known = None if kept is None else kept.find("floors", how)
    if known is not None and known.keys() == {"scores"} and known["scores"].shape == (len(NAMES), 3):
        return [Floor(name, *row) for name, row in zip(NAMES, known["scores"].tolist(), strict=True)]
    fold = first_fold(data)
    if fold is None:
        return []
    with stage("comparing with predictions that need no training"):
        found = floors(data, [fold])
    if kept is not None:
        kept.keep("floors", how, {"scores": np.array([[f.accuracy, f.ece, f.auroc] for f in found])})
    return found


def beside(predictions: "NodePredictions", data: "Data", found: "list[Floor]") -> dict[str, Any]:
    """The floors, the model on the same nodes, and whether it pays. Empty without floors."""
    import numpy as np

    from bgcl.baselines.floors import MODEL, Floor, verdict
    from bgcl.downstream.evaluation import SplitResult
    from bgcl.downstream.prediction import first_fold

    fold = first_fold(data)
    if fold is None or not found:
        return {}
    label = np.searchsorted(predictions.classes, predictions.label[fold.test])
    result = SplitResult(fold.test, predictions.classes, label, predictions.uncertainty.of(fold.test))
    model = Floor.of(MODEL, [result])
    return {"floors": floor_rows(model, found), "floor_nodes": len(fold.test), "verdict": verdict(model, found)}
