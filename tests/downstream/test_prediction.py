"""Predictions for every node, by heads that were not trained on the node's label."""

from functools import partial

import numpy as np
import pytest
import torch
from sklearn.model_selection import StratifiedKFold
from torch_geometric.data import Data

from bgcl import BGCL, BGCLError, predict, uncertainty
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import head_for
from bgcl.downstream.label_spreading import LabelSpreading
from bgcl.downstream.node_predictions import NodePredictions
from bgcl.downstream.prediction import Prediction
from bgcl.graph.csr import without_beta_warning
from bgcl.measures.uncertainty import MEASURES
from bgcl.model import astd
from bgcl.processes.team import Team
from trained import narrow

NODES = 36


class FixedDraws:
    """A stand-in for a model, with given draws."""

    parts_, team = (4,), Team()

    def __init__(self, sampled) -> None:
        self.sampled = torch.as_tensor(sampled)

    def draws(self, data: Data, samples: int, *, seed: int | None = None):
        return iter(self.sampled[:samples])

    def in_blocks(self, data: Data) -> None:
        return None


def make_graph(unlabeled: int = 6, classes: int = 3) -> Data:
    y = torch.arange(NODES) % classes
    y[:unlabeled] = -1
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, 90), generator=generator)
    return Data(x=torch.rand(NODES, 5, generator=generator), edge_index=edges, y=y)


def random_draws(data: Data, samples: int = 16) -> np.ndarray:
    random = np.random.default_rng(0)
    center = random.normal(size=(NODES, 4)) + np.eye(4)[np.asarray(data.y)]
    return center + 0.5 * random.normal(size=(samples, NODES, 4))


@pytest.fixture(scope="module", params=["gcn", "mlp"])
def model(request) -> BGCL:
    return BGCL(**narrow(request.param), epochs=2).fit(make_graph(), progress=False)


def test_a_tiny_model_predicts_every_node(model):
    data = make_graph()
    found = predict(model, data, samples=14, seed=2)
    assert found.uncertainty.probability.shape == (NODES, 3)
    np.testing.assert_allclose(found.uncertainty.probability.sum(1), 1, atol=1e-5)
    assert (found.uncertainty.probability >= 0).all()
    np.testing.assert_array_equal(found.label, data.y)
    np.testing.assert_array_equal(found.predicted, found.uncertainty.probability.argmax(1))
    np.testing.assert_allclose(found.astd, astd(model.sample(data, 14, seed=2)), atol=1e-6)
    again = predict(model, data, samples=14, seed=2)
    np.testing.assert_array_equal(found.uncertainty.probability, again.uncertainty.probability)


def test_no_node_is_predicted_by_a_head_trained_on_its_label():
    """Each node has its own attribute, so a head knows only the shares of the classes about a node that it was not
    trained on. All nodes of one fold get the same prediction. A head trained on the node would predict its label.
    """
    data = make_graph(unlabeled=0)
    found = predict(FixedDraws(np.eye(NODES)[None].repeat(14, 0)), data, samples=14, folds=5)
    rows = np.unique(found.uncertainty.probability.round(10), axis=0)
    assert len(rows) <= 5
    assert np.mean(found.predicted == found.label) < 0.6
    seen = MixtureClassifier().fit(np.eye(NODES), data.y)
    assert seen.score(np.eye(NODES), data.y) == 1, "without this, the test would not notice a leak"


def test_changing_a_label_changes_other_predictions_but_not_its_own(monkeypatch):
    class EveryThird:
        """Folds that do not depend on the labels."""

        def __init__(self, *args, **kwargs) -> None: ...

        def split(self, nodes, labels):
            fold = np.arange(len(nodes)) // 3 % 3
            return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(3)]

    monkeypatch.setattr("bgcl.downstream.prediction.StratifiedKFold", EveryThird)
    data, flipped, node = make_graph(), make_graph(), 20
    flipped.y[node] = (flipped.y[node] + 1) % 3
    stand_in = FixedDraws(random_draws(data))
    before, after = (predict(stand_in, d, samples=16).uncertainty.probability for d in (data, flipped))
    np.testing.assert_array_equal(before[node], after[node])
    assert np.abs(before - after).max() > 1e-3


def test_unlabeled_nodes_are_predicted_by_a_head_trained_on_all_labels():
    data = make_graph()
    draws = random_draws(data)
    found = predict(FixedDraws(draws), data, samples=16, training_draws=6)
    labeled = np.arange(6, NODES)
    head = MixtureClassifier().fit(draws[:6, labeled], np.asarray(data.y)[labeled])
    expected = uncertainty(head.predict_samples(draws[6:, :6]))
    np.testing.assert_allclose(found.uncertainty.probability[:6], expected.probability, atol=1e-9)
    for name in MEASURES:
        np.testing.assert_allclose(getattr(found.uncertainty, name)[:6], getattr(expected, name), atol=1e-9)


