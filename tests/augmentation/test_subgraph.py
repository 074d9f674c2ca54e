"""`SelectSubgraph`: the order in which a neighborhood grows, and the share of nodes that it keeps."""

from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats

from bgcl.augmentation.language import parse_mask
from bgcl.graph.prepared import PreparedGraph
from small import (
    draw_masks,
    in_turn,
    kept_nodes,
    make_graph,
    on_matrix,
    random_adjacency,
    random_encoder,
    with_weights,
)


def growth_ranks(graph: PreparedGraph, count: int) -> np.ndarray:
    """The rank of each node in each draw, computed from its noise, `(count, N)`."""
    mask, source = parse_mask("subgraph"), in_turn(0)
    noise = torch.stack([mask.uniform(graph, None, source)[:, 0] for _ in range(count)]).double().numpy()
    return (1 - noise) * graph.nodes - 0.5


def order_probabilities(adjacency: np.ndarray) -> dict[tuple[int, ...], float]:
    """The probability of every order in which a neighborhood can reach the nodes.

    Each step takes a random edge at the border, in proportion to its weight. If there is none, at the start and when a
    component is full, it takes a uniformly random new node.
    """
    nodes = len(adjacency)

    def extend(order: tuple[int, ...], probability: float) -> None:
        if len(order) == nodes:
            probabilities[order] = probability
            return
        outside = [u for u in range(nodes) if u not in order]
        border: Counter[int] = Counter()
        for v in order:
            border.update({u: adjacency[v, u] for u in outside if adjacency[v, u]})
        choice = border or Counter(outside)
        for u, weight in choice.items():
            extend((*order, u), probability * weight / choice.total())

    probabilities: dict[tuple[int, ...], float] = {}
    extend((), 1.0)
    return probabilities


def from_edges(nodes: int, edges: list[tuple[int, int]]) -> np.ndarray:
    adjacency = np.zeros((nodes, nodes))
    for v, u in edges:
        adjacency[v, u] = adjacency[u, v] = 1
    return adjacency


SHAPES = {
    "path": from_edges(4, [(0, 1), (1, 2), (2, 3)]),
    "star": from_edges(4, [(0, 1), (0, 2), (0, 3)]),
    "paw": from_edges(4, [(2, 1), (2, 0), (1, 0), (2, 3)]),  # here a random edge is not a random neighbor
    "two components": from_edges(5, [(0, 2), (2, 4), (1, 3)]),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_subgraph_grows_through_random_edges_at_its_border(shape: str, weighted: bool) -> None:
    adjacency, count = SHAPES[shape], 1200
    graph = make_graph(adjacency, np.ones((len(adjacency), 1)))
    if weighted:
        graph = with_weights(graph)
        adjacency = adjacency * on_matrix(graph, graph.weights)
    probabilities = order_probabilities(adjacency)
    ranks = growth_ranks(graph, count)
    seen = Counter(tuple(order) for order in np.argsort(ranks, axis=1).tolist())
    assert set(seen) <= set(probabilities)
    observed = [seen[order] for order in probabilities]
    assert stats.chisquare(observed, [probability * count for probability in probabilities.values()]).pvalue > 0.01


def test_ranks_are_a_permutation_and_fill_one_component_after_another() -> None:
    blocks = [random_adjacency(n, 0.7, seed=n) for n in (6, 3, 1, 4)]
    adjacency = np.zeros((14, 14))
    component, start = np.zeros(14, dtype=int), 0
    for i, block in enumerate(blocks):
        inside = slice(start, start + len(block))
        adjacency[inside, inside], component[inside] = block, i
        start += len(block)
    shuffled = np.random.default_rng(0).permutation(14)
    adjacency, component = adjacency[np.ix_(shuffled, shuffled)], component[shuffled]
    for ranks in growth_ranks(make_graph(adjacency, np.ones((14, 1))), 20):
        np.testing.assert_allclose(np.sort(ranks), np.arange(14), atol=1e-4)
        order = np.argsort(ranks)
        assert (np.diff(component[order]) != 0).sum() == 3
        for i in range(1, 14):  # every node has an earlier neighbor, except the first of a component
            fresh = component[order[i]] != component[order[i - 1]]
            assert fresh or adjacency[order[i], order[:i]].any()


@pytest.mark.parametrize("rate", [0.1, 0.33, 0.5, 0.72, 0.95])
@pytest.mark.parametrize("nodes", [7, 20])
def test_a_subgraph_keeps_the_share_one_minus_pi_of_the_nodes_and_is_connected(nodes: int, rate: float) -> None:
    adjacency = np.maximum(random_adjacency(nodes, 0.1), from_edges(nodes, [(i, i + 1) for i in range(nodes - 1)]))
    graph, encoder = make_graph(adjacency, np.ones((nodes, 5)), double=False), random_encoder((5, 4), double=False)
    for seed in range(5):
        masks, _ = draw_masks(f"subgraph at {rate}", graph, encoder, seed)
        kept = kept_nodes(graph, masks[0])
        assert abs(len(kept) - (1 - rate) * nodes) <= 0.5 + 1e-6
        if len(kept):
            reached = np.linalg.matrix_power(adjacency[np.ix_(kept, kept)] + np.eye(len(kept)), len(kept))
            assert (reached > 0).all()
