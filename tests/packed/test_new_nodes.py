"""What is computed for nodes that join a graph is what dense matrices of the whole graph give."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch_geometric.data import Data

import bgcl
from bgcl.augmentation.noise import CountedNoise
from bgcl.data.generator import GraphGenerator, GraphPlan
from bgcl.data.packing import pack_data
from bgcl.data.pyg import check_graph
from bgcl.downstream.new_nodes import NewNodes
from bgcl.errors import BGCLError
from bgcl.graph.alike import SOFTNESS
from bgcl.graph.prepared import prepare
from bgcl.graph.sparse import Pattern, row_pointer
from bgcl.model.parts import STEPS, TELEPORT
from bgcl.model.scaling import interpolate
from bgcl.packed.new_nodes import NewRows

OLD, NEW = 150, 3
EDGES = torch.tensor([[0, 0, 0, 1, 2, 2], [5, 80, 149, 5, 33, 34]])


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Data:
    (piece,) = GraphGenerator(GraphPlan(nodes=OLD, attributes=7, classes=3, noise=1.0)).pieces()
    order = np.argsort(piece.ids)
    x, y = torch.from_numpy(piece.attributes[order]), torch.from_numpy(piece.labels[order])
    data = check_graph(Data(x=x, y=y, edge_index=torch.from_numpy(piece.edges)))
    return pack_data(data, tmp_path_factory.mktemp("pack") / "pack", parts=4).data()


@pytest.fixture(scope="module")
def model(graph: Data) -> bgcl.BGCL:
    parts = (*bgcl.BGCL().settings_for(graph).parts, "encoder hop 3")
    small = bgcl.BGCL(widths=(12, 10), part_width=6, epochs=2, until_settled=False, parts=parts)
    return small.fit(graph, progress=False)


@pytest.fixture(scope="module")
def arrivals(model: bgcl.BGCL, graph: Data) -> NewNodes:
    return NewNodes(model, graph, samples=4)


@pytest.fixture(scope="module")
def x() -> torch.Tensor:
    return torch.randn(NEW, 7, generator=torch.Generator().manual_seed(5))


def extended(graph: Data, x: torch.Tensor):
    """The graph with the new nodes in its last rows, in memory."""
    both = torch.stack([EDGES[0] + OLD, EDGES[1]])
    edges = torch.cat([graph.edge_index.clone(), both, both.flip(0)], 1)
    whole = Data(x=torch.cat([graph.x.clone(), x]), edge_index=edges)
    return prepare(check_graph(whole), row_norm="none")


def dense(graph, kept: torch.Tensor | None, weights: torch.Tensor | None = None) -> torch.Tensor:
    """The values of connections as a matrix."""
    found = torch.zeros(graph.nodes, graph.nodes)
    values = torch.ones(len(graph.connections)) if weights is None else weights.clone()
    values = values if kept is None else values * kept[:, 0]
    found[graph.connections.row, graph.connections.column] = values
    return found


def step(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Normalized connections of the graph alone, and those of the new nodes, which the graph does not hear."""
    old, sums = matrix[:OLD, :OLD], matrix.sum(0)
    rows, columns = old.sum(1).rsqrt(), old.sum(0).rsqrt()
    own_rows, own_columns = matrix[OLD:].sum(1).rsqrt(), sums[OLD:].rsqrt()
    right = torch.cat([columns, own_columns])
    return rows[:, None] * old * columns, own_rows[:, None] * matrix[OLD:] * right


