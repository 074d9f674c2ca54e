"""Predictions for every node, none of them by a head that saw the node's own label."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bgcl import BGCL, BGCLError, astd, predict_nodes, uncertainty
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.measures.uncertainty import MEASURES

NODES = 36


class FixedDraws:
    """Stands in for a model: its draws are given."""

    def __init__(self, sampled) -> None:
        self.sampled = torch.as_tensor(sampled)

    def draws(self, data: Data, samples: int, *, seed: int | None = None):
        return iter(self.sampled[:samples])


def make_graph(unlabelled: int = 6, classes: int = 3) -> Data:
    y = torch.arange(NODES) % classes
    y[:unlabelled] = -1
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, 90), generator=generator)
    return Data(x=torch.rand(NODES, 5, generator=generator), edge_index=edges, y=y)


def random_draws(data: Data, samples: int = 16) -> np.ndarray:
    random = np.random.default_rng(0)
    centre = random.normal(size=(NODES, 4)) + np.eye(4)[np.asarray(data.y)]
    return centre + 0.5 * random.normal(size=(samples, NODES, 4))


@pytest.fixture(scope="module")
def model() -> BGCL:
    return BGCL(widths=(8, 4), epochs=2).fit(make_graph(), progress=False)


def test_a_tiny_model_predicts_every_node(model):
    data = make_graph()
    found = predict_nodes(model, data, samples=14, seed=2)
    assert found.uncertainty.probability.shape == (NODES, 3)
    np.testing.assert_allclose(found.uncertainty.probability.sum(1), 1, atol=1e-5)
    assert (found.uncertainty.probability >= 0).all()
    np.testing.assert_array_equal(found.label, data.y)
    np.testing.assert_array_equal(found.predicted, found.uncertainty.probability.argmax(1))
    np.testing.assert_allclose(found.astd, astd(model.sample(data, 14, seed=2)), atol=1e-6)
    again = predict_nodes(model, data, samples=14, seed=2)
    np.testing.assert_array_equal(found.uncertainty.probability, again.uncertainty.probability)


def test_no_node_is_predicted_by_a_head_that_saw_its_label():
    """Where each node has an attribute of its own, a head knows nothing of a node it has not seen but the shares of
    the classes: all nodes of one fold get the same prediction. A head that saw the node would give its label.
    """
    data = make_graph(unlabelled=0)
    found = predict_nodes(FixedDraws(np.eye(NODES)[None].repeat(14, 0)), data, samples=14, folds=5)
    rows = np.unique(found.uncertainty.probability.round(10), axis=0)
    assert len(rows) <= 5
    assert np.mean(found.predicted == found.label) < 0.6
    seen = MixtureClassifier().fit(np.eye(NODES), data.y)
    assert seen.score(np.eye(NODES), data.y) == 1, "the test would not notice a leak"


def test_flipping_a_label_changes_other_predictions_and_not_its_own(monkeypatch):
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
    before, after = (predict_nodes(stand_in, d, samples=16).uncertainty.probability for d in (data, flipped))
    np.testing.assert_array_equal(before[node], after[node])
    assert np.abs(before - after).max() > 1e-3


def test_unlabelled_nodes_are_predicted_by_a_head_that_saw_all_labels():
    data = make_graph()
    draws = random_draws(data)
    found = predict_nodes(FixedDraws(draws), data, samples=16, training_draws=6)
    labelled = np.arange(6, NODES)
    head = MixtureClassifier().fit(draws[:6, labelled], np.asarray(data.y)[labelled])
    expected = uncertainty(head.predict_samples(draws[6:, :6]))
    np.testing.assert_allclose(found.uncertainty.probability[:6], expected.probability, atol=1e-9)
    for name in MEASURES:
        np.testing.assert_allclose(getattr(found.uncertainty, name)[:6], getattr(expected, name), atol=1e-9)


def test_classes_need_not_be_numbered_without_gaps():
    data = make_graph()
    draws = random_draws(data)
    plain = predict_nodes(FixedDraws(draws), data, samples=16)
    names = torch.tensor([2, 5, 9])
    other = Data(x=data.x, edge_index=data.edge_index, y=torch.where(data.y < 0, -1, names[data.y.clamp(min=0)]))
    found = predict_nodes(FixedDraws(draws), other, samples=16)
    np.testing.assert_array_equal(found.classes, names)
    np.testing.assert_array_equal(found.predicted, np.asarray(names)[plain.predicted])


def test_the_table_has_a_row_for_each_node():
    data = make_graph()
    found = predict_nodes(FixedDraws(random_draws(data)), data, samples=16)
    columns = found.columns()
    assert list(columns) == ["node", "label", "predicted", "probability", *MEASURES, "astd", "p_0", "p_1", "p_2"]
    assert {len(column) for column in columns.values()} == {NODES}
    np.testing.assert_allclose(columns["probability"], np.max([columns[f"p_{c}"] for c in range(3)], axis=0))


def labelled_thus(counts: list[int]) -> Data:
    """So many labelled nodes of each class, the others unlabelled."""
    data = make_graph()
    labels = np.repeat(np.arange(len(counts)), counts)
    data.y = torch.full((NODES,), -1)
    data.y[: len(labels)] = torch.as_tensor(labels)
    return data


@pytest.mark.parametrize("least", [3, 4, 5])
def test_three_labelled_nodes_of_a_class_are_enough(least):
    """As the error for fewer says."""
    data = labelled_thus([10, least])
    found = predict_nodes(FixedDraws(random_draws(data)), data, samples=16)
    assert np.isfinite(found.uncertainty.probability).all()


@pytest.mark.parametrize("few", [1, 2])
def test_a_class_with_too_few_labelled_nodes_is_refused(few):
    data = labelled_thus([10, few])
    with pytest.raises(BGCLError, match=f"Class 1 has {few} labelled nodes: predictions need three or more"):
        predict_nodes(FixedDraws(random_draws(data)), data, samples=16)


@pytest.mark.parametrize("samples", [5, 10])
def test_too_few_samples_are_refused(samples):
    data = make_graph()
    with pytest.raises(BGCLError, match=f"Of {samples} samples 10 train the heads: none is left"):
        predict_nodes(FixedDraws(random_draws(data)), data, samples=samples, training_draws=10)


def test_a_single_class_and_no_labels_are_refused():
    data = labelled_thus([12])
    with pytest.raises(BGCLError, match="1 class"):
        predict_nodes(FixedDraws(random_draws(data)), data, samples=16)
    data.y = None
    with pytest.raises(BGCLError, match="no labels"):
        predict_nodes(FixedDraws(np.zeros((16, NODES, 2))), data, samples=16)
