r"""Where the noise of masks comes from: numbers in turn, or numbers that do not depend on the order of computing.

Training takes its noise from a generator (`NoiseStream`). Draws of embeddings take it from a counter (`CountedNoise`):
the noise of an edge or an attribute is a hash of the draw, the mask, the layer, and what it is for. With keys `k_1`,
`k_2`, `k_3` of 64 bits for each draw, mask and layer, it is

    n(v, u, b) = finished(h(v, k_1) + h(u, k_2) + h(b, k_3)),    h(v, k) = mixed(v, k) >> 32

in 32 bits for a connection from node u to node v and block b. `mixed` is the finalizer of SplitMix64, and nodes have
the numbers of their rows in the whole graph. For an entry of the attributes, u is a column and there is no block. The
noise is `(n mod 2^23 + 1/2) / 2^23`.

So a part of a graph, another machine or another order of computing sees the same draw as the whole graph, as far as
the graph knows the numbers of its nodes (`PreparedGraph.numbers`).
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bgcl.graph.keys import mixed
from bgcl.graph.prepared import PreparedGraph, SparseFeatures, numbers_of

VERSION = 1  # of counted noise: with another one, the same seed has other draws, and kept results are not used
_TILE = 1 << 16  # numbers that are hashed at a time, so that they stay in the cache of the processor


class Noise(ABC):
    """Where masks and drop rates get uniform numbers in (0, 1) from.

    >>> from bgcl.graph.prepared import prepare
    >>> import bgcl
    >>> graph = prepare(bgcl.example_graph(), row_norm="length")
    >>> noise = CountedNoise.of_draw(seed=0, draw=7)
    >>> bool((noise.of("edges").edges(graph) == noise.of("edges").edges(graph)).all())
    True
    """

    def of(self, *what: int | str) -> "Noise":
        """The noise for one thing, such as a mask and a layer."""
        return self

    @abstractmethod
    def edges(self, graph: PreparedGraph, blocks: int = 1) -> Tensor:
        """A number for each connection and block, `(E, B)`."""

    @abstractmethod
    def nodes(self, graph: PreparedGraph) -> Tensor:
        """A number for each node, `(N, 1)`."""

    @abstractmethod
    def columns(self, graph: PreparedGraph, width: int) -> Tensor:
        """A number for each of `width` columns, `(F,)`."""

    @abstractmethod
    def entries(self, graph: PreparedGraph, shape: Sequence[int]) -> Tensor:
        """A number for each entry of a layer's input.

        Args:
            graph: the graph.
            shape: `(nonzeros,)` for the sparse attributes of the graph, `(N, F)` for dense features.
        """

    @abstractmethod
    def rates(self, shape: Sequence[int], device: torch.device) -> Tensor:
        """Numbers that drop rates are drawn with, `shape`."""

    @abstractmethod
    def seed(self) -> int:
        """A seed below 2^31 for noise that other generators make."""


@dataclass(frozen=True)
class NoiseStream(Noise):
    """Numbers in turn from a generator.

    Args:
        generator: the generator.
        of_rates: the generator of drop rates, if it is another one: all batches of a step have the same rates.
    """

    generator: torch.Generator
    of_rates: torch.Generator | None = None

    def _next(self, shape: Sequence[int]) -> Tensor:
        # In float32 a number can be exactly 0. Then its logit and the gradient would be infinite.
        found = torch.rand(tuple(shape), generator=self.generator, device=self.generator.device)
        return found.clamp_(1e-7, 1 - 1e-7)

    def edges(self, graph: PreparedGraph, blocks: int = 1) -> Tensor:
        return self._next((len(graph.connections), blocks))

    def nodes(self, graph: PreparedGraph) -> Tensor:
        return self._next((graph.nodes, 1))

    def columns(self, graph: PreparedGraph, width: int) -> Tensor:
        return self._next((width,))

    def entries(self, graph: PreparedGraph, shape: Sequence[int]) -> Tensor:
        return self._next(shape)

    def rates(self, shape: Sequence[int], device: torch.device) -> Tensor:
        found = torch.rand(tuple(shape), generator=self.of_rates or self.generator, device=device)
        return found.clamp(1e-6, 1 - 1e-6)

    def seed(self) -> int:
        return int(torch.randint(2**31 - 1, (), generator=self.generator, device=self.generator.device).item())


@dataclass(frozen=True)
class CountedNoise(Noise):
    """Numbers that are hashes of what they are for.

    Args:
        path: the seed, the draw, and whatever else tells this noise from others.
    """

    path: tuple[int | str, ...]

    @classmethod
    def of_draw(cls, seed: int, draw: int) -> "CountedNoise":
        """The noise of one draw of the embeddings."""
        return cls((seed, draw))

    def of(self, *what: int | str) -> "CountedNoise":
        return CountedNoise((*self.path, *what))

    def keys(self) -> tuple[int, int, int]:
        """The keys `k_1`, `k_2`, `k_3` as signed numbers of 64 bits."""
        digest = hashlib.blake2b("/".join(map(str, self.path)).encode(), digest_size=24).digest()
        row, column, block = (int.from_bytes(digest[i : i + 8], "little", signed=True) for i in (0, 8, 16))
        return row, column, block

    def edges(self, graph: PreparedGraph, blocks: int = 1) -> Tensor:
        row, column, block = self.keys()
        numbers = numbers_of(graph)
        target, source = _hashed(numbers, row), _hashed(numbers, column)
        of_block = _hashed(torch.arange(blocks, device=numbers.device), block)
        connections = graph.connections
        found = torch.empty(len(connections), blocks, device=numbers.device)
        for some in _tiles(len(connections), blocks):
            ends = target.index_select(0, connections.row[some]).add_(source.index_select(0, connections.column[some]))
            found[some] = uniform(finished(ends[:, None] + of_block))
        return found

    def nodes(self, graph: PreparedGraph) -> Tensor:
        row, _, _ = self.keys()
        return uniform(finished(_hashed(numbers_of(graph), row)))[:, None]

    def columns(self, graph: PreparedGraph, width: int) -> Tensor:
        _, column, _ = self.keys()
        return uniform(finished(_hashed(torch.arange(width, device=graph.connections.column.device), column)))

    def entries(self, graph: PreparedGraph, shape: Sequence[int]) -> Tensor:
        row, column, _ = self.keys()
        of_node = _hashed(numbers_of(graph), row)
        if len(shape) == 2:
            of_column = _hashed(torch.arange(shape[1], device=of_node.device), column)
            found = torch.empty(tuple(shape), device=of_node.device)
            for some in _tiles(shape[0], shape[1]):
                found[some] = uniform(finished(of_node[some, None] + of_column))
            return found
        assert isinstance(graph.features, SparseFeatures)
        pattern = graph.features.pattern
        of_column = _hashed(torch.arange(pattern.columns, device=of_node.device), column)
        found = torch.empty(len(pattern), device=of_node.device)
        for some in _tiles(len(pattern), 1):
            entries = of_node.index_select(0, pattern.row[some]).add_(of_column.index_select(0, pattern.column[some]))
            found[some] = uniform(finished(entries))
        return found

    def rates(self, shape: Sequence[int], device: torch.device) -> Tensor:
        _, _, block = self.keys()
        count = torch.Size(shape).numel()
        return uniform(finished(_hashed(torch.arange(count, device=device), block))).reshape(tuple(shape))

    def seed(self) -> int:
        return self.keys()[0] & (2**31 - 1)


def _tiles(rows: int, width: int) -> list[slice]:
    """Slices of rows that have about `_TILE` numbers each."""
    step = max(_TILE // max(width, 1), 1)
    return [slice(start, start + step) for start in range(0, rows, step)]


def _hashed(numbers: Tensor, key: int) -> Tensor:
    """`h(v, k)`, numbers of 32 bits, in the shape of `numbers`."""
    return (mixed(numbers, key) >> 32).to(torch.int32)


def finished(numbers: Tensor) -> Tensor:
    """A hash of numbers of 32 bits, in place: every bit of the result depends on every bit of the number.

        x ^= x >> 16,  x *= 0x7FEB352D,  x ^= x >> 15,  x *= 0x846CA68B,  x ^= x >> 16

    in wrapping arithmetic without signs. In 32 bits, unlike in 64, processors compute eight of these at once.

    >>> finished(torch.tensor([0, 1, 2], dtype=torch.int32)).tolist()
    [0, 1753845952, -787275391]
    """
    shifted = torch.empty_like(numbers)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B - (1 << 32)), (16, 1)):
        # Shifts of signed numbers repeat the sign, which the mask takes away.
        torch.bitwise_right_shift(numbers, shift, out=shifted)
        numbers.bitwise_xor_(shifted.bitwise_and_((1 << (32 - shift)) - 1))
        if factor != 1:
            numbers.mul_(factor)
    return numbers


def uniform(numbers: Tensor) -> Tensor:
    """`(n mod 2^23 + 1/2) / 2^23`, in float32 without rounding, for numbers of 32 bits, which it overwrites.

    >>> uniform(torch.tensor([0, -1], dtype=torch.int32)).tolist() == [2**-24, 1 - 2**-24]
    True
    """
    ones = numbers.bitwise_and_(0x7FFFFF).bitwise_or_(0x3F800000)  # the bits of 1 + (n mod 2^23) / 2^23
    return ones.view(torch.float32).sub_(1 - 2**-24)
