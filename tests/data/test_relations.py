"""Types and directions of edges become relations, as a plain loop makes them, from tables, `Data` and `HeteroData`."""

import logging

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

import bgcl
from bgcl import BGCLError
from bgcl.data import check_graph
from bgcl.data.clean import undirected
from bgcl.data.facts import GraphFacts
from bgcl.data.relations import Types, joined, relations
from bgcl.graph.prepared import prepare
from small import on_matrix


def dense(pairs: np.ndarray, weights: np.ndarray | None, use: np.ndarray, nodes: int) -> np.ndarray:
    """The matrix of some edges from source to target, by a plain loop."""
    found = np.zeros((nodes, nodes))
    for i in np.flatnonzero(use):
        a, b = pairs[:, i]
        if a != b:
            found[a, b] = 1 if weights is None else found[a, b] + weights[i]
    return found


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_relations_are_those_of_a_plain_loop(weighted: bool, directed: bool) -> None:
    random = np.random.default_rng(0)
    pairs, codes = random.integers(12, size=(2, 90)), random.integers(-1, 2, size=90)
    weights = random.random(90) + 0.1 if weighted else None
    index = undirected(*pairs, 12)
    names, found = relations(pairs, weights, Types(codes, ["a", "b"]), index, 12, directed=directed, where="edges")
    every = [dense(pairs, weights, codes == code, 12) for code in (0, 1, -1)]
    if directed:
        assert names == ["a out", "a in", "b out", "b in", "(no type) out", "(no type) in"]
        expected = [each for A in every for each in (A, A.T)]
    else:
        assert names == ["a", "b", "(no type)"]
        expected = [A + A.T if weighted else np.maximum(A, A.T) for A in every]
    for column, A in zip(found.T, expected, strict=True):
        np.testing.assert_allclose(column, A[index[0], index[1]], rtol=1e-6)
        assert (A > 0).sum() == (column > 0).sum()


def test_types_of_nodes_name_the_relation() -> None:
    of_nodes = Types(np.array([0, 0, 1]), ["user", "film"])
    source, target = np.array([0, 2, 0]), np.array([2, 1, 1])
    found = joined(None, of_nodes, source, target, directed=False)
    assert [found.names[code] for code in found.codes] == ["film - user", "film - user", "user - user"]
    found = joined(None, of_nodes, source, target, directed=True)
    assert [found.names[code] for code in found.codes] == ["user - film", "film - user", "user - user"]
    types = Types(np.array([0, 0, 1]), ["rates", "likes"])
    found = joined(types, of_nodes, source, target, directed=False)
    assert [found.names[code] for code in found.codes] == ["user rates film", "film rates user", "user likes user"]


def test_more_types_than_a_model_tells_apart_are_refused() -> None:
    edges = {"from": list(range(40)), "to": list(range(1, 41)), "kind": [f"k{i % 17}" for i in range(40)]}
    with pytest.raises(BGCLError, match="17 types, and a model tells at most 16 apart"):
        bgcl.graph_from(edges, edge_type="kind")


def table(**more: list) -> dict[str, list]:
    return {"from": ["a", "b", "c", "d", "a", "c"], "to": ["b", "c", "d", "a", "c", "a"], **more}


def test_directions_lead_from_the_first_column_to_the_second() -> None:
    data = bgcl.graph_from(table(), directed=True)
    assert data.relations == ["out", "in"]
    graph = prepare(check_graph(data), row_norm="none", relations=data.relations)
    out, back = (on_matrix(graph, graph.relations[:, r]) for r in range(2))
    number = {name: i for i, name in enumerate(data.ids.tolist())}
    expected = np.zeros((4, 4))
    for a, b in zip(*table().values(), strict=True):
        expected[number[a], number[b]] = 1
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(back, expected.T)


def test_edges_that_are_all_there_in_both_directions_have_none() -> None:
    with pytest.raises(BGCLError, match="directions say nothing: leave out --directed"):
        bgcl.graph_from({"from": [1, 2, 2, 3], "to": [2, 1, 3, 2]}, directed=True)


def test_a_column_called_type_is_taken_unless_the_user_says_no() -> None:
    edges = table(type=["x", "y", "x", "y", "x", "x"])
    data = bgcl.graph_from(edges)
    assert data.relations == ["x", "y"]
    assert data.recipe.edge_type == "type"
    assert "relations" not in bgcl.graph_from(edges, edge_type="")
    plain = bgcl.graph_from(table())
    assert torch.equal(data.edge_index, plain.edge_index)
    assert torch.equal(data.x.to_dense(), plain.x.to_dense())


@pytest.mark.parametrize("values", [["x"] * 6, list("uvwxyz"), ["1", "2", "1", "2", "1", "2"]])
def test_other_columns_called_type_are_not_taken(values: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert "relations" not in bgcl.graph_from(table(type=values))
    assert "If 'type' is the type of an edge, use --edge-type type" in caplog.text


def test_types_of_nodes_are_attributes_and_tell_edges_apart() -> None:
    nodes = {"id": list("abcd"), "sort": ["user", "film", "film", "user"], "age": [31.0, None, None, 45.0]}
    data = bgcl.graph_from(table(), nodes, node_type="sort")
    assert data.relations == ["film - film", "film - user", "user - user"]
    assert data.attribute_names == ["sort = film", "sort = user", "age", "age is missing"]
    with pytest.raises(BGCLError, match="--node-type names a column of the nodes, but there is no table of nodes"):
        bgcl.graph_from(table(), node_type="sort")


def test_data_has_types_with_and_without_names() -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), edge_type=torch.tensor([0, 1, 1]))
    assert check_graph(data).relations == ["0", "1"]
    data.edge_type_names = ["cites", "writes"]
    found = bgcl.graph_from(data, directed=True)
    assert found.relations == ["cites out", "cites in", "writes out", "writes in"]
    again = check_graph(found)
    assert torch.equal(again.edge_relations, found.edge_relations)
    assert again.relations == found.relations
    found.edge_index = found.edge_index[:, 1:]
    with pytest.raises(BGCLError, match="changed after its relations were made"):
        check_graph(found)


