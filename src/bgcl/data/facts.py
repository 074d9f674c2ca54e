"""Size and fingerprint of a graph, which a run stores to recognize its training graph."""

import hashlib
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch_geometric.data import Data

from bgcl.graph.prepared import mean_weight, relations_of


@dataclass(frozen=True)
class GraphFacts:
    """Name, size and fingerprint of a graph.

    Attributes:
        name: name of the data set or path of the file, with which a command finds the graph again; may be empty.
        nodes: number of nodes.
        edges: number of undirected edges.
        num_attributes: number of attributes of a node.
        fingerprint: SHA-256 of the edges, their weights and the attributes.
        mean_weight: mean weight of the edges; 0 if they have no weights, or if all weights are equal.
        relations: names of the relations, such as types of edges; none if there are fewer than two.

    >>> import bgcl
    >>> from bgcl.data import GraphFacts
    >>> facts = GraphFacts.of(bgcl.load("cora"), name="cora")
    >>> facts.nodes, facts.edges, facts.num_attributes
    (2708, 5278, 1433)
    """

    name: str
    nodes: int
    edges: int
    num_attributes: int
    fingerprint: str
    mean_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    relations: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Data, name: str = "") -> "GraphFacts":
        """The facts of a checked graph."""
        sha = hashlib.sha256(data.edge_index.cpu().numpy().tobytes())
        dense = data.x.layout == torch.strided
        parts = (data.x,) if dense else (data.x.crow_indices(), data.x.col_indices(), data.x.values())
        for part in parts:
            sha.update(part.cpu().numpy().tobytes())
        mean = mean_weight(data)
        if "edge_weight" in data and bool((data.edge_weight != 1).any()):
            sha.update(data.edge_weight.cpu().numpy().tobytes())
        relations = relations_of(data)
        if relations:
            sha.update("\n".join(relations).encode() + data.edge_relations.cpu().numpy().tobytes())
        size = data.num_nodes, data.num_edges // 2, data.x.shape[1]
        return cls(name, *size, sha.hexdigest(), mean, relations)
