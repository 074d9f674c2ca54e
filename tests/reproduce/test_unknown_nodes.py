"""Tasks of detection: which nodes are unknown, and how their attributes and edges change."""

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from bgcl.downstream.splits import development_half
from bgcl.errors import BGCLError
from bgcl.reproduce.unknown_nodes import (
    SHIFTS,
    interpolated,
    left_out_classes,
    rewired,
    trials,
    with_noise,
)
from communities import communities


def random() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize(
    ("classes", "unknown", "known"),
    [(3, [0], [1, 2]), (6, [0, 1, 2], [4, 5]), (7, [0, 1, 2], [4, 5, 6]), (8, [0, 1, 2, 3], [5, 6, 7]),
     (15, [0, 1, 2, 3], [*range(5, 15)])],
)  # fmt: skip
def test_left_out_classes_are_those_of_gnnsafe(classes, unknown, known):
    data = communities(classes * 10, classes)
    found, nodes = left_out_classes(data)
    assert set(data.y[nodes].tolist()) == set(unknown)
    assert set(data.y[found.y >= 0].tolist()) == set(known)
    assert sorted(set(found.y.tolist())) == [-1, *range(len(known))]
    assert torch.equal(found.edge_index, data.edge_index)
    assert found.x is data.x


def test_two_classes_cannot_be_left_out():
    with pytest.raises(BGCLError, match="2 classes"):
        left_out_classes(communities(classes=2))


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("development", [False, True])
def test_no_node_is_trained_on_and_scored_and_halves_are_apart(shift, development):
    data = communities(400, 4)
    half = development_half(400)
    for trial in trials(data, shift, 2, development=development):
        scored = np.concatenate([trial.known, trial.unknown])
        used = np.concatenate([trial.split.train, trial.split.validation])
        assert not np.isin(scored, used).any()
        assert np.isin(scored, half).all() == development
        assert not np.isin(scored, half).any() or development
        assert development == np.isin(used, half).all()
        assert (trial.trained.y[used] >= 0).all()
        if trial.known_graph is trial.unknown_graph:
            assert len(np.intersect1d(trial.known, trial.unknown)) == 0
        else:
            assert np.array_equal(trial.known, trial.unknown)


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_first_splits_do_not_depend_on_the_count(shift):
    data = communities(300, 3)
    one, many = trials(data, shift, 1)[0], trials(data, shift, 3)
    assert np.array_equal(one.unknown, many[0].unknown)
    assert torch.equal(one.unknown_graph.x.to_dense(), many[0].unknown_graph.x.to_dense())
    assert torch.equal(one.unknown_graph.edge_index, many[0].unknown_graph.edge_index)
    if shift != "left-out":
        changed = [torch.cat([t.unknown_graph.x.to_dense().flatten(), t.unknown_graph.edge_index.flatten()])
                   for t in many]  # fmt: skip
        assert changed[0].shape != changed[1].shape or not torch.equal(changed[0], changed[1])


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("kind", ["bernoulli", "normal"])
def test_noise_replaces_the_chosen_rows_and_no_other(sparse, kind):
    data = communities(400, 4, sparse=sparse)
    nodes = np.array([399, 3, *range(100, 250)])
    found = with_noise(data, nodes, kind, random())
    assert found.x.layout == data.x.layout
    before, after = data.x.to_dense(), found.x.to_dense()
    rest = np.setdiff1d(np.arange(400), nodes)
    assert torch.equal(after[rest], before[rest])
    noise = after[nodes].flatten().numpy()
    if kind == "normal":
        assert kstest(noise, "norm").pvalue > 0.01
    else:
        assert set(noise) == {0.0, 1.0}
        assert noise.mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(len(noise)))
    assert found.edge_index is data.edge_index


def test_interpolated_attributes_are_on_the_line_between_two_nodes():
    x = torch.eye(30)
    data = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.arange(30) % 3)
    found = interpolated(data, random()).x
    again = random()
    first, second = again.integers(30, size=(2, 30))
    weight = again.random(30, dtype=np.float32)
    for node in range(30):
        expected = weight[node] * x[first[node]] + (1 - weight[node]) * x[second[node]]
        torch.testing.assert_close(found[node], expected)


def test_rewired_edges_have_the_densities_of_the_blocks():
    data = communities(403, 4)
    data.edge_weight = torch.ones(data.num_edges)
    adjacency = sum(
        to_dense_adj(rewired(data, np.random.default_rng(seed)).edge_index, max_num_nodes=403)[0] for seed in range(30)
    )
    assert torch.equal(adjacency, adjacency.T)
    assert (adjacency.diagonal() == 0).all()
    assert adjacency.max() <= 30  # no edge is there twice
    block = np.minimum(np.arange(403) // 100, 3)
    same = torch.as_tensor(block[:, None] == block)
    density = 30 * data.num_edges / (403 * 402)
    pairs = ~torch.eye(403, dtype=torch.bool)
    for chosen, factor in ((same & pairs, 1.5), (~same, 0.5)):
        expected = factor * density
        deviation = np.sqrt(2 * expected / int(chosen.sum()))
        assert float(adjacency[chosen].mean()) == pytest.approx(expected, abs=5 * deviation)
    corner = adjacency[300:, 300:][~torch.eye(103, dtype=torch.bool)]  # the last block has the rest
    assert float(corner.mean()) == pytest.approx(1.5 * density, abs=5 * np.sqrt(2 * 1.5 * density / corner.numel()))
    assert "edge_weight" not in rewired(data, random())


def test_every_pair_of_a_block_can_be_drawn():
    data = Data(x=torch.ones(9, 1), edge_index=torch.tensor([[i for i in range(9) for _ in range(8)], [0] * 72]))
    data.y = torch.arange(9) % 3
    adjacency = to_dense_adj(rewired(data, random()).edge_index, max_num_nodes=9)[0]  # the density is 1
    for start in (0, 3, 6):
        block = adjacency[start : start + 3, start : start + 3]
        assert torch.equal(block, 1 - torch.eye(3))  # 1.5 of the density is more than 1: every pair has an edge


def test_an_unknown_shift_is_refused():
    with pytest.raises(BGCLError, match=r"Unknown shift 'bernouli'\..*bernoulli"):
        trials(communities(), "bernouli")
