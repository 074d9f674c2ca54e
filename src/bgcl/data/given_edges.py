"""The edges of a `Data` from a user: clean edges, their weights, and the relations of their types and directions."""

import logging
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from bgcl.data.clean import both_directions, clean_edges, is_clean
from bgcl.data.relations import Types, joined, relations
from bgcl.data.weights import checked_weights, is_constant, merged_weights
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]

log = logging.getLogger("bgcl")


def checked_edges(data: Data, nodes: int, *, directed: bool = False) -> dict[str, Any]:
    """The fields `edge_index` `(2, 2E)`, and `edge_weight`, `relations` and `edge_relations` if there are some.

    Args:
        data: the graph, with `edge_index`, and perhaps `edge_weight`, `edge_type` and `node_type`.
        nodes: number of nodes.
        directed: whether directions count.
    """
    if "edge_relations" in data:
        if directed:
            raise BGCLError("This graph was checked already: use directed=True when it is made.")
        return _checked_before(data, nodes)
    edge_index, weights = data.edge_index, None
    types = _types(data, "edge_type", edge_index.shape[-1])
    if data.get("edge_weight") is not None:
        edge_index, weights, use = _weighted(edge_index, data.edge_weight, nodes)
        types = None if types is None else types.of(use)
    found = _clean(edge_index, weights, nodes)
    of_nodes = _types(data, "node_type", nodes)
    pairs = edge_index.detach().cpu().numpy()
    if of_nodes is not None:
        types = joined(types, of_nodes, pairs[0], pairs[1], directed=directed)
    if types is not None or directed:
        heavy = None if weights is None or is_constant(weights) else weights
        clean = found["edge_index"].numpy()
        found["relations"], by_relation = relations(
            pairs, heavy, types, clean, nodes, directed=directed, where="data.edge_index"
        )
        constant = 1.0 if weights is None or heavy is not None else float(weights[0])
        found["edge_relations"] = torch.from_numpy(by_relation) * constant
    return found


def _clean(edge_index: Tensor, weights: Array | None, nodes: int) -> dict[str, Any]:
    """Clean edges in both directions, and their weights.

    Where all weights are equal, they say nothing, and a repeated edge counts once, as without weights.
    """
    if weights is None or is_constant(weights):
        clean = _without_weights(edge_index, nodes)
        if weights is None:
            return {"edge_index": clean}
        return {"edge_index": clean, "edge_weight": torch.full((clean.shape[1],), float(weights[0]))}
    found, merged = merged_weights(edge_index.detach().cpu().numpy(), weights, nodes)
    return {"edge_index": torch.from_numpy(found), "edge_weight": torch.from_numpy(merged)}


def _without_weights(edge_index: Tensor, nodes: int) -> Tensor:
    """Clean edges in both directions. Edges that are clean already are not sorted again."""
    pairs = edge_index.detach().cpu().numpy()
    if is_clean(pairs, nodes):
        return edge_index.detach().cpu()
    edges = clean_edges(pairs, nodes, where="data.edge_index")
    return torch.from_numpy(both_directions(edges, nodes))


def _weighted(edge_index: Tensor, edge_weight: Any, nodes: int) -> tuple[Tensor, Array, Array]:
    """The edges with a weight above 0, their weights, and which edges they are."""
    if not isinstance(edge_weight, Tensor):
        raise BGCLError(f"data.edge_weight must be a tensor. Got {type(edge_weight).__name__} instead.")
    pairs = edge_index.detach().cpu().numpy()
    clean_edges(pairs, nodes, where="data.edge_index")  # raises an error if an end is no node
    weights = checked_weights(edge_weight.detach().cpu().numpy(), pairs.shape[1], "data.edge_weight")
    use = weights > 0
    if not use.all():
        log.warning("%s edge(s) of the graph have the weight 0. They do not count.", f"{int((~use).sum()):,}")
    return torch.from_numpy(pairs[:, use]), weights[use], use


def _types(data: Data, field: str, count: int) -> Types | None:
    """The types of edges or nodes: `edge_type` or `node_type`, whole numbers, and their names if there are some."""
    if data.get(field) is None:
        return None
    values = data[field]
    if not isinstance(values, Tensor) or values.shape != (count,) or values.is_floating_point() or values.is_complex():
        got = f"{values.dtype} of shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
        raise BGCLError(f"data.{field} must hold {count} whole numbers, one for each {field[:4]}. Got {got} instead.")
    codes = values.detach().cpu().numpy().astype(np.int64)
    names = [str(name) for name in data.get(f"{field}_names") or ()]
    if not names:
        every, codes = np.unique(codes, return_inverse=True)
        names = [str(code) for code in every]
    if codes.size and not 0 <= codes.min() <= codes.max() < len(names):
        raise BGCLError(
            f"data.{field} must be below {len(names)}, the number of data.{field}_names. Got {codes.max()}."
        )
    return Types(codes, names)


def _checked_before(data: Data, nodes: int) -> dict[str, Any]:
    """The edges and relations of a graph that was checked before."""
    fields = [name for name in ("edge_index", "edge_weight", "edge_relations") if name in data]
    found: dict[str, Any] = {name: data[name].detach().cpu() for name in fields}
    count = data.edge_index.shape[1]
    shapes = {"edge_relations": (count, len(data.get("relations") or ())), "edge_weight": (count,)}
    fit = all(found[name].shape == shape for name, shape in shapes.items() if name in found)
    if not fit or not is_clean(found["edge_index"].numpy(), nodes):
        raise BGCLError(
            "The edges of the graph were changed after its relations were made: make it again with bgcl.graph_from."
        )
    return found | {"relations": list(data.relations)}