@pytest.mark.parametrize("wrong", [torch.tensor([0.0, 1, 1]), torch.tensor([0, 1]), [0, 1, 1], torch.tensor([0, 5, 1])])
def test_types_that_cannot_be_are_refused(wrong: object) -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
    data.edge_type, data.edge_type_names = wrong, ["cites", "writes"]
    with pytest.raises(BGCLError, match=r"data.edge_type must"):
        check_graph(data)


def test_other_types_are_another_graph_and_one_type_is_none() -> None:
    def facts(types: list[int] | None) -> GraphFacts:
        data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
        if types is not None:
            data.edge_type = torch.tensor(types)
        return GraphFacts.of(check_graph(data))

    assert facts([3, 3, 3]) == facts(None)
    assert len({facts(types).fingerprint for types in (None, [0, 1, 1], [1, 0, 1])}) == 3
    assert facts([0, 1, 1]).relations == ("0", "1")


def films() -> HeteroData:
    data = HeteroData()
    data["user"].x, data["user"].y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1])
    data["user"].train_mask = torch.tensor([True, False])
    data["film"].num_nodes = 3
    data["user", "rates", "film"].edge_index = torch.tensor([[0, 0, 1], [0, 1, 2]])
    data["user", "rates", "film"].edge_weight = torch.tensor([1.0, 2.0, 3.0])
    data["film", "rev_rates", "user"].edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    data["user", "knows", "user"].edge_index = torch.tensor([[0], [1]])
    return data


def test_heterogeneous_data_becomes_one_graph_that_keeps_what_it_carries() -> None:
    data = bgcl.graph_from(films())
    assert data.ids == ["user:0", "user:1", "film:0", "film:1", "film:2"]
    assert data.attribute_names == ["user 0", "user 1", "is user", "is film"]
    expected = [[1, 2, 1, 0], [3, 4, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]]
    assert (data.x if data.x.layout == torch.strided else data.x.to_dense()).tolist() == expected
    assert data.y.tolist() == [0, 1, -1, -1, -1]
    assert data.train_mask.tolist() == [True, False, False, False, False]
    assert data.relations == ["user rates film", "user knows user"]
    weights = {tuple(pair): w for pair, w in zip(data.edge_index.T.tolist(), data.edge_weight.tolist(), strict=True)}
    assert weights == {
        (0, 2): 1, (2, 0): 1, (0, 3): 2, (3, 0): 2, (1, 4): 3, (4, 1): 3, (0, 1): 1, (1, 0): 1,
    }  # fmt: skip
    assert bgcl.inspect(data).relations == {"user rates film": 3, "user knows user": 1}


def test_heterogeneous_data_that_cannot_be_is_refused() -> None:
    with pytest.raises(BGCLError, match="has to be made one graph first"):
        bgcl.BGCL().fit(films())
    several = films()
    several["film"].y = torch.tensor([0, 1, 1])
    with pytest.raises(BGCLError, match="Nodes of several types have labels"):
        bgcl.graph_from(several)
    with pytest.raises(BGCLError, match="types of nodes and of edges"):
        bgcl.graph_from(HeteroData())
    unknown = films()
    unknown["user"].x = torch.ones(3)
    with pytest.raises(BGCLError, match=r"must have the shape \(3, attributes\)"):
        bgcl.graph_from(unknown)
    flat = films()
    flat["user", "rates", "film"].edge_index = torch.tensor([0, 1])
    with pytest.raises(BGCLError, match=r"must have the shape \(2, edges\)"):
        bgcl.graph_from(flat)


@pytest.mark.parametrize(("end", "node", "name"), [(0, 2, "user"), (0, -1, "user"), (1, 3, "film"), (1, -1, "film")])
def test_an_edge_to_a_node_that_its_type_lacks_does_not_lead_to_another_type(end: int, node: int, name: str) -> None:
    data = films()
    data["user", "rates", "film"].edge_index[end, 0] = node
    with pytest.raises(BGCLError, match=f"edge_index has the node {node}, but '{name}' has only"):
        bgcl.graph_from(data)


def test_a_type_without_nodes_has_a_column_too() -> None:
    data = films()
    data["writer"].num_nodes = 0
    found = bgcl.graph_from(data)
    assert found.x.shape[1] == len(found.attribute_names) == 5


def test_a_matrix_has_directions_if_the_user_says_so() -> None:
    matrix = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert "relations" not in bgcl.graph_from(matrix, np.eye(3))
    for data in (bgcl.graph_from(matrix, np.eye(3), directed=True), bgcl.graph_from(matrix, directed=True)):
        assert data.relations == ["out", "in"]
        own = data.edge_relations[:, 0].tolist()
        assert [[a, b] for (a, b), w in zip(data.edge_index.T.tolist(), own, strict=True) if w] == [
            [0, 1],
            [1, 2],
            [2, 0],
        ]


def test_what_edges_carry_and_nobody_uses_is_said(caplog: pytest.LogCaptureFixture) -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), edge_attr=torch.ones(3, 2))
    assert any("not used: edge_attr" in warning for warning in bgcl.inspect(data).warnings)
    with caplog.at_level(logging.WARNING):
        bgcl.BGCL(epochs=1, widths=[4, 4], part_width=2).fit(data, progress=False)
    assert "data.edge_attr is not used" in caplog.text
