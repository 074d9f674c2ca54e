"""`preset="auto"`: settings from the size of a graph. What a step costs grows with the square of a batch's nodes.

- widths: 128 and 64 up to 1,000 nodes, 256 and 128 above;
- batches: unions of clusters, of at most 4,000 nodes in all, so that a step takes about a second and well under a GiB;
- epochs: 300 steps in all, but 10 epochs at least, so that every node is seen ten times;
- dropped: edges and entries of the attributes, where fewer than a tenth of the entries are not zero; connections alone
  otherwise, or only edges where a node has fewer than 3 on average, since it would lose all too often.

The last rule follows the development halves of Cora, Citeseer and Amazon Photo; that of few edges was not tried there.
Attributes that `bgcl.load` made from columns are scaled already, so that rows are not scaled again, with any preset.
"""

import math
from typing import Any

import torch
from torch_geometric.data import Data

from bgcl.settings import make_settings

BATCH_NODES = 4_000
STEPS, LEAST_EPOCHS = 300, 10
FEW_EDGES = 3
SPARSE = 0.1


def pick(data: Data) -> dict[str, Any]:
    """The settings for a clean graph."""
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
    """The share of entries that are not zero."""
    values = x if x.layout == torch.strided else x.values()
    return int(torch.count_nonzero(values)) / x.numel()


def scaling(data: Data) -> dict[str, Any]:
    """Whether rows are scaled: not if the attributes are columns of a table, which have been scaled one by one."""
    return {"normalise_rows": False} if getattr(data, "recipe", None) is not None else {}


def describe(data: Data, settings: Any) -> str:
    """What was picked, in one line."""
    widths, parts = ", ".join(str(width) for width in settings.widths), settings.batches
    return (
        f"auto: {data.num_nodes:,} nodes with {data.x.shape[1]:,} attributes, so widths {widths}; dropping "
        f"{' and '.join(settings.drop)}; {settings.epochs} epochs of {parts} batch{'es' if parts > 1 else ''}"
    )
