"""Small trainings, of the paper's kind and of the default's kind."""

import pytest
import torch
from torch_geometric.data import Data

from bgcl import BGCL
from bgcl.data.pyg import check_graph
from bgcl.graph.clusters import Batches
from bgcl.graph.prepared import prepare
from bgcl.model.global_step import Source
from bgcl.model.network import Network
from bgcl.model.training import Training
from bgcl.settings import Settings

PAPER = {"encoder": "gcn", "drop": ("connections in 2 blocks", "features")}
# The default's encoder and batches, with rates that are learned in training.
DEFAULT = {
    "drop": ("entries", "neighbors"), "batch_nodes": 12, "rate_rule": "adversary", "rate_every": 2, "part_width": 5,
}  # fmt: skip
SMALL = {"widths": (8, 4), "epochs": 4, "lr_rates": 0.05}

both = pytest.mark.parametrize("kind", [PAPER, DEFAULT], ids=["paper", "default"])


def tiny_graph() -> Data:
    generator = torch.Generator().manual_seed(3)
    edges = torch.randint(30, (2, 80), generator=generator)
    x = (torch.rand(30, 12, generator=generator) < 0.4).float() + torch.eye(30, 12)
    return Data(x=x, edge_index=edges, num_nodes=30)


def make(kind: dict = PAPER, **settings) -> BGCL:
    # All settings at once, because some of SMALL have no effect with fixed rates, which is an error for a user.
    return BGCL(**dict(Settings(**SMALL | kind | settings)))


def fit(graph: Data, kind: dict = PAPER, **settings) -> BGCL:
    return make(kind, **settings).fit(graph, progress=False)


def begin(graph: Data, kind: dict = PAPER, **settings) -> Training:
    """A training on the whole graph before its first step."""
    chosen = Settings(**SMALL | kind | settings)
    return Training(Network(12, chosen), Batches(prepare(check_graph(graph), row_norm="sum")), chosen)


def whole(training: Training) -> list[Source]:
    """A step on the whole graph."""
    return [Source(iter([training.batches.graph]), training.generator)]


def parameters(model: BGCL) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.network_.state_dict().items()}


def assert_equal(one: BGCL, other: BGCL) -> None:
    a, b = parameters(one), parameters(other)
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name
