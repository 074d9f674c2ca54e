r"""The embeddings of nodes that join a packed graph, from the nodes next to them alone.

A new node v hears its neighbors, and the graph does not hear it: everything in the graph is as it was. Let `d_v` be the
sum of the kept connections of v with itself and its neighbors, `d'_v` the same in the other direction, and `d'_u` that
of a node u of the graph, without v. With `a_vu = z_vu / sqrt(d_v d'_u)`, where `z_vu` is 1 or the weight of a
connection that is kept, or 0,

- a part of k hops: `Z_v^(k) = sum_u a_vu Z_u^(k-1) + a_vv Z_v^(k-1)`, with the states `Z_u` of the graph;
- a diffused part: the fixed point `Z_v = (1 - c) (sum_u a_vu Z_u + a_vv Z_v) + c Z_v^(0)` with the last states `Z_u`;
- alike nodes of v are looked for among the references of the graph, as for all its nodes;
- the position of v is 0, and one step of propagation puts it where its neighbors are.

Masks are hashes of the numbers of nodes, and v has the number after the last one. So they are those of the graph that
has v in its last row. The cost depends on the neighbors of the new nodes, not on the size of the graph.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from bgcl.graph.alike import NEAREST, SOFTNESS, nearest_among
from bgcl.graph.keys import keys_of
from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.sparse import Pattern, row_pointer
from bgcl.model.parts import STEPS, TELEPORT, Among, Part
from bgcl.model.scaling import NEIGHBORHOODS, interpolate
from bgcl.packed.alike import alone
from bgcl.packed.embedding import PackedEmbedder
from bgcl.packed.products import inverse_root
from bgcl.packed.states import DrawStates


@dataclass(frozen=True)
class Ends:
    """Connections of n new nodes with nodes of the graph.

    Attributes:
        new: the number of the new node, 0 to n - 1, `(m,)`.
        old: the row of the other node, `(m,)`.
        weight: `(m,)`.
    """

    new: Tensor
    old: Tensor
    weight: Tensor

    def summed(self, other: "Ends", rows: int) -> "Ends":
        """Both together. Where both have a connection, their weights are added."""
        key = torch.cat([self.new * rows + self.old, other.new * rows + other.old])
        found, place = torch.unique(key, return_inverse=True)
        weight = torch.zeros(len(found)).index_add_(0, place, torch.cat([self.weight, other.weight]))
        return Ends(found // rows, found % rows, weight)


@dataclass(frozen=True)
class Step:
    """One step of propagation to n new nodes: `Z_v = sum_u a_vu Z_u + a_vv Z_v`."""

    new: Tensor  # (m,)
    old: Tensor  # (m,), places in `nodes`
    values: Tensor  # (m,), a_vu
    itself: Tensor  # (n, 1), a_vv
    nodes: Tensor  # the rows of the graph that are heard

    def heard(self, states: Tensor) -> Tensor:
        """The sum over the nodes of the graph, `(n, w)`, from the states of `nodes`."""
        found = torch.zeros(len(self.itself), states.shape[1])
        return found.index_add_(0, self.new, self.values[:, None] * states[self.old])


class NewRows:
    """New nodes with their attributes and their edges, ready to be embedded in any draw.

    Args:
        embedder: embeds the nodes of the graph.
        attributes: `(n, F)`.
        edges: pairs of a new node, 0 to n - 1, and a row of the graph, `(2, m)`, each pair once.
    """

    @torch.no_grad()
    def __init__(self, embedder: PackedEmbedder, attributes: Tensor, edges: Tensor) -> None:
        self.embedder, self.count = embedder, len(attributes)
        self.edges = Ends(edges[0], edges[1], torch.ones(edges.shape[1]))
        self.near, self.place = torch.unique(edges[1], return_inverse=True)
        self.of_near = torch.from_numpy(embedder.scaled.gather(self.near.numpy()))  # scaled attributes
        self.numbers = embedder.nodes + torch.arange(self.count)
        self.features = self._scaled(attributes)
        self.ends = self._alike()
        self.ends[None] = self.edges

    def _scaled(self, attributes: Tensor) -> Tensor:
        """The scaled attributes, as `Scaling` computes them."""
        scaling = self.embedder.network.scaling
        degree = 1 + torch.bincount(self.edges.new, minlength=self.count).float()[:, None]
        columns = torch.cat([attributes, degree], 1)
        own = torch.stack(
            [interpolate(*each) for each in zip(columns.T, scaling.knots, scaling.scores, strict=True)], 1
        )
        found, width = [own], own.shape[1]
        for level in range(NEIGHBORHOODS):
            theirs = self.of_near[:, level * width : (level + 1) * width] * scaling.width**0.5
            total = found[-1].index_add(0, self.edges.new, theirs[self.place])
            found.append(total / degree)
        scaled: Tensor = torch.cat(found, 1) / scaling.width**0.5
        return scaled

    def _alike(self) -> dict[Among | None, Ends]:
        """The connections with alike nodes, of each kind that the parts need."""
        alike, rows = self.embedder.alike, self.embedder.nodes
        if not alike.vectors:
            return {}
        network = self.embedder.network
        encoded = network.parts.unit(network.encoder(alone(self.features, self.numbers)))
        found: dict[Among | None, Ends] = {}
        for kind, theirs in alike.vectors.items():
            own = self._neighborhood(encoded) if kind == "alike neighborhoods" else encoded
            new, near, cosine = nearest_among(own, theirs, torch.full((self.count,), -1), NEAREST)
            found[kind] = Ends(new, alike.references[near], torch.exp((cosine - 1) / SOFTNESS))
            if kind == "alike and neighbors":
                found[kind] = found[kind].summed(self.edges, rows)
        return found

    def _neighborhood(self, encoded: Tensor) -> Tensor:
        """The diffused output of the encoder without masks, with rows of length one, `(n, w)`."""
        alike = self.embedder.alike
        assert alike.diffused is not None
        assert alike.factors is not None
        step = self.step(self.edges, None, alike.factors[self.near])
        return F.normalize(_fixed_point(step, encoded, alike.diffused.gather(step.nodes)), dim=1)

    def step(self, ends: Ends, kept: Tensor | None, factors: Tensor) -> Step:
        """One step of propagation along some connections.

        Args:
            ends: the connections.
            kept: keep values of the connections of `small(ends)`, `(E, 1)`; None: all are kept.
            factors: the factors of the columns of `torch.unique(ends.old)`.
        """
        graph = self.small(ends)
        assert graph.weights is not None
        values = graph.weights if kept is None else graph.weights * kept[:, 0]
        row, column, new = graph.connections.row, graph.connections.column, self.count
        of_rows = inverse_root(torch.zeros(graph.nodes).index_add_(0, row, values))
        of_columns = inverse_root(torch.zeros(graph.nodes).index_add_(0, column, values))
        heard, itself = (row < new) & (column >= new), (row < new) & (row == column)
        old = column[heard] - new
        return Step(
            row[heard], old, values[heard] * of_rows[row[heard]] * factors[old],
            (values[itself] * of_rows[:new] * of_columns[:new])[:, None], torch.unique(ends.old),
        )  # fmt: skip

    def small(self, ends: Ends) -> PreparedGraph:
        """The new nodes and the other ends of their connections as a graph, with the numbers of the whole graph."""
        others, place = torch.unique(ends.old, return_inverse=True)
        total = self.count + len(others)
        every, there = torch.arange(total), place + self.count
        key = torch.cat([ends.new * total + there, there * total + ends.new, every * total + every])
        key, order = torch.sort(key)
        weights = torch.cat([ends.weight, ends.weight, torch.ones(total)])[order]
        pattern = Pattern(row_pointer(key // total, total), key % total, total)
        numbers = torch.cat([self.numbers, others])
        return PreparedGraph(pattern, torch.empty(total, 0), weights=weights, numbers=numbers)

    @torch.no_grad()
    def embedded(self, states: DrawStates) -> Tensor:
        """The embeddings in a draw, `(n, d)`."""
        embedder, view, noise = self.embedder, states.view, states.noise
        own = embedder.of_nodes(alone(self.features, self.numbers), view, noise, scale=states.scale)
        theirs = {name: rows[:0] for name, rows in own.items()}
        if len(self.near):
            theirs = embedder.of_nodes(alone(self.of_near, self.near), view, noise, scale=states.scale)
        structure = embedder.network.parts.structure
        if structure is not None:
            own["structure"] = torch.zeros(self.count, structure.width)
            theirs["structure"] = structure.of_keys(keys_of(embedder.graph)[self.near])
        steps = {among: self._step_of(states, among, ends) for among, ends in self.ends.items()}
        made = []
        for number, part in enumerate(embedder.network.parts.parts):
            name = embedder.source_of(number)
            start = theirs[name] if part.hops else torch.empty(0)
            made.append(F.normalize(_part(part, number, steps[part.among], own[name], start, states), dim=1))
        return torch.cat(made, 1)

    def _step_of(self, states: DrawStates, among: Among | None, ends: Ends) -> Step:
        name = states.noise.of("among", "neighbors" if among is None else among)
        kept = self.embedder.network.augmentation.kept_positives(
            states.view, self.small(ends), name, scale=states.scale
        )
        return self.step(ends, kept, states.factors_of(among, torch.unique(ends.old)))


def _part(part: Part, number: int, step: Step, own: Tensor, theirs: Tensor, states: DrawStates) -> Tensor:
    """A part of the new nodes, `(n, w)`, from what it starts with at them and at their neighbors."""
    if part.hops is None:
        return _fixed_point(step, own, states.state_of(number, STEPS, step.nodes))
    for hop in range(part.hops):
        heard = theirs if hop == 0 else states.state_of(number, hop, step.nodes)
        own = step.heard(heard) + step.itself * own
    return own


def _fixed_point(step: Step, own: Tensor, theirs: Tensor) -> Tensor:
    """The state of new nodes that a step of diffusion does not change, `(n, w)`."""
    return ((1 - TELEPORT) * step.heard(theirs) + TELEPORT * own) / (1 - (1 - TELEPORT) * step.itself)
