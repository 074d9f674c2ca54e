"""Weights of edges are added like a plain loop adds them, stay with their edges, and are found where users have
them."""

import logging
from collections import Counter

import networkx
import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch_geometric.data import Data

import bgcl
from bgcl import BGCLError
from bgcl.data import check_graph, npz
from bgcl.data.clean import CleanGraph, undirected
from bgcl.data.facts import GraphFacts
from bgcl.data.pyg import to_data
from bgcl.data.weights import merged_weights
from bgcl.graph.prepared import prepare


def random_edges(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """400 edges among 30 nodes, some of them repeated, some from a node to itself, and their weights."""
    random = np.random.default_rng(seed)
    return random.integers(30, size=(2, 400)), random.random(400) + 0.1


def sums_of(pairs: np.ndarray, weights: np.ndarray) -> Counter[tuple[int, int]]:
    """The weight of each undirected edge, by a plain loop."""
    sums: Counter[tuple[int, int]] = Counter()
    for (a, b), weight in zip(pairs.T.tolist(), weights.tolist(), strict=True):
        if a != b:
            sums[min(a, b), max(a, b)] += weight
    return sums


def test_weights_are_the_sums_of_a_plain_loop():
    pairs, weights = random_edges()
    sums = sums_of(pairs, weights)
    found, merged = merged_weights(pairs, weights, 30)
    np.testing.assert_array_equal(found, undirected(*pairs, 30))
    np.testing.assert_allclose(merged, [sums[min(a, b), max(a, b)] for a, b in found.T.tolist()], rtol=1e-6)


def test_weights_that_are_the_same_in_both_directions_stay_as_they_are():
    pairs, weights = random_edges()
    found, merged = merged_weights(pairs, weights, 30)
    again, same = merged_weights(found[:, ::-1], merged[::-1], 30)
    np.testing.assert_array_equal(again, found)
    np.testing.assert_array_equal(same, merged)


def test_weights_do_not_change_the_rest_of_a_graph():
    edges = {"from": [1, 2, 2, 3], "to": [2, 3, 1, 1], "strength": [1.0, 2.0, 0.5, 4.0]}
    plain, weighted = bgcl.graph_from(edges), bgcl.graph_from(edges, weight="strength")
    assert "edge_weight" not in plain
    assert weighted.edge_weight.tolist() == [1.5, 4.0, 1.5, 2.0, 4.0, 2.0]
    assert torch.equal(plain.edge_index, weighted.edge_index)
    assert torch.equal(plain.x.to_dense(), weighted.x.to_dense())


def test_a_column_called_weight_is_taken_unless_the_user_says_no():
    edges = {"from": [1, 2], "to": [2, 3], "weight": [1.0, 2.0]}
    assert bgcl.graph_from(edges).edge_weight.tolist() == [1.0, 1.0, 2.0, 2.0]
    assert "edge_weight" not in bgcl.graph_from(edges, weight="")


def test_a_checked_graph_keeps_weights_of_any_edges():
    graph = bgcl.graph_from({"from": [1, 2], "to": [2, 3], "w": [1.0, 2.0]}, weight="w")
    assert check_graph(graph).edge_weight.tolist() == [1.0, 1.0, 2.0, 2.0]
    one_way = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), edge_weight=torch.tensor([1.0, 2.0]))
    assert check_graph(one_way).edge_weight.tolist() == [1.0, 1.0, 2.0, 2.0]
    differing = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.tensor([1.0, 2.0]))
    assert check_graph(differing).edge_weight.tolist() == [3.0, 3.0]


def test_edges_of_weight_0_do_not_count_and_a_warning_says_so(caplog):
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), edge_weight=torch.tensor([0.0, 2.0]))
    with caplog.at_level(logging.WARNING):
        assert check_graph(data).edge_index.tolist() == [[1, 2], [2, 1]]
    assert "1 edge(s) of the graph have the weight 0. They do not count." in caplog.text


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.tensor([1.0, -2.0]), "weight of edge 1 is -2, which is negative"),
        (torch.tensor([torch.nan, 1.0]), "weight of edge 0 is nan, which is not finite"),
        (torch.tensor([1.0, torch.inf]), "which is not finite"),
        (torch.ones(3), "one number for each of the 2 edges. Got the shape"),
        (torch.ones(2, dtype=torch.complex64), "Got values of type complex64"),
        ([1.0, 2.0], "must be a tensor. Got list"),
        (torch.zeros(2), "no edges between different nodes"),
    ],
)
def test_weights_that_cannot_be_are_refused(weights, message):
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
    data.edge_weight = weights
    with pytest.raises(BGCLError, match=message.replace("(", r"\(")):
        check_graph(data)


