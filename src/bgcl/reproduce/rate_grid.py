"""The experiment `rates`: the default with fixed drop rates on a grid, next to the rates that it learns.

Criteria without labels are computed at each point, to see whether they would find good rates. A share of the edges is
held out from training, to compute their likelihood. The embedding is made on the whole graph.
Scores are those of the development half, because this experiment is made to choose.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bgcl.measures.criteria import agreement, edge_likelihood, effective_rank
from bgcl.model.objectives.infonce import some_nodes
from bgcl.model.posterior import pairs_of_views
from bgcl.reproduce.cells import Cell

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

DATASETS = (
    "cora", "citeseer", "actor", "blogcatalog", "tolokers", "amazon-photo", "amazon-computers", "pubmed", "coauthor-cs",
    "coauthor-physics",
)  # fmt: skip
GRID = (0.1, 0.3, 0.5, 0.7, 0.9)
HELD_OUT = 0.05  # share of the edges
MOST, DRAWS, SPLITS = 4096, 4, 5
LEARNED = "learned"
ONE = {"members": 1}  # one encoder, because what rates do does not depend on how many there are, and time does
CRITERIA = {
    "rank": "effective rank (RankMe)",
    "edges": "likelihood of held-out edges",
    "agreement": "agreement of draws",
    "loss": "loss of the views",
}


def rate_cells(dataset: str, *, seeds: int | None, splits: int | None, quick: dict[str, Any] | None) -> list[Cell]:
    """The cells of the grid on a data set, and the one with learned rates."""
    points: dict[str, dict[str, Any]] = {LEARNED: ONE}
    points |= {
        f"{entries} and {neighbors}": {
            "drop": [f"entries at {entries}", f"neighbors at {neighbors}"],
            "until_settled": False,
        }
        | ONE
        for entries in GRID
        for neighbors in GRID
    }
    how = {"masks": False, "head": "mixture", "criteria": True}
    return [
        Cell(
            "bgcl-default", dataset, seed, "development", splits or (SPLITS if quick is None else 3),
            settings | (quick or {}), how, label=label,
        )
        for seed in range(1 if quick is not None else seeds or 1)
        for label, settings in list(points.items())[: None if quick is None else 2]
    ]  # fmt: skip


def hold_out(data: "Data", share: float = HELD_OUT) -> tuple["Data", Any]:
    """A graph without some of its edges, and these edges, `(2, n)`. The same graph gives the same edges."""
    edges = data.edge_index
    once = edges[:, edges[0] < edges[1]]
    order = np.random.default_rng(12).permutation(once.shape[1])
    out, kept = once[:, order[: int(share * len(order))]], once[:, np.sort(order[int(share * len(order)) :])]
    reduced = data.clone()
    reduced.edge_index = torch.cat([kept, kept.flip(0)], 1)
    return reduced, out


def criteria(model: "BGCL", data: "Data", held_out: Any) -> dict[str, float]:
    """What the criteria without labels say of a model.

    Args:
        model: a model that was trained without the held-out edges.
        data: the graph that it was trained on.
        held_out: the edges, `(2, n)`.
    """
    network, graph = model._ready(data)
    generator = torch.Generator().manual_seed(12)
    with torch.no_grad():
        encoded = network.encoder(graph)
        among = some_nodes(data.num_nodes, MOST)
        edges = held_out[:, torch.randperm(held_out.shape[1], generator=generator)[:MOST]]
        pairs = list(pairs_of_views(network, graph, DRAWS, 12, scale=1.0))
    last = model.history_[-max(len(model.history_) // 4, 1) :]
    return {
        "rank": effective_rank(encoded),
        "edges": edge_likelihood([encoded], edges, among, model.settings_.tau or 1.0),
        "agreement": float(np.mean([agreement(o, t) for o, t in pairs])),
        "loss": float(np.mean([record.loss for record in last])),
    }
