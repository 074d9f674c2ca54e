"""A user's graph comes out clean, or an error of one line says what is wrong."""

import copy
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from torch_geometric.data import Data, HeteroData

from bgcl.data.clean import both_directions, clean, clean_edges, content_digest, undirected
from bgcl.data.pyg import check_graph, to_data
from bgcl.errors import BGCLError


def messy() -> Data:
    """A directed graph with a self-loop, a duplicate, an edge in both directions, and the isolated node 4."""
    return Data(
        x=torch.arange(10.0).reshape(5, 2),
        edge_index=torch.tensor([[3, 1, 1, 2, 0, 1], [0, 1, 2, 1, 1, 2]]),
        y=torch.tensor([0, 1, 0, 1, -1]),
        train_mask=torch.tensor([True, False, False, False, False]),
        edge_weight=torch.ones(6),
    )


def one_line(error: pytest.ExceptionInfo[BGCLError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert text.endswith((".", "?"))
    return text


def test_clean_graph_equals_the_dense_definition():
    data = messy()
    dense = torch.zeros(5, 5)
    for u, v in data.edge_index.T.tolist():
        dense[u, v] = dense[v, u] = float(u != v)
    expected = dense.nonzero().T  # row-major, so sorted by (row, column)
    out = check_graph(data)
    assert torch.equal(out.edge_index, expected)
    assert out.edge_index.dtype == torch.int64


def test_cleaning_keeps_attributes_labels_masks_and_the_isolated_node():
    data = messy()
    data.name = "mine"
    out = check_graph(data)
    assert torch.equal(out.x, data.x)
    assert torch.equal(out.y, data.y)
    assert torch.equal(out.train_mask, data.train_mask)
    assert (out.num_nodes, out.name) == (5, "mine")
    assert out.edge_weight.tolist() == [1.0] * 6  # equal weights are no weights, also of the edge that is there thrice


def test_cleaning_does_not_change_the_users_graph():
    data = messy()
    before = copy.deepcopy(data)
    check_graph(data)
    assert torch.equal(data.edge_index, before.edge_index)
    assert data.keys() == before.keys()


def test_cleaning_twice_is_cleaning_once():
    once = check_graph(messy())
    assert torch.equal(check_graph(once).edge_index, once.edge_index)


def test_regression_targets_stay_floats():
    data = messy()
    data.y = torch.rand(5, 2)
    assert torch.equal(check_graph(data).y, data.y)


@pytest.mark.parametrize("layout", ["dense", "coo", "csr"])
def test_few_nonzero_attributes_are_kept_sparse_and_not_binarized(layout: str):
    x = torch.zeros(5, 9)
    x[torch.arange(5), torch.arange(5)] = torch.tensor([0.5, 2, 3, 4, 5])
    data = messy()
    data.x = {"dense": x, "coo": x.to_sparse(), "csr": x.to_sparse_csr()}[layout]
    out = check_graph(data)
    assert out.x.layout == torch.sparse_csr
    assert torch.equal(out.x.to_dense(), x)


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_attributes_are_dense_from_a_given_share_of_nonzero_ones_on(share: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bgcl.data.pyg.SPARSE_BELOW", share)
    count, data = round(share * 5 * 8), messy()
    for nonzero, layout in ((count, torch.strided), (count - 1, torch.sparse_csr)):
        x = (torch.arange(5 * 8) < nonzero).float().reshape(5, 8)
        for data.x in (x, x.to_sparse_csr()):
            out = check_graph(data)
            assert out.x.layout == layout
            assert torch.equal(out.x.to_dense(), x)


def test_pyg_works_with_sparse_attributes():
    data = messy()
    data.x = torch.eye(5, 50)
    out = check_graph(data)
    clone = out.clone()
    assert out.x.layout == clone.x.layout == torch.sparse_csr
    assert (clone.num_nodes, clone.num_node_features) == (5, 50)
    assert clone.is_undirected()
    assert not clone.has_self_loops()
    assert repr(clone).startswith("Data(x=[5, 50]")


def test_making_a_sparse_graph_gives_no_warnings():
    graph = clean(np.array([[0], [1]]), csr_matrix(np.eye(4, 40)), None, {}, where="here")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = to_data(graph)
    assert data.x.layout == torch.sparse_csr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"x": torch.zeros(0, 2), "edge_index": torch.zeros(2, 0, dtype=torch.long)}, "empty, it has no nodes"),
        ({"edge_index": torch.zeros(2, 0, dtype=torch.long)}, "empty, it has no edges"),
        ({"edge_index": torch.tensor([[1], [1]])}, "empty, it has no edges"),
        ({"edge_index": torch.tensor([[0], [5]])}, "node 5, which does not exist: there are 5 nodes, numbered 0 to 4"),
        ({"edge_index": torch.tensor([[0], [-1]])}, "node -1, which does not exist"),
        ({"edge_index": torch.tensor([[0, 1, 2]])}, r"shape \(2, number of edges\). Got \(1, 3\)"),
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, "whole node numbers. Got values of type float32"),
        ({"edge_index": torch.eye(2).to_sparse()}, "not a sparse matrix"),
        ({"edge_index": None}, "no data.edge_index"),
        ({"x": None}, "no data.x"),
        ({"x": torch.full((5, 2), torch.nan)}, "attribute 0 of node 0 is nan. Replace NaN and infinity"),
        ({"x": torch.full((5, 2), torch.inf).to_sparse()}, "attribute 0 of node 0 is inf. Replace NaN and infinity"),
        (
            {"x": torch.full((5, 2), 1e300, dtype=torch.float64)},
            "of node 0 is 1e\\+300, which is too great for 32 bits",
        ),
        ({"x": torch.full((5, 2), 1e-60, dtype=torch.float64)}, "attribute 0 has only numbers that are zero with 32"),
        (
            {"x": torch.full((5, 2), 1e-60, dtype=torch.float64).to_sparse()},
            "attribute 0 has only numbers that are zero",
        ),
        ({"y": torch.tensor([0, 1, 2, 3, 2**63], dtype=torch.uint64)}, r"data.y must hold class numbers below 2\^63"),
        ({"x": torch.zeros(5)}, r"shape \(nodes, attributes\)"),
        ({"x": torch.zeros(5, 2, dtype=torch.complex64)}, "real numbers"),
        ({"num_nodes": 7}, "data.x has 5 rows, but there are 7 nodes"),
        ({"y": torch.zeros(4)}, r"data.y must be a tensor with 5 rows, one for each node. Got the shape \(4,\)"),
        ({"train_mask": torch.tensor([True])}, "data.train_mask must be a tensor with 5 rows, one for each node"),
        ({"train_mask": torch.arange(5)}, "true and false. Got values of type torch.int64"),
    ],
)
def test_bad_graph_is_a_one_line_error(change: dict[str, object], says: str):
    data = messy()
    for field, value in change.items():
        data[field] = value
    with pytest.raises(BGCLError, match=says) as error:
        check_graph(data)
    one_line(error)


