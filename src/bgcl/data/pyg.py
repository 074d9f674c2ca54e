"""PyTorch Geometric's `Data`: made from clean graphs, and checked when it comes from a user."""

import os
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch_geometric.data import Data

from bgcl.data import npz
from bgcl.data.clean import CleanGraph, both_directions, clean_edges, is_clean
from bgcl.errors import BGCLError
from bgcl.graph.csr import without_beta_warning

KEPT = ("name", "ids", "classes", "attribute_names", "recipe")  # fields other than tensors that a checked graph keeps
SPARSE_BELOW = 0.2  # share of nonzero entries; above it, dense products are faster


def to_data(graph: CleanGraph, name: str | None = None) -> Data:
    """Convert a clean graph to `Data`.

    Returns:
        A `Data` with `x` `(N, F)` float32, `edge_index` `(2, 2E)` in both directions sorted by row and column, `y`
        `(N,)` if there are labels, and the masks.
    """
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
    """Read a graph from a `.npz` of plain arrays, with the keys of the Amazon and Coauthor releases.

    Args:
        path: a file with the arrays `adj_data`, `adj_indices`, `adj_indptr` and `adj_shape` of the adjacency matrix
            `(N, N)` as CSR, `attr_data`, `attr_indices`, `attr_indptr` and `attr_shape` of the attributes `(N, F)` as
            CSR, and optionally `labels` `(N,)`, `train_mask`, `val_mask`, `stopping_mask` and `test_mask`.

    Returns:
        A `Data` with `x` `(N, F)`, `edge_index` `(2, 2E)` in both directions, `y` `(N,)` and the masks.

    Raises:
        BGCLError: if the file does not exist, is damaged, or lacks an array.

    >>> from bgcl.data import get, read_npz
    >>> read_npz(get("cora")).num_nodes
    2708
    """
    return to_data(npz.read(path))


def check_graph(data: Data) -> Data:
    """Check a graph and return a clean copy: undirected, without self-loops and duplicates, on the same device.

    Args:
        data: a graph with `x` `(N, F)` and `edge_index` `(2, M)`, and optionally `y` and masks with N rows.

    Returns:
        A new `Data` with `x` as float32, `edge_index` `(2, 2E)` in both directions sorted by row and column, `y`, every
        field that ends in `_mask`, and `name`, `ids`, `classes`, `attribute_names` and `recipe`. It has no edge weights
        or other fields, because no method uses them.

    Raises:
        BGCLError: if a field is missing, a shape is wrong, an edge ends at a node that does not exist, or an attribute
            is NaN or infinite.

    >>> import torch
    >>> from bgcl.data import check_graph
    >>> from torch_geometric.data import Data
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 0, 1], [1, 1, 1]]))
    >>> check_graph(data).edge_index.tolist()
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
    out = Data(x=_fitting_layout(x), edge_index=_checked_edges(data.edge_index, nodes))
    for field in data.keys():  # noqa: SIM118 - a Data iterates over pairs
        if field == "y" or field.endswith("_mask"):
            out[field] = _checked_rows(field, data[field], nodes)
    if "ids" in data and len(data.ids) != nodes:
        raise BGCLError(f"data.ids has {len(data.ids)} ids, but there are {nodes} nodes. Give each node one id.")
    for field in KEPT:
        if field in data:
            out[field] = data[field]
    return out.to(data.x.device)


def _checked_edges(edge_index: Tensor, nodes: int) -> Tensor:
    """Clean edges in both directions. Edges that are clean already are not sorted again."""
    pairs = edge_index.detach().cpu().numpy()
    if is_clean(pairs, nodes):
        return edge_index.detach().cpu()
    edges = clean_edges(pairs, nodes, where="data.edge_index")
    return torch.from_numpy(both_directions(edges, nodes))


def _checked_attributes(x: Tensor) -> Tensor:
    """Finite float32 attributes `(N, F)` on the CPU."""
    if x.dim() != 2 or x.shape[1] == 0:
        raise BGCLError(f"data.x must have the shape (nodes, attributes). Got {tuple(x.shape)} instead.")
    if x.is_complex():
        raise BGCLError(f"data.x must hold real numbers. Got {x.dtype} instead.")
    x = x.detach().cpu().to(torch.float32)
    if x.layout not in (torch.strided, torch.sparse_csr):
        x = without_beta_warning(x.to_sparse_csr)
    values = x.values() if x.layout == torch.sparse_csr else x
    if not torch.isfinite(values).all():
        raise BGCLError("data.x holds NaN or infinity. Replace them by finite numbers.")
    return x


def _checked_rows(field: str, value: Any, nodes: int) -> Any:
    """Labels or a mask with one row for each node."""
    if not isinstance(value, Tensor) or value.dim() == 0 or value.shape[0] != nodes:
        got = f"the shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise BGCLError(f"data.{field} must be a tensor with {nodes} rows, one for each node. Got {got} instead.")
    if field.endswith("_mask"):
        if value.dtype != torch.bool:
            raise BGCLError(f"data.{field} must hold true and false. Got values of type {value.dtype} instead.")
        return value
    return value if value.is_floating_point() else value.long()


def _fitting_layout(x: Tensor) -> Tensor:
    """Sparse CSR if the share of nonzero entries is below `SPARSE_BELOW`, else dense."""
    is_sparse = x.layout == torch.sparse_csr
    nonzero = int(torch.count_nonzero(x.values() if is_sparse else x))
    if nonzero < SPARSE_BELOW * x.numel():
        return x if is_sparse else without_beta_warning(x.to_sparse_csr)
    return x.to_dense() if is_sparse else x


def csr_tensor(matrix: csr_matrix) -> Tensor:
    """A SciPy matrix `(N, F)` as a sparse CSR tensor."""
    starts, columns = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    values = torch.from_numpy(matrix.data)
    return without_beta_warning(
        torch.sparse_csr_tensor, starts, columns, values, size=matrix.shape, check_invariants=False
    )
