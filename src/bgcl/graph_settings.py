"""What depends on the graph: the number of epochs, and whether rows are scaled.

- `epochs`, if none is given: as many as make 300 steps. A step of the default has 512 random nodes, so its cost does
  not depend on the size of the graph.
- `drop` and `parts` of a graph with several relations, such as types of edges: masks of edges have a rate for each of
  them, and what the default propagates along all edges is there for each of them too.
- `row_norm`: with settings that scale rows, such as the paper's, rows are not scaled if the attributes come from
  columns of a table, because `bgcl.load` has scaled each column.
"""

import math
from typing import Any

from torch_geometric.data import Data

from bgcl.graph.prepared import mean_weight, relations_of
from bgcl.settings import Settings

STEPS, MODULE = 300, "module"


def fit_to_graph(data: Data, settings: Settings, given: dict[str, Any]) -> Settings:
    """The settings for a checked graph. What was `given` stays as it is."""
    changes: dict[str, Any] = {}
    if settings.epochs is None:
        changes["epochs"] = math.ceil(STEPS / steps_per_epoch(data, settings))
    if len(relations_of(data)) > 1:
        changes |= _for_relations(settings, given)
    if "row_norm" not in given and settings.row_norm != "auto" and getattr(data, "recipe", None) is not None:
        changes["row_norm"] = "none"
    return settings.with_changes(**changes) if changes else settings


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
