"""Masks: what a view drops.

All masks work in the same way. A drop rate and uniform noise give a keep value in [0, 1] (`concrete`), and the keep
values multiply the connections or the features of a layer. A mask defines how many keep values there are, and what they
multiply:

- `DropConnections`, the paper's mask: one for each connection and block of features;
- `DropEdges`, EdgeDrop: one for each connection between two nodes;
- `DropNodes`, NodeDrop: one for each node; it multiplies all connections of the node;
- `SelectSubgraph`, SubgraphSelection: one for each node, ranked as a growing neighborhood reaches them;
- `DropFeatures`, GRACE's FeatureDrop: one for each column of the features;
- `DropEntries`, the paper's FeatureDrop: one for each entry of the features;
- `DropNeighbors`: one for each pair of neighbors; it multiplies their weight as a positive pair of the objective.

Users describe masks in short sentences, such as `["connections in 8 blocks", "features at 0.3"]`, which
`bgcl.augmentation.language` reads.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor

from bgcl.augmentation.noise import Noise
from bgcl.graph.prepared import PreparedGraph


def concrete(logit_drop: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """A relaxed Bernoulli mask, `z = sigmoid((logit(1 - pi) + logit(u)) / t)`, with `z = 1` for what is kept.

    Args:
        logit_drop: `logit(pi)` of the drop rate; it broadcasts against `uniform`.
        uniform: noise u in (0, 1).
        temperature: t, above 0.

    Returns:
        Keep values in [0, 1], in the shape of the noise.
    """
    return torch.sigmoid((torch.logit(uniform) - logit_drop) / temperature)


def bernoulli(logit_drop: Tensor, uniform: Tensor) -> Tensor:
    """`z = 1[u > pi]`, the limit of `concrete` as the temperature falls to 0."""
    return (torch.logit(uniform) > logit_drop).to(uniform.dtype)


def straight_through(logit_drop: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """The value of `bernoulli` with the gradient of `concrete` (Bengio et al., 2013)."""
    hard = bernoulli(logit_drop, uniform)
    if not (torch.is_grad_enabled() and logit_drop.requires_grad):
        return hard
    relaxed = concrete(logit_drop, uniform, temperature)
    return hard + (relaxed - relaxed.detach())


@dataclass(frozen=True)
class LayerInput:
    """The shape of a layer's input features."""

    width: int  # number of input features
    entries: torch.Size  # (N, F) for dense features, (nonzeros,) for sparse ones


@dataclass(frozen=True, kw_only=True)
class Mask:
    """Base class of all masks. Each subclass is one way to drop parts of a graph.

    To add a mask, write a subclass with a `kind`, which is the first word of its sentence, and the method `uniform`.
    Also write `factor` if the mask does not have one keep value for each thing that it multiplies.

    Args:
        rate: drop rates of view o and view t; None: they are learned.
        layer: the layer to mask, counted from 1; None: every layer.
        shared: use one draw for all layers of a view.
        per: what has a separate drop rate: each "view", "layer", "block" or "relation".
        blocks: number of blocks of input features, each with a separate draw.

    >>> from bgcl.augmentation import Mask, parse_mask
    >>> mask = parse_mask("features at 0.2/0.4")
    >>> mask.rate, mask.layer, isinstance(mask, Mask)
    ((0.2, 0.4), 1, True)
    """

    kind: ClassVar[str]
    on: ClassVar[Literal["connections", "columns", "entries", "positives"]] = "connections"
    kinds: ClassVar[dict[str, type["Mask"]]] = {}

    rate: tuple[float, float] | None = None
    layer: int | None = None
    shared: bool = False
    per: Literal["view", "layer", "block", "relation"] = "view"
    blocks: int = 1

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):  # a subclass without a kind does not replace its parent
            Mask.kinds[cls.kind] = cls

    def uniform(self, graph: PreparedGraph, layer: LayerInput, noise: Noise) -> Tensor:
        """Draw noise in (0, 1): one number for each group of things that are kept or dropped together."""
        raise NotImplementedError(f"The mask {type(self).__name__} has no method uniform(). Write one.")

    def factor(self, keep: Tensor, graph: PreparedGraph) -> Tensor:
        """Spread the keep values over what they multiply: `(E, B)` or `(E, 1)`, `(F,)`, or the shape of the entries.

        Positive pairs have the shape of connections, `(E, 1)`.
        """
        return keep

    def __str__(self) -> str:
        default = type(self)()
        words = [self.kind]
        if self.blocks != default.blocks:
            words.append(f"in {self.blocks} blocks")
        if self.layer != default.layer:
            words.append("of every layer" if self.layer is None else f"of layer {self.layer}")
        if self.shared != default.shared:
            words.append("shared" if self.shared else "anew")
        if self.per != default.per:
            words.append(f"per {self.per}")
        if self.rate is not None:
            o, t = self.rate
            words.append("at " + "/".join(repr(rate).removesuffix(".0") for rate in ((o,) if o == t else (o, t))))
        return " ".join(words)


