"""A graph and settings with which a model is trained in a fraction of a second."""

import torch
from torch_geometric.data import Data

from bgcl import BGCL

PAPER = {
    "encoder": "gcn",
    "widths": (8, 4),
    "epochs": 2,
    "tau": 0.4,
    "drop": ("connections in 2 blocks", "features"),
}
DEFAULT = {"widths": (8, 4), "epochs": 2, "tau": 0.4, "drop": ("entries", "neighbors"), "part_width": 3}
KINDS = {"paper": PAPER, "default": DEFAULT}  # the paper's encoder, and the default with embeddings in parts


def narrow(encoder: str) -> dict[str, object]:
    """An encoder with small layers, and with small parts of the embedding if it has any by default."""
    return {"encoder": encoder, "widths": (8, 4)} | ({"part_width": 3} if encoder == "mlp" else {})


def small_data() -> Data:
    """25 nodes with 10 dense attributes and 3 classes."""
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(25, 10, generator=generator)
    return Data(x=x, edge_index=torch.randint(25, (2, 60), generator=generator), y=torch.arange(25) % 3)


def small_model(data: Data, kind: str = "paper", **settings: object) -> BGCL:
    return BGCL(**KINDS[kind] | settings).fit(data, progress=False)
