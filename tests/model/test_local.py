"""Draws of a few nodes are rows of the draws of the whole graph, computed from a part of it."""

import pytest
import torch

import bgcl
from bgcl.data.pyg import check_graph
from bgcl.graph.k_hop import k_hop
from bgcl.graph.prepared import prepare
from bgcl.model import local
from bgcl.model.local import reach_of

NODES = [7, 3, 41]


@pytest.fixture(scope="module")
def data():
    return bgcl.example_graph(nodes=400)


def test_a_part_has_the_nodes_that_a_search_by_levels_finds(data):
    graph = prepare(check_graph(data), row_norm="none")
    neighbors = {node: set() for node in range(400)}
    for a, b in zip(graph.connections.row.tolist(), graph.connections.column.tolist(), strict=True):
        neighbors[a].add(b)
    found, level = set(NODES), set(NODES)
    for hops in range(4):
        part = k_hop(graph, torch.tensor(NODES), hops)
        assert part.numbers[:3].tolist() == NODES
        assert set(part.numbers.tolist()) == found
        assert len(part.numbers) == len(found)
        level = set().union(*(neighbors[node] for node in level))
        found |= level


LOCAL = ("attributes", "attributes hop 2", "structure hop 1", "encoder", "encoder hop 1")


@pytest.mark.parametrize(
    ("settings", "reach"),
    [
        ({"encoder": "gcn", "widths": (8, 6)}, 3),
        ({"encoder": "gcn", "widths": (8, 8, 6), "drop": ("connections in 2 blocks", "nodes at 0.2")}, 4),
        ({"encoder": "sage", "widths": (8,)}, 2),
        ({"encoder": "gin", "widths": (8, 6)}, 3),
        ({"encoder": "gat", "widths": (8, 8), "heads": 2}, 3),
        ({"encoder": "hops", "hops": 1, "widths": (6,)}, 2),
        ({"encoder": "gcn", "widths": (8,), "parts": ("encoder hop 1", "attributes")}, 3),
        ({"parts": LOCAL}, 3),
        ({"parts": ("attributes diffused",)}, 11),
    ],
)
def test_draws_of_some_nodes_are_those_of_the_whole_graph(data, settings, reach):
    few = {"part_width": 6} if "parts" in settings else {}
    few |= {} if "encoder" in settings else {"widths": (8, 6)}
    model = bgcl.BGCL(epochs=1, **few, **settings).fit(data, progress=False)
    assert reach_of(model.network_) == reach
    whole = model.sample(data, 3)[:, NODES]
    torch.testing.assert_close(model.sample(data, 3, nodes=NODES), whole, atol=1e-6, rtol=0)


def test_a_part_of_the_graph_is_computed_and_not_all_of_it(data, monkeypatch):
    model = bgcl.BGCL(encoder="gcn", widths=(8,), epochs=1).fit(data, progress=False)
    sizes = []
    real = local.draws
    monkeypatch.setattr(
        local, "draws", lambda network, part, *a, **b: sizes.append(part.nodes) or real(network, part, *a, **b)
    )
    model.sample(data, 1, nodes=[5])
    assert 1 < sizes[0] < 400


@pytest.mark.parametrize(
    "settings", [{}, {"encoder": "gcn", "norm": "batch"}, {"encoder": "gcn", "drop": ("subgraph",)}]
)
def test_nodes_that_depend_on_all_others_are_rows_of_the_whole_draw(data, settings):
    model = bgcl.BGCL(widths=(8, 6), epochs=1, **settings).fit(data, progress=False)
    assert reach_of(model.network_) is None
    assert torch.equal(model.sample(data, 2, nodes=NODES), model.sample(data, 2)[:, NODES])


def test_nodes_that_the_graph_does_not_have_are_refused(data):
    model = bgcl.BGCL(encoder="gcn", widths=(8,), epochs=1).fit(data, progress=False)
    with pytest.raises(bgcl.BGCLError, match="'nodes' must be numbers between 0 and 399"):
        model.sample(data, 2, nodes=[400])
