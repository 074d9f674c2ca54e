"""The generator of large graphs: its degrees, its communities, its attributes, and that pieces make no difference."""

import numpy as np
import pytest

import bgcl
from bgcl.data.generator import BLOCK, GraphGenerator, GraphPlan, write_parquet
from bgcl.errors import BGCLError


def made(**plan):
    """Labels, attributes and edges of a graph, by the numbers of its nodes."""
    pieces = list(GraphGenerator(GraphPlan(**plan)).pieces())
    order = np.argsort(np.concatenate([piece.ids for piece in pieces]))
    labels = np.concatenate([piece.labels for piece in pieces])[order]
    return labels, np.concatenate([p.attributes for p in pieces])[order], np.concatenate([p.edges for p in pieces], 1)


def test_every_node_is_there_once_and_the_numbers_say_nothing():
    pieces = list(GraphGenerator(GraphPlan(nodes=9000, attributes=2)).pieces())
    ids = np.concatenate([piece.ids for piece in pieces])
    assert np.array_equal(np.sort(ids), np.arange(9000))
    labels = np.concatenate([piece.labels for piece in pieces])
    assert abs(np.corrcoef(ids, labels)[0, 1]) < 0.05


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"nodes": 100, "degree": 100}, "'degree' must be below the number of nodes, 100. Got 100"),
        ({"within": 0.2, "local": 0.3}, "'local' must be at most 'within', 0.2"),
    ],
)
def test_a_graph_that_cannot_be_is_refused(plan, message):
    with pytest.raises(BGCLError, match=message):
        GraphGenerator(GraphPlan(**plan))


@pytest.mark.parametrize("exponent", [2.3, 3.0])
def test_degrees_follow_the_power_law(exponent):
    labels, _, edges = made(nodes=60_000, degree=20, attributes=1, exponent=exponent)
    degree = np.bincount(edges.ravel(), minlength=len(labels))
    assert degree.mean() == pytest.approx(20, rel=0.06)
    tail = degree[degree >= 60] + 0.0
    found = 1 + len(tail) / np.log(tail / 59.5).sum()  # Clauset, Shalizi and Newman (2009), equation 3.7
    assert found == pytest.approx(exponent, abs=0.25)


@pytest.mark.parametrize(("within", "local"), [(0.9, 0.5), (0.5, 0.2), (0.0, 0.0), (1.0, 1.0)])
def test_the_share_of_edges_within_classes_is_as_asked(within, local):
    labels, _, edges = made(nodes=20_000, attributes=1, within=within, local=local)
    assert (labels[edges[0]] == labels[edges[1]]).mean() == pytest.approx(within, abs=0.02)


def test_edges_within_a_circle_close_triangles():
    def triangles(local):
        labels, _, edges = made(nodes=3000, degree=10, attributes=1, classes=2, within=0.9, local=local, exponent=10.0)
        adjacency = np.zeros((len(labels), len(labels)))
        adjacency[edges[0], edges[1]] = adjacency[edges[1], edges[0]] = 1
        return np.trace(adjacency @ adjacency @ adjacency) / 6

    assert triangles(0.6) > 3 * triangles(0.0)


def test_attributes_depend_on_the_class_and_on_the_neighbors():
    plan = {"nodes": 4000, "degree": 20, "attributes": 64, "classes": 4, "noise": 0.0}
    labels, x, edges = made(**plan)
    centers = np.stack([x[labels == c].mean(0) for c in range(4)])
    assert (((x[:, None] - centers) ** 2).sum(-1).argmin(1) == labels).mean() > 0.8
    # Nodes of one class that chose neighbors in one other class have moved toward it.
    own, other = labels[edges[0]], labels[edges[1]]
    toward = (own == 0) & (other == 1)
    moved = x[np.unique(edges[0][toward])].mean(0) - centers[0]
    assert moved @ (centers[1] - centers[0]) > 0


def test_noise_can_be_turned_up():
    quiet, loud = made(nodes=3000, noise=0.0)[1], made(nodes=3000, noise=3.0)[1]
    assert (loud - quiet).std() == pytest.approx(3.0, rel=0.01)


def test_the_graph_is_the_same_for_any_number_of_blocks_in_a_piece():
    generator = GraphGenerator(GraphPlan(nodes=3 * BLOCK + 5, attributes=3))
    for blocks in (2, 3, 100):
        for name, axis in (("ids", 0), ("labels", 0), ("attributes", 0), ("edges", 1)):
            alone, together = (
                np.concatenate([getattr(piece, name) for piece in generator.pieces(n)], axis) for n in (1, blocks)
            )
            assert np.array_equal(alone, together), name


def test_the_seed_decides():
    first, again, other = (made(nodes=500, seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[1], other[1])


def test_the_written_graph_is_read_as_it_was_made(tmp_path):
    plan = GraphPlan(nodes=BLOCK + 300, attributes=4, noise=1.0)
    counts = write_parquet(plan, tmp_path / "graph", blocks=1)
    data = bgcl.load(tmp_path / "graph")
    labels, x, edges = made(nodes=plan.nodes, attributes=4, noise=1.0)
    assert counts == {"nodes": plan.nodes, "edges": edges.shape[1]}
    place = np.argsort(data.ids)
    assert [data.classes[c] for c in data.y[place]] == [f"c{c}" for c in labels]
    key = np.unique(edges.min(0) * plan.nodes + edges.max(0))
    assert data.num_edges == 2 * len(key)
    scaled = (x - x.mean(0)) / x.std(0)  # as columns of numbers are read
    np.testing.assert_allclose(data.x.numpy()[place], scaled, atol=1e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nodes": 5}, "'nodes' must be a whole number between 100 and"),
        ({"within": 1.5}, "'within' must be a number between 0 and 1"),
        ({"exponent": 2.0}, "'exponent' must be a number above 2"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(wrong, message):
    with pytest.raises(BGCLError, match=message):
        GraphPlan(**wrong)


def test_a_graph_whose_weights_do_not_fit_is_refused():
    with pytest.raises(BGCLError, match="weights of 10,000,000,000 nodes would need"):
        GraphGenerator(GraphPlan(nodes=10**10))
