"""PyTorch Geometric's `Data`: made from clean graphs, and checked when it comes from a user."""

import logging
import os
from collections import Counter
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from bgcl.data import npz
from bgcl.data.clean import TOO_SMALL, CleanGraph, both_directions, too_great
from bgcl.data.given_edges import checked_edges
from bgcl.data.pack import pack_of
from bgcl.errors import BGCLError
from bgcl.graph.csr import without_beta_warning

log = logging.getLogger("bgcl")

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
    if graph.weights is not None:
        data.edge_weight = torch.from_numpy(graph.weights)
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
            `(N, N)` as CSR, whose values are the weights of the edges, `attr_data`, `attr_indices`, `attr_indptr` and
            `attr_shape` of the attributes `(N, F)` as CSR, and optionally `labels` `(N,)`, `train_mask`, `val_mask`,
            `stopping_mask` and `test_mask`.

    Returns:
        A `Data` with `x` `(N, F)`, `edge_index` `(2, 2E)` in both directions, `y` `(N,)` and the masks.

    Raises:
        BGCLError: if the file does not exist, is damaged, or lacks an array.

    >>> from bgcl.data import get, read_npz
    >>> read_npz(get("cora")).num_nodes
    2708
    """
    return to_data(npz.read(path))


def check_graph(data: Data, *, directed: bool = False) -> Data:
    """Check a graph and return a clean copy: undirected, without self-loops and duplicates, on the same device.

    Args:
        data: a graph with `x` `(N, F)` and `edge_index` `(2, M)`, and optionally `edge_weight` `(M,)`, types of edges
            and nodes as whole numbers, `edge_type` `(M,)` and `node_type` `(N,)`, with names in `edge_type_names` and
            `node_type_names`, `y`, and masks with N rows.
        directed: whether the directions of edges count, from the first row of `edge_index` to the second.

    Returns:
        A new `Data` with `x` as float32, `edge_index` `(2, 2E)` in both directions sorted by row and column,
        `edge_weight` `(2E,)` if there is one, `relations`, the names of types and directions, and `edge_relations`
        `(2E, R)`, the weight of each edge in each of them, if there are some, `y`, every field that ends in `_mask`,
        and `name`, `ids`, `classes`, `attribute_names` and `recipe`. It has no other fields, because no method uses
        them. The weights of an edge that is there twice are added, and those of both directions too, unless they are
        the same everywhere.

    Raises:
        BGCLError: if a field is missing, a shape is wrong, an edge ends at a node that does not exist, an attribute is
            NaN or infinite, or a weight is negative or infinite.

    >>> import torch
    >>> from bgcl.data import check_graph
    >>> from torch_geometric.data import Data
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 0, 1], [1, 1, 1]]))
    >>> check_graph(data).edge_index.tolist()
    [[0, 1], [1, 0]]
    """
    if isinstance(data, HeteroData):
        raise BGCLError("A HeteroData has to be made one graph first: data = bgcl.graph_from(hetero_data).")
    if not isinstance(data, Data):
        raise BGCLError(f"The graph must be a torch_geometric.data.Data. Got {type(data).__name__} instead.")
    for field in ("x", "edge_index"):
        if not isinstance(getattr(data, field), Tensor):
            raise BGCLError(f"The graph has no data.{field}. Set it to a tensor.")
    if pack_of(data) is not None:
        return data  # it was checked when it was packed
    x = _checked_attributes(data.x)
    nodes = x.shape[0]
    if data.num_nodes != nodes:
        raise BGCLError(f"data.x has {nodes} rows, but there are {data.num_nodes} nodes. Give each node one row.")
    if data.edge_index.layout != torch.strided:
        raise BGCLError("data.edge_index must be a plain tensor (2, number of edges), not a sparse matrix.")
    out = Data(x=_fitting_layout(x), **checked_edges(data, nodes, directed=directed))
    for field in data.keys():  # noqa: SIM118 - a Data iterates over pairs
        if field == "y" or field.endswith("_mask"):
            out[field] = _checked_rows(field, data[field], nodes)
    if "ids" in data and len(data.ids) != nodes:
        raise BGCLError(f"data.ids has {len(data.ids)} ids, but there are {nodes} nodes. Give each node one id.")
    if "ids" in data and len(set(ids := [str(each) for each in data.ids])) < nodes:
        twice = next(each for each, count in Counter(ids).items() if count > 1)
        raise BGCLError(f"data.ids has the id '{twice}' more than once. Give each node an id of its own.")
    for field in KEPT:
        if field in data:
            out[field] = data[field]
    return out.to(data.x.device)


def unused_fields(data: Data) -> list[str]:
    """The fields of a graph that are not used."""
    used = {"x", "y", "edge_index", "edge_weight", "edge_type", "node_type", "relations", "edge_relations", "num_nodes"}
    used |= {*KEPT, "edge_type_names", "node_type_names", "pack", "pack_at"}
    return [field for field in data.keys() if field not in used and not field.endswith("_mask")]  # noqa: SIM118


def warn_of_unused(data: Data) -> None:
    """Log a warning of what edges carry and no model uses."""
    if "edge_attr" in data and data.edge_attr is not None:
        log.warning("data.edge_attr is not used. If it is a weight, call it edge_weight; if a type, edge_type.")


def _checked_attributes(x: Tensor) -> Tensor:
    """Finite float32 attributes `(N, F)` on the CPU."""
    if x.dim() != 2 or x.shape[1] == 0:
        raise BGCLError(f"data.x must have the shape (nodes, attributes). Got {tuple(x.shape)} instead.")
    if x.is_complex():
        raise BGCLError(f"data.x must hold real numbers. Got {x.dtype} instead.")
    given = x.detach().cpu()
    if given.layout not in (torch.strided, torch.sparse_csr):
        given = without_beta_warning(given.to_sparse_csr)
    x = given.to(torch.float32)
    values = x.values() if x.layout == torch.sparse_csr else x
    if not torch.isfinite(values).all():
        node, column, value = _first(given, ~torch.isfinite(values))
        raise BGCLError(f"data.x: attribute {column} of node {node} {too_great(value)}")
    if given.dtype == torch.float64:
        _check_not_lost(given, x)
    return x


def _check_not_lost(given: Tensor, x: Tensor) -> None:
    """Raise an error if all numbers of an attribute `(N, F)` become zero with 32 bits."""
    before, after = (part.values() if part.layout == torch.sparse_csr else part for part in (given, x))
    lost = (after == 0) & (before != 0)
    if not lost.any():
        return
    columns = x.col_indices() if x.layout == torch.sparse_csr else torch.arange(x.shape[1]).expand_as(x)
    gone = np.setdiff1d(columns[lost].numpy(), columns[after != 0].numpy())
    if gone.size:
        raise BGCLError(f"data.x: attribute {gone[0]} {TOO_SMALL}")


def _first(x: Tensor, wrong: Tensor) -> tuple[int, int, float]:
    """The node, the attribute and the value of the first entry that is wrong."""
    place = wrong.nonzero()[0]
    if x.layout == torch.strided:
        return int(place[0]), int(place[1]), float(x[tuple(place)])
    node = int(torch.searchsorted(x.crow_indices(), place[0], right=True)) - 1
    return node, int(x.col_indices()[place[0]]), float(x.values()[place[0]])


def _checked_rows(field: str, value: Any, nodes: int) -> Any:
    """Labels or a mask with one row for each node."""
    if not isinstance(value, Tensor) or value.dim() == 0 or value.shape[0] != nodes:
        got = f"the shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise BGCLError(f"data.{field} must be a tensor with {nodes} rows, one for each node. Got {got} instead.")
    if field.endswith("_mask"):
        if value.dtype != torch.bool:
            raise BGCLError(f"data.{field} must hold true and false. Got values of type {value.dtype} instead.")
        return value
    if value.is_complex():
        raise BGCLError(f"data.{field} must hold class numbers or real numbers. Got values of type {value.dtype}.")
    if value.dtype == torch.uint64 and (value.view(torch.int64) < 0).any():
        raise BGCLError(f"data.{field} must hold class numbers below 2^63.")
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
