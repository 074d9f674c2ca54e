r"""The parts of an embedding, each with rows of length one, side by side.

A part is described by a short sentence: what it is made of, and how far it was propagated.

- `encoder`: the output of the encoder;
- `attributes`: the attributes in their principal directions, which are not trained;
- `structure`: the position of a node among the others, which needs no attributes; see `bgcl.model.structure`;
- `... hop 2`: propagated twice, `A^2 Z`;
- `... diffused`: personalized PageRank (Gasteiger et al., 2019), `Z <- (1 - c) A Z + c Z_0`;
- `encoder diffused among alike`: the same along connections between nodes whose encoder's outputs are alike, see
  `bgcl.graph.alike`; `among alike and neighbors`: along these and the connections of the graph; `among alike
  neighborhoods`: along connections between nodes whose `encoder diffused` is alike. Edges are few and some are wrong:
  alike nodes say more about a node, and better ones.

- `attributes hop 1 of each relation`: for each relation of the graph, such as the edges of a type, propagated along its
  connections alone, without self-connections.

So the embedding holds what a node is, what its neighbors are, and what the encoder has learned, and a head can choose.
What is not trained cannot be lost by training. Masks reach all of it: the attributes are masked as in the encoder's
first layer, and every propagation leaves out dropped connections and dropped neighbors. Which nodes are alike is
decided once, without masks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgcl.augmentation.views import LayerMask
from bgcl.errors import BGCLError, nearest
from bgcl.graph.alike import among_alike
from bgcl.graph.prepared import PreparedGraph, width_of
from bgcl.graph.relations import in_relation, over_relations
from bgcl.graph.sparse import spmm
from bgcl.graph.spectrum import right_directions
from bgcl.model.encoders.base import masked_product, masked_products
from bgcl.model.propagation import Propagation
from bgcl.model.structure import Structure

TELEPORT, STEPS, MOST_HOPS = 0.1, 10, 64
DIRECTIONS = 64  # of the attributes, in which nodes are compared that explain each other
SOURCES = ("encoder", "attributes", "structure")
ENCODER = ("encoder",)  # the output of the encoder as it is
Among = Literal["alike", "alike and neighbors", "alike neighborhoods"]
_SENTENCE = re.compile(
    r"(\w+)(?: hop (\d+)| (diffused)(?: among (alike|alike and neighbors|alike neighborhoods))?)?( of each relation)?"
)


@dataclass(frozen=True)
class Part:
    """One part: what it is made of, how often it is propagated (None: diffused), and along which connections.

    `among` is None for the connections of the graph, and `relation` for those of all relations.
    """

    source: Literal["encoder", "attributes", "structure"]
    hops: int | None
    among: Among | None = None
    relation: int | Literal["each"] | None = None

    def propagated(self, connections: Propagation, start: Tensor) -> Tensor:
        """Propagate `(N, w)` along the connections."""
        if self.hops is not None:
            for _ in range(self.hops):
                start = connections(start)
            return start
        found, back = start, TELEPORT * start
        for _ in range(STEPS):
            found = connections(found).mul_(1 - TELEPORT).add_(back)  # in place: new memory takes as long as the sum
        return found


DIFFUSED = Part("encoder", None)


def parse_part(sentence: str) -> Part:
    """Read the part that a sentence describes.

    >>> parse_part("attributes hop 2").hops, parse_part("encoder").hops, parse_part("encoder diffused").hops
    (2, 0, None)
    """
    found = _SENTENCE.fullmatch(sentence.strip())
    if found is None:
        raise BGCLError(
            f"Cannot read the part '{sentence}'. Write it as: SOURCE [hop N | diffused [among ALIKE]] "
            "[of each relation]."
        )
    source, hops, diffused, among, each = found.groups()
    if source not in SOURCES:
        raise BGCLError(f"Unknown part '{source}' in '{sentence}'. {nearest(source, SOURCES)}")
    if hops and (len(hops) > 2 or int(hops) > MOST_HOPS):
        raise BGCLError(f"The part '{sentence}' has too many hops. Write {MOST_HOPS} or fewer.")
    if among and source != "encoder":
        raise BGCLError(f"Nodes are alike by the output of the encoder. In '{sentence}' write encoder, not {source}.")
    if each and (among or not (diffused or int(hops or 0))):
        raise BGCLError(f"The part '{sentence}' is not propagated along edges: leave out 'of each relation'.")
    propagated = None if diffused else int(hops or 0)
    return Part(source, propagated, among, "each" if each else None)  # type: ignore[arg-type]


def parts_of(sentences: Sequence[str], relations: int) -> list[Part]:
    """The parts that sentences describe in a graph with some relations."""
    found = []
    for part in map(parse_part, sentences):
        if part.relation == "each" and relations < 2:
            raise BGCLError(
                "The graph has one kind of edges, so no part is of each relation: leave out 'of each relation'."
            )
        found += [replace(part, relation=r) for r in range(relations)] if part.relation == "each" else [part]
    return found


class _PropagatedAttributes:
    """The propagated attributes as products with thin matrices.

    The normalized adjacency matrix is symmetric, unless it is that of one relation.
    """

    def __init__(self, graph: PreparedGraph, connections: Propagation, part: Part) -> None:
        self.graph, self.connections, self.part = graph, connections, part

    def times(self, thin: Tensor) -> Tensor:
        return self.part.propagated(self.connections, masked_product(self.graph.features, LayerMask(), thin))

    def transposed_times(self, tall: Tensor) -> Tensor:
        connections = self.connections if self.part.relation is None else self.connections.transposed()
        return transposed_product(self.graph, self.part.propagated(connections, tall))


class Parts(nn.Module):
    """Makes the embedding of the encoder's output and of what needs no training.

    Args:
        sentences: the parts.
        width_in: number of attributes.
        encoder_width: width of the encoder's output.
        width: width of the parts that are not trained; less if there are fewer attributes.
        nodes: nodes of the training graph, if a fitted state is to be loaded.
        relations: number of relations of the graph.
        members: encoders whose outputs are side by side.
    """

    def __init__(
        self, sentences: Sequence[str], width_in: int, encoder_width: int, width: int, nodes: int = 0,
        relations: int = 1, members: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.members = members
        self.parts = parts_of(sentences, relations)
        self.as_it_is = tuple(sentences) == ENCODER
        own = {"encoder": encoder_width, "attributes": min(width, width_in), "structure": width}
        self.widths = tuple(own[part.source] for part in self.parts)
        for i, part in enumerate(self.parts):
            if part.source == "attributes":
                self.register_buffer(f"directions_{i}", torch.zeros(width_in, own["attributes"]))
        self.needs_alike = any(part.among is not None for part in self.parts)
        needed = any(part.source == "structure" for part in self.parts)
        self.structure = Structure(width, nodes) if needed else None

    @torch.no_grad()
    def fit(self, graph: PreparedGraph, generator: torch.Generator) -> None:
        """Find the principal directions of a graph."""
        connections = Propagation(graph)
        of_all = [i for i, part in enumerate(self.parts) if part.source == "attributes" and part.relation is None]
        diffused = [i for i in of_all if self.parts[i].hops is None]
        hops = [i for i in of_all if self.parts[i].hops is not None]
        for i, part in enumerate(self.parts):
            if part.source == "attributes" and not (i in diffused and hops):
                directions: Tensor = getattr(self, f"directions_{i}")
                matrix = _PropagatedAttributes(graph, along(graph, part.relation, None, connections), part)
                rank = min(directions.shape[1], graph.nodes)
                found = right_directions(matrix.times, matrix.transposed_times, len(directions), rank, generator)
                directions.zero_()[:, : found.shape[1]] = found
        if self.structure is not None:
            self.structure.fit(graph)
        for i in diffused if hops else ():  # the directions of the last hop are as good, and cost nothing
            last = max(hops, key=lambda hop: self.parts[hop].hops or 0)
            getattr(self, f"directions_{i}").copy_(getattr(self, f"directions_{last}"))

    @torch.no_grad()
    def directions_of_attributes(
        self, graph: PreparedGraph, generator: torch.Generator, most: int = DIRECTIONS
    ) -> Tensor:
        """The first principal directions of the attributes as they are, `(F, q)`, from a part that has them or anew."""
        for i, part in enumerate(self.parts):
            if part == Part("attributes", 0):
                directions: Tensor = getattr(self, f"directions_{i}")
                return directions[:, :most]
        matrix = _PropagatedAttributes(graph, Propagation(graph), Part("attributes", 0))
        width = width_of(graph)
        rank = min(most, width, graph.nodes)
        return right_directions(matrix.times, matrix.transposed_times, width, rank, generator)

    def unit(self, encoded: Tensor) -> Tensor:
        """The encoder's output `(N, w)` with rows of length one, to which each member adds as much."""
        if self.members > 1:
            encoded = F.normalize(encoded.reshape(len(encoded), self.members, -1), dim=2).flatten(1)
        return F.normalize(encoded, dim=1)

    @torch.no_grad()
    def alike(self, graph: PreparedGraph, encoded: Tensor) -> dict[Among, PreparedGraph]:
        """The graphs of alike nodes that the parts need, from the encoder's output without masks, `(N, w)`."""
        found: dict[Among, PreparedGraph] = {}
        for among in {part.among: None for part in self.parts if part.among}:
            start = self.unit(encoded)
            vectors = DIFFUSED.propagated(Propagation(graph), start) if among == "alike neighborhoods" else start
            found[among] = among_alike(graph, vectors, and_neighbors=among == "alike and neighbors")
        return found

    def forward(
        self, graph: PreparedGraph, encoded: Tensor, masks: Sequence[LayerMask] | None, kept: Tensor | None,
        among: Mapping[Among, Propagation] | None = None,
    ) -> Tensor:  # fmt: skip
        """The embedding `(N, d)`.

        Args:
            graph: the graph.
            encoded: the encoder's output, `(N, w)`.
            masks: the masks of the encoder's layers; the first one masks the attributes.
            kept: keep values of the connections, `(E, 1)`, or in each relation, `(E, R)`; None: all.
            among: the connections between alike nodes, if a part needs them.
        """
        if self.as_it_is:
            return encoded
        connections = Propagation(graph, over_relations(graph, kept))
        mask = LayerMask() if masks is None else masks[0]
        directions = [
            getattr(self, f"directions_{i}") for i, part in enumerate(self.parts) if part.source == "attributes"
        ]
        attributes = iter(masked_products(graph.features, mask, directions))
        made = []
        for part in self.parts:
            if part.source == "encoder":
                start = self.unit(encoded)
            elif part.source == "attributes":
                start = next(attributes)
            else:
                assert self.structure is not None
                start = self.structure(graph)
            usual = connections if part.among is None else (among or {})[part.among]
            made.append(F.normalize(part.propagated(along(graph, part.relation, kept, usual), start), dim=1))
        return torch.cat(made, 1)


def along(
    graph: PreparedGraph, relation: int | Literal["each"] | None, kept: Tensor | None, usual: Propagation
) -> Propagation:
    """The connections of a relation, without self-connections; those of `usual` if there is none."""
    if not isinstance(relation, int):
        return usual
    own = kept if kept is None or kept.shape[1] == 1 else kept[:, relation, None]
    return Propagation(in_relation(graph, relation, itself=False), own)


def transposed_product(graph: PreparedGraph, tall: Tensor) -> Tensor:
    """`X' Y`, `(F, q)`, for Y `(N, q)`."""
    if isinstance(graph.features, Tensor):
        return graph.features.T @ tall
    pattern, order = graph.features.pattern.transposed
    return spmm(pattern, graph.features.values[order], tall)