def test_weights_beyond_32_bits_are_refused():
    with pytest.raises(BGCLError, match="too great or too small for 32 bits"):
        bgcl.graph_from({"from": [1, 2], "to": [2, 3], "w": [1e300, 2.0]}, weight="w")


def test_matrices_and_networkx_graphs_have_their_weights():
    matrix = np.array([[0, 1.5, 0], [1.5, 0, 4], [0, 4, 0]])
    expected = [1.5, 1.5, 4.0, 4.0]
    for adjacency in (matrix, csr_matrix(matrix)):
        assert bgcl.graph_from(adjacency, np.eye(3)).edge_weight.tolist() == expected
    assert bgcl.graph_from(matrix).edge_weight.tolist() == expected
    assert "edge_weight" not in bgcl.graph_from((matrix > 0).astype(int), np.eye(3))
    graph = networkx.Graph([("a", "b", {"weight": 3, "since": "May"}), ("b", "c")])
    assert bgcl.graph_from(graph).edge_weight.tolist() == [3.0, 3.0, 1.0, 1.0]


def test_a_npz_keeps_its_weights(tmp_path):
    attributes = csr_matrix(np.eye(3, dtype=np.float32))
    graph = CleanGraph(np.array([[0, 1], [1, 2]]), attributes, weights=np.array([1, 1, 2.5, 2.5], np.float32))
    npz.write(tmp_path / "graph.npz", graph)
    assert to_data(npz.read(tmp_path / "graph.npz")).edge_weight.tolist() == [1, 1, 2.5, 2.5]


def test_other_weights_are_another_graph_and_weights_of_1_are_none():
    def facts(weights: list[float] | None) -> GraphFacts:
        data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
        if weights is not None:
            data.edge_weight = torch.tensor(weights)
        return GraphFacts.of(check_graph(data))

    assert facts([1.0, 1.0]) == facts(None)
    assert facts([5.0, 5.0]).mean_weight == 0
    assert facts([5.0, 5.0]).fingerprint != facts(None).fingerprint
    assert facts([1.0, 2.0]).fingerprint not in (facts([1.0, 3.0]).fingerprint, facts(None).fingerprint)
    assert facts([1.0, 2.0]).mean_weight == 1.5


def test_a_repeated_edge_of_a_table_with_equal_weights_counts_once_as_in_a_data():
    rows = {"from": [0, 0, 1, 2, 0], "to": [1, 1, 2, 3, 3], "w": [2.0] * 5, "t": ["x", "y", "x", "y", "x"]}
    table = bgcl.graph_from(rows, weight="w", edge_type="t")
    pairs, codes = torch.tensor([rows["from"], rows["to"]]), torch.tensor([0, 1, 0, 1, 0])
    given = Data(x=torch.eye(4), edge_index=pairs, edge_weight=torch.full((5,), 2.0), edge_type=codes)
    data = check_graph(given)
    for field in ("edge_index", "edge_weight", "edge_relations"):
        assert torch.equal(table[field], data[field])
    assert set(table.edge_weight.tolist()) == {2.0}


def test_edges_of_equal_weight_keep_other_weights_in_each_relation():
    rows = {"from": [0, 0, 1, 1], "to": [1, 1, 2, 2], "w": [1.0, 2.0, 2.0, 1.0], "t": ["x", "y", "x", "y"]}
    data = bgcl.graph_from(rows, weight="w", edge_type="t")
    assert set(data.edge_weight.tolist()) == {3.0}
    prepared = prepare(data, row_norm="none", relations=data.relations)
    assert prepared.weights is not None
    assert set(prepared.weights.tolist()) == {1.0}
    of_edges = prepared.relations[~prepared.is_self[:, 0]]
    torch.testing.assert_close(of_edges, data.edge_relations / 3)
