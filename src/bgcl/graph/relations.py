"""Relations: kinds of connections, such as edges of a type or of a direction, each with weights of its own.

All relations are on the same pattern. A connection that is not in a relation has the weight 0 there.
"""

from dataclasses import replace

import torch
from torch import Tensor

from bgcl.graph.prepared import PreparedGraph


def in_relation(graph: PreparedGraph, relation: int, *, itself: bool) -> PreparedGraph:
    """The graph with the connections of one relation.

    Args:
        graph: a graph with relations.
        relation: the number of the relation.
        itself: whether nodes are connected with themselves.
    """
    assert graph.relations is not None
    weights = torch.where(graph.is_self[:, 0], float(itself), graph.relations[:, relation])
    return replace(graph, weights=weights, relations=None)


def over_relations(graph: PreparedGraph, kept: Tensor | None) -> Tensor | None:
    """One keep value for each connection, `(E, 1)`: the mean over its relations, by weight.

    In a graph without relations, and for self-connections, all relations count the same.

    Args:
        graph: the graph.
        kept: a keep value for each connection, `(E, 1)`, or for each relation too, `(E, R)`; None: all are kept.
    """
    if kept is None or kept.shape[1] == 1:
        return kept
    if graph.relations is None:
        return kept.mean(1, keepdim=True)
    total = graph.relations.sum(1, keepdim=True)
    share = torch.where(total > 0, graph.relations / torch.where(total > 0, total, 1.0), 1 / kept.shape[1])
    return (kept * share).sum(1, keepdim=True)
