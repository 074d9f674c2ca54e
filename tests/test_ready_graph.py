"""A graph is checked, hashed and prepared once, and again after any change of its tensors."""

import gc
from copy import copy

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bgcl import BGCL, BGCLError, estimator, parameters, ready_model
from bgcl.data.facts import GraphFacts
from bgcl.data.pyg import check_graph
from bgcl.graph.csr import without_beta_warning
from bgcl.ready_graph import GraphMemo, ReadyGraph
from trained import KINDS, small_data, small_model

LAYOUTS = ["dense", "sparse CSR", "sparse COO"]

both = pytest.mark.parametrize("kind", KINDS)


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

    for module in (estimator, parameters, ready_model):
        monkeypatch.setattr(module, "check_graph", counted("checked", check_graph))
    monkeypatch.setattr("bgcl.ready_graph.prepare", counted("prepared", ReadyGraph.__init__.__globals__["prepare"]))
    monkeypatch.setattr(GraphFacts, "of", counted("hashed", GraphFacts.of))
    return counts


@both
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_graph_is_checked_prepared_and_hashed_once(layout, kind, calls):
    data = in_layout(layout)
    model = small_model(data, kind)
    model.sample(data, 2)
    model.moments(data, 2)
    model.disagreement(data, 4)
    model.embed(data)
    model.check_trained_on(data)
    assert calls == {"checked": 1, "prepared": 1, "hashed": 1}


@pytest.mark.parametrize("with_ids", [False, True])
@both
def test_a_loaded_model_checks_and_prepares_a_graph_once_and_hashes_it_only_if_it_must(kind, with_ids, calls, tmp_path):
    """It must if positions are by the numbers of nodes: then it warns if the graph is another one."""
    data = small_data()
    if with_ids:
        data.ids = np.arange(25)
    small_model(data, kind).save(tmp_path)
    calls.update(checked=0, prepared=0, hashed=0)
    model = BGCL.load(tmp_path)
    model.sample(data, 2)
    model.embed(data)
    assert calls == {"checked": 1, "prepared": 1, "hashed": int(kind == "default" and not with_ids)}
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
CHANGES_OF_WEIGHTS = {
    "in place": lambda data: data.edge_weight[:9].mul_(5),
    "other ones": lambda data: setattr(data, "edge_weight", data.edge_weight.flip(0)),
    "none": lambda data: delattr(data, "edge_weight"),
}


@both
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_graph_is_prepared_again(change, kind):
    data = small_data()
    model = small_model(data, kind)
    before = model.embed(data)
    CHANGES[change](data)
    expected = model.embed(data.clone())  # new tensors, which no memo has seen
    assert not torch.allclose(expected, before)
    # Again with a memo of the graph before the change.
    data = small_data()
    model = small_model(data, kind)
    CHANGES[change](data)
    assert torch.equal(model.embed(data), expected)
    with pytest.raises(BGCLError, match="trained on another graph"):
        model.check_trained_on(data)


@both
@pytest.mark.parametrize("change", CHANGES_OF_WEIGHTS)
def test_a_graph_with_changed_weights_is_prepared_again(change, kind):
    data = small_data()
    data.edge_weight = torch.arange(1.0, 61)
    model = small_model(data, kind)
    before = model.embed(data)
    CHANGES_OF_WEIGHTS[change](data)
    assert not torch.allclose(model.embed(data), before)
    assert torch.equal(model.embed(data), model.embed(data.clone()))
    with pytest.raises(BGCLError, match="trained on another graph"):
        model.check_trained_on(data)


def test_a_graph_whose_relations_change_their_names_is_prepared_again():
    data = small_data()
    data.edge_type = torch.arange(data.num_edges) % 2
    data.edge_type_names = ["cites", "writes"]
    checked = check_graph(data)
    for graph, field in ((data, "edge_type_names"), (checked, "relations")):
        memo = GraphMemo(graph, ReadyGraph(check_graph(graph), "cpu"))
        assert memo.holds(graph)
        renamed = copy(graph)
        renamed[field] = ["writes", "cites"]
        assert not memo.holds(renamed)
        graph[field].reverse()  # in place
        assert not memo.holds(graph)


@both
@pytest.mark.parametrize("layout", LAYOUTS[1:])
def test_a_change_of_sparse_attributes_in_place_is_noticed(layout, kind):
    data = in_layout(layout)
    model = small_model(data, kind)
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
    memo = GraphMemo(data, ReadyGraph(check_graph(data), "cpu"))
    assert memo.holds(data)
    other = small_data()  # equal values, but other tensors
    assert not memo.holds(other)
    references = [reference for reference, _ in filter(None, memo._seen)]
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


