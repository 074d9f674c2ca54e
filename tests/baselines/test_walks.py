"""Random walks: every step is an edge, and steps have the probabilities of the exact transition matrices."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch_geometric.data import Data

from bgcl.baselines.walks import Neighbors, random_walks
from small import random_adjacency


def neighbors_of(adjacency: np.ndarray) -> Neighbors:
    edges = torch.as_tensor(np.stack(np.nonzero(adjacency)))
    return Neighbors.of(Data(edge_index=edges[:, torch.randperm(edges.shape[1])], num_nodes=len(adjacency)))


def test_connected_is_the_adjacency_matrix() -> None:
    adjacency = random_adjacency(9)
    v, u = np.divmod(np.arange(81), 9)
    np.testing.assert_array_equal(neighbors_of(adjacency).connected(v, u).reshape(9, 9), adjacency > 0)


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.5)])
def test_every_step_is_an_edge_and_every_node_starts_equally_often(p: float, q: float) -> None:
    adjacency = random_adjacency(12)
    walks = random_walks(neighbors_of(adjacency), 3, 7, np.random.default_rng(0), p=p, q=q)
    assert walks.shape == (36, 7)
    assert adjacency[walks[:, :-1], walks[:, 1:]].all()
    for part in range(3):
        assert sorted(walks[12 * part : 12 * part + 12, 0]) == list(range(12))


@pytest.mark.parametrize("q", [1.0, 0.5])
def test_a_walk_from_a_node_without_neighbors_stays_there(q: float) -> None:
    adjacency = random_adjacency(6, density=0.9)
    adjacency[2, :] = adjacency[:, 2] = 0
    walks = random_walks(neighbors_of(adjacency), 2, 5, np.random.default_rng(0), q=q)
    assert (walks[walks[:, 0] == 2] == 2).all()
    assert (walks[walks[:, 0] != 2] != 2).all()
    alone = random_walks(neighbors_of(np.zeros((3, 3))), 1, 4, np.random.default_rng(0), q=q)
    assert (alone == alone[:, :1]).all()


def first_order(A: np.ndarray, v: int) -> np.ndarray:
    return A[v] / A[v].sum()


def second_order(A: np.ndarray, t: int, v: int, p: float, q: float) -> np.ndarray:
    """The probability of each next node of a walk from t to v, node by node."""
    weight = np.zeros(len(A))
    for x in range(len(A)):
        if A[v, x]:
            weight[x] = 1 / p if x == t else 1.0 if A[t, x] else 1 / q
    return weight / weight.sum()


def assert_likely(counts: np.ndarray, expected: np.ndarray) -> None:
    possible = expected > 0
    assert not counts[~possible].any()
    if possible.sum() > 1:
        # There are some hundred tests with fixed seeds, so a p-value of 1e-4 may occur. A wrong law gives far less.
        assert chisquare(counts[possible], counts.sum() * expected[possible]).pvalue > 1e-5


def test_first_order_steps_have_the_exact_frequencies() -> None:
    A = random_adjacency(7)
    walks = random_walks(neighbors_of(A), 3000, 2, np.random.default_rng(0))
    for v in range(7):
        assert_likely(np.bincount(walks[walks[:, 0] == v, 1], minlength=7), first_order(A, v))


@pytest.mark.parametrize(("p", "q"), [(0.25, 4.0), (4.0, 0.5), (1.0, 0.25)])
def test_second_order_steps_have_the_exact_frequencies(p: float, q: float) -> None:
    A = random_adjacency(7, seed=3)
    walks = random_walks(neighbors_of(A), 4000, 4, np.random.default_rng(0), p=p, q=q)
    for i in (0, 1):
        t, v, x = walks[:, i : i + 3].T
        for a, b in zip(*np.nonzero(A), strict=True):
            here = (t == a) & (v == b)
            assert_likely(np.bincount(x[here], minlength=7), second_order(A, a, b, p, q))
