r"""Is uncertainty without labels worth something? Two questions to measures that have never seen a label.

**Does it know where the embedding misleads?** The nearest node in the embedding should have the same class (the recall
of Kirchhof et al., 2023, "URL: A Representation Learning Benchmark for Transferable Uncertainty Estimates"). R-AUROC
is the probability that a node whose nearest node has another class is more uncertain than a node whose nearest node has
the same. Two controls need no model of uncertainty: the number of neighbors, and the distance of the nearest node.

**Does it rise if a node is masked?** Some nodes lose all their edges, or all their attributes. The share of them whose
uncertainty grows should be far above a half.
"""

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from bgcl.downstream.graph_changes import attribute_rows, with_attributes
from bgcl.downstream.splits import development_half, labels_of
from bgcl.estimator import BGCL
from bgcl.measures.metrics import error_auroc
from bgcl.novelty.detector import Novelty
from bgcl.reproduce.detectors import known_only

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]
Found = dict[str, Any]

MEASURES = ("astd", "disagreement", "likelihood", "residual", "edges by encoder", "edges by position", "mixture")
ANCHORED, WHOLE = "anchored disagreement", "novelty"
DEGREE, DISTANCE = "number of neighbors", "distance of the nearest node"
CONTROLS = (DEGREE, DISTANCE)
MASKED = 0.1  # the share of the nodes that are masked
_ROWS = 1024


def label_free(model: BGCL, data: "Data", *, samples: int, seed: int = 0) -> Found:
    """Answer both questions.

    Args:
        model: a fitted model.
        data: its graph, with labels. They only say which nearest nodes have the same class.
        samples: number of draws.
        seed: seed of the draws, and of the choice of masked nodes.

    Returns:
        A dictionary: "r_auroc", by measure; "recall", the share of nodes whose nearest node has the same class;
        "rises", for "edges" and "attributes" the share of masked nodes whose measure grows; "novelty_seconds".
    """
    judge = _Measuring(model, data, samples, seed)
    usual, labels = judge(data), labels_of(data)
    same, distance = nearest_has_the_same_class(model.embed(data), labels)
    degree = np.bincount(data.edge_index[0].cpu().numpy(), minlength=data.num_nodes)
    nodes = np.setdiff1d(np.flatnonzero(labels >= 0), development_half(data.num_nodes))
    every = usual | {DEGREE: -degree.astype(float), DISTANCE: distance}
    found = {name: error_auroc(same[nodes], score[nodes]) for name, score in every.items()}
    random = np.random.default_rng(seed)
    connected = np.flatnonzero(degree > 0)
    chosen = random.choice(connected, max(int(MASKED * len(connected)), 1), replace=False)
    rises = {}
    for what, changed in (("edges", without_edges(data, chosen)), ("attributes", without_attributes(data, chosen))):
        now = judge(changed)
        rises[what] = {name: round(float((now[name] > usual[name])[chosen].mean()), 4) for name in usual}
    return {
        "r_auroc": {name: round(value, 5) for name, value in found.items()},
        "recall": round(float(same[nodes].mean()), 5),
        "rises": rises,
        "novelty_seconds": round(judge.seconds, 2),
    }


class _Measuring:
    """All measures of a model, with what they learned from one graph."""

    def __init__(self, model: BGCL, data: "Data", samples: int, seed: int) -> None:
        self.model, self.samples, self.seed = model, samples, seed
        self.each = Novelty(model, [[name] for name in MEASURES], samples=samples, seed=seed).fit(data)
        start = time.perf_counter()
        self.whole = Novelty(model, seed=seed).fit(data)
        self.whole.score(data)
        self.seconds = time.perf_counter() - start

    def __call__(self, data: "Data") -> dict[str, Array]:
        anchored = self.model.disagreement(data, self.samples, anchored=True, seed=self.seed)
        scores = {name: known_only(values) for name, values in self.each.score(data).scores.items()}
        return scores | {ANCHORED: anchored, WHOLE: self.whole.score(data).strangeness}


def nearest_has_the_same_class(embedding: Tensor, labels: Array) -> tuple[Array, Array]:
    """Whether the nearest other labeled node has the same class, and one minus its cosine; for all nodes, `(N,)` each.

    Args:
        embedding: the embedding, `(N, d)`.
        labels: class numbers, -1 for nodes without a label, `(N,)`.
    """
    unit = F.normalize(embedding, dim=1)
    among = torch.as_tensor(np.flatnonzero(labels >= 0))
    theirs, same, distance = unit[among].T.contiguous(), [], []
    for start in range(0, len(unit), _ROWS):
        rows = torch.arange(start, min(start + _ROWS, len(unit)))
        cosine = unit[rows] @ theirs
        cosine[rows[:, None] == among] = -torch.inf
        best = cosine.max(1)
        same.append(labels[among[best.indices].numpy()] == labels[rows.numpy()])
        distance.append(1 - best.values.double().numpy())
    return np.concatenate(same), np.concatenate(distance)


def without_edges(data: "Data", nodes: Array) -> "Data":
    """The graph in which some nodes have no edges."""
    alone = torch.zeros(data.num_nodes, dtype=torch.bool)
    alone[torch.as_tensor(nodes)] = True
    kept = ~alone[data.edge_index.cpu()].any(0)
    found = data.clone()
    found.edge_index = data.edge_index[:, kept]
    for name in ("edge_weight", "edge_relations"):
        if data.get(name) is not None:
            found[name] = data[name][kept]
    return found


def without_attributes(data: "Data", nodes: Array) -> "Data":
    """The graph in which all attributes of some nodes are zero."""
    rows = attribute_rows(data.x)
    keep = np.ones((data.num_nodes, 1), dtype=np.float32)
    keep[nodes] = 0
    found = rows.multiply(keep).tocsr()
    found.eliminate_zeros()
    return with_attributes(data, found)
