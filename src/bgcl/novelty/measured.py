"""The scores of nodes that a model can measure, with what it learned from the graph that it knows."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix

from bgcl.model.structure import Structure
from bgcl.novelty.attribute_scores import AttributeStatistics
from bgcl.novelty.density import Ellipsoid, Neighborhood, NormalDensity
from bgcl.novelty.draw_scores import pair_scores
from bgcl.novelty.edge_scores import misfit
from bgcl.novelty.propagation import mean_of_neighbors

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL
    from bgcl.graph.prepared import PreparedGraph
    from bgcl.model.network import Network

Array = npt.NDArray[Any]

ATTRIBUTES = ("residual", "spread", "count")
EDGES = ("edges by encoder", "edges by position")
ENCODED = "encoded"
DENSITY = ("nearest", "mahalanobis", "mixture")
DRAWS = ("astd", "disagreement", "likelihood")
LABELED = "nearest labeled"
MEASURED = (*ATTRIBUTES, *EDGES, ENCODED, *DENSITY, *DRAWS, LABELED)
DIRECTIONS = 256  # of the attributes, the most that may explain them
POSITIONS = 64  # width of the positions of a model that has none


@dataclass(frozen=True)
class Measures:
    """What was learned from the known graph.

    Args:
        model: the fitted model.
        wanted: names of scores, of `MEASURED`.
        samples: number of draws.
        seed: seed of the draws.
        attributes: statistics of the known nodes' attributes.
        positions: positions of the known nodes; None: they are not wanted.
        encoded: mean and covariance of the encoder's output, for "encoded".
        around: embeddings of the known nodes, for "nearest".
        density: their density, for "mahalanobis" and "mixture".
        labeled: embeddings of labeled nodes, for "nearest labeled".
    """

    model: "BGCL"
    wanted: frozenset[str]
    samples: int
    seed: int
    attributes: AttributeStatistics | None
    positions: Structure | None
    encoded: Ellipsoid | None
    around: Neighborhood | None = None
    density: NormalDensity | None = None
    labeled: Neighborhood | None = None

    @classmethod
    def fit(
        cls, model: "BGCL", data: "Data", wanted: Collection[str], *, known: Array, labeled: Array | None,
        samples: int, seed: int,
    ) -> "Measures":  # fmt: skip
        """Learn from a graph what is wanted.

        Args:
            model: the fitted model.
            data: the graph.
            wanted: names of scores, of `MEASURED`.
            known: numbers of its known nodes.
            labeled: numbers of its labeled nodes.
            samples: number of draws.
            seed: seed of the draws.
        """
        wanted, random = frozenset(wanted), np.random.default_rng(seed)
        attributes = positions = encoded = around = density = near = None
        network, graph = model._ready(data)
        if wanted & set(ATTRIBUTES):
            generator = torch.Generator(model.settings_.device).manual_seed(seed)
            directions = network.parts.directions_of_attributes(graph, generator, DIRECTIONS).cpu().double().numpy()
            attributes = AttributeStatistics.of(model._ready_graph(data).prepared.features, known, directions)
        if "edges by position" in wanted:
            positions = network.parts.structure
            if positions is None:
                positions = Structure(POSITIONS)
                positions.fit(graph)
        if ENCODED in wanted:
            encoded = Ellipsoid.of(_encoded(network, graph)[known])
        if wanted & set(DENSITY):
            embedding = model.moments(data, samples, seed=seed).mean.cpu().numpy()
            around = Neighborhood.of(embedding, known, random)
            density = NormalDensity.of(embedding, known, seed) if wanted & set(DENSITY[1:]) else None
        if LABELED in wanted:
            assert labeled is not None
            near = Neighborhood.of(model.embed(data).numpy(), labeled, random)
        return cls(model, wanted, samples, seed, attributes, positions, encoded, around, density, near)

    def scores(self, data: "Data", *, same: bool) -> tuple[dict[str, Array], csr_matrix]:
        """The scores of all nodes of a graph, `(N,)` each, and what propagates them.

        Args:
            data: the graph.
            same: whether it is the graph that the measures were fitted to.
        """
        network, graph = self.model._ready(data)
        mean, found = mean_of_neighbors(graph), dict[str, Array]()
        if self.attributes is not None:
            found |= self.attributes.scores(self.model._ready_graph(data).prepared.features, graph.features)
        if self.wanted & {"edges by encoder", ENCODED}:
            encoded = _encoded(network, graph)
            found["edges by encoder"] = misfit(mean, encoded)
            if self.encoded is not None:
                found[ENCODED] = self.encoded.distance(encoded)
        if self.positions is not None:
            found["edges by position"] = misfit(mean, self._positions(graph))
        found |= self._of_draws(data, same=same)
        if self.labeled is not None:
            found[LABELED] = self.labeled.distance(self.model.embed(data).numpy(), same=same)
        return {name: found[name] for name in MEASURED if name in self.wanted}, mean

    def _positions(self, graph: "PreparedGraph") -> Array:
        assert self.positions is not None
        return np.asarray(self.positions(graph).cpu().double().numpy())

    def _of_draws(self, data: "Data", *, same: bool) -> dict[str, Array]:
        found = dict[str, Array]()
        if self.wanted & {*DENSITY, "astd"}:
            moments = self.model.moments(data, self.samples, seed=self.seed)
            embedding = moments.mean.cpu().numpy()
            found["astd"] = moments.astd.cpu().double().numpy()
            if self.around is not None:
                found["nearest"] = self.around.distance(embedding, same=same)
            if self.density is not None:
                found["mahalanobis"] = self.density.mahalanobis(embedding)
                found["mixture"] = self.density.surprise(embedding)
        if self.wanted & set(DRAWS[1:]):
            found |= pair_scores(self.model, data, self.samples, self.seed)
        return found


def _encoded(network: "Network", graph: "PreparedGraph") -> Array:
    """The encoder's output without masks, `(N, w)`."""
    with torch.no_grad():
        return np.asarray(network.encoder(graph).cpu().double().numpy())
