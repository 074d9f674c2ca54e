"""The representation-uncertainty experiment: noise in the attributes of a few nodes, and where it raises ASTD."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra
from torch_geometric.data import Data

from bgcl.errors import BGCLError
from bgcl.estimator import BGCL
from bgcl.graph.prepared import unit_rows

if TYPE_CHECKING:
    from collections.abc import Callable

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class NoiseExperiment:
    """ASTD of every node with and without the noise, and its distance from the nearest noisy node."""

    noisy: Array  # node numbers
    hops: Array  # (N,), -1 where no noisy node can be reached
    clean_astd: Array
    noisy_astd: Array

    def by_hop(self, most: int = 5) -> list[Array]:
        """The increase of ASTD of the nodes at 0, 1, ... hops."""
        return [(self.noisy_astd - self.clean_astd)[self.hops == hop] for hop in range(most + 1)]


def noise_experiment(
    data: Data, *, nodes: int = 10, deviation: float = 1.0, samples: int = 100, seed: int = 0,
    train: "Callable[[Data], BGCL] | None" = None, preset: str | None = None, **settings: Any,
) -> NoiseExperiment:  # fmt: skip
    """Replace the attributes of `nodes` random nodes by normal noise, train with and without, and compare ASTD.

    The noise is put in after the attributes' rows are scaled, if the settings say so, and is not scaled itself. The two
    models have the same seed, so that they begin alike and differ only by the noise.

    >>> import bgcl
    >>> found = bgcl.noise_experiment(bgcl.example_graph(), nodes=5, samples=4, widths=(16, 8), epochs=1)
    >>> len(found.by_hop(2))  # 0, 1 and 2 hops away
    3
    """
    if not 1 <= nodes < data.num_nodes:
        raise BGCLError(f"The number of noisy nodes must be between 1 and {data.num_nodes - 1}. Got {nodes} instead.")
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(data.num_nodes, nodes, replace=False))
    noise = deviation * random.standard_normal((nodes, data.x.shape[1]))
    settled = BGCL(preset, **settings | {"seed": seed}).settings_for(data)
    scaled = settled.model_dump() | {"normalise_rows": False}
    fit = train or (lambda graph: BGCL(**scaled).fit(graph, progress=False))
    clean_x = data.x.to_dense().float()
    clean_x = unit_rows(clean_x, settled.row_norm) if settled.normalise_rows else clean_x
    noisy_x = clean_x.clone()
    noisy_x[torch.as_tensor(chosen)] = torch.as_tensor(noise, dtype=torch.float32)
    found = []
    for x in (clean_x, noisy_x):
        graph = data.clone()
        graph.x = x
        found.append(fit(graph).moments(graph, samples, seed=seed).astd.cpu().numpy())
    return NoiseExperiment(chosen, hops_from(data, chosen), *found)


def hops_from(data: Data, nodes: Array) -> Array:
    """The number of hops from the nearest of `nodes`, `(N,)`; -1 where there is no path."""
    row, column = data.edge_index.cpu().numpy()
    adjacency = csr_matrix((np.ones(len(row)), (row, column)), shape=(data.num_nodes, data.num_nodes))
    hops = dijkstra(adjacency, indices=nodes, unweighted=True, min_only=True, directed=False)
    return np.where(np.isfinite(hops), hops, -1).astype(int)
