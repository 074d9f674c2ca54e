r"""A generator of large graphs that look like real ones, written to disk in pieces.

- **Degrees** follow a power law: node v has the weight `t_v = (1 - u_v)^(-1 / (exponent - 1))`, scaled to the mean 1
  and cut at `sqrt(N / degree)`. Its expected degree is `degree t_v`.
- **Communities**: each node belongs to one of `classes` classes, its label, of unequal size, and in it to a circle of
  about `CIRCLE` nodes. A node chooses `degree t_v / 2` neighbors, each in proportion to its weight: with the
  probability `local` in its own circle, with `within - local` in its class, and otherwise in another class.
- **Attributes**: a class and a circle have a place in `LATENT` dimensions. With `z_v` the sum of both, a node has the
  attributes `x_v = P (z_v + mean of z_u over the neighbors that v chose) / 2 + noise e_v`, P a random projection.

Node numbers are shuffled, so they say nothing. An edge that two nodes choose is written twice, and readers count it
once, so degrees are a little below `degree`, above all in small graphs.

Nodes are made in blocks of `BLOCK`, each from a random stream of its own. So memory is `O(N)`, not `O(N F)` or `O(E)`,
and the graph does not depend on how many blocks are written at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from bgcl.data.folder import refuse_graph
from bgcl.data.memory import check_fits
from bgcl.data.on_disk import check_room
from bgcl.errors import BGCLError
from bgcl.folders import new_files
from bgcl.validation import CheckedSettings, Number, Whole

Array = npt.NDArray[Any]

BLOCK, CIRCLE, LATENT = 4096, 60, 16
IN_CLASS, IN_CIRCLE = 1.0, 0.7  # standard deviation of the places of classes and circles
NAMES = ("nodes.parquet", "edges.parquet")
BYTES_PER_NODE = 60  # of the arrays that are kept: weights, their sums, numbers
_WEIGHT, _EDGES, _ATTRIBUTES, _PLACES, _NUMBERS = range(5)  # the random streams


class GraphPlan(CheckedSettings):
    """What a generated graph is to be like.

    >>> from bgcl.data.generator import GraphPlan
    >>> GraphPlan(nodes=1000).degree
    20.0
    """

    nodes: Annotated[Whole, Field(ge=100, le=10**10)] = Field(default=10_000, description="number of nodes")
    degree: Number = Field(default=20.0, gt=0, le=10_000, description="average degree")
    attributes: Annotated[Whole, Field(ge=1, le=65_536)] = Field(default=128, description="attributes of a node")
    classes: Annotated[Whole, Field(ge=2, le=10_000)] = Field(default=40, description="number of classes")
    within: Number = Field(default=0.6, ge=0, le=1, description="share of edges within a class")
    local: Number = Field(default=0.3, ge=0, le=1, description="share of edges within a small circle of a class")
    exponent: Number = Field(default=2.5, gt=2, le=10, description="exponent of the power law of degrees")
    noise: Number = Field(default=4.0, ge=0, le=1000, description="standard deviation of the noise in the attributes")
    seed: Whole = Field(default=0, ge=0, lt=2**63, description="seed of every random number")


@dataclass(frozen=True)
class Piece:
    """Some nodes of a graph, and the edges that they chose.

    Attributes:
        ids: the numbers of the nodes, `(n,)`.
        labels: their classes, `(n,)`.
        attributes: `(n, F)`.
        edges: pairs of numbers, `(2, m)`; the first end is one of the nodes.
    """

    ids: Array
    labels: Array
    attributes: Array
    edges: Array


class GraphGenerator:
    """Makes the graph of a plan, piece by piece.

    Args:
        plan: what the graph is to be like.

    >>> from bgcl.data.generator import GraphGenerator, GraphPlan
    >>> pieces = list(GraphGenerator(GraphPlan(nodes=5000, attributes=8)).pieces())
    >>> [piece.attributes.shape for piece in pieces]
    [(4096, 8), (904, 8)]
    """

    def __init__(self, plan: GraphPlan) -> None:
        self.plan = plan
        if plan.degree >= plan.nodes:
            raise BGCLError(
                f"The setting 'degree' must be below the number of nodes, {plan.nodes:,}. Got {plan.degree:g} instead."
            )
        if plan.local > plan.within:
            raise BGCLError(
                f"The setting 'local' must be at most 'within', {plan.within:g}, because a circle is a part of a "
                f"class. Got {plan.local:g} instead."
            )
        check_fits(BYTES_PER_NODE * plan.nodes, f"The weights of {plan.nodes:,} nodes", "Make a smaller graph.")
        share = np.arange(1, plan.classes + 1) ** -0.5
        self.starts = np.round(np.concatenate([[0.0], share.cumsum() / share.sum()]) * plan.nodes).astype(np.int64)
        ends = [
            np.linspace(first, last, max(round((last - first) / CIRCLE), 1), endpoint=False)
            for first, last in pairwise(self.starts)
        ]
        self.bounds = np.append(np.unique(np.concatenate(ends).astype(np.int64)), plan.nodes)  # of circles
        weights = self._weights()
        self.until = np.concatenate([[0.0], weights.cumsum()])  # (N + 1,), the weights up to each node
        self.numbers = self._stream(_NUMBERS, 0).permutation(plan.nodes)  # (N,), the number of each node
        places = self._stream(_PLACES, 0)
        self.of_class = IN_CLASS * places.standard_normal((plan.classes, LATENT))
        self.projection = places.standard_normal((LATENT, plan.attributes)) / LATENT**0.5
        self.of_circle = IN_CIRCLE * places.standard_normal((len(self.bounds) - 1, LATENT))

    def _stream(self, what: int, block: int) -> np.random.Generator:
        """The random numbers of one block of nodes, for one purpose."""
        return np.random.Generator(np.random.Philox(key=self.plan.seed, counter=[0, 0, what, block]))

    def _weights(self) -> Array:
        """The weight of each node, `(N,)`, with the mean 1."""
        plan = self.plan
        found = np.empty(plan.nodes)
        for block, nodes in self._blocks():
            found[nodes] = (1 - self._stream(_WEIGHT, block).random(len(nodes))) ** (-1 / (plan.exponent - 1))
        most = max((plan.nodes / plan.degree) ** 0.5, 1.0)  # beyond it, two nodes would expect more than one edge
        for _ in range(20):  # a cut lowers the mean, so the mean of 1 and the cut are reached in turn
            found = np.minimum(found / found.mean(), most)
        return found

    def _blocks(self) -> Iterator[tuple[int, Array]]:
        for start in range(0, self.plan.nodes, BLOCK):
            yield start // BLOCK, np.arange(start, min(start + BLOCK, self.plan.nodes))

    def classes_of(self, nodes: Array) -> Array:
        """The class of each node. Nodes are counted by class here, before their numbers are shuffled."""
        return np.searchsorted(self.starts, nodes, side="right") - 1

    def circles_of(self, nodes: Array) -> Array:
        """The circle of each node."""
        return np.searchsorted(self.bounds, nodes, side="right") - 1

    def places(self, nodes: Array) -> Array:
        """`z`, the place of each node in the latent dimensions, `(n, LATENT)`."""
        return self.of_class[self.classes_of(nodes)] + self.of_circle[self.circles_of(nodes)]

    def _chosen(self, block: int, nodes: Array) -> tuple[Array, Array]:
        """The edges that the nodes of a block choose: the place of the node in the block, and its neighbor."""
        plan, stream = self.plan, self._stream(_EDGES, block)
        expected = plan.degree / 2 * (self.until[nodes + 1] - self.until[nodes])
        count = np.floor(expected + stream.random(len(nodes))).astype(np.int64)
        source = np.repeat(np.arange(len(nodes)), count)
        kind, uniform = stream.random(len(source)), stream.random(len(source))
        of_class, circle = self.classes_of(nodes)[source], self.circles_of(nodes)[source]
        in_circle, in_class = kind < min(plan.local, plan.within), kind < plan.within
        low = self.until[np.where(in_circle, self.bounds[circle], self.starts[of_class])]
        high = self.until[np.where(in_circle, self.bounds[circle + 1], self.starts[of_class + 1])]
        # Those of other classes: a place among all weights without those of the own class.
        outside = uniform * (self.until[-1] - (high - low))
        outside = outside + np.where(outside >= low, high - low, 0.0)
        point = np.where(in_class, low + uniform * (high - low), outside)
        target = (np.searchsorted(self.until, point, side="right") - 1).clip(0, plan.nodes - 1)
        other = target != nodes[source]
        return source[other], target[other]

    def pieces(self, blocks: int = 1) -> Iterator[Piece]:
        """The graph in pieces of some blocks. The graph is the same for any number of them."""
        held: list[Piece] = []
        for block, nodes in self._blocks():
            source, target = self._chosen(block, nodes)
            near = np.zeros((len(nodes), LATENT))
            np.add.at(near, source, self.places(target))
            own, count = self.places(nodes), np.bincount(source, minlength=len(nodes))[:, None]
            latent = np.where(count > 0, (own + near / count.clip(min=1)) / 2, own)
            noise = self._stream(_ATTRIBUTES, block).standard_normal((len(nodes), self.plan.attributes), np.float32)
            values = (latent @ self.projection).astype(np.float32) + np.float32(self.plan.noise) * noise
            ends = np.stack([self.numbers[nodes[source]], self.numbers[target]])
            held.append(Piece(self.numbers[nodes], self.classes_of(nodes), values, ends))
            if len(held) == blocks:
                yield _joined(held)
                held = []
        if held:
            yield _joined(held)


def _joined(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    ids, labels, values = (
        np.concatenate([getattr(p, name) for p in pieces]) for name in ("ids", "labels", "attributes")
    )
    return Piece(ids, labels, values, np.concatenate([piece.edges for piece in pieces], 1))


def write_parquet(plan: GraphPlan, folder: Path, *, blocks: int = 16) -> dict[str, int]:
    """Write the graph of a plan as `nodes.parquet` and `edges.parquet`, both completely or none.

    Args:
        plan: what the graph is to be like.
        folder: the folder, which is made.
        blocks: blocks of nodes that are written at a time.

    Returns:
        The number of nodes, and of edges as they were written.

    Raises:
        BGCLError: if the folder holds a graph, or the disk has no room.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    names = [f"a{i}" for i in range(plan.attributes)]
    of_nodes = pa.schema([("id", pa.int64()), ("label", pa.string()), *((name, pa.float32()) for name in names)])
    of_edges = pa.schema([("source", pa.int64()), ("target", pa.int64())])
    generator, edges = GraphGenerator(plan), 0
    texts = np.array([f"c{i}" for i in range(plan.classes)], dtype=object)
    needed = plan.nodes * (8 + 4 * plan.attributes + 8 * plan.degree)
    check_room(folder, int(needed), f"{plan.nodes:,} nodes with {plan.attributes:,} attributes")
    # Random numbers do not compress, and their dictionaries would only cost time.
    how: dict[str, Any] = {"compression": "none", "use_dictionary": ["label"]}
    with new_files(folder, NAMES) as begun:
        refuse_graph(folder)
        with (
            ParquetWriter(begun / NAMES[0], of_nodes, **how) as node_file,
            ParquetWriter(begun / NAMES[1], of_edges, **how) as edge_file,
        ):
            for piece in generator.pieces(blocks):
                columns = [np.ascontiguousarray(column) for column in piece.attributes.T]
                node_file.write_table(pa.table([piece.ids, texts[piece.labels], *columns], schema=of_nodes))
                edge_file.write_table(pa.table(list(piece.edges), schema=of_edges))
                edges += piece.edges.shape[1]
    return {"nodes": plan.nodes, "edges": edges}
