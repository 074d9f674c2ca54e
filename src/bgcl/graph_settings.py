"""What depends on the graph: the number of epochs, and whether rows are scaled.

- `epochs`, if none is given: as many as make 300 steps. A step of the default has 512 random nodes, so its cost does
  not depend on the size of the graph.
- `drop` and `parts` of a graph with several relations, such as types of edges: masks of edges have a rate for each of
  them, and what the default propagates along all edges is there for each of them too.
- `row_norm`: with settings that scale rows, such as the paper's, rows are not scaled if the attributes come from
  columns of a table, because `bgcl.load` has scaled each column.
"""

import logging
import math
from typing import Any

from torch_geometric.data import Data

from bgcl.batching import choose, cost_of
from bgcl.errors import BGCLError
from bgcl.graph.prepared import mean_weight, relations_of
from bgcl.settings import Settings

log = logging.getLogger("bgcl")

STEPS, MODULE = 300, "module"


def fit_to_graph(data: Data, settings: Settings, given: dict[str, Any]) -> Settings:
    """The settings for a checked graph. What was `given` stays as it is."""
    changes: dict[str, Any] = {}
    if settings.batch is not None:
        settings = with_batches(data, settings, given)
    if settings.epochs is None:
        changes["epochs"] = math.ceil(STEPS / steps_per_epoch(data, settings))
    _check_batches_per_step(data, settings)
    if len(relations_of(data)) > 1:
        changes |= _for_relations(settings, given)
    if "row_norm" not in given and settings.row_norm != "auto" and getattr(data, "recipe", None) is not None:
        changes["row_norm"] = "none"
    return settings.with_changes(**changes) if changes else settings


def _check_batches_per_step(data: Data, settings: Settings) -> None:
    batches, several = batches_per_epoch(data, settings), settings.batches_per_step or 1
    if several > batches > 1:
        raise BGCLError(
            f"'batches_per_step' is {several:,}, but an epoch of this graph has {batches:,} batches: lower it, or make "
            "smaller batches."
        )


def with_batches(data: Data, settings: Settings, given: dict[str, Any]) -> Settings:
    """The settings with the batches that `batch` asks for. What was chosen, and why, is logged."""
    own = [name for name in ("batches", "batch_nodes", "neighbors") if name in given]
    if own:
        raise BGCLError(f"'batch' chooses the batches, so '{own[0]}' cannot be given too: leave out one of them.")
    changes, why = choose(data, settings)
    if given.get("until_settled") and changes.get("until_settled") is False:
        raise BGCLError(
            "'until_settled' needs batches of random nodes, and 'batch' chooses others: leave it out, or leave out "
            "'batch'."
        )
    if "clusters_per_batch" in given and changes.get("batches", 1) == 1:
        raise BGCLError(f"'clusters_per_batch' has no effect here ({why}): leave it out.")
    log.info("Batches: %s.", why)
    return settings.with_changes(**changes)


# More parts of the default: what it propagates along all edges.
OF_RELATIONS = tuple(
    f"{part} of each relation" for part in ("attributes hop 1", "attributes hop 2", "encoder diffused")
)


def _for_relations(settings: Settings, given: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if "drop" not in given and settings.encoder != MODULE:
        own = {"edges": "edges per relation", "neighbors": "neighbors per relation"}
        changes["drop"] = tuple(own.get(mask, mask) for mask in settings.drop)
    if "parts" not in given and settings.encoder == "mlp":
        changes["parts"] = (*settings.parts, *OF_RELATIONS)
    return changes


def steps_per_epoch(data: Data, settings: Settings) -> int:
    """The number of steps in an epoch."""
    return math.ceil(batches_per_epoch(data, settings) / (settings.batches_per_step or 1))


def batches_per_epoch(data: Data, settings: Settings) -> int:
    """The number of batches in an epoch."""
    return settings.batches if settings.batch_nodes is None else math.ceil(data.num_nodes / settings.batch_nodes)


def describe(data: Data, settings: Settings) -> str:
    """The chosen settings in one line."""
    steps = steps_per_epoch(data, settings) * (settings.epochs or 0)
    weights = ", weighted edges" if mean_weight(data) else ""
    names = relations_of(data)
    relations = f", {len(names)} relations ({', '.join(names)})" if len(names) > 1 else ""
    return (
        f"{data.num_nodes:,} nodes with {data.x.shape[1]:,} attributes{weights}{relations}: encoder "
        f"{settings.encoder}, objective {settings.objective}; drop {' and '.join(settings.drop)}; {settings.epochs} "
        f"epochs, {steps:,} steps"
    )


def describe_batches(data: Data, settings: Settings) -> str:
    """What a batch is, and what training is estimated to need, in one line."""
    several = settings.batches_per_step or 1
    steps = "" if several == 1 else f", {several:,} in each step"
    return f"{_batches_in_words(settings)}{steps}: {cost_of(data, settings)}"


def _batches_in_words(settings: Settings) -> str:
    if settings.neighbors is not None:
        drawn = " and ".join(map(str, settings.neighbors))
        return f"Batches of {settings.batch_nodes:,} nodes with {drawn} sampled neighbors"
    if settings.batch_nodes is not None:
        return f"Batches of {settings.batch_nodes:,} random nodes"
    return "The whole graph in each step" if settings.batches == 1 else f"{settings.batches:,} batches of clusters"
