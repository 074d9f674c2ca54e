"""Masks: what a view drops, and with which structure.

Every mask is the same mechanism. Uniform noise and a drop rate make a keep value in [0, 1] (`concrete`), and the keep
values multiply the connections or the features of a layer. What differs is the structure of the noise and where its
keep values go: one for each connection and block (the paper's own mask), one for each connection (EdgeDrop), for each
node and spread over its connections (NodeDrop), for each node in the order in which a growing neighbourhood reaches it
(SubgraphSelection), for each column (GRACE's FeatureDrop) or for each entry of the features (the paper's FeatureDrop).

What a view does is a short list of sentences, such as `["connections in 8 blocks", "features at 0.3"]`
(`bgcl.sentences` reads them).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor

from bgcl.graph.prepared import Graph


def concrete(logit_drop: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """`z = sigmoid((logit(1 - pi) + logit(u)) / t)`: a relaxed Bernoulli mask, 1 where a connection is kept."""
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
    """What a mask needs to know of the layer that it masks."""

    width: int  # number of input features
    entries: torch.Size  # shape of the entries of the input features: (N, F), or (nonzeros,) where they are sparse


@dataclass(frozen=True, kw_only=True)
class Mask:
    """What to drop. A subclass says how its noise is structured and what its keep values multiply.

    To add a mask of your own, give a subclass a `kind` (the first word of its sentence) and a `uniform`; and a
    `factor` if its keep values have to be spread over the connections.

    >>> import bgcl
    >>> mask = bgcl.parse_mask("features at 0.2/0.4")
    >>> mask.rate, mask.layer, isinstance(mask, bgcl.Mask)
    ((0.2, 0.4), 1, True)
    """

    kind: ClassVar[str]
    on: ClassVar[Literal["connections", "columns", "entries"]] = "connections"
    kinds: ClassVar[dict[str, type["Mask"]]] = {}

    rate: tuple[float, float] | None = None  # of view o and view t; None: learned
    layer: int | None = None  # counted from 1; None: every layer
    shared: bool = False  # one draw for the layers of a view
    per: Literal["view", "layer", "block"] = "view"  # what has a rate of its own
    blocks: int = 1

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):  # a subclass that only refines another does not take its name
            Mask.kinds[cls.kind] = cls

    def uniform(self, graph: Graph, layer: LayerInput, generator: torch.Generator) -> Tensor:
        """Noise in (0, 1), one for each thing that is dropped or kept together."""
        raise NotImplementedError(f"{type(self).__name__} has no uniform().")

    def factor(self, keep: Tensor, graph: Graph) -> Tensor:
        """What the keep values multiply: `(E, B)` or `(E, 1)` connections, `(F,)` columns, or the entries."""
        return keep

    def __str__(self) -> str:
        plain = type(self)()
        words = [self.kind]
        if self.blocks != plain.blocks:
            words.append(f"in {self.blocks} blocks")
        if self.layer != plain.layer:
            words.append("of every layer" if self.layer is None else f"of layer {self.layer}")
        if self.shared != plain.shared:
            words.append("shared" if self.shared else "anew")
        if self.per != plain.per:
            words.append(f"per {self.per}")
        if self.rate is not None:
            o, t = self.rate
            words.append("at " + "/".join(repr(rate).removesuffix(".0") for rate in ((o,) if o == t else (o, t))))
        return " ".join(words)


def _noise(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    # In float32 a draw can be 0 exactly; its logit, and the gradient through it, must not be infinite.
    return torch.rand(shape, generator=generator, device=generator.device).clamp_(1e-7, 1 - 1e-7)


class DropConnections(Mask):
    """The paper's mask: every connection, self-connections included, anew for each block of input features."""

    kind = "connections"

    def uniform(self, graph: Graph, layer: LayerInput, generator: torch.Generator) -> Tensor:
        return _noise((len(graph.connections), self.blocks), generator)


