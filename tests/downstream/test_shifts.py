"""Shifts against their definitions, and evaluation at each level of a shift."""

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

import bgcl
from bgcl.downstream.graph_changes import CHANGES, changed
from bgcl.downstream.property_splits import PROPERTIES, node_property, property_splits
from bgcl.downstream.shift_evaluation import evaluate_shift
from bgcl.errors import BGCLError
from communities import communities
from small import random_data


def random() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_are_those_of_networkx(name):
    data = random_data(60, 3)
    data.edge_index = data.edge_index[:, (data.edge_index < 55).all(0)]  # five nodes without edges
    graph = to_networkx(data, to_undirected=True)
    popularity = networkx.pagerank(graph, tol=1e-12)
    center = max(popularity, key=popularity.get)
    expected = {
        "popularity": popularity,
        "locality": networkx.pagerank(graph, personalization={center: 1.0}, tol=1e-12),
        "density": networkx.clustering(graph),
    }[name]
    np.testing.assert_allclose(node_property(data, name), [expected[v] for v in range(60)], atol=1e-8)


@pytest.mark.parametrize("name", PROPERTIES)
def test_known_nodes_have_the_greater_half_of_a_property(name):
    data = communities(200, 3)
    value = node_property(data, name)
    first, second = property_splits(data, name, 2)
    for found in (first, second):
        known = np.concatenate([found.split.train, found.split.validation, found.split.test])
        assert (len(found.split.train), len(found.split.validation), len(found.split.test)) == (60, 20, 20)
        np.testing.assert_array_equal(np.sort(np.concatenate([known, found.unknown])), np.arange(200))
        assert value[known].min() >= value[found.unknown].max()
        assert (np.diff(value[found.unknown]) <= 0).all()
    assert set(first.split.train) != set(second.split.train)
    np.testing.assert_array_equal(property_splits(data, name, 1)[0].split.train, first.split.train)


def edges_of(data: Data) -> set[tuple[int, int]]:
    return {tuple(sorted(pair)) for pair in data.edge_index.T.tolist()}


def test_half_of_the_edges_are_dropped_in_both_directions():
    data = random_data(80, 4)
    found = changed(data, "dropped", 0.5, random())
    assert edges_of(found) < edges_of(data)
    assert len(edges_of(found)) == len(edges_of(data)) - round(0.5 * len(edges_of(data)))
    assert found.num_edges == 2 * len(edges_of(found))


def test_rewired_edges_join_random_pairs_and_keep_their_number():
    data = random_data(400, 4)
    data.edge_weight = torch.rand(data.num_edges)
    found = changed(data, "rewired", 0.25, random())
    assert found.num_edges == data.num_edges == len(found.edge_weight)
    assert (found.edge_index[0] != found.edge_index[1]).all()
    new = edges_of(found) - edges_of(data)
    assert 0.9 * 0.25 * len(edges_of(data)) < len(new) <= round(0.25 * len(edges_of(data)))


@pytest.mark.parametrize("sparse", [True, False])
def test_missing_columns_are_zero_and_the_others_stay(sparse):
    data = communities(40, sparse=sparse)
    before, after = data.x.to_dense(), changed(data, "columns", 0.5, random()).x
    assert (after.layout == torch.sparse_csr) == sparse
    missing = (after.to_dense() == 0).all(0)
    assert int(missing.sum()) == 6
    assert torch.equal(after.to_dense()[:, ~missing], before[:, ~missing])


@pytest.mark.parametrize("kind", ["bernoulli", "normal"])
def test_noise_replaces_a_share_of_the_nodes(kind):
    data = communities(100)
    before, after = data.x.to_dense(), changed(data, kind, 0.3, random()).x.to_dense()
    other = (before != after).any(1)
    assert 25 <= int(other.sum()) <= 30
    noise = after[other]
    assert (set(noise.unique().tolist()) == {0.0, 1.0}) == (kind == "bernoulli")
    assert abs(float(noise.mean()) - (0.5 if kind == "bernoulli" else 0)) < 0.15


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_of_nothing_changes_nothing(kind):
    data = communities(30)
    found = changed(data, kind, 0.0, random())
    assert torch.equal(found.edge_index, data.edge_index)
    assert torch.equal(found.x.to_dense(), data.x.to_dense())


@pytest.fixture(scope="module")
def fitted():
    data = bgcl.example_graph()
    return bgcl.BGCL(widths=(16, 8), part_width=8, epochs=4).fit(data, progress=False), data


@pytest.mark.parametrize("shift", ["rewired", "normal", "popularity"])
def test_every_level_has_its_test_nodes_and_scores(fitted, shift):
    model, data = fitted
    found = evaluate_shift(model, data, shift, count=2, samples=4)
    assert len(found) == (5 if shift == "popularity" else 4)
    for results in found.values():
        assert len(results) == 2
        assert all(0 <= result.scores()["ece"] <= 1 for result in results)
    again = evaluate_shift(model, data, shift, count=2, samples=4)
    for level, results in found.items():
        np.testing.assert_array_equal(results[1].uncertainty.probability, again[level][1].uncertainty.probability)


def test_a_changed_graph_has_the_same_nodes_so_nobody_is_warned_of_their_numbers(fitted, caplog):
    model, data = fitted
    evaluate_shift(model, data, "dropped", count=1, samples=4)
    assert not caplog.records
    model.embed(changed(data, "dropped", 0.4, random()))  # nobody says here that the nodes are the same
    assert "nodes of both graphs must have the same numbers" in caplog.text


def test_a_shift_harms_and_without_one_scores_are_usual(fitted):
    model, data = fitted
    found = evaluate_shift(model, data, "normal", count=3, samples=8)
    accuracy = [np.mean([result.correct.mean() for result in results]) for results in found.values()]
    usual = np.mean([r.correct.mean() for r in bgcl.evaluate(model, data, "grace", 3, samples=8, training_draws=2)])
    assert accuracy[0] == pytest.approx(usual, abs=0.03)
    assert accuracy[-1] < accuracy[0]


@pytest.mark.parametrize(
    ("shift", "how", "says"),
    [
        ("rewire", {}, "Did you mean rewired"), (3, {}, "Unknown shift"),
        ("dropped", {"samples": 1}, "2 samples or more"), ("density", {"protocol": "grace"}, "splits of its own"),
        ("dropped", {"count": 0}, "splits must be 1 or more"), ("density", {"count": 0}, "splits must be 1 or more"),
        ("dropped", {"protocol": "grcae"}, "Did you mean grace"),
    ],
)  # fmt: skip
def test_bad_shifts_are_refused(fitted, shift, how, says):
    model, data = fitted
    with pytest.raises(BGCLError, match=says):
        evaluate_shift(model, data, shift, **how)


def test_unknown_changes_and_shares_are_refused():
    data = communities(30)
    with pytest.raises(BGCLError, match="Did you mean columns"):
        changed(data, "column", 0.1, random())
    with pytest.raises(BGCLError, match="between 0 and 1"):
        changed(data, "columns", 1.1, random())
    with pytest.raises(BGCLError, match="Did you mean density"):
        node_property(data, "densty")
    data.y = torch.full((30,), -1)
    data.y[:4] = torch.tensor([0, 0, 1, 1])
    with pytest.raises(BGCLError, match="too few are labeled to train on"):
        property_splits(data, "popularity", 1)