def test_only_the_draws_of_labeled_nodes_are_kept_and_refused_if_they_do_not_fit(monkeypatch):
    data = make_graph()
    draws = random_draws(data)
    needed = 3 * 6 * (NODES - 6) * draws[0, 0].nbytes
    monkeypatch.setattr("bgcl.data.memory.free_memory", lambda: needed)
    assert len(predict(FixedDraws(draws), data, samples=16, training_draws=6).label) == NODES
    monkeypatch.setattr("bgcl.data.memory.free_memory", lambda: needed - 1)
    with pytest.raises(BGCLError, match=f"6 draws of {NODES - 6} labeled nodes"):
        predict(FixedDraws(draws), data, samples=16, training_draws=6)


@pytest.mark.parametrize("processors", [1, 3])
def test_heads_that_are_fitted_side_by_side_predict_the_same(monkeypatch, processors):
    data = make_graph()
    draws = random_draws(data)
    expected = predict(FixedDraws(draws), data, samples=16).uncertainty.probability
    monkeypatch.setattr("os.cpu_count", lambda: processors)
    found = predict(FixedDraws(draws), data, samples=16).uncertainty.probability
    np.testing.assert_array_equal(found, expected)


def grown_graph() -> tuple[Data, Data, dict[int, np.ndarray]]:
    """A labeled graph, a graph of ten of its nodes in another order and two new nodes, and draws for both by size."""
    old = make_graph()
    old.ids = np.array([f"node {i}" for i in range(NODES)])
    kept = np.random.default_rng(1).permutation(NODES)[:10]
    new = Data(x=torch.rand(12, 5), edge_index=torch.randint(12, (2, 30)))
    new.ids = np.array([*(f"node {i}" for i in kept), "new 0", "new 1"])
    draws = random_draws(old)
    others = np.random.default_rng(2).normal(size=(16, 2, 4))
    return old, new, {NODES: draws, 12: np.concatenate([draws[:, kept] + 0.1, others], axis=1)}


class DrawsBySize:
    """A stand-in for a model, with given draws for each size of a graph."""

    parts_, team = (4,), Team()

    def __init__(self, draws: dict[int, np.ndarray]) -> None:
        self.by_size = draws

    def in_blocks(self, data: Data) -> None:
        return None

    def draws(self, data: Data, samples: int, *, seed: int | None = None):
        return iter(torch.as_tensor(self.by_size[data.num_nodes][:samples]))


def test_with_labels_from_another_graph_nodes_are_matched_by_id():
    """A loop over the nodes of the new graph finds the head that predicts each of them."""
    old, new, draws = grown_graph()
    found = predict(DrawsBySize(draws), new, samples=16, training_draws=6, folds=3, labels_from=old)
    labels = np.asarray(old.y)
    labeled = np.flatnonzero(labels >= 0)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(labeled, labels[labeled]))
    for node, name in enumerate(new.ids):
        number = int(name.split()[1]) if name.startswith("node") else -1
        train = labeled
        for others, fold in folds:
            if number in labeled[fold]:
                train = labeled[others]
        head = MixtureClassifier().fit(draws[NODES][:6, train], labels[train])
        expected = head.predict_proba(draws[12][6:, [node]])[0]
        np.testing.assert_allclose(found.uncertainty.probability[node], expected, atol=1e-9)
        assert found.label[node] == (labels[number] if number >= 0 else -1)
    np.testing.assert_array_equal(found.columns()["id"], new.ids)


def test_without_ids_no_node_is_matched_and_one_head_predicts_all(caplog):
    old, new, draws = grown_graph()
    del old.ids
    found = predict(DrawsBySize(draws), new, samples=16, training_draws=6, labels_from=old)
    labeled = np.arange(6, NODES)
    head = MixtureClassifier().fit(draws[NODES][:6, labeled], np.asarray(old.y)[labeled])
    np.testing.assert_allclose(found.uncertainty.probability, head.predict_proba(draws[12][6:]), atol=1e-9)
    np.testing.assert_array_equal(found.label, -1)
    assert "the label of a shared node helps to predict this node" in caplog.text


@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_graph_without_ids_gives_each_node_one_label_that_does_not_predict_it(sparse, caplog):
    data, copied = make_graph(), make_graph()
    if sparse:
        copied.x = without_beta_warning(copied.x.to_sparse_csr)
    draws = random_draws(data)
    found = predict(FixedDraws(draws), data, samples=16, training_draws=6, labels_from=copied)
    alone = predict(FixedDraws(draws), data, samples=16, training_draws=6)
    np.testing.assert_array_equal(found.uncertainty.probability, alone.uncertainty.probability)
    assert not caplog.records


def predict_draws(draws, data: Data, **how) -> NodePredictions:
    prediction = Prediction(data, **how)
    for _ in prediction.watch(draws):
        pass
    return prediction.result()


