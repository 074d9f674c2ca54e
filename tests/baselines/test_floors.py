"""Predictions without training: each against a plain computation, and the sentence that compares a model with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bgcl
from bgcl.baselines import baseline, published
from bgcl.baselines.floors import MODEL, Floor, floors, verdict
from bgcl.baselines.propagated import HOPS, PropagatedFeatures, PropagatedMatrix, normalized_adjacency, unit_attributes
from bgcl.baselines.votes import MajorityClass, NeighborVote
from bgcl.data import check_graph
from communities import communities, split_of


def dense_parts(data) -> list[np.ndarray]:
    """`X`, `A X`, `A^2 X` as dense matrices, entry by entry."""
    nodes = data.num_nodes
    A = np.eye(nodes)
    A[tuple(data.edge_index.numpy())] = 1
    degree = A.sum(1)
    A = np.array([[A[i, j] / np.sqrt(degree[i] * degree[j]) for j in range(nodes)] for i in range(nodes)])
    X = data.x.to_dense().numpy().astype(float)
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    return [np.linalg.matrix_power(A, k) @ X for k in HOPS]


class TestPropagatedFeatures:
    @pytest.mark.parametrize("sparse", [True, False])
    def test_parts_have_the_inner_products_of_the_dense_matrices(self, sparse):
        """At full rank an SVD only rotates the columns, so all cosines between nodes stay."""
        data = check_graph(communities(sparse=sparse))
        found = np.split(PropagatedFeatures().fit(data), len(HOPS), axis=1)
        for part, dense in zip(found, dense_parts(data), strict=True):
            unit = dense / np.linalg.norm(dense, axis=1, keepdims=True)
            np.testing.assert_allclose(part @ part.T, unit @ unit.T, atol=1e-5)
            np.testing.assert_allclose(np.linalg.norm(part, axis=1), 1, atol=1e-6)

    @pytest.mark.parametrize("width", [2, 5])
    def test_a_small_width_is_the_truncated_svd(self, width):
        data = check_graph(communities())
        found = np.split(PropagatedFeatures(width=width).fit(data), len(HOPS), axis=1)
        for part, dense in zip(found, dense_parts(data), strict=True):
            left, values, _ = np.linalg.svd(dense, full_matrices=False)
            reduced = left[:, :width] * values[:width]
            unit = reduced / np.linalg.norm(reduced, axis=1, keepdims=True)
            np.testing.assert_allclose(part @ part.T, unit @ unit.T, atol=1e-4)

    def test_products_with_thin_matrices_are_those_of_the_dense_matrix(self):
        data = check_graph(communities())
        random = np.random.default_rng(0)
        for hops, dense in zip(HOPS, dense_parts(data), strict=True):
            matrix = PropagatedMatrix(normalized_adjacency(data), unit_attributes(data), hops)
            Q, Y = random.normal(size=(dense.shape[1], 3)), random.normal(size=(dense.shape[0], 3))
            np.testing.assert_allclose(matrix.times(Q), dense @ Q, atol=1e-6)
            np.testing.assert_allclose(matrix.transposed_times(Y), dense.T @ Y, atol=1e-6)

    def test_fewer_attributes_than_columns_give_as_many_columns_as_there_are(self):
        data = communities()
        assert PropagatedFeatures(width=256).fit(data).shape == (60, 3 * data.x.shape[1])


def votes_by_hand(data, split, node: int, prior: float = 1.0) -> np.ndarray:
    """The probabilities of one node, counting neighbors one by one."""
    labels, classes = data.y.numpy(), np.unique(data.y.numpy())
    train = set(split.train.tolist())
    neighbors = {i: [int(c) for r, c in data.edge_index.t().tolist() if r == i] for i in range(data.num_nodes)}
    count = np.array([sum(labels[i] == c for i in train) + 1 for c in classes], dtype=float)
    near = np.zeros(len(classes))
    far = np.zeros(len(classes))
    for other in neighbors[node]:
        near[labels[other]] += other in train
        for third in neighbors[other]:
            far[labels[third]] += third in train
    votes = (near if near.sum() else far) + prior * count / count.sum()
    return votes / votes.sum()


class TestVotes:
    @settings(max_examples=20, deadline=None)
    @given(seed=st.integers(0, 1000), prior=st.floats(0.1, 5))
    def test_a_vote_counts_labeled_neighbors_then_their_neighbors(self, seed, prior):
        data = check_graph(communities(nodes=24, seed=seed))
        split = split_of(data, seed=seed)
        found = NeighborVote(prior_votes=prior).fit(data, split)
        assert found.shape == (1, 24, 3)
        for node in range(0, 24, 5):
            np.testing.assert_allclose(found[0, node], votes_by_hand(data, split, node, prior))

    def test_labels_of_other_nodes_take_no_part(self):
        data = check_graph(communities())
        split = split_of(data)
        before = NeighborVote().fit(data, split)
        data.y[split.test] = (data.y[split.test] + 1) % 3
        np.testing.assert_array_equal(NeighborVote().fit(data, split), before)

    def test_the_majority_is_the_same_for_every_node_and_sums_to_one(self):
        data = check_graph(communities())
        found = MajorityClass().fit(data, split_of(data))
        assert (found == found[0, 0]).all()
        np.testing.assert_allclose(found.sum(2), 1)


def test_the_random_encoder_is_the_model_before_its_first_epoch():
    import torch

    from bgcl.graph.prepared import prepare
    from bgcl.model.network import Network
    from bgcl.settings import Settings

    data = check_graph(communities())
    found = baseline("random-encoder", widths=(8, 4), seed=3).fit(data)
    network = Network(data.x.shape[1], Settings(encoder="gcn", widths=(8, 4)))
    network.reset_parameters(torch.Generator().manual_seed(3))
    with torch.no_grad():
        np.testing.assert_array_equal(found, network.encoder(prepare(data, row_norm="length")).numpy())


def test_floors_are_those_of_the_named_methods_and_beat_chance_on_communities():
    data = communities(nodes=150)
    found = {floor.name: floor for floor in floors(data, bgcl.splits(data, "bgrl", count=2))}
    assert list(found) == [
        "most frequent class", "vote of neighbors", "attributes alone", "propagated attributes, no training",
    ]  # fmt: skip
    assert found["most frequent class"].accuracy < 0.5 < found["propagated attributes, no training"].accuracy


def test_the_verdict_says_whether_the_model_pays():
    others = [Floor("a", 0.8, 0.1, 0.7), Floor("b", 0.9, 0.1, 0.7)]
    assert verdict(Floor(MODEL, 0.92, 0.1, 0.7), others) == "The model is 2.0 points above the best of them (b)."
    assert verdict(Floor(MODEL, 0.92, 0.101, 0.699), others).endswith("of them (b).")
    worse = verdict(Floor(MODEL, 0.92, 0.14, 0.6), others)
    assert worse.endswith("But its ECE (0.140 against 0.100) and its AUROC of errors (0.600 against 0.700) is worse.")
    assert "ECE" not in verdict(Floor(MODEL, 0.92, 0.05, 0.6), others)
    below = verdict(Floor(MODEL, 0.85, 0.1, 0.7), others)
    assert below.startswith("The model does not pay: it is 5.0 points below 'b'")


@pytest.mark.parametrize("name", ["propagated-features", "random-encoder", "majority-class", "neighbor-vote"])
def test_floors_are_baselines_by_name(name):
    assert published(name, "cora", seed=2).seed == 2


def test_a_model_that_is_no_better_is_not_called_better():
    one = Floor("some", 0.8, 0.1, 0.7)
    assert "as accurate as the best of them (some)" in verdict(Floor("this model", 0.8, 0.1, 0.7), [one])
    assert "0.1 points above" in verdict(Floor("this model", 0.801, 0.1, 0.7), [one])
