"""What depends on the graph: the number of epochs, and whether rows are scaled.

- `epochs`, if none is given: as many as make 300 steps. A step of the default has 512 random nodes, so its cost does
  not depend on the size of the graph.
- `row_norm`: with settings that scale rows, such as the paper's, rows are not scaled if the attributes come from
  columns of a table, because `bgcl.load` has scaled each column.
"""

import math
from typing import Any

from torch_geometric.data import Data

from bgcl.graph.prepared import mean_weight
from bgcl.settings import Settings

STEPS = 300


def fit_to_graph(data: Data, settings: Settings, given: dict[str, Any]) -> Settings:
    """The settings for a checked graph. What was `given` stays as it is."""
    changes: dict[str, Any] = {}
    if settings.epochs is None:
        changes["epochs"] = math.ceil(STEPS / steps_per_epoch(data, settings))
    if "row_norm" not in given and settings.row_norm != "auto" and getattr(data, "recipe", None) is not None:
        changes["row_norm"] = "none"
    return settings.with_changes(**changes) if changes else settings


def steps_per_epoch(data: Data, settings: Settings) -> int:
    """The number of steps in an epoch."""
    return settings.batches if settings.batch_nodes is None else math.ceil(data.num_nodes / settings.batch_nodes)


def describe(data: Data, settings: Settings) -> str:
    """The chosen settings in one line."""
    steps = steps_per_epoch(data, settings) * (settings.epochs or 0)
    weights = ", weighted edges" if mean_weight(data) else ""
    return (
        f"{data.num_nodes:,} nodes with {data.x.shape[1]:,} attributes{weights}: encoder {settings.encoder}, objective "
        f"{settings.objective}; drop {' and '.join(settings.drop)}; {settings.epochs} epochs, {steps:,} steps"
    )
