"""PyTorch Geometric's `HeteroData` as one graph: nodes of all types, with attributes of their own and edge types."""

import logging
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from scipy.sparse import block_diag, csr_matrix, hstack
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from bgcl.data.pyg import csr_tensor
from bgcl.errors import BGCLError

log = logging.getLogger("bgcl")


def as_one_graph(graph: HeteroData) -> Data:
    """A `Data` with the nodes of all types, one type after the other.

    - `x` has the attributes of each type in columns of their own, which are 0 for nodes of other types. One more column
      for each type marks its nodes.
    - `edge_type` and `edge_type_names` tell the types of edges, such as `user rates film`.
    - `ids` are the type and the number of a node, such as `user:3`; or `user:ann` if the type has `ids`.
    - `y` has the labels of the type that has some, and -1 (or NaN) for others.
    """
    kinds = list(graph.node_types)
    if not kinds or not graph.edge_types:
        raise BGCLError("The HeteroData must have types of nodes and of edges.")
    counts = [_count(graph, kind) for kind in kinds]
    start = dict(zip(kinds, accumulate([0, *counts]), strict=False))
    attributes = [_attributes(graph[kind], count) for kind, count in zip(kinds, counts, strict=True)]
    which = np.repeat(np.arange(len(kinds)), counts)
    marks = csr_matrix((np.ones(len(which), np.float32), (np.arange(len(which)), which)), (len(which), len(kinds)))
    out = Data(x=csr_tensor(csr_matrix(hstack([block_diag(attributes, format="csr"), marks], format="csr"))))
    out.attribute_names = [
        f"{kind} {name}" for kind, x in zip(kinds, attributes, strict=True) for name in range(x.shape[1])
    ] + [f"is {kind}" for kind in kinds]
    out.ids = [f"{kind}:{each}" for kind, count in zip(kinds, counts, strict=True) for each in _ids(graph, kind, count)]
    _add_edges(out, graph, start)
    _add_labels(out, graph, kinds, counts)
    return out


def _count(graph: HeteroData, kind: str) -> int:
    count = graph[kind].num_nodes
    if count is None:
        raise BGCLError(f"data['{kind}'] does not say how many nodes it has: give it x or num_nodes.")
    return int(count)


def _attributes(store: Any, count: int) -> csr_matrix:
    """The attributes of one type; none if it has none."""
    if store.get("x") is None:
        return csr_matrix((count, 0), dtype=np.float32)
    x = store.x.detach().cpu()
    if x.dim() != 2 or len(x) != count:
        raise BGCLError(f"data['{store._key}'].x must have the shape ({count}, attributes). Got {tuple(x.shape)}.")
    return csr_matrix((x if x.layout == torch.strided else x.to_dense()).float().numpy())


def _ids(graph: HeteroData, kind: str, count: int) -> list[Any]:
    ids = graph[kind].get("ids")
    if ids is not None and len(ids) != count:
        raise BGCLError(f"data['{kind}'].ids has {len(ids)} ids, but there are {count} nodes. Give each node one id.")
    return list(range(count)) if ids is None else list(ids)


def _add_edges(out: Data, graph: HeteroData, start: dict[str, int]) -> None:
    pairs, types, weights, names = [], [], [], list[str]()
    for source, relation, target in graph.edge_types:
        store = graph[source, relation, target]
        if _is_reverse(graph, source, relation, target):
            continue
        found = store.edge_index.detach().cpu()
        _check_ends(graph, (source, relation, target), found)
        pairs.append(torch.stack([found[0] + start[source], found[1] + start[target]]))
        types.append(torch.full((found.shape[1],), len(names)))
        weight = store.get("edge_weight")
        weights.append(torch.ones(found.shape[1]) if weight is None else weight.detach().cpu().reshape(-1).float())
        names.append(f"{source} {relation} {target}")
        if store.get("edge_attr") is not None:
            log.warning("edge_attr of '%s' is not used. If it is a weight, call it edge_weight.", names[-1])
    out.edge_index, out.edge_type, out.edge_type_names = torch.cat(pairs, 1), torch.cat(types), names
    if any(graph[kind].get("edge_weight") is not None for kind in graph.edge_types):
        out.edge_weight = torch.cat(weights)


def _check_ends(graph: HeteroData, kind: tuple[str, str, str], ends: Tensor) -> None:
    """Refuse an edge to a node that its type does not have: it would lead to a node of another type."""
    if ends.dim() != 2 or len(ends) != 2:
        raise BGCLError(f"data['{' '.join(kind)}'].edge_index must have the shape (2, edges). Got {tuple(ends.shape)}.")
    for name, numbers in zip((kind[0], kind[2]), ends, strict=True):
        wrong = numbers[(numbers < 0) | (numbers >= _count(graph, name))]
        if len(wrong):
            raise BGCLError(
                f"data['{' '.join(kind)}'].edge_index has the node {int(wrong[0])}, but '{name}' has only "
                f"{_count(graph, name)} nodes, counted from 0. Correct the edges."
            )


def _is_reverse(graph: HeteroData, source: str, relation: str, target: str) -> bool:
    """Whether a type holds the edges of another one in the other direction, as `ToUndirected` adds them."""
    other = (target, relation.removeprefix("rev_"), source)
    if not relation.startswith("rev_") or other not in graph.edge_types:
        return False
    there, back = graph[other].edge_index, graph[source, relation, target].edge_index
    return there.shape == back.shape and bool((there == back.flip(0)).all())


def _add_labels(out: Data, graph: HeteroData, kinds: list[str], counts: list[int]) -> None:
    labeled = [kind for kind in kinds if graph[kind].get("y") is not None]
    if len(labeled) > 1:
        raise BGCLError(f"Nodes of several types have labels ({', '.join(labeled)}). Keep the labels of one type.")
    for kind in labeled:
        for field, value in graph[kind].items():
            if field == "y" or (field.endswith("_mask") and isinstance(value, Tensor)):
                missing = False if value.dtype == torch.bool else float("nan") if value.is_floating_point() else -1
                every = [torch.full((count, *value.shape[1:]), missing, dtype=value.dtype) for count in counts]
                every[kinds.index(kind)] = value.detach().cpu()
                out[field] = torch.cat(every)
