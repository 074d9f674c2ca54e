"""Weights of edges are added like a plain loop adds them, and stay with their edges."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import bgcl
from bgcl import BGCLError
from bgcl.data import check_graph
from bgcl.data.clean import undirected
from bgcl.data.weights import added_weights


def test_weights_are_the_sums_of_a_plain_loop():
    random = np.random.default_rng(0)
    source, target = random.integers(30, size=(2, 400))
    weights = random.random(400) + 0.1
    sums: Counter[tuple[int, int]] = Counter()
    for a, b, weight in zip(source.tolist(), target.tolist(), weights.tolist(), strict=True):
        if a != b:
            sums[min(a, b), max(a, b)] += weight
    expected = [sums[min(a, b), max(a, b)] for a, b in undirected(source, target, 30).T.tolist()]
    np.testing.assert_allclose(added_weights(source, target, weights, 30), expected, rtol=1e-6)


def test_weights_do_not_change_the_rest_of_a_graph():
    edges = {"from": [1, 2, 2, 3], "to": [2, 3, 1, 1], "weight": [1.0, 2.0, 0.5, 4.0]}
    plain, weighted = bgcl.graph_from(edges), bgcl.graph_from(edges, weight="weight")
    assert "edge_weight" not in plain
    assert weighted.edge_weight.tolist() == [1.5, 4.0, 1.5, 2.0, 4.0, 2.0]
    assert torch.equal(plain.edge_index, weighted.edge_index)
    assert torch.equal(plain.x.to_dense(), weighted.x.to_dense())


def test_a_checked_graph_keeps_the_weights_of_clean_edges():
    graph = bgcl.graph_from({"from": [1, 2], "to": [2, 3], "w": [1.0, 2.0]}, weight="w")
    assert check_graph(graph).edge_weight.tolist() == [1.0, 1.0, 2.0, 2.0]
    other = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), edge_weight=torch.ones(2))
    assert "edge_weight" not in check_graph(other)  # which weight belongs to which direction is not said


def test_weights_beyond_32_bits_are_refused():
    with pytest.raises(BGCLError, match="too great or too small for 32 bits"):
        bgcl.graph_from({"from": [1, 2], "to": [2, 3], "w": [1e300, 2.0]}, weight="w")
