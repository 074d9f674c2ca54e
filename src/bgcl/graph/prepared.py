"""A graph made ready for the encoder: its connections with self-connections, and its attributes, sparse or dense."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from bgcl.graph.sparse import Pattern, row_pointer


@dataclass(frozen=True)
class SparseFeatures:
    """Attributes of which most are zero, as values on a pattern `(N, F)` with sorted columns."""

    pattern: Pattern
    values: Tensor

    @property
    def width(self) -> int:
        return self.pattern.columns

    def split(self, blocks: int) -> Pattern:
        """The pattern of the stacked blocks, `(N * B, F)`: row `u * B + b` holds node u's attributes of block b.

        The entries keep their order, since a row's columns are sorted and a block is a slice of them.
        """
        key = ("stacked", blocks)
        if key not in self.pattern.derived:
            size = -(-self.width // blocks)
            row = self.pattern.row * blocks + self.pattern.column // size
            pattern = Pattern(row_pointer(row, self.pattern.rows * blocks), self.pattern.column, self.width)
            self.pattern.derived[key] = pattern, row
        return self.pattern.derived[key][0]


Features = Tensor | SparseFeatures


@dataclass(frozen=True)
class Graph:
    """N nodes, E connections (each self-connection among them) and their attributes."""

    connections: Pattern  # (N, N), sorted by row, then column
    features: Features

    @property
    def nodes(self) -> int:
        return self.connections.rows

    @cached_property
    def is_self(self) -> Tensor:
        """Which connections lead from a node to itself, `(E, 1)`."""
        return (self.connections.row == self.connections.column)[:, None]


Norm = Literal["length", "sum"]


def prepare(data: Data, *, normalise_rows: bool, row_norm: Norm = "sum", device: torch.device | str = "cpu") -> Graph:
    """The `Graph` of a clean `Data`; with `normalise_rows` each node's attributes are divided by their `row_norm`."""
    nodes = data.num_nodes
    loops = torch.arange(nodes).expand(2, -1)
    source, target = torch.cat([data.edge_index.cpu(), loops], dim=1)
    key, _ = torch.sort(target * nodes + source)
    target, source = key // nodes, key % nodes
    connections = Pattern(row_pointer(target, nodes).to(device), source.to(device), nodes)
    return Graph(connections, _features(data.x, row_norm if normalise_rows else None, torch.device(device)))


def _features(x: Tensor, row_norm: Norm | None, device: torch.device) -> Features:
    if x.layout == torch.strided:
        dense = x.to(device, torch.float32)
        return dense if row_norm is None else unit_rows(dense, row_norm)
    row = torch.repeat_interleave(torch.arange(len(x)), x.crow_indices().cpu().diff())
    order = torch.argsort(row * x.shape[1] + x.col_indices().cpu())
    pattern = Pattern(x.crow_indices().to(device), x.col_indices().cpu()[order].to(device), x.shape[1])
    values = x.values().cpu()[order].to(device, torch.float32)
    if row_norm is not None:
        sizes = values.abs() if row_norm == "sum" else values.square()
        total = torch.zeros(pattern.rows, device=device).index_add_(0, pattern.row, sizes)
        values = values / _nonzero(total if row_norm == "sum" else total.sqrt())[pattern.row]
    return SparseFeatures(pattern, values)


def unit_rows(dense: Tensor, norm: Norm) -> Tensor:
    """Attributes `(N, F)` scaled so that each row has length one, or that its absolute values sum to one."""
    return dense / _nonzero(torch.linalg.vector_norm(dense, ord=1 if norm == "sum" else 2, dim=1, keepdim=True))


def _nonzero(total: Tensor) -> Tensor:
    """A divisor: rows of zeros are left as they are."""
    return torch.where(total > 0, total, 1.0)
