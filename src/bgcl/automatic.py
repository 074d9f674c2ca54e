"""`preset="auto"`: settings from the size of a graph. What a step costs grows with the square of a batch's nodes.

- widths: 128 and 64 up to 1,000 nodes, 256 and 128 above;
- batches: clusters of at most 4,000 nodes, so that a step takes a second or less and well under a GiB;
- epochs: 600 steps in all, but 10 epochs at least, so that every node is seen ten times;
- blocks: 8, or 2 where they would make masks of more than 8 million entries, or have fewer than 8 attributes each;
- features are dropped column by column, or entry by entry with fewer than 16 attributes, which cannot be spared.

Attributes that `bgcl.load` made from columns are scaled already, so that rows are not scaled again, with any preset.
"""

import math
from typing import Any

from torch_geometric.data import Data

BATCH_NODES = 4_000
STEPS, LEAST_EPOCHS = 600, 10
BLOCKS, FEWER_BLOCKS = 8, 2
MASK_ENTRIES = 8_000_000
FEW_ATTRIBUTES = 16


def pick(data: Data) -> dict[str, Any]:
    """The settings for a clean graph."""
    nodes, width, connections = data.num_nodes, data.x.shape[1], data.num_edges + data.num_nodes
    batches = math.ceil(nodes / BATCH_NODES)
    spare = width >= 8 * BLOCKS and BLOCKS * connections / batches <= MASK_ENTRIES
    features = "features" if width >= FEW_ATTRIBUTES else "entries"
    return {
        "widths": (128, 64) if nodes <= 1_000 else (256, 128),
        "batches": batches,
        "epochs": max(math.ceil(STEPS / batches), LEAST_EPOCHS),
        "drop": (f"connections in {BLOCKS if spare else FEWER_BLOCKS} blocks", features),
    }


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
