"""The facts of a graph tell it from other graphs."""

import hashlib

import numpy as np
import torch
from torch_geometric.data import Data

from bgcl.data import GraphFacts, check_graph


def graph(**changes: torch.Tensor) -> Data:
    fields = {"x": torch.arange(6.0).reshape(3, 2), "edge_index": torch.tensor([[0, 1], [1, 2]])} | changes
    return check_graph(Data(**fields))


def test_facts_count_nodes_undirected_edges_and_attributes():
    facts = GraphFacts.of(graph(), name="mine")
    assert (facts.name, facts.nodes, facts.edges, facts.num_attributes) == ("mine", 3, 2, 2)


def test_fingerprint_is_the_hash_of_edges_and_attributes():
    edges, attributes = np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), np.arange(6, dtype=np.float32)
    expected = hashlib.sha256(edges.tobytes() + attributes.tobytes()).hexdigest()
    assert GraphFacts.of(graph()).fingerprint == expected


def test_fingerprint_depends_on_edges_and_attributes_but_not_on_labels():
    base = GraphFacts.of(graph()).fingerprint
    assert GraphFacts.of(graph(y=torch.tensor([0, 1, 0]))).fingerprint == base
    assert GraphFacts.of(graph(edge_index=torch.tensor([[0, 0], [1, 2]]))).fingerprint != base
    assert GraphFacts.of(graph(x=torch.ones(3, 2))).fingerprint != base


def test_fingerprint_of_sparse_attributes_depends_on_values_and_places():
    def fingerprint(column: int, value: float) -> str:
        x = torch.zeros(3, 20)
        x[1, column] = value
        data = graph(x=x)
        assert data.x.layout == torch.sparse_csr
        return GraphFacts.of(data).fingerprint

    assert len({fingerprint(0, 1.0), fingerprint(1, 1.0), fingerprint(0, 2.0)}) == 3
