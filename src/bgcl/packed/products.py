"""Products with the normalized adjacency matrix in little memory: without the transposed pattern, in columns."""

import torch
from torch import Tensor

from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.sparse import Pattern
from bgcl.model.parts import Part
from bgcl.model.propagation import Propagation
from bgcl.packed.slabs import SLAB

NARROW = 2**31 - 1  # entries that numbers of 32 bits can count


def narrow(graph: PreparedGraph) -> Pattern:
    """The connections with numbers of 32 bits, if they are enough: half of the memory."""
    pattern = graph.connections
    if len(pattern) > NARROW:
        return pattern
    return Pattern(pattern.pointer.int(), pattern.column.int(), pattern.columns)


class LeanPropagation(Propagation):
    """`Propagation`, computed without the transposed pattern, whose memory is twice that of the pattern.

    Sums over columns are in another order, so results agree up to rounding.

    Args:
        graph: the graph. Its connections may have weights.
        kept: keep values of the connections, `(E, 1)`; None: all are kept.
    """

    def __init__(self, graph: PreparedGraph, kept: Tensor | None = None) -> None:
        pattern = graph.connections
        values = torch.ones(len(pattern)) if kept is None else kept[:, 0].clone()
        if graph.weights is not None:
            values *= graph.weights
        counts = pattern.pointer.diff()
        by_row = torch.segment_reduce(values, "sum", offsets=pattern.pointer.long())
        by_column = torch.zeros(pattern.columns).index_add_(0, pattern.column, values)
        values *= torch.repeat_interleave(inverse_root(by_row), counts, output_size=len(pattern))
        self.of_columns = inverse_root(by_column)  # (N,), the factor of each column
        values *= self.of_columns.index_select(0, pattern.column)
        self.pattern, self.values = pattern, values

    def in_columns(self, part: Part, start: Tensor, slab: int = SLAB) -> Tensor:
        """Propagate `(N, w)` as a part is propagated, some columns at a time, in place."""
        for first in range(0, start.shape[1], slab):
            columns = slice(first, first + slab)
            start[:, columns] = part.propagated(self, start[:, columns].contiguous())
        return start


def inverse_root(degree: Tensor) -> Tensor:
    """The factor of a row or a column with some sum of its entries; 1 if it has none."""
    return degree.clamp(min=1e-12).rsqrt().masked_fill(degree == 0, 1.0)