@dataclass(frozen=True, kw_only=True)
class DropEdges(Mask):
    """EdgeDrop: a connection between two nodes, the same in every layer; self-connections stay."""

    kind = "edges"
    shared: bool = True

    def uniform(self, graph: Graph, layer: LayerInput, generator: torch.Generator) -> Tensor:
        return _noise((len(graph.connections), 1), generator)

    def factor(self, keep: Tensor, graph: Graph) -> Tensor:
        return torch.where(graph.is_self, 1.0, keep)


@dataclass(frozen=True, kw_only=True)
class DropNodes(Mask):
    """NodeDrop: a node with all its connections, the same in every layer."""

    kind = "nodes"
    shared: bool = True

    def uniform(self, graph: Graph, layer: LayerInput, generator: torch.Generator) -> Tensor:
        return _noise((graph.nodes, 1), generator)

    def factor(self, keep: Tensor, graph: Graph) -> Tensor:
        ends = keep[graph.connections.row] * keep[graph.connections.column]
        return torch.where(graph.is_self, keep[graph.connections.row], ends)


class SelectSubgraph(DropNodes):
    """SubgraphSelection: keep a neighbourhood grown from a random node, the share `1 - pi` of all nodes.

    It grows through a random one of the edges at its border, again and again. That is the order in which a signal
    arrives when each edge takes an independent exponential time, so one run of Dijkstra's algorithm finds it; when a
    component is full, the growth goes on in another. A node's rank in that order is its noise.
    """

    kind = "subgraph"

    def uniform(self, graph: Graph, layer: LayerInput, generator: torch.Generator) -> Tensor:
        seed = torch.randint(2**31 - 1, (), generator=generator, device=generator.device).item()
        rank = _growth_rank(graph, np.random.default_rng(int(seed)))
        uniform = 1 - (rank + 0.5) / graph.nodes  # the first nodes are the last to be dropped
        return torch.as_tensor(uniform, dtype=torch.float32, device=generator.device)[:, None]


def _growth_rank(graph: Graph, random: np.random.Generator) -> np.ndarray:
    """For each node, how many nodes are reached before it, `(N,)`."""
    source, target = graph.connections.column.cpu().numpy(), graph.connections.row.cpu().numpy()
    one_way = source < target
    delay = random.exponential(size=int(one_way.sum())) + 1e-12  # an entry of 0 would be no edge
    shape = (graph.nodes, graph.nodes)
    delays = csr_matrix((delay, (source[one_way], target[one_way])), shape=shape)
    count, component = connected_components(delays, directed=False)
    shuffled = random.permutation(graph.nodes)
    # The first node of each component in a random order is its root; the components follow in that order too.
    _, first = np.unique(component[shuffled], return_index=True)
    arrival = dijkstra(delays, directed=False, indices=shuffled[first], min_only=True)
    turn = np.empty(count, dtype=np.int64)
    turn[np.argsort(first)] = np.arange(count)
    rank = np.empty(graph.nodes, dtype=np.int64)
    rank[np.lexsort((arrival, turn[component]))] = np.arange(graph.nodes)
    return rank


@dataclass(frozen=True, kw_only=True)
class DropFeatures(Mask):
    """FeatureDrop as GRACE has it: a column of the input for all nodes at once."""

    kind = "features"
    on = "columns"
    layer: int | None = 1

    def uniform(self, graph: Graph, layer: LayerInput, generator: torch.Generator) -> Tensor:
        return _noise((layer.width,), generator)


@dataclass(frozen=True, kw_only=True)
class DropEntries(Mask):
    """FeatureDrop as the paper writes it, `X * Z`: each entry of the input on its own."""

    kind = "entries"
    on = "entries"
    layer: int | None = 1

    def uniform(self, graph: Graph, layer: LayerInput, generator: torch.Generator) -> Tensor:
        return _noise(tuple(layer.entries), generator)