def propagated(part, matrix: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """A part of the new nodes, by its definition."""
    of_graph, of_new = step(matrix)
    states, own = start[:OLD], start[OLD:]
    if part.hops is not None:
        for _ in range(part.hops):
            states, own = of_graph @ states, of_new @ torch.cat([states, own])
        return own
    z = states
    for _ in range(STEPS):
        z = (1 - TELEPORT) * (of_graph @ z) + TELEPORT * states
    found = own
    for _ in range(300):  # to the fixed point
        found = (1 - TELEPORT) * (of_new @ torch.cat([z, found])) + TELEPORT * own
    return found


def alike_matrix(unit: torch.Tensor) -> torch.Tensor:
    """Weights between each node and its ten nearest ones of the graph, in both directions, by a plain loop."""
    cosine = unit @ unit.T
    found = torch.zeros(len(unit), len(unit))
    for v in range(len(unit)):
        others = [(float(cosine[v, u]), u) for u in range(OLD) if u != v]
        for value, u in sorted(others, reverse=True)[:10]:
            weight = np.exp((value - 1) / SOFTNESS)
            found[v, u] = found[u, v] = max(float(found[v, u]), weight)
    return found


def expected(model: bgcl.BGCL, graph: Data, x: torch.Tensor, view: str, noise: CountedNoise) -> torch.Tensor:
    """The embeddings of the new nodes in one draw, from dense matrices of the graph with them."""
    network, whole = model.network_.eval(), extended(graph, x)
    augmentation, parts = network.augmentation, network.parts
    alone = prepare(check_graph(Data(x=graph.x.clone(), edge_index=graph.edge_index.clone())), row_norm="none")
    scaled_old = network.scaling(alone).features
    width, links = 8, dense(whole, None)
    degree = links.sum(1)[:, None]
    columns = torch.cat([x, degree[OLD:]], 1)
    knots, scores = network.scaling.knots, network.scaling.scores
    levels = [torch.stack([interpolate(columns[:, i], knots[i], scores[i]) for i in range(width)], 1)]
    for level in range(2):
        theirs = scaled_old[:, level * width : (level + 1) * width] * 24**0.5
        levels.append(links[OLD:] @ torch.cat([theirs, levels[-1]]) / degree[OLD:])
    features = torch.cat([scaled_old, torch.cat(levels, 1) / 24**0.5])
    scaled = replace(whole, features=features)
    masks = augmentation.draw(view, scaled, network.encoder.inputs(scaled), noise, scale=None)
    encoded, plain = (by_members(network, network.encoder(scaled, how)) for how in (masks, None))
    of_graph, of_new = step(links)
    z = plain[:OLD]
    for _ in range(STEPS):
        z = (1 - TELEPORT) * (of_graph @ z) + TELEPORT * plain[:OLD]
    found = plain[OLD:]
    for _ in range(300):
        found = (1 - TELEPORT) * (of_new @ torch.cat([z, found])) + TELEPORT * plain[OLD:]
    matrices = {
        "alike": alike_matrix(plain),
        "alike neighborhoods": alike_matrix(F.normalize(torch.cat([z, found]), dim=1)),
    }
    matrices["alike and neighbors"] = matrices["alike"] + links - torch.eye(OLD + NEW)
    matrices = {name: matrix + torch.eye(OLD + NEW) for name, matrix in matrices.items()}
    matrices[None] = links
    made = []
    for number, part in enumerate(parts.parts):
        weights = matrices[part.among]
        every = replace(whole, **full(weights))
        name = noise.of("among", part.among or "neighbors")
        kept = augmentation.kept_positives(view, every, name, scale=None)
        if part.source == "encoder":
            start = encoded
        elif part.source == "attributes":
            start = (features * masks[0].entries) @ getattr(parts, f"directions_{number}")
        else:
            start = torch.cat([parts.structure(alone_with_keys(model, graph)), torch.zeros(NEW, 6)])
        made.append(F.normalize(propagated(part, dense(every, kept, every.weights), start), dim=1))
    return torch.cat(made, 1)


def by_members(network, encoded: torch.Tensor) -> torch.Tensor:
    """Rows of length one, to which each of two encoders adds as much."""
    halves = [F.normalize(half, dim=1) for half in encoded.chunk(network.settings.members, 1)]
    return torch.cat(halves, 1) / len(halves) ** 0.5


def full(weights: torch.Tensor) -> dict:
    """The connections of a matrix of weights."""
    row, column = weights.nonzero().T
    return {
        "connections": Pattern(row_pointer(row, len(weights)), column, len(weights)),
        "weights": weights[row, column],
    }


def alone_with_keys(model: bgcl.BGCL, graph: Data):
    return model.in_blocks(graph).scaled


@pytest.mark.parametrize("number", [0, 1])
def test_new_nodes_are_what_dense_matrices_of_the_whole_graph_give(model, graph, arrivals, x, number):
    states = arrivals.states[number]
    with torch.no_grad():
        wanted = expected(model, graph, x, states.view, states.noise)
    torch.testing.assert_close(arrivals.embed(x, EDGES)[number], wanted, atol=1e-5, rtol=0)


def test_a_node_does_not_depend_on_others_that_come_with_it_but_for_its_masks(arrivals, x):
    rows = NewRows(arrivals.embedder, x, EDGES)
    first = NewRows(arrivals.embedder, x[:1], EDGES[:, :3])
    torch.testing.assert_close(rows.features[:1], first.features)
    torch.testing.assert_close(
        rows.embedded(arrivals.states[0])[:1], first.embedded(arrivals.states[0]), atol=1e-6, rtol=0
    )


def test_new_nodes_are_close_to_a_graph_that_hears_them(model, graph, arrivals, x):
    """The embedding of a node of the graph, taken for a new one, is near what the graph itself has for it."""
    row = 40
    neighbors = graph.edge_index[1][graph.edge_index[0] == row]
    edges = torch.stack([torch.zeros_like(neighbors), neighbors])
    with torch.no_grad():
        own = arrivals.embed(graph.x[row : row + 1].clone(), edges).mean(0)[0]
        there = model.sample(graph, 4)[2:].mean(0)
    cosine = F.cosine_similarity(own[None], there)
    assert float(cosine[row]) > 0.8
    assert int((cosine > cosine[row]).sum()) < 5


def test_predictions_have_the_class_of_what_they_join(graph, arrivals):
    right = 0
    for row in range(0, OLD, 15):
        neighbors = graph.edge_index[1][graph.edge_index[0] == row]
        edges = torch.stack([torch.zeros_like(neighbors), neighbors])
        found = arrivals.predict(graph.x[row : row + 1].clone(), edges)
        np.testing.assert_allclose(found.uncertainty.probability.sum(1), 1, atol=1e-6)
        right += int(found.predicted[0] == graph.y[row])
    assert right >= 7


def test_a_node_without_edges_and_an_edge_that_is_given_twice(arrivals, x):
    alone = arrivals.embed(x, torch.empty(2, 0))
    assert bool(torch.isfinite(alone).all())
    once, twice = arrivals.embed(x, EDGES), arrivals.embed(x, torch.cat([EDGES, EDGES], 1))
    assert torch.equal(once, twice)


@pytest.mark.parametrize(
    ("x", "edges", "message"),
    [
        (np.zeros((2, 6)), [[0], [1]], r"must have the shape \(n, 7\). Got \(2, 6\)"),
        (np.full((2, 7), np.nan), [[0], [1]], "must be finite"),
        (np.zeros((2, 7)), [[2], [1]], "Row 0 of the edges must be between 0 and 1: there are 2 new nodes"),
        (np.zeros((2, 7)), [[0], [150]], "Row 1 of the edges must be between 0 and 149: there are 150 nodes"),
        (np.zeros((2, 7)), [[0, 1]], r"shape \(2, m\). Got \(1, 2\)"),
        (np.zeros((2, 7)), [[0.5], [1]], "must be whole numbers"),
        ("abc", [[0], [1]], "must be arrays of numbers"),
    ],
)
def test_wrong_new_nodes_are_one_line(arrivals, x, edges, message):
    with pytest.raises(BGCLError, match=message):
        arrivals.predict(x, edges)


def test_a_graph_in_memory_is_refused_with_what_to_do(tmp_path: Path):
    data = bgcl.example_graph(nodes=100)
    model = bgcl.BGCL(widths=(8, 4), part_width=4, epochs=1).fit(data, progress=False)
    with pytest.raises(BGCLError, match="pack it with 'bgcl data pack'"):
        NewNodes(model, data)
    with pytest.raises(BGCLError, match="Of 2 samples, 2 train the head"):
        NewNodes(model, data, samples=2, training_draws=2)
