"""Clean graphs as PyTorch Geometric's `Data`, and a user's own `Data` made clean."""

import os
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch_geometric.data import Data

from bgcl.data import npz
from bgcl.data.clean import Graph, both_directions, clean_edges
from bgcl.errors import BGCLError
from bgcl.graph.csr import quietly

KEPT = ("name", "ids", "classes", "attributes", "recipe")  # what a graph is told to remember beside its tensors
SPARSE_BELOW = 0.2  # a dense product takes less time beyond that share of entries that are not zero


def to_data(graph: Graph, name: str | None = None) -> Data:
    """`x` (N, F) float32, `edge_index` (2, 2E) in both directions sorted by (row, column), `y` (N,), the masks."""
    x = csr_tensor(graph.attributes)
    data = Data(x=_fitting_layout(x), edge_index=torch.from_numpy(both_directions(graph.edges, graph.nodes)))
    if graph.labels is not None:
        data.y = torch.from_numpy(graph.labels)
    for mask, values in graph.masks.items():
        data[mask] = torch.from_numpy(values)
    if name is not None:
        data.name = name
    return data


def read_npz(path: str | os.PathLike[str]) -> Data:
    """A graph of a user's own from a `.npz` of plain arrays (the keys are those of the Amazon and Coauthor files)."""
    return to_data(npz.read(path))


def check_graph(data: Data) -> Data:
    """Check a user's graph and return a clean copy: undirected, no self-loops, no duplicates, on the same device.

    `y`, what ends in `_mask`, `name`, and what a graph's reader adds (`ids`, `classes`, `attributes`, `recipe`) are
    kept. Edge weights and other fields are not: no method here uses them.

    >>> import bgcl, torch
    >>> from torch_geometric.data import Data
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 0, 1], [1, 1, 1]]))
    >>> bgcl.check_graph(data).edge_index.tolist()
    [[0, 1], [1, 0]]
    """
    if not isinstance(data, Data):
        raise BGCLError(f"The graph must be a torch_geometric.data.Data. Got {type(data).__name__} instead.")
    for field in ("x", "edge_index"):
        if not isinstance(getattr(data, field), Tensor):
            raise BGCLError(f"The graph has no data.{field}. Set it to a tensor.")
    x = _checked_attributes(data.x)
    nodes = x.shape[0]
    if data.num_nodes != nodes:
        raise BGCLError(f"data.x has {nodes} rows, but there are {data.num_nodes} nodes. Give each node one row.")
    if data.edge_index.layout != torch.strided:
        raise BGCLError("data.edge_index must be a plain tensor (2, number of edges), not a sparse matrix.")
    edges = clean_edges(data.edge_index.detach().cpu().numpy(), nodes, where="data.edge_index")
    out = Data(x=_fitting_layout(x), edge_index=torch.from_numpy(both_directions(edges, nodes)))
    for field in data.keys():  # noqa: SIM118 - a Data iterates over pairs
        if field == "y" or field.endswith("_mask"):
            out[field] = _one_row_a_node(field, data[field], nodes)
    if "ids" in data and len(data.ids) != nodes:
        raise BGCLError(f"data.ids has {len(data.ids)} ids, but there are {nodes} nodes. Give each node one.")
    for field in KEPT:
        if field in data:
            out[field] = data[field]
    return out.to(data.x.device)


def _checked_attributes(x: Tensor) -> Tensor:
    """float32 attributes (N, F) on the CPU, each of them finite."""
    if x.dim() != 2 or x.shape[1] == 0:
        raise BGCLError(f"data.x must have the shape (nodes, attributes). Got {tuple(x.shape)} instead.")
    if x.is_complex():
        raise BGCLError(f"data.x must hold real numbers. Got {x.dtype} instead.")
    x = x.detach().cpu().to(torch.float32)
    if x.layout not in (torch.strided, torch.sparse_csr):
        x = quietly(x.to_sparse_csr)
    values = x.values() if x.layout == torch.sparse_csr else x
    if not torch.isfinite(values).all():
        raise BGCLError("data.x holds NaN or infinity. Replace them by finite numbers.")
    return x


def _one_row_a_node(field: str, value: Any, nodes: int) -> Any:
    if not isinstance(value, Tensor) or value.dim() == 0 or value.shape[0] != nodes:
        got = f"the shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise BGCLError(f"data.{field} must be a tensor with one row a node, {nodes} in all. Got {got} instead.")
    if field.endswith("_mask"):
        if value.dtype != torch.bool:
            raise BGCLError(f"data.{field} must hold true and false. Got values of type {value.dtype} instead.")
        return value
    return value if value.is_floating_point() else value.long()


def _fitting_layout(x: Tensor) -> Tensor:
    """Sparse CSR if less than the share `SPARSE_BELOW` of the entries is nonzero, dense otherwise."""
    is_sparse = x.layout == torch.sparse_csr
    nonzero = int(torch.count_nonzero(x.values() if is_sparse else x))
    if nonzero < SPARSE_BELOW * x.numel():
        return x if is_sparse else quietly(x.to_sparse_csr)
    return x.to_dense() if is_sparse else x


def csr_tensor(matrix: csr_matrix) -> Tensor:
    """A SciPy matrix as a torch tensor, `(N, F)`."""
    starts, columns = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    values = torch.from_numpy(matrix.data)
    return quietly(torch.sparse_csr_tensor, starts, columns, values, size=matrix.shape, check_invariants=False)
