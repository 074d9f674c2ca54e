"""The noise experiment with a stand-in for training, and distances against networkx."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from bgcl import BGCLError
from bgcl.reproduce.noise_experiment import NoiseExperiment, hops_from, noise_experiment
from small import random_adjacency


def sparse_graph(nodes: int = 20, density: float = 0.1, seed: int = 0) -> Data:
    edges = torch.as_tensor(np.stack(np.nonzero(random_adjacency(nodes, density, seed))))
    return Data(x=torch.rand(nodes, 4, generator=torch.Generator().manual_seed(seed)), edge_index=edges)


class Recorder:
    """A stand-in for training. It keeps the graphs, and the ASTD of a node is the mean of its attributes."""

    def __init__(self) -> None:
        self.graphs: list[Data] = []
        self.calls: list[tuple[int, int]] = []

    def __call__(self, data: Data) -> SimpleNamespace:
        self.graphs.append(data)
        return SimpleNamespace(moments=self.moments)

    def moments(self, data: Data, samples: int, *, seed: int) -> SimpleNamespace:
        assert data is self.graphs[-1], "a model must embed the graph that it was trained on"
        self.calls.append((samples, seed))
        return SimpleNamespace(astd=data.x.to_dense().mean(1))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), density=st.sampled_from([0.02, 0.1, 0.3]), count=st.integers(1, 4))
def test_hops_equal_networkx(seed, density, count):
    data = sparse_graph(density=density, seed=seed)
    sources = np.random.default_rng(seed).choice(20, count, replace=False)
    graph = nx.Graph(data.edge_index.t().tolist())
    graph.add_nodes_from(range(20))
    lengths = nx.multi_source_dijkstra_path_length(graph, set(map(int, sources)))
    np.testing.assert_array_equal(hops_from(data, sources), [lengths.get(n, -1) for n in range(20)])


def test_an_edge_in_one_direction_counts_in_both():
    """`check_graph` makes graphs undirected too, and the model is trained on the result."""
    path = Data(x=torch.zeros(4, 1), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    np.testing.assert_array_equal(hops_from(path, np.array([3])), [3, 2, 1, 0])


def test_hops_ignore_repeated_edges_and_loops():
    data = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0, 1, 0, 1, 1, 1], [1, 0, 1, 0, 1, 2]]))
    np.testing.assert_array_equal(hops_from(data, np.array([0])), [0, 1, 2])


class TestExperiment:
    @pytest.mark.parametrize("form", [lambda x: x, torch.Tensor.to_sparse_csr], ids=["dense", "sparse"])
    def test_only_the_attributes_of_the_chosen_nodes_are_replaced(self, form):
        data, train = sparse_graph(), Recorder()
        before = data.x.clone()
        data.x = form(data.x)
        found = noise_experiment(data, nodes=5, samples=9, seed=3, train=train, row_norm="none")
        clean, noisy = (graph.x.to_dense() for graph in train.graphs)
        torch.testing.assert_close(clean, before)
        differs = (clean != noisy).any(1).nonzero().flatten()
        np.testing.assert_array_equal(differs, found.noisy)
        assert len(set(found.noisy)) == 5
        assert train.calls == [(9, 3), (9, 3)]
        torch.testing.assert_close(train.graphs[1].edge_index, data.edge_index)

    def test_attributes_are_scaled_and_the_noise_is_not(self):
        data, train = sparse_graph(), Recorder()
        found = noise_experiment(data, nodes=5, train=train, row_norm="length")
        clean, noisy = (graph.x for graph in train.graphs)
        scaled = data.x / data.x.square().sum(1, keepdim=True).sqrt().clamp(min=1e-9)
        torch.testing.assert_close(clean, scaled)
        others = np.setdiff1d(np.arange(len(clean)), found.noisy)
        assert torch.equal(clean[others], noisy[others])
        assert noisy[found.noisy].std() > 0.5

    def test_attributes_may_be_in_double_precision(self):
        data, train = sparse_graph(), Recorder()
        data.x = data.x.double()
        assert len(noise_experiment(data, nodes=5, train=train).noisy) == 5

    def test_the_noise_is_normal_with_the_given_standard_deviation(self):
        data, train = Data(x=torch.zeros(60, 200), edge_index=torch.tensor([[0], [1]])), Recorder()
        found = noise_experiment(data, nodes=50, std=3.0, train=train)
        noise = train.graphs[1].x[found.noisy]
        assert float(noise.mean()) == pytest.approx(0, abs=0.15)
        assert float(noise.std()) == pytest.approx(3, abs=0.1)
        within = (noise.abs() < 3).double().mean()
        assert float(within) == pytest.approx(0.6827, abs=0.02)

    def test_the_same_seed_chooses_the_same_nodes_and_noise(self):
        trains = [Recorder() for _ in range(3)]
        found = [
            noise_experiment(sparse_graph(), nodes=5, seed=s, train=t) for s, t in zip((1, 1, 2), trains, strict=True)
        ]
        np.testing.assert_array_equal(found[0].noisy, found[1].noisy)
        assert torch.equal(trains[0].graphs[1].x, trains[1].graphs[1].x)
        assert not torch.equal(trains[0].graphs[1].x, trains[2].graphs[1].x)

    def test_astd_comes_from_the_clean_and_the_noisy_graph(self):
        data, train = sparse_graph(), Recorder()
        found = noise_experiment(data, nodes=5, train=train)
        np.testing.assert_allclose(found.clean_astd, train.graphs[0].x.mean(1))
        np.testing.assert_allclose(found.noisy_astd, train.graphs[1].x.mean(1))
        np.testing.assert_array_equal(found.hops, hops_from(data, found.noisy))

    @pytest.mark.parametrize("nodes", [0, 20, -1])
    def test_a_number_of_nodes_out_of_range_is_refused(self, nodes):
        with pytest.raises(BGCLError, match=f"between 1 and 19. Got {nodes} instead"):
            noise_experiment(sparse_graph(), nodes=nodes, train=Recorder())

    def test_a_tiny_model_is_trained_with_the_given_settings(self):
        data = sparse_graph()
        found = noise_experiment(data, nodes=2, samples=4, widths=(6, 3), epochs=1)
        assert found.clean_astd.shape == found.noisy_astd.shape == (20,)
        again = noise_experiment(data, nodes=2, samples=4, widths=(6, 3), epochs=1)
        np.testing.assert_array_equal(found.noisy_astd, again.noisy_astd)


def test_by_hop_groups_the_increase_of_each_node():
    hops = np.array([0, 1, 1, -1, 3, 7])
    experiment = NoiseExperiment(np.array([0]), hops, np.arange(6.0), np.arange(6.0) ** 2)
    groups = experiment.by_hop(4)
    expected: list[list[float]] = [[] for _ in range(5)]
    for node, hop in enumerate(hops):
        if 0 <= hop <= 4:
            expected[hop].append(float(node**2 - node))
    assert [list(group) for group in groups] == expected
    assert len(experiment.by_hop()) == 6
