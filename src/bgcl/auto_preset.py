"""`preset="auto"`: settings that depend on the size of the graph.

- `widths`: 128 and 64 for up to 1,000 nodes, 256 and 128 for more.
- `batches`: about 4,000 nodes in each batch. The cost of a step grows with the square of its nodes; at this size a step
  takes about a second and much less than 1 GiB.
- `epochs`: 300 steps in total, but at least 10 epochs, so that training uses every node ten times.
- `drop`: edges and entries if less than a tenth of the attributes' entries are nonzero. Otherwise connections, or only
  edges if a node has fewer than 3 on average: it would lose all its connections too often.

The rule for `drop` was chosen on the development halves of Cora, Citeseer and Amazon Photo, except for the part about
few edges, which was not tried. With any preset, rows are not scaled if the attributes come from columns of a table,
because `bgcl.load` has scaled each column.
"""

import math
from typing import Any

import torch
from torch_geometric.data import Data

from bgcl.settings import Settings, make_settings

BATCH_NODES = 4_000
STEPS, LEAST_EPOCHS = 300, 10
FEW_EDGES = 3
SPARSE = 0.1


def pick(data: Data) -> dict[str, Any]:
    """The settings for a checked graph, by name."""
    nodes = data.num_nodes
    batches = math.ceil(nodes / BATCH_NODES)
    sparse, few = _density(data.x) < SPARSE, data.num_edges < FEW_EDGES * nodes
    return {
        "widths": (128, 64) if nodes <= 1_000 else (256, 128),
        "batches": batches,
        "epochs": max(math.ceil(STEPS / batches), LEAST_EPOCHS),
        "drop": make_settings().drop if sparse else ("edges" if few else "connections shared",),
    }


def _density(x: torch.Tensor) -> float:
    """The share of nonzero entries."""
    values = x if x.layout == torch.strided else x.values()
    return int(torch.count_nonzero(values)) / x.numel()


def row_scaling(data: Data) -> dict[str, Any]:
    """The setting `row_norm` if the graph was read from tables, whose columns are scaled already; nothing otherwise."""
    return {"row_norm": "none"} if getattr(data, "recipe", None) is not None else {}


def describe(data: Data, settings: Settings) -> str:
    """The chosen settings in one line."""
    widths, batches = ", ".join(str(width) for width in settings.widths), settings.batches
    return (
        f"auto: {data.num_nodes:,} nodes with {data.x.shape[1]:,} attributes: widths {widths}; drop "
        f"{' and '.join(settings.drop)}; {settings.epochs} epochs of {batches} batch{'es' if batches > 1 else ''}"
    )
