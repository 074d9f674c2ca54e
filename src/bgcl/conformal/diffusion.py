r"""Scores of near nodes taken into account: scores diffused along the edges and among alike nodes.

With the scores `S`, `(N, C)`, and the mean over the neighbors of a node in graph g, `M_g`, diffused scores are

    S' = (1 - sum_g share_g) S + sum_g share_g M_g S.

With the edges alone this is DAPS (Zargarbashi et al., 2023), with alike nodes too it is SNAPS (Song et al., 2024). If
near nodes have the same class, the noise in their scores averages out, and sets get smaller. The scores of all nodes
are made without the labels of calibration nodes and in the same way for all, so sets still hold their level.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags

from bgcl.errors import BGCLError
from bgcl.novelty.propagation import mean_of_neighbors

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL
    from bgcl.graph.prepared import PreparedGraph

Array = npt.NDArray[Any]

EDGES, ALIKE = 0.25, 0.25  # chosen on development halves, see docs/trust.md


class ScoreDiffusion:
    """Diffuses the scores of classes over graphs with the same nodes.

    Args:
        graphs: the graphs. Their connections may have weights. Self-connections do not count, and a node without
            neighbors keeps its own scores.
        shares: the share of each graph; together at most 1.

    Raises:
        BGCLError: the shares do not fit.

    >>> import numpy as np
    >>> import bgcl
    >>> from bgcl.conformal import ScoreDiffusion
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> diffusion = ScoreDiffusion.of(model, data)
    >>> diffusion(np.random.default_rng(0).random((240, 3))).shape
    (240, 3)
    """

    def __init__(self, graphs: "Sequence[PreparedGraph]", shares: Sequence[float]) -> None:
        if len(shares) != len(graphs) or not all(0 <= share <= 1 for share in shares) or sum(shares) > 1:
            raise BGCLError(f"Give a share between 0 and 1 for each graph, together at most 1. Got {list(shares)}.")
        self.shares = list(shares)
        self.means = [_mean_of_neighbors(graph) for graph in graphs]

    @classmethod
    def of(cls, model: "BGCL", data: "Data", *, edges: float = EDGES, alike: float = ALIKE) -> "ScoreDiffusion":
        """Diffuse along the edges of a graph, and among nodes that are alike by their embedding without masks.

        Args:
            model: a fitted model.
            data: the graph.
            edges: the share of the neighbors.
            alike: the share of the alike nodes.
        """
        from bgcl.graph.alike import among_alike

        _, graph = model._ready(data)
        graphs = [graph] if not alike else [graph, among_alike(graph, model.embed(data))]
        return cls(graphs, [edges, alike][: len(graphs)])

    def __call__(self, scores: Array) -> Array:
        """Diffuse scores of all nodes, `(N, C)`."""
        if len(scores) != self.means[0].shape[0]:
            raise BGCLError(
                f"Scores are diffused over all {self.means[0].shape[0]} nodes of the graph. Got draws of {len(scores)} "
                "nodes: give those of all nodes, and name the calibration nodes with 'nodes'."
            )
        found = (1 - sum(self.shares)) * scores
        for share, mean in zip(self.shares, self.means, strict=True):
            found = found + share * (mean @ scores)
        return np.asarray(found)


def _mean_of_neighbors(graph: "PreparedGraph") -> csr_matrix:
    """`D^-1 A` without self-connections; the row of a node without neighbors is that of the identity."""
    mean = mean_of_neighbors(graph)
    return csr_matrix(mean + diags((np.diff(mean.indptr) == 0).astype(float)))
