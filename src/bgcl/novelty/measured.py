"""The scores of nodes that a model can measure, with what it learned from the graph that it knows."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
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
    from bgcl.model.posterior import Moments

Array = npt.NDArray[Any]
Scores = tuple[dict[str, Array], csr_matrix]  # by name, `(N,)` each, and the mean over the neighbors of a node

ATTRIBUTES = ("residual", "spread", "count")
EDGES = ("edges by encoder", "edges by position")
ENCODED = "encoded"
DENSITY = ("nearest", "mahalanobis", "mixture")
DRAWS = ("astd", "disagreement", "likelihood")
LABELED = "nearest labeled"
MEASURED = (*ATTRIBUTES, *EDGES, ENCODED, *DENSITY, *DRAWS, LABELED)
DIRECTIONS = 256  # of the attributes, the most that may explain them
POSITIONS = 64  # width of the positions of a model that has none


class Seen:
    """What a model sees of a graph. Each thing is computed once, when it is first used."""

    def __init__(self, model: "BGCL", data: "Data", samples: int, seed: int) -> None:
        self.model, self.data, self.samples, self.seed = model, data, samples, seed
        self.network, self.graph = model._ready(data)

    @cached_property
    def encoded(self) -> Array:
        """The encoder's output without masks, `(N, w)`."""
        with torch.no_grad():
            return np.asarray(self.network.encoder(self.graph).cpu().double().numpy())

    @cached_property
    def embedding(self) -> Array:
        """The embedding without masks, `(N, d)`."""
        return np.asarray(self.model.embed(self.data).numpy())

    @cached_property
    def moments(self) -> "Moments":
        """Mean and standard deviation of the draws."""
        return self.model.moments(self.data, self.samples, seed=self.seed)

    @cached_property
    def mean_embedding(self) -> Array:
        """The mean of the draws, `(N, d)`."""
        return np.asarray(self.moments.mean.cpu().numpy())


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
    ) -> "tuple[Measures, Scores]":  # fmt: skip
        """Learn from a graph what is wanted. Returns the measures, and the scores of this graph, as `scores` does.

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
        seen = Seen(model, data, samples, seed)
        network, graph = seen.network, seen.graph
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
            encoded = Ellipsoid.of(seen.encoded[known])
        if wanted & set(DENSITY):
            around = Neighborhood.of(seen.mean_embedding, known, random)
            density = NormalDensity.of(seen.mean_embedding, known, seed) if wanted & set(DENSITY[1:]) else None
        if LABELED in wanted:
            assert labeled is not None
            near = Neighborhood.of(seen.embedding, labeled, random)
        measures = cls(model, wanted, samples, seed, attributes, positions, encoded, around, density, near)
        return measures, measures._scores(seen, same=True)

    def scores(self, data: "Data") -> "Scores":
        """The scores of all nodes of another graph, `(N,)` each, and what propagates them."""
        return self._scores(Seen(self.model, data, self.samples, self.seed), same=False)

    def _scores(self, seen: Seen, *, same: bool) -> "Scores":
        graph = seen.graph
        mean, found = mean_of_neighbors(graph), dict[str, Array]()
        if self.attributes is not None:
            found |= self.attributes.scores(self.model._ready_graph(seen.data).prepared.features, graph.features)
        if "edges by encoder" in self.wanted:
            found["edges by encoder"] = misfit(mean, seen.encoded)
        if self.encoded is not None:
            found[ENCODED] = self.encoded.distance(seen.encoded)
        if self.positions is not None:
            found["edges by position"] = misfit(mean, self._positions(graph))
        found |= self._of_draws(seen, same=same)
        if self.labeled is not None:
            found[LABELED] = self.labeled.distance(seen.embedding, same=same)
        return {name: found[name] for name in MEASURED if name in self.wanted}, mean

    def _positions(self, graph: "PreparedGraph") -> Array:
        assert self.positions is not None
        return np.asarray(self.positions(graph).cpu().double().numpy())

    def _of_draws(self, seen: Seen, *, same: bool) -> dict[str, Array]:
        found = dict[str, Array]()
        if "astd" in self.wanted:
            found["astd"] = seen.moments.astd.cpu().double().numpy()
        if self.around is not None:
            found["nearest"] = self.around.distance(seen.mean_embedding, same=same)
        if self.density is not None:
            found["mahalanobis"] = self.density.mahalanobis(seen.mean_embedding)
            found["mixture"] = self.density.surprise(seen.mean_embedding)
        if self.wanted & set(DRAWS[1:]):
            found |= pair_scores(self.model, seen.data, self.samples, self.seed)
        return found
