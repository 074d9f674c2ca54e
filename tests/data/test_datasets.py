"""The data sets have the published content."""

from pathlib import Path

import numpy as np
import pytest
import torch

from bgcl import load
from bgcl.data import DATASETS, Place, locate, verify

PUBLISHED = {  # nodes, undirected edges, attributes, classes
    "cora": (2_708, 5_278, 1_433, 7),
    "citeseer": (3_327, 4_552, 3_703, 6),
    "pubmed": (19_717, 44_324, 500, 3),
    "amazon-photo": (7_650, 119_081, 745, 8),
    "amazon-computers": (13_752, 245_861, 767, 10),
    "coauthor-cs": (18_333, 81_894, 6_805, 15),
    "coauthor-physics": (34_493, 247_962, 8_415, 5),
}
ISOLATED = {"cora": 0, "citeseer": 48, "amazon-photo": 115, "amazon-computers": 281}


def check_counts(name: str) -> None:
    data, facts = load(name), DATASETS[name]
    edges = {(u, v) for u, v in data.edge_index.T.tolist()}
    assert len(edges) == data.edge_index.shape[1]
    assert edges == {(v, u) for u, v in edges}
    assert all(u != v for u, v in edges)
    counts = (data.num_nodes, len(edges) // 2, data.num_node_features, len(data.y.unique()))
    assert counts == PUBLISHED[name] == (facts.nodes, facts.edges, facts.num_attributes, facts.classes)
    isolated = data.num_nodes - len({u for u, _ in edges})
    assert isolated == ISOLATED.get(name, isolated)
    assert verify(name).digest == facts.digest


def test_bundled_cora_has_the_published_counts():
    check_counts("cora")


def test_bundled_cora_is_used_before_any_other_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "cora.npz").write_bytes(b"something else")
    monkeypatch.setenv("BGCL_DATA", str(tmp_path))
    place, path = locate("cora")
    assert place is Place.BUNDLED
    assert path is not None
    assert path.stat().st_size < 300_000
    assert load("cora").num_nodes == 2_708


def test_cora_has_planetoids_public_split_with_20_training_nodes_per_class():
    data = load("cora")
    assert data.train_mask.nonzero().flatten().tolist() == list(range(140))
    assert data.val_mask.nonzero().flatten().tolist() == list(range(140, 640))
    assert data.test_mask.nonzero().flatten().tolist() == list(range(1_708, 2_708))
    assert data.y[data.train_mask].bincount().tolist() == [20] * 7


def test_coras_attributes_are_sparse_zeros_and_ones():
    x = load("cora").x
    assert x.layout == torch.sparse_csr
    assert x.values().unique().tolist() == [1.0]


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "cora"])
def test_larger_graphs_have_the_published_counts(name: str, larger: Path):
    check_counts(name)


def test_bundled_cora_equals_the_copy_in_the_folder(larger: Path):
    data = load("cora")
    with np.load(larger / "cora.npz", allow_pickle=False) as raw:
        rows = np.repeat(np.arange(2_708), np.diff(raw["adj_indptr"]))
        assert data.edge_index.tolist() == [rows.tolist(), raw["adj_indices"].tolist()]
        assert data.x.col_indices().tolist() == raw["attr_indices"].tolist()
        assert data.x.crow_indices().tolist() == raw["attr_indptr"].tolist()
        for field, key in (("y", "labels"), ("train_mask",) * 2, ("val_mask",) * 2, ("test_mask",) * 2):
            assert data[field].tolist() == raw[key].tolist()


@pytest.mark.parametrize("name", ["pubmed", "coauthor-cs", "coauthor-physics"])
def test_real_valued_attributes_and_counts_are_not_binarized(name: str, larger: Path):
    x = load(name).x
    with np.load(larger / f"{name.replace('-', '_')}.npz", allow_pickle=False) as raw:
        assert np.array_equal(np.sort(x.values().numpy()), np.sort(raw["attr_data"]))
    assert x.layout == torch.sparse_csr
    assert len(x.values().unique()) > 2


@pytest.mark.parametrize("name", ["amazon-photo", "amazon-computers"])
def test_attributes_with_few_zeros_are_dense(name: str, larger: Path):
    assert load(name).x.layout == torch.strided
