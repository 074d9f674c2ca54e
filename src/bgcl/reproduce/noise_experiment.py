"""The noise experiment: replace the attributes of a few nodes by noise, and measure where ASTD increases."""

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
from bgcl.graph.prepared import scale_rows

if TYPE_CHECKING:
    from collections.abc import Callable

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class NoiseExperiment:
    """ASTD of every node with and without noise.

    Attributes:
        noisy: numbers of the noisy nodes.
        hops: hops from each node to the nearest noisy node, -1 if there is no path, `(N,)`.
        clean_astd: ASTD of the model trained without noise, `(N,)`.
        noisy_astd: ASTD of the model trained with noise, `(N,)`.
    """

    noisy: Array
    hops: Array
    clean_astd: Array
    noisy_astd: Array

    def by_hop(self, most: int = 5) -> list[Array]:
        """The increase of ASTD of the nodes at 0, 1, ..., `most` hops."""
        return [(self.noisy_astd - self.clean_astd)[self.hops == hop] for hop in range(most + 1)]


def noise_experiment(
    data: Data, *, nodes: int = 10, std: float = 1.0, samples: int = 100, seed: int = 0,
    train: "Callable[[Data], BGCL] | None" = None, preset: str | None = None, **settings: Any,
) -> NoiseExperiment:  # fmt: skip
    """Replace the attributes of random nodes by noise, train with and without the noise, and compare ASTD.

    The attributes are scaled first, as the setting `row_norm` says. The noise is not scaled. The two models have the
    same seed, so they start with the same weights and differ only by the noise.

    Args:
        data: the graph.
        nodes: the number of noisy nodes.
        std: standard deviation of the noise.
        samples: the number of draws.
        seed: seed of the noise, the models and the draws.
        train: a function that trains a model on a graph. Default: train with the given settings.
        preset: name of a preset.
        **settings: other settings of the model.

    Returns:
        ASTD of every node with and without noise.

    Raises:
        BGCLError: `nodes` is not between 1 and N - 1, or a setting is not valid.

    >>> import bgcl
    >>> found = noise_experiment(bgcl.example_graph(), nodes=5, samples=4, widths=(16, 8), epochs=1)
    >>> len(found.by_hop(2))  # 0, 1 and 2 hops away
    3
    """
    if not 1 <= nodes < data.num_nodes:
        raise BGCLError(f"The number of noisy nodes must be between 1 and {data.num_nodes - 1}. Got {nodes} instead.")
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(data.num_nodes, nodes, replace=False))
    noise = std * random.standard_normal((nodes, data.x.shape[1]))
    settled = BGCL(preset, **settings | {"seed": seed}).settings_for(data)
    unscaled = dict(settled.with_changes(row_norm="none"))
    fit = train or (lambda graph: BGCL(**unscaled).fit(graph, progress=False))
    norm = "length" if settled.row_norm == "auto" else settled.row_norm
    clean_x = scale_rows(data.x.to_dense().float(), norm)
    noisy_x = clean_x.clone()
    noisy_x[torch.as_tensor(chosen)] = torch.as_tensor(noise, dtype=torch.float32)
    found = []
    for x in (clean_x, noisy_x):
        graph = data.clone()
        graph.x = x
        found.append(fit(graph).moments(graph, samples, seed=seed).astd.cpu().numpy())
    return NoiseExperiment(chosen, hops_from(data, chosen), *found)


def hops_from(data: Data, nodes: Array) -> Array:
    """The number of hops from each node to the nearest of `nodes`, `(N,)`, -1 if there is no path."""
    row, column = data.edge_index.cpu().numpy()
    adjacency = csr_matrix((np.ones(len(row)), (row, column)), shape=(data.num_nodes, data.num_nodes))
    hops = dijkstra(adjacency, indices=nodes, unweighted=True, min_only=True, directed=False)
    return np.where(np.isfinite(hops), hops, -1).astype(int)
