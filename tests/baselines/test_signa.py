"""SIGNA: its loss against a plain loop over all nodes, how pairs are drawn, its encoder, and the authors' settings."""

import math

import numpy as np
import pytest
import torch

from bgcl.baselines import baseline, published
from bgcl.baselines.signa import EPS, Pairs, SoloEncoder, draw_pairs, signa_loss
from bgcl.graph.clusters import feature_rows
from planted import planted_graph
from small import dense_connections, dense_features, random_graph


def neighbors_of(graph, node: int) -> set[int]:
    return set(np.flatnonzero(dense_connections(graph)[node])) - {node}


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


@pytest.mark.parametrize("neighbor_mask", [0.0, 1.0])
def test_with_all_nodes_and_neighbors_the_loss_is_that_of_the_paper(neighbor_mask: float) -> None:
    graph = random_graph(9, 5)
    vectors = torch.randn(9, 4, dtype=torch.float64)
    pairs = draw_pairs(graph, 99, neighbor_mask, 99)
    assert pairs.nodes.tolist() == list(range(9))
    expected = 0.0
    for i in range(9):
        kept = neighbors_of(graph, i) if neighbor_mask == 0 else set()
        shares = [(cosine(vectors[i].numpy(), vectors[j].numpy()) + 1) / 2 for j in range(9)]
        expected -= sum(math.log(shares[j] + EPS) for j in kept) / (len(kept) + 1)  # the node itself adds log 1
        others = set(range(9)) - kept - {i}
        expected -= sum(math.log(1 - shares[j] + EPS) for j in others) / max(len(others), 1)
    assert float(signa_loss(vectors, pairs)) == pytest.approx(expected / 9, rel=1e-6)


def test_a_batch_has_some_kept_neighbors_and_no_kept_neighbor_is_a_negative() -> None:
    graph = random_graph(40, 5)
    torch.manual_seed(0)
    for _ in range(20):
        pairs = draw_pairs(graph, 12, 0.0, 2)
        anchors = pairs.nodes[pairs.anchor].tolist()
        assert len(set(anchors)) == 12
        for i, node in enumerate(anchors):
            own = pairs.positive_of == i
            chosen = pairs.nodes[pairs.positive[own]].tolist()
            neighbors = neighbors_of(graph, node)
            assert set(chosen) <= neighbors
            assert len(set(chosen)) == len(chosen) == min(len(neighbors), 2)
            assert float(pairs.weight[own].sum()) == pytest.approx(len(neighbors) / (len(neighbors) + 1))
            assert pairs.negative[i].tolist() == [other != node and other not in neighbors for other in anchors]


def test_neighbors_are_masked_at_the_given_rate_anew_in_each_step() -> None:
    graph = random_graph(40, 5)
    torch.manual_seed(0)
    drawn = [draw_pairs(graph, 40, 0.7, 40) for _ in range(60)]
    edges = dense_connections(graph).sum() - 40
    kept = [len(pairs.positive) / edges for pairs in drawn]
    assert np.mean(kept) == pytest.approx(0.3, abs=0.02)
    assert len(set(kept)) > 10


def test_every_kept_neighbor_is_chosen_equally_often() -> None:
    graph = random_graph(12, 5)
    torch.manual_seed(0)
    counts = np.zeros((12, 12))
    for _ in range(1500):
        pairs = draw_pairs(graph, 12, 0.3, 1)
        np.add.at(counts, (pairs.nodes[pairs.anchor][pairs.positive_of], pairs.nodes[pairs.positive]), 1)
    for node in range(12):
        neighbors = sorted(neighbors_of(graph, node))
        assert not np.delete(counts[node], neighbors).any()
        expected = 1500 * (1 - 0.3 ** len(neighbors)) / len(neighbors)
        assert np.abs(counts[node, neighbors] - expected).max() < 5 * math.sqrt(expected)


def test_a_batch_without_positives_or_negatives_has_a_finite_loss() -> None:
    vectors, none = torch.randn(2, 3, requires_grad=True), torch.zeros(0, dtype=torch.int64)
    alone = Pairs(torch.arange(2), torch.arange(2), none, none, torch.zeros(0), torch.zeros(2, 2, dtype=torch.bool))
    loss = signa_loss(vectors, alone)
    loss.backward()
    assert float(loss.detach()) == 0
    assert torch.isfinite(vectors.grad).all()


@pytest.mark.parametrize("sparse", [True, False])
def test_the_encoder_is_linear_maps_with_prelu_and_layer_norm(sparse: bool) -> None:
    graph = random_graph(8, 5, sparse=sparse)
    encoder = SoloEncoder((5, 6, 4), 0.5).double().eval()
    nodes = torch.tensor([3, 0, 3])
    hidden = dense_features(graph)[nodes] @ encoder.first.detach().numpy() + encoder.bias.detach().numpy()
    for layer in (None, encoder.others[0]):
        if layer is not None:
            hidden = hidden @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        hidden = np.where(hidden > 0, hidden, 0.25 * hidden)
        hidden = (hidden - hidden.mean(1, keepdims=True)) / np.sqrt(hidden.var(1, keepdims=True) + 1e-5)
    found = encoder(feature_rows(graph.features, nodes)).detach().numpy()
    np.testing.assert_allclose(found, hidden, atol=1e-10)
    encoder.train()
    assert not np.allclose(encoder(feature_rows(graph.features, nodes)).detach().numpy(), hidden)


def test_small_batches_train_too_and_the_same_seed_gives_the_same_result() -> None:
    method = baseline("signa", widths=(16, 8), steps=5, projector=8, batch=7, positives=2)
    first = method.fit(planted_graph())
    np.testing.assert_array_equal(first, method.fit(planted_graph()))
    assert np.abs(first - method.with_changes(steps=1).fit(planted_graph())).max() > 1e-3


def test_published_settings_equal_those_of_the_authors() -> None:
    """A row is neighbor mask, dropout, learning rate, projector."""
    table = {
        "amazon-photo": (0.4, 0.4, 1e-3, 256),
        "amazon-computers": (0.8, 0.3, 1e-3, 256),
        "coauthor-cs": (0.95, 0.7, 1e-4, 512),
        "coauthor-physics": (0.8, 0.55, 5e-4, 1024),
        "cora": (0.4, 0.4, 1e-3, 256),
    }
    for name, row in table.items():
        m = published("signa", name)
        assert (m.neighbor_mask, m.dropout, m.lr, m.projector) == row, name
        assert (m.widths, m.batch, m.steps) == ((2048, 1024), 1024, 500)
