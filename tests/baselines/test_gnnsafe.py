"""GNNSafe: propagation against a loop over neighbors, and training. The energy is tested in `tests/novelty`."""

import numpy as np

from bgcl.baselines import baseline
from bgcl.baselines.gnnsafe import GNNSafe
from bgcl.baselines.supervised import Task
from communities import communities, split_of
from small import make_graph, random_adjacency, random_features


def test_energies_spread_as_in_a_loop_and_lonely_nodes_keep_theirs():
    adjacency = random_adjacency(8)
    adjacency[3] = adjacency[:, 3] = 0
    graph = make_graph(adjacency, random_features(8, 3))
    start = np.random.default_rng(1).normal(size=8)
    expected = start.copy()
    for _ in range(2):
        before = expected.copy()
        for v in range(8):
            near = np.flatnonzero(adjacency[v])
            if len(near):
                expected[v] = 0.3 * before[v] + 0.7 * before[near].mean()
    np.testing.assert_allclose(GNNSafe(own=0.3).propagated(start, graph), expected, atol=1e-12)
    assert expected[3] == start[3]


def test_it_learns_communities_and_predicts_in_the_mode_of_evaluation():
    data = communities(90)
    split = split_of(data, 20)
    method = baseline("gnnsafe", epochs=40)
    probability = method.fit(data, split)
    assert probability.shape == (1, 90, 3)
    assert (probability[0].argmax(1) == data.y.numpy())[split.test].mean() > 0.8
    network = method.train(Task.of(data, split, row_norm=method.row_norm))
    assert not network.training
