"""The parts of an embedding against dense matrices and NumPy's singular vectors."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from bgcl.augmentation.views import LayerMask
from bgcl.errors import BGCLError
from bgcl.graph.alike import NEAREST, SOFTNESS
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.parts import STEPS, TELEPORT, Part, Parts, parse_part
from bgcl.model.propagation import Propagation
from small import (
    dense_connections,
    dense_features,
    dense_normalize,
    make_graph,
    on_connections,
    on_matrix,
    random_adjacency,
    random_features,
    random_graph,
    seeded,
    with_relations,
    with_weights,
)

ALL = (
    "attributes", "attributes hop 1", "attributes hop 2", "attributes diffused", "structure hop 1", "encoder",
    "encoder hop 1", "encoder diffused",
)  # fmt: skip


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def hops(P: np.ndarray, X: np.ndarray, count: int | None) -> np.ndarray:
    """`P^count X`; None: personalized PageRank as a sum of powers."""
    if count is not None:
        return np.linalg.matrix_power(P, count) @ X
    power, total = X, np.zeros_like(X)
    for _ in range(STEPS):
        total = total + TELEPORT * power
        power = (1 - TELEPORT) * P @ power
    return total + power


def fitted(graph: PreparedGraph, sentences: tuple[str, ...], *, width: int = 3, encoder_width: int = 4) -> Parts:
    parts = Parts(sentences, dense_features(graph).shape[1], encoder_width, width)
    parts.fit(graph, seeded(0))
    return parts


def encoded_of(graph: PreparedGraph, width: int = 4) -> Tensor:
    return torch.randn(graph.nodes, width, generator=seeded(1))


def embedding(
    parts: Parts, graph: PreparedGraph, masks: list[LayerMask] | None = None, kept: Tensor | None = None
) -> list[np.ndarray]:
    """The embedding without gradients, cut into its parts."""
    with torch.no_grad():
        found = parts(graph, encoded_of(graph), masks, kept)
    return [part.double().numpy() for part in found.split(parts.widths, dim=1)]


@pytest.mark.parametrize(
    ("sentence", "part"),
    [
        ("encoder", Part("encoder", 0)),
        ("attributes hop 3", Part("attributes", 3)),
        (" encoder diffused ", Part("encoder", None)),
        ("structure", Part("structure", 0)),
        ("structure hop 1", Part("structure", 1)),
        ("attributes hop 0", Part("attributes", 0)),
        ("encoder diffused among alike", Part("encoder", None, "alike")),
        ("encoder diffused among alike and neighbors", Part("encoder", None, "alike and neighbors")),
        ("encoder diffused among alike neighborhoods", Part("encoder", None, "alike neighborhoods")),
    ],
)
def test_a_sentence_is_read(sentence, part):
    assert parse_part(sentence) == part


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("atributes hop 2", "Unknown part 'atributes' in 'atributes hop 2'. Did you mean attributes"),
        ("encoder hop", r"Cannot read the part 'encoder hop'. Write it as: SOURCE \[hop N | diffused\]"),
        ("encoder hop -1", "Cannot read the part 'encoder hop -1'"),
        ("encoder diffused hop 2", "Cannot read the part"),
        ("", "Cannot read the part ''"),
        ("encoder hop 2 among alike", "Cannot read the part"),
        ("encoder hop 65", "The part 'encoder hop 65' has too many hops. Write 64 or fewer"),
        (f"encoder hop {'9' * 5000}", "has too many hops"),
        ("encoder diffused among friends", "Cannot read the part"),
        ("attributes diffused among alike", "In 'attributes diffused among alike' write encoder, not attributes"),
    ],
)
def test_a_sentence_that_makes_no_sense_is_refused(sentence, message):
    with pytest.raises(BGCLError, match=message):
        parse_part(sentence)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 5, None])
def test_a_part_of_the_encoder_is_propagated_as_by_dense_matrices(count, sparse):
    graph = random_graph(9, 6, sparse=sparse, double=False)
    (found,) = embedding(fitted(graph, (f"encoder hop {count}" if count is not None else "encoder diffused",)), graph)
    P = dense_normalize(dense_connections(graph))
    np.testing.assert_allclose(found, unit(hops(P, unit(encoded_of(graph).numpy()), count)), atol=1e-5)


@pytest.mark.parametrize("among", ["alike", "alike and neighbors", "alike neighborhoods"])
def test_a_part_is_diffused_among_alike_nodes_as_by_dense_matrices(among):
    graph = random_graph(30, 6, double=False)
    parts, start = fitted(graph, (f"encoder diffused among {among}",)), unit(encoded_of(graph).numpy())
    with torch.no_grad():
        alike = parts.alike(graph, encoded_of(graph))
        found = parts(graph, encoded_of(graph), None, None, {among: Propagation(alike[among])})
    P = dense_normalize(dense_connections(graph))
    vectors = unit(hops(P, start, None)) if among == "alike neighborhoods" else start
    cosine = vectors @ vectors.T
    near = np.zeros_like(cosine)
    for i, row in enumerate(cosine):
        for j in np.argsort(-np.where(np.arange(30) == i, -2, row))[:NEAREST]:
            near[i, j] = near[j, i] = np.exp((row[j] - 1) / SOFTNESS)
    weights = near + (dense_connections(graph) if among == "alike and neighbors" else np.eye(30))
    np.testing.assert_allclose(found.numpy(), unit(hops(dense_normalize(weights), start, None)), atol=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, None])
def test_a_part_of_the_attributes_has_the_principal_directions_of_the_propagated_attributes(count, sparse):
    graph = random_graph(12, 6, sparse=sparse, double=False)
    sentence = f"attributes hop {count}" if count is not None else "attributes diffused"
    (found,) = embedding(fitted(graph, (sentence,)), graph)
    propagated = hops(dense_normalize(dense_connections(graph)), dense_features(graph), count)
    _, _, V = np.linalg.svd(propagated)
    expected = unit(propagated @ V[:3].T)
    signs = np.sign((found * expected).sum(0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-3)


def test_diffused_attributes_have_the_directions_of_the_last_hop_if_there_is_one():
    graph = random_graph(12, 6, double=False)
    parts = fitted(graph, ("attributes hop 2", "attributes diffused", "attributes hop 1"))
    assert torch.equal(parts.directions_1, parts.directions_0)
    assert not torch.equal(parts.directions_1, parts.directions_2)
    propagated = hops(dense_normalize(dense_connections(graph)), dense_features(graph), None)
    expected = unit(propagated @ parts.directions_0.double().numpy())
    np.testing.assert_allclose(embedding(parts, graph)[1], expected, atol=1e-5)


def test_a_part_is_no_wider_than_there_are_attributes():
    graph = random_graph(12, 2, double=False)
    parts = fitted(graph, ("attributes", "structure", "encoder"), width=5)
    assert parts.widths == (2, 5, 4)
    assert [part.shape[1] for part in embedding(parts, graph)] == [2, 5, 4]


def test_with_fewer_nodes_than_columns_the_last_columns_are_zero():
    graph = random_graph(3, 6, double=False)
    parts = fitted(graph, ("attributes", "structure"), width=5)
    for part in embedding(parts, graph):
        assert part.shape == (3, 5)
        np.testing.assert_allclose(np.linalg.norm(part, axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(part[:, 3:], 0, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_all_parts_have_rows_of_length_one(sparse):
    features = random_features(14, 6) + np.eye(6)[np.arange(14) % 6]  # no node without attributes
    graph = make_graph(random_adjacency(14), features, sparse=sparse, double=False)
    parts = fitted(graph, ALL)
    assert parts.widths == (3, 3, 3, 3, 3, 4, 4, 4)
    for part in embedding(parts, graph):
        np.testing.assert_allclose(np.linalg.norm(part, axis=1), 1, atol=1e-5)


def test_the_only_part_encoder_is_the_encoders_output_as_it_is():
    graph = random_graph(9, 6, double=False)
    encoded = encoded_of(graph)
    assert fitted(graph, ("encoder",))(graph, encoded, None, None) is encoded


def test_a_part_has_a_gradient_for_the_encoder():
    graph = random_graph(9, 6, double=False)
    encoded = encoded_of(graph).requires_grad_()
    fitted(graph, ("encoder hop 1", "attributes"))(graph, encoded, None, None).sum().backward()
    assert torch.isfinite(encoded.grad).all()
    assert encoded.grad.abs().max() > 0


# Masks


@pytest.mark.parametrize("sparse", [False, True])
def test_masks_of_the_first_layer_reach_the_attributes(sparse):
    graph = random_graph(10, 6, sparse=sparse, double=False)
    random = np.random.default_rng(0)
    columns, entries = random.random(6), (random.random((10, 6)) < 0.6).astype(float)
    on_entries = torch.as_tensor(entries).float()
    if sparse:
        on_entries = on_entries[graph.features.pattern.row, graph.features.pattern.column]
    mask = LayerMask(columns=torch.as_tensor(columns).float(), entries=on_entries)
    other = LayerMask(columns=torch.zeros(6))  # the mask of a later layer
    parts = fitted(graph, ("attributes", "attributes hop 2", "encoder hop 1", "structure"))
    plain, masked = embedding(parts, graph), embedding(parts, graph, [mask, other])
    P, X = dense_normalize(dense_connections(graph)), dense_features(graph) * columns * entries
    for i, count in ((0, 0), (1, 2)):
        directions = getattr(parts, f"directions_{i}").double().numpy()
        np.testing.assert_allclose(masked[i], unit(hops(P, X @ directions, count)), atol=1e-4)
        assert not np.allclose(plain[i], masked[i], atol=1e-2)
    for i in (2, 3):
        np.testing.assert_array_equal(plain[i], masked[i])


@pytest.mark.parametrize("relaxed", [False, True])
def test_dropped_connections_are_left_out_of_every_propagation(relaxed):
    graph = random_graph(10, 6, double=False)
    random = np.random.default_rng(1)
    kept = random.random((10, 10))
    kept = kept if relaxed else (kept < 0.6).astype(float)
    np.fill_diagonal(kept, 1)
    parts = fitted(graph, ALL)
    plain = embedding(parts, graph)
    masked = embedding(parts, graph, None, on_connections(graph, kept).float()[:, None])
    P = dense_normalize(dense_connections(graph) * kept)
    encoded = unit(encoded_of(graph).numpy())
    starts = [dense_features(graph) @ getattr(parts, f"directions_{i}").double().numpy() for i in range(4)]
    starts += [parts.structure(graph).double().numpy(), encoded, encoded, encoded]
    for i, count in enumerate((0, 1, 2, None, 1, 0, 1, None)):
        np.testing.assert_allclose(masked[i], unit(hops(P, starts[i], count)), atol=1e-4)
        assert np.allclose(plain[i], masked[i], atol=1e-3) == (count == 0)


def test_a_node_that_loses_all_its_connections_has_zeros():
    graph = random_graph(10, 6, double=False)
    kept = np.ones((10, 10))
    kept[4, :] = kept[:, 4] = 0
    parts = fitted(graph, ALL)
    masked = embedding(parts, graph, None, on_connections(graph, kept).float()[:, None])
    for i in (1, 2, 4, 6):
        assert (masked[i][4] == 0).all()
    for i in (0, 3, 5, 7):  # these keep the node itself
        assert np.linalg.norm(masked[i][4]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("count", [0, 1, 3, None])
def test_the_part_structure_is_the_positions_propagated_with_rows_of_length_one(count):
    graph = random_graph(20, 3, double=False)
    parts = fitted(graph, (f"structure hop {count}" if count is not None else "structure diffused",))
    (found,) = embedding(parts, graph)
    P = dense_normalize(dense_connections(graph))
    np.testing.assert_allclose(found, unit(hops(P, parts.structure(graph).double().numpy(), count)), atol=1e-5)


def test_a_new_node_is_where_its_neighbors_are():
    adjacency = random_adjacency(20, 0.3)
    grown = np.zeros((21, 21))
    grown[:20, :20] = adjacency
    grown[20, [3, 8]] = grown[[3, 8], 20] = 1
    parts = fitted(make_graph(adjacency, random_features(20, 3), double=False), ("structure hop 1",))
    larger = make_graph(grown, random_features(21, 3), double=False)
    (found,) = embedding(parts, larger)
    weight = dense_normalize(dense_connections(larger))[20, [3, 8]]
    expected = weight @ parts.structure(larger)[[3, 8]].double().numpy()
    np.testing.assert_allclose(found[20], expected / np.linalg.norm(expected), atol=1e-5)


def test_parts_are_saved_with_the_model():
    graph = random_graph(20, 3, double=False)
    parts, again = fitted(graph, ALL, width=2), Parts(ALL, 3, 4, 2, nodes=20)
    again.load_state_dict(parts.state_dict())
    for one, other in zip(embedding(parts, graph), embedding(again, graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_graph_without_edges_has_finite_parts():
    graph = make_graph(np.zeros((6, 6)), random_features(6, 4), double=False)
    for part in embedding(fitted(graph, ALL), graph):
        assert np.isfinite(part).all()


def test_normalized_rows_of_zeros_stay_zero():
    features = random_features(8, 5)
    features[3] = 0
    adjacency = random_adjacency(8)
    adjacency[3, :] = adjacency[:, 3] = 0
    graph = make_graph(adjacency, features, double=False)
    found = embedding(fitted(graph, ALL), graph)
    for i in range(4):
        assert (found[i][3] == 0).all()
    assert F.normalize(torch.zeros(1, 3)).tolist() == [[0, 0, 0]]


def test_parts_are_propagated_along_weights_times_keep_values_as_by_dense_matrices():
    graph = with_weights(random_graph(9, 5, double=False))
    kept = torch.rand(len(graph.connections), 1, generator=seeded(3))
    P = dense_normalize(on_matrix(graph, graph.weights) * on_matrix(graph, kept[:, 0]))
    parts = fitted(graph, ("attributes hop 2", "encoder diffused"))
    attributes, encoder = embedding(parts, graph, [LayerMask()], kept)
    X = dense_features(graph) @ parts.directions_0.double().numpy()
    np.testing.assert_allclose(attributes, unit(hops(P, X, 2)), atol=1e-5)
    np.testing.assert_allclose(encoder, unit(hops(P, unit(encoded_of(graph).double().numpy()), None)), atol=1e-5)


def relational(graph: PreparedGraph, *sentences: str, relations: int = 2) -> Parts:
    parts = Parts(sentences, dense_features(graph).shape[1], 4, 3, relations=relations)
    parts.fit(graph, seeded(0))
    return parts


def test_a_part_of_each_relation_is_propagated_along_it_without_the_node_itself():
    graph = with_relations(random_graph(9, 5, double=False), 2)
    kept = torch.rand(len(graph.connections), 2, generator=seeded(3))
    parts = relational(graph, "attributes hop 2 of each relation", "encoder diffused of each relation", "encoder hop 1")
    assert len(parts.parts) == 5
    found = embedding(parts, graph, [LayerMask()], kept)
    for r in range(2):
        P = dense_normalize(on_matrix(graph, graph.relations[:, r]) * on_matrix(graph, kept[:, r]))
        X = dense_features(graph) @ getattr(parts, f"directions_{r}").double().numpy()
        np.testing.assert_allclose(found[r], unit(hops(P, X, 2)), atol=1e-5)
        start = unit(encoded_of(graph).double().numpy())
        np.testing.assert_allclose(found[2 + r], unit(hops(P, start, None)), atol=1e-5)


def test_a_part_of_a_relation_has_the_principal_directions_along_it():
    """The matrix of a relation is not symmetric, so its transposed must be used where it belongs."""
    graph = with_relations(random_graph(14, 6, double=False), 2)
    parts = relational(graph, "attributes hop 1 of each relation")
    for r in range(2):
        P = dense_normalize(on_matrix(graph, graph.relations[:, r]))
        expected = np.linalg.svd(P @ dense_features(graph))[2][:3]
        found = getattr(parts, f"directions_{r}").double().numpy()
        np.testing.assert_allclose(np.abs(np.diag(expected @ found)), 1, atol=1e-3)


def test_a_graph_of_one_kind_of_edges_has_no_part_of_each_relation():
    with pytest.raises(BGCLError, match="one kind of edges"):
        Parts(("attributes hop 1 of each relation",), 5, 4, 3)
    for sentence in ("encoder of each relation", "encoder diffused among alike of each relation"):
        with pytest.raises(BGCLError, match="leave out 'of each relation'"):
            parse_part(sentence)