def test_predicting_from_draws_equals_predicting_from_the_model(model):
    data = make_graph()
    one = predict(model, data, samples=14, training_draws=5, seed=2)
    spreading = partial(LabelSpreading.of, model, data) if len(model.parts_) > 1 else None
    stream = model.draws(data, 14, seed=2)
    other = predict_draws(stream, data, training_draws=5, parts=model.parts_, spreading=spreading)
    for name, column in one.columns().items():
        np.testing.assert_array_equal(column, other.columns()[name])


def test_embeddings_in_parts_are_predicted_by_heads_that_know_the_parts():
    data = make_graph()
    draws = random_draws(data)
    found = predict_draws(iter(torch.as_tensor(draws)), data, training_draws=6, parts=(1, 3))
    labeled = np.arange(6, NODES)
    head = head_for((1, 3))().fit(draws[:6, labeled], np.asarray(data.y)[labeled])
    expected = uncertainty(head.predict_samples(draws[6:, :6]))
    np.testing.assert_allclose(found.uncertainty.probability[:6], expected.probability, atol=1e-9)
    plain = predict_draws(iter(torch.as_tensor(draws)), data, training_draws=6)
    assert np.abs(plain.uncertainty.probability - found.uncertainty.probability).max() > 1e-3


def test_class_numbers_may_have_gaps():
    data = make_graph()
    draws = random_draws(data)
    plain = predict(FixedDraws(draws), data, samples=16)
    names = torch.tensor([2, 5, 9])
    other = Data(x=data.x, edge_index=data.edge_index, y=torch.where(data.y < 0, -1, names[data.y.clamp(min=0)]))
    found = predict(FixedDraws(draws), other, samples=16)
    np.testing.assert_array_equal(found.classes, names)
    np.testing.assert_array_equal(found.predicted, np.asarray(names)[plain.predicted])


def test_the_table_has_a_row_for_each_node():
    data = make_graph()
    found = predict(FixedDraws(random_draws(data)), data, samples=16)
    columns = found.columns()
    assert list(columns) == ["node", "label", "predicted", "probability", *MEASURES, "astd", "p_0", "p_1", "p_2"]
    assert {len(column) for column in columns.values()} == {NODES}
    np.testing.assert_allclose(columns["probability"], np.max([columns[f"p_{c}"] for c in range(3)], axis=0))


def graph_with_counts(counts: list[int]) -> Data:
    """A graph with this number of labeled nodes of each class. All other nodes are unlabeled."""
    data = make_graph()
    labels = np.repeat(np.arange(len(counts)), counts)
    data.y = torch.full((NODES,), -1)
    data.y[: len(labels)] = torch.as_tensor(labels)
    return data


@pytest.mark.parametrize("least", [3, 4, 5])
def test_three_labeled_nodes_of_a_class_are_enough(least):
    data = graph_with_counts([10, least])
    found = predict(FixedDraws(random_draws(data)), data, samples=16)
    assert np.isfinite(found.uncertainty.probability).all()


@pytest.mark.parametrize("few", [1, 2])
def test_a_class_with_one_or_two_labeled_nodes_trains_every_head_and_is_never_held_out(few):
    """A loop over the folds of the other nodes finds the head that predicts each node. A single node counts twice."""
    data = graph_with_counts([10, 10, few])
    draws = random_draws(data)
    found = predict(FixedDraws(draws), data, samples=16, training_draws=6, folds=3)
    labels, always = np.asarray(data.y), np.arange(20, 20 + few)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(np.arange(20), labels[:20]))
    for node in range(NODES):
        train = next((train for train, test in folds if node in test), np.arange(20))
        train = np.concatenate([train, always, always[: 2 - few]])
        head = MixtureClassifier().fit(draws[:6, train], labels[train])
        expected = head.predict_proba(draws[6:, [node]])[0]
        np.testing.assert_allclose(found.uncertainty.probability[node], expected, atol=1e-9)


@pytest.mark.parametrize("samples", [5, 10])
def test_too_few_samples_are_refused(samples):
    data = make_graph()
    with pytest.raises(BGCLError, match=f"Of {samples} samples, 10 train the heads: none is left"):
        predict(FixedDraws(random_draws(data)), data, samples=samples, training_draws=10)


def test_a_single_class_and_no_labels_are_refused():
    data = graph_with_counts([12])
    with pytest.raises(BGCLError, match="1 class"):
        predict(FixedDraws(random_draws(data)), data, samples=16)
    data.y = None
    with pytest.raises(BGCLError, match="no labels"):
        predict(FixedDraws(np.zeros((16, NODES, 2))), data, samples=16)


@pytest.mark.parametrize("wrong", [(NODES - 1, 4), (NODES, 3), (4,)])
def test_a_draw_of_another_shape_is_refused(wrong):
    data = make_graph()
    draws = [*torch.as_tensor(random_draws(data, 3)).float(), torch.zeros(wrong)]
    with pytest.raises(BGCLError, match=rf"Each draw must have the shape \({NODES} nodes, width\) of the others"):
        predict_draws(draws, data, training_draws=2)