class DropConnections(Mask):
    """The paper's mask: drop connections, including self-connections, with a new draw for each block of features."""

    kind = "connections"

    def uniform(self, graph: PreparedGraph, layer: LayerInput, noise: Noise) -> Tensor:
        return noise.edges(graph, self.blocks)


@dataclass(frozen=True, kw_only=True)
class DropEdges(Mask):
    """EdgeDrop: drop connections between two nodes, the same in every layer. Self-connections stay."""

    kind = "edges"
    shared: bool = True

    def uniform(self, graph: PreparedGraph, layer: LayerInput, noise: Noise) -> Tensor:
        return noise.edges(graph)

    def factor(self, keep: Tensor, graph: PreparedGraph) -> Tensor:
        return torch.where(graph.is_self, 1.0, keep)


@dataclass(frozen=True, kw_only=True)
class DropNodes(Mask):
    """NodeDrop: drop nodes with all their connections, the same in every layer."""

    kind = "nodes"
    shared: bool = True

    def uniform(self, graph: PreparedGraph, layer: LayerInput, noise: Noise) -> Tensor:
        return noise.nodes(graph)

    def factor(self, keep: Tensor, graph: PreparedGraph) -> Tensor:
        ends = keep[graph.connections.row] * keep[graph.connections.column]
        return torch.where(graph.is_self, keep[graph.connections.row], ends)


class SelectSubgraph(DropNodes):
    """SubgraphSelection: keep a neighborhood that grows from a random node, the share `1 - pi` of all nodes.

    In each step the neighborhood grows through a random edge at its border. If edges have weights, an edge is chosen
    with a probability in proportion to its weight. When the neighborhood fills a component, it continues in another
    one. A signal that needs an independent exponential time for each edge reaches the nodes in the same order, so one
    run of Dijkstra's algorithm finds the order. A node's noise is its rank in this order. So it depends on the whole
    graph: a part of the graph has other draws of this mask.
    """

    kind = "subgraph"

    def uniform(self, graph: PreparedGraph, layer: LayerInput, noise: Noise) -> Tensor:
        rank = _growth_rank(graph, np.random.default_rng(noise.seed()))
        uniform = 1 - (rank + 0.5) / graph.nodes  # the first nodes have the most noise, so they are kept longest
        return torch.as_tensor(uniform, dtype=torch.float32, device=graph.connections.column.device)[:, None]


def _growth_rank(graph: PreparedGraph, random: np.random.Generator) -> np.ndarray:
    """The number of nodes that are reached before each node, `(N,)`."""
    source, target = graph.connections.column.cpu().numpy(), graph.connections.row.cpu().numpy()
    one_way = source < target
    delay = random.exponential(size=int(one_way.sum()))
    if graph.weights is not None:
        delay = delay / graph.weights.cpu().numpy()[one_way]
    delay = delay + 1e-12  # SciPy takes an entry of 0 for a missing edge
    shape = (graph.nodes, graph.nodes)
    delays = csr_matrix((delay, (source[one_way], target[one_way])), shape=shape)
    count, component = connected_components(delays, directed=False)
    shuffled = random.permutation(graph.nodes)
    # In a random order of the nodes, the first node of each component is its root. Components take turns in this order.
    _, first = np.unique(component[shuffled], return_index=True)
    arrival = dijkstra(delays, directed=False, indices=shuffled[first], min_only=True)
    turn = np.empty(count, dtype=np.int64)
    turn[np.argsort(first)] = np.arange(count)
    rank = np.empty(graph.nodes, dtype=np.int64)
    rank[np.lexsort((arrival, turn[component]))] = np.arange(graph.nodes)
    return rank


@dataclass(frozen=True, kw_only=True)
class DropFeatures(Mask):
    """GRACE's FeatureDrop: drop columns of the input, for all nodes at once."""

    kind = "features"
    on = "columns"
    layer: int | None = 1

    def uniform(self, graph: PreparedGraph, layer: LayerInput, noise: Noise) -> Tensor:
        return noise.columns(graph, layer.width)


@dataclass(frozen=True, kw_only=True)
class DropEntries(Mask):
    """The paper's FeatureDrop, `X * Z`: drop single entries of the input."""

    kind = "entries"
    on = "entries"
    layer: int | None = 1

    def uniform(self, graph: PreparedGraph, layer: LayerInput, noise: Noise) -> Tensor:
        return noise.entries(graph, layer.entries)


@dataclass(frozen=True, kw_only=True)
class DropNeighbors(DropEdges):
    """Neighbors as positives: an objective that takes them draws a node close to its neighbors, except dropped ones.

    A node is always a positive of itself. When embeddings are drawn, the parts of the embedding that average over
    neighbors leave out dropped ones too.
    """

    kind = "neighbors"
    on = "positives"