def test_other_graph_types_are_refused():
    with pytest.raises(BGCLError, match="HeteroData has to be made one graph first"):
        check_graph(HeteroData())


@pytest.mark.parametrize(
    ("labels", "masks", "says"),
    [
        (np.array([0, 1]), {}, r"labels must have the shape \(3,\)"),
        (np.array([0.0, 1, 2]), {}, "class numbers"),
        (np.array([0, -2, 1]), {}, "class numbers"),
        (None, {"test_mask": np.array([True])}, "test_mask must have 3 rows, one for each node"),
        (None, {"test_mask": np.array([0, 1, 2])}, "test_mask must hold true and false"),
    ],
)
def test_bad_labels_and_masks_are_a_one_line_error(labels, masks, says: str):
    with pytest.raises(BGCLError, match=says) as error:
        clean(np.array([[0], [1]]), csr_matrix(np.eye(3)), labels, masks, where="mine.npz")
    assert one_line(error).startswith("mine.npz: ")


def test_error_names_the_node_and_the_attribute():
    attributes = np.ones((3, 4))
    attributes[1, 2] = np.nan
    with pytest.raises(BGCLError, match="attribute 2 of node 1 is nan"):
        clean(np.array([[0], [1]]), csr_matrix(attributes), None, {}, where="here")


def test_digest_depends_on_the_content_but_not_on_its_order():
    rng = np.random.default_rng(0)
    edges, x = np.array([[0, 1, 2], [1, 2, 0]]), csr_matrix(rng.random((3, 4)))
    labels, masks = np.array([0, 1, -1]), {"test_mask": np.array([True, False, True])}
    base = content_digest(clean(edges, x, labels, masks, where="a"))
    untidy = np.concatenate([edges[::-1], edges[:, ::-1], [[1], [1]]], axis=1).astype(np.int32)
    assert content_digest(clean(untidy, x.astype(np.float32), labels.astype(np.int8), masks, where="b")) == base
    variants = [
        (edges[:, :2], x, labels, masks),
        (edges, x * 2, labels, masks),
        (edges, x, np.array([0, 1, 1]), masks),
        (edges, x, None, masks),
        (edges, x, labels, {"test_mask": np.array([True, True, True])}),
        (edges, x, labels, {"val_mask": masks["test_mask"]}),
        (edges, x, labels, {}),
    ]
    digests = {content_digest(clean(*variant, where="c")) for variant in variants}
    assert len(digests | {base}) == len(variants) + 1


@settings(deadline=None)
@given(st.integers(1, 12).flatmap(lambda n: st.tuples(
    st.just(n + 1), st.lists(st.tuples(st.integers(0, n), st.integers(0, n)), min_size=1, max_size=40))))  # fmt: skip
def test_undirected_equals_cleaning_and_then_adding_the_other_direction(drawn):
    nodes, pairs = drawn
    edges = np.array([*pairs, (0, 1)]).T
    expected = both_directions(clean_edges(edges, nodes, where=""), nodes)
    np.testing.assert_array_equal(undirected(edges[0], edges[1], nodes), expected)