@both
@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("no such device", "The setting 'device' must be cpu, cuda, mps or xpu"),
        ("cuda:63", "The setting 'device' is 'cuda:63', which is not on this machine"),
    ],
)
def test_a_device_that_the_machine_lacks_is_one_clear_error(kind, tmp_path, device, message):
    data = small_data()
    with pytest.raises(BGCLError, match=message):
        small_model(data, kind, device=device)
    small_model(data, kind).save(tmp_path)
    with pytest.raises(BGCLError, match=f"The setting 'device' is '{device}', which is not on this machine"):
        BGCL.load(tmp_path, device=device)


@pytest.mark.parametrize(
    "ids",
    [
        np.array([f"node {i}" for i in range(25)]),
        np.array([f"node {i}" for i in range(25)], dtype=object),
        np.arange(25) * 10**9,
        [str(i) for i in range(25)],
    ],
    ids=["strings", "objects", "numbers", "a list"],
)
def test_a_node_with_an_id_has_the_same_position_in_any_order(ids):
    """The part of the embedding that needs a node's identity takes it from the id."""
    data = small_data()
    data.ids = ids
    model = small_model(data, "default", parts=("structure hop 1",))
    order = torch.randperm(25, generator=torch.Generator().manual_seed(1))
    place = torch.empty(25, dtype=torch.int64)
    place[order] = torch.arange(25)
    shuffled = Data(x=data.x[order], edge_index=place[data.edge_index], ids=[ids[i] for i in order.tolist()])
    torch.testing.assert_close(model.embed(shuffled), model.embed(data)[order], atol=1e-4, rtol=1e-3)


def ids_of(*some: object) -> list[int]:
    """The keys of three nodes with these ids."""
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0], [1]]))
    data.ids = some[0] if len(some) == 1 else list(some)
    return ReadyGraph(check_graph(data), "cpu").prepared.keys.tolist()


@pytest.mark.parametrize(
    "ids",
    [
        (0, -1, 2**62),
        ("a", "b", ""),
        ("", "ä", "a"),
        (1, "a", None),
        (0.5, 0.7, 1.0),
        (b"a", b"b", b"c"),
        ((1, 2), (2, 1), (3,)),
        (2**70, 2**71, 1),
        (torch.tensor([5, 6, 7]),),
        (np.array([2**63 + 5, 1, 2], dtype=np.uint64),),
        (np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]"),),
    ],
    ids=str,
)
def test_ids_of_any_kind_are_different_keys(ids):
    assert len(set(ids_of(*ids))) == 3
    assert ids_of(*ids) == ids_of(*ids)


def test_the_key_of_an_id_does_not_depend_on_its_place_or_its_container():
    first = ids_of("x", "yy", "z")
    assert ids_of("z", "x", "yy") == [first[2], first[0], first[1]]
    assert ids_of(np.array(["x", "yy", "z"])) == ids_of(np.array(["x", "yy", "z"], dtype=object)) == first
    assert (
        ids_of(4, 5, 6)
        == ids_of(np.int64(4), np.int8(5), 6)
        == ids_of(torch.tensor([4, 5, 6]))
        == ids_of(np.array([4, 5, 6], dtype=np.int32))
    )


@pytest.mark.parametrize(
    ("kind", "with_ids", "warns"), [("default", False, True), ("default", True, False), ("paper", False, False)]
)
def test_another_graph_without_ids_gives_one_warning_if_nodes_have_positions(kind, with_ids, warns, caplog):
    data = small_data()
    if with_ids:
        data.ids = np.arange(25)
    model = small_model(data, kind)
    model.embed(data)
    model.embed(data.clone())  # the same graph in other tensors
    assert not caplog.records
    other = Data(x=data.x[:20], edge_index=data.edge_index[:, (data.edge_index < 20).all(0)])
    if with_ids:
        other.ids = np.arange(20)
    model.embed(other)
    model.sample(other, 2)
    assert ["not the training graph, and its nodes have no ids" in each.message for each in caplog.records] == [
        True
    ] * warns


def test_without_ids_a_node_is_known_by_its_number():
    ready = ReadyGraph(check_graph(small_data()), "cpu")
    assert ready.prepared.keys is None
    data = small_data()
    model = small_model(data, "default", parts=("structure",))
    again = Data(x=data.x.clone(), edge_index=data.edge_index.clone())
    torch.testing.assert_close(model.embed(again), model.embed(data))
