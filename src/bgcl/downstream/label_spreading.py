r"""What the labels of other nodes say about a node, along the edges and among alike nodes.

With the one-hot labels Y of the training nodes, `(N, C)`, and S the normalized adjacency matrix without
self-connections, labels spread along the connections (Zhou et al., 2004):

    F_0 = Y,    F_t = a S F_(t-1) + (1 - a) Y.

The logits of a node are `log((F_T + s f) / sum_c (F_T + s f))`, with f the frequency of the classes. So a node that no
label reaches has the frequencies.

A pooled head takes these logits as one more head for each graph, see `MixtureClassifier.fit`. For this the logits of
a training node are made without its own label: training nodes are cut into folds, and the labels of the other folds are
spread. With few labels they add little. With many they are the best that is known about a node without attributes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags

from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.node_draws import NodeDraws
from bgcl.graph.prepared import PreparedGraph

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

SHARE, STEPS, PRIOR, FOLDS = 0.8, 20, 0.02, 5  # a, T, s, and the folds of the training nodes


class LabelSpreading:
    """Spreads the labels of training nodes along the connections of graphs with the same nodes.

    Args:
        graphs: the graphs. Their connections may have weights. Self-connections do not count.
        seed: seed of the folds.

    >>> import numpy as np
    >>> import bgcl
    >>> from bgcl.downstream import LabelSpreading, NodeDraws
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> draws, train, y = model.sample(data, samples=4).numpy(), np.arange(0, 240, 4), data.y.numpy()
    >>> every, held_out = LabelSpreading.of(model, data).logits(train, y[train])
    >>> head = bgcl.MixtureClassifier(parts=model.parts_).fit(NodeDraws(draws[:, train], held_out), y[train])
    >>> head.predict_proba(NodeDraws(draws, every)).shape
    (240, 3)
    """

    def __init__(self, graphs: Sequence[PreparedGraph], *, seed: int = 0) -> None:
        self.matrices = [_normalized(graph) for graph in graphs]
        self.seed = seed

    @classmethod
    def of(cls, model: "BGCL", data: "Data") -> "LabelSpreading":
        """Spread labels along the edges of a graph, and among the nodes that are alike by a fitted model."""
        _, graph = model._ready(data)
        return cls([graph, *model._alike(data).values()])

    def logits(self, nodes: Array, codes: Array) -> tuple[Array, Array]:
        """Logits from the labels of some nodes.

        Args:
            nodes: numbers of the training nodes, `(n,)`.
            codes: their classes, as numbers from 0 on without gaps, `(n,)`.

        Returns:
            Logits of all nodes by each graph, `(G, N, C)`, and logits of the training nodes that were made without
            their own labels, `(G, n, C)`.
        """
        distinct, place = np.unique(nodes, return_inverse=True)  # a node that is given twice is in one fold
        classes, fold = int(codes.max()) + 1, self._folds(len(distinct))[place]
        own = np.eye(classes, dtype=np.float32)[codes]  # (n, C)
        parts = [np.ones(len(nodes), dtype=bool), *(fold != number for number in range(int(fold.max()) + 1))]
        start = np.zeros((self.matrices[0].shape[0], len(parts), classes), dtype=np.float32)
        for i, kept in enumerate(parts):
            start[nodes[kept], i] = own[kept]
        frequency = np.stack([own[kept].sum(0) + 1 for kept in parts])
        frequency /= frequency.sum(1, keepdims=True)
        every, held_out = [], []
        for matrix in self.matrices:
            spread = _spread(matrix, start.reshape(len(start), -1)).reshape(start.shape) + PRIOR * frequency
            found = np.log(spread / spread.sum(2, keepdims=True))
            every.append(found[:, 0])
            held_out.append(found[nodes, 1 + fold])
        return np.stack(every), np.stack(held_out)

    def _folds(self, count: int) -> Array:
        """The fold of each training node, `(n,)`."""
        return np.asarray(np.random.default_rng(self.seed).permutation(count) % min(FOLDS, count))


def _normalized(graph: PreparedGraph) -> csr_matrix:
    """`D^-1/2 A D^-1/2` without self-connections; rows of nodes without neighbors are 0."""
    connections = graph.connections
    row, column = connections.row.cpu().numpy(), connections.column.cpu().numpy()
    weight = np.ones(len(row), dtype=np.float32) if graph.weights is None else graph.weights.float().cpu().numpy()
    weight = np.where(row == column, 0, weight).astype(np.float32)
    matrix = csr_matrix((weight, (row, column)), shape=(graph.nodes, graph.nodes))
    matrix.eliminate_zeros()
    sums = [np.maximum(np.asarray(matrix.sum(axis)).ravel(), 1e-12) for axis in (1, 0)]
    return csr_matrix(diags(sums[0] ** -0.5) @ matrix @ diags(sums[1] ** -0.5), dtype=np.float32)


def _spread(matrix: csr_matrix, start: Array) -> Array:
    """`F_T` for `F_0 = Y`, `(N, c)`."""
    found = start
    for _ in range(STEPS):
        found = SHARE * (matrix @ found) + (1 - SHARE) * start
    return found


def fit_head(
    head: MixtureClassifier, draws: Array, labels: Array, nodes: Array, predicted: Array,
    spreading: LabelSpreading | None,
) -> tuple[MixtureClassifier, Array]:  # fmt: skip
    """Fit a head to training nodes, and to what the labels of the others say about them.

    Args:
        head: the head.
        draws: embeddings of the training nodes, `(S, n, d)`.
        labels: their class numbers, `(n,)`.
        nodes: their numbers in the graph, `(n,)`.
        predicted: numbers of the nodes that the head will predict, `(m,)`.
        spreading: spreads the labels of the training nodes; None: the head uses the embeddings alone.

    Returns:
        The fitted head, and the logits beside the draws of the nodes that it will predict, `(B, m, C)`.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    if spreading is None:
        return head.fit(draws, labels), np.empty((0, len(predicted), len(classes)))
    every, held_out = spreading.logits(nodes, codes)
    return head.fit(NodeDraws(draws, held_out), labels), every[:, predicted]
