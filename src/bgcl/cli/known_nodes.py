"""The nodes that a run knows, and how unlike them others are: for `bgcl predict` and `bgcl rank`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgcl.cli.opening import graph_of
from bgcl.cli.printing import visible
from bgcl.errors import BGCLError
from bgcl.progress import stage

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data

    from bgcl.downstream.kept_results import KeptResults
    from bgcl.downstream.node_predictions import NodePredictions
    from bgcl.estimator import BGCL
    from bgcl.novelty.found import NodeNovelty

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Known:
    """The graph whose nodes are known, and predictions for it; without labels none."""

    data: "Data"
    found: "NodePredictions | None"


@dataclass(frozen=True)
class HowToPredict:
    """Number and seed of draws, what was kept in the run, and whether to show progress."""

    samples: int
    seed: int | None
    kept: "KeptResults | None"
    show: bool


def known_graph(
    model: "BGCL", data: "Data", found: "NodePredictions | None", *, run: Path, graph: str | None,
    labels_from: "Data | None", wanted: bool | None, quiet: bool, how: HowToPredict | None = None,
) -> Known | None:  # fmt: skip
    """The training graph, and predictions for its nodes if its labels are classes.

    Args:
        model: the model of the run.
        data: the graph that was predicted.
        found: predictions for it; None for numbers, or without labels.
        run: the folder of the run.
        graph: what `--graph` names.
        labels_from: the training graph, if its labels trained the heads.
        wanted: what `--novelty` says; None if the user did not say.
        quiet: whether to print no notes.
        how: how the nodes of the training graph are predicted; None: they are not.

    Returns:
        None if the user does not want novelty; also for a pack, or if the training graph cannot be read and the user
        did not ask for novelty.
    """
    from bgcl.downstream.prediction import predict

    if wanted is False:
        return None
    refuse_pack(model, data, wanted)
    if model.in_blocks(data) is not None:
        return None
    if graph is None:
        return Known(data, found)
    if labels_from is not None and how is None:
        return Known(labels_from, None)
    if labels_from is not None and how is not None:
        # Labels are not spread in the new graph, so those of the training graph are not either.
        theirs = predict(
            model, labels_from, samples=how.samples, seed=how.seed, progress=how.show, kept=how.kept,
            spread_labels=False,
        )  # fmt: skip
        return Known(labels_from, theirs)
    try:
        return Known(graph_of(model, run, None, None, quiet=True), None)
    except BGCLError as error:
        if wanted:
            raise
        if not quiet:
            print(visible(f"Note: there is no novelty. {error}"), file=sys.stderr)
        return None


def refuse_pack(model: "BGCL", data: "Data", wanted: bool | None) -> None:
    """Raise an error if the user wants the novelty of a pack. Call it before anything is computed."""
    if wanted and model.in_blocks(data) is not None:
        raise BGCLError("Novelty needs the whole graph in memory, and this one is a pack: leave it out.")


def novelty_of(
    model: "BGCL", data: "Data", found: "NodePredictions | None", known: Known, seed: int | None
) -> "tuple[NodeNovelty, NodeNovelty]":
    """The novelty of all nodes, and that of the known graph's.

    Predictions count too, if known nodes have labels that no head has seen.
    """
    from bgcl.novelty.detector import Novelty

    ours, theirs = found, known.found
    if found is None or theirs is None or not len(theirs.calibrates):
        ours = theirs = None
    with stage("comparing nodes with known ones"):
        novelty = Novelty(model, seed=seed).fit(known.data, theirs)
        of_known = novelty.score(known.data, theirs)
        return (of_known if known.data is data else novelty.score(data, ours)), of_known


def novelty_columns(found: "NodeNovelty") -> "dict[str, Array]":
    """The novelty of each node, and the score by which it is strangest."""
    return {"novelty": found.novelty, "strange_by": found.reason}
