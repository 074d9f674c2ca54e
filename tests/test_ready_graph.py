"""A graph is checked, hashed and prepared once, and again after any change of its tensors."""

import gc

import pytest
import torch
from torch_geometric.data import Data

from bgcl import BGCL, BGCLError, estimator
from bgcl.data.facts import GraphFacts
from bgcl.data.pyg import check_graph
from bgcl.graph.csr import without_beta_warning
from bgcl.ready_graph import GraphMemo, ReadyGraph
from trained import small_data, small_model

LAYOUTS = ["dense", "sparse CSR", "sparse COO"]


def in_layout(layout: str) -> Data:
    data = small_data()
    if layout != "dense":
        data.x = without_beta_warning(data.x.to_sparse_csr) if layout == "sparse CSR" else data.x.to_sparse()
    return data


@pytest.fixture
def calls(monkeypatch) -> dict[str, int]:
    """How often a graph is checked, prepared and hashed."""
    counts = {"checked": 0, "prepared": 0, "hashed": 0}

    def counted(name, function):
        def call(*arguments, **options):
            counts[name] += 1
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(estimator, "check_graph", counted("checked", check_graph))
    monkeypatch.setattr("bgcl.ready_graph.prepare", counted("prepared", ReadyGraph.__init__.__globals__["prepare"]))
    monkeypatch.setattr(GraphFacts, "of", counted("hashed", GraphFacts.of))
    return counts


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_graph_is_checked_prepared_and_hashed_once(layout, calls):
    data = in_layout(layout)
    model = small_model(data)
    model.sample(data, 2)
    model.moments(data, 2)
    model.disagreement(data, 4)
    model.embed(data)
    model.check_trained_on(data)
    assert calls == {"checked": 1, "prepared": 1, "hashed": 1}


def test_a_loaded_model_checks_and_prepares_a_graph_once_and_hashes_it_only_if_it_must(calls, tmp_path):
    data = small_data()
    small_model(data).save(tmp_path)
    calls.update(checked=0, prepared=0, hashed=0)
    model = BGCL.load(tmp_path)
    model.sample(data, 2)
    model.embed(data)
    assert calls == {"checked": 1, "prepared": 1, "hashed": 0}
    model.check_trained_on(data)
    model.check_trained_on(data)
    assert calls == {"checked": 1, "prepared": 1, "hashed": 1}


def test_another_data_object_with_the_same_tensors_is_the_same_graph(calls):
    data = small_data()
    model = small_model(data)
    model.embed(Data(x=data.x, edge_index=data.edge_index))
    assert calls["checked"] == 1


def change_through_numpy(data: Data) -> None:
    data.x.numpy()[:] *= torch.arange(1, 11).numpy()


def change_edges_through_numpy(data: Data) -> None:
    data.edge_index.numpy()[:] = data.edge_index.flip(1).numpy()
    data.edge_index.numpy()[:, 0] = (3, 4)


CHANGES = {
    "attributes in place": lambda data: data.x[:, 0].mul_(5),
    "attributes through NumPy": change_through_numpy,
    "attributes through .data": lambda data: data.x.data[:, 0].mul_(5),
    "edges in place": lambda data: data.edge_index[:, :9].fill_(3),
    "edges through NumPy": change_edges_through_numpy,
    "other attributes": lambda data: setattr(data, "x", data.x * torch.arange(1, 11)),
    "other edges": lambda data: setattr(data, "edge_index", data.edge_index[:, 20:]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_graph_is_prepared_again(change):
    data = small_data()
    model = small_model(data)
    before = model.embed(data)
    CHANGES[change](data)
    expected = model.embed(data.clone())  # new tensors, which no memo has seen
    assert not torch.allclose(expected, before)
    # Again with a memo of the graph before the change.
    data = small_data()
    model = small_model(data)
    CHANGES[change](data)
    assert torch.equal(model.embed(data), expected)
    with pytest.raises(BGCLError, match="trained on another graph"):
        model.check_trained_on(data)


@pytest.mark.parametrize("layout", LAYOUTS[1:])
def test_a_change_of_sparse_attributes_in_place_is_noticed(layout):
    data = in_layout(layout)
    model = small_model(data)
    before = model.embed(data)
    values = data.x.values() if layout == "sparse CSR" else data.x._values()
    values[: len(values) // 2].mul_(5)
    after = model.embed(data)
    assert not torch.allclose(after, before)
    assert torch.equal(after, model.embed(Data(x=data.x.to_dense(), edge_index=data.edge_index)))


def test_tensors_made_in_inference_mode_are_accepted():
    """torch keeps no version counter for them."""
    with torch.inference_mode():
        data = small_data()
    model = small_model(data)
    assert torch.equal(model.embed(data), small_model(small_data()).embed(small_data()))


def test_a_memo_does_not_keep_the_users_tensors_alive():
    data = small_data()
    memo = GraphMemo(data, ReadyGraph(check_graph(data), "length", "cpu"))
    assert memo.holds(data)
    other = small_data()  # equal values, but other tensors
    assert not memo.holds(other)
    references = [reference for reference, _ in memo._seen]
    data.x = data.edge_index = None
    gc.collect()
    assert references[0]() is None
    assert not memo.holds(data)


def test_a_graph_without_tensors_is_not_held_and_is_refused():
    data = small_data()
    model = small_model(data)
    for wrong in (None, Data(), "cora"):
        assert not model._memo.holds(wrong)
        with pytest.raises(BGCLError, match="The graph "):
            model.embed(wrong)


def test_a_device_that_the_machine_lacks_is_one_clear_error(tmp_path):
    data = small_data()
    with pytest.raises(BGCLError, match="The setting 'device' is 'no such device', which is not on this machine"):
        small_model(data, device="no such device")
    small_model(data).save(tmp_path)
    with pytest.raises(BGCLError, match="The setting 'device' is 'no such device', which is not on this machine"):
        BGCL.load(tmp_path, device="no such device")
