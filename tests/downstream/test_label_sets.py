"""Several labels per node: each label like a classifier of its own, scores as plain loops, and no leak."""

import copy

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import bgcl
from bgcl import BGCLError, MixtureClassifier, splits
from bgcl.baselines.label_set_floors import LabelSetFloor, label_set_floors, label_set_verdict
from bgcl.downstream import KeptResults
from bgcl.downstream.evaluation import summary
from bgcl.downstream.label_set_heads import Job, LabelSetHeads
from bgcl.downstream.label_set_results import LabelSetResult, SetUncertainty, label_ece, written
from bgcl.downstream.label_sets import evaluate_label_sets, gather_label_sets, predict_label_sets
from bgcl.downstream.splits import label_sets_of, labels_of, usual_protocol
from bgcl.processes.team import Team

NODES = 300


class FixedDraws:
    """A stand-in for a model: embeddings that show three of the labels, with noise, and little more in every draw."""

    parts_, team = (4,), Team()

    def in_blocks(self, data: Data) -> None:
        return None

    def draws(self, data: Data, samples: int, *, seed: int | None = None):
        random = np.random.default_rng(7)
        place = true_sets() - 0.5 + 0.3 * random.normal(size=(NODES, 4))
        place[:, 3] = 0  # nothing shows the fourth
        for _ in range(samples):
            yield torch.as_tensor(place + 0.02 * random.normal(size=place.shape), dtype=torch.float32)


def true_sets() -> np.ndarray:
    """Three frequent labels, and a fourth that one node has."""
    sets = np.random.default_rng(0).random((NODES, 4)) < [0.5, 0.3, 0.2, 0]
    sets[0, 3] = True
    return sets.astype(int)


def synthetic() -> Data:
    ring = np.arange(NODES)
    edges = torch.as_tensor(np.stack([ring, (ring + 1) % NODES]))
    data = Data(x=torch.eye(NODES), edge_index=edges, y=torch.as_tensor(true_sets()))
    data.y[-30:] = -1
    data.classes = ["a", "b", "c", "d"]
    return data


def random_result(seed: int = 0, nodes: int = 40, labels: int = 5) -> LabelSetResult:
    random = np.random.default_rng(seed)
    p = random.random((nodes, labels)).round(2)
    y = (random.random((nodes, labels)) < p).astype(int)
    y[:, -1] = 0
    return LabelSetResult(np.arange(nodes), y, SetUncertainty(p, np.zeros(nodes), np.zeros(nodes)))


def test_f1_is_that_of_a_plain_loop():
    result = random_result()
    p, y = result.uncertainty.probability, result.label
    each, total = [], np.zeros(3)
    for label in range(5):
        hit = sum(1 for i in range(40) if p[i, label] >= 0.5 and y[i, label] == 1)
        false = sum(1 for i in range(40) if p[i, label] >= 0.5 and y[i, label] == 0)
        missed = sum(1 for i in range(40) if p[i, label] < 0.5 and y[i, label] == 1)
        each.append(2 * hit / (2 * hit + false + missed))
        total += [hit, false, missed]
    scores = result.scores()
    assert scores["macro_f1"] == pytest.approx(np.mean(each[:-1]))  # no node has the last label
    assert scores["micro_f1"] == pytest.approx(2 * total[0] / (2 * total[0] + total[1] + total[2]))
    right = [all((p[i, k] >= 0.5) == bool(y[i, k]) for k in range(5)) for i in range(40)]
    assert scores["right_sets"] == np.mean(right)


def test_average_precision_is_the_mean_precision_at_the_ranks_of_the_nodes_with_the_label():
    result = random_result(3)
    found = []
    for label in range(4):
        p, y = result.uncertainty.probability[:, label], result.label[:, label]
        precision = [y[p >= p[i]].mean() for i in range(40) if y[i]]
        found.append(np.mean(precision))
    assert result.scores()["average_precision"] == pytest.approx(np.mean(found))
    assert np.isnan(result.each_label()["average_precision"][-1])


def test_the_calibration_error_of_a_label_is_that_of_a_plain_loop():
    random = np.random.default_rng(5)
    p = np.append(random.random(200), [0.0, 1.0])
    y = (random.random(202) < 0.3).astype(int)
    expected = 0.0
    for b in range(15):
        inside = [i for i in range(202) if min(int(p[i] * 15), 14) == b]
        if inside:
            expected += len(inside) / 202 * abs(np.mean(p[inside]) - np.mean(y[inside]))
    assert label_ece(p, y) == pytest.approx(expected)


def test_the_least_confidence_is_the_probability_of_a_wrong_set():
    p = np.array([[0.9, 0.2, 0.6]])
    right = 0.0
    for chosen in np.ndindex(2, 2, 2):  # every set of three independent labels
        probability = np.prod([q if has else 1 - q for q, has in zip(p[0], chosen, strict=True)])
        right += probability * (list(chosen) == [1, 0, 1])
    assert SetUncertainty(p, np.zeros(1), np.zeros(1)).least_confidence[0] == pytest.approx(1 - right)


def test_each_label_is_predicted_like_two_classes_by_a_head_of_its_own():
    random = np.random.default_rng(1)
    draws, y = random.normal(size=(6, 80, 3)), (random.random((80, 2)) < 0.4).astype(int)
    draws[:, :, 0] += 2 * y[:, 0]
    job = Job(np.arange(50), np.arange(45, 80))
    heads = LabelSetHeads(MixtureClassifier, draws[:2], y, np.arange(80), [job])
    (found,) = heads.predict(draws[2:])
    entropies, expected = np.zeros(35), np.zeros(35)
    for label in range(2):
        head = MixtureClassifier().fit(draws[:2, :50], y[:50, label])
        each = np.array([head.predict_proba(draw)[45:, 1] for draw in draws[2:]])
        np.testing.assert_allclose(found.probability[:, label], each.mean(0), rtol=1e-6)
        for p in each:
            expected += -(p * np.log(p) + (1 - p) * np.log(1 - p)) / 4
        p = each.mean(0)
        entropies += -(p * np.log(p) + (1 - p) * np.log(1 - p))
    np.testing.assert_allclose(found.predictive_entropy, entropies, rtol=1e-6)
    np.testing.assert_allclose(found.expected_entropy, expected, rtol=1e-6)


def test_a_label_that_one_training_node_has_keeps_its_frequency():
    y = np.zeros((60, 2), dtype=int)
    y[:30, 0], y[4, 1] = 1, 1
    draws = np.random.default_rng(0).normal(size=(3, 60, 2))
    heads = LabelSetHeads(MixtureClassifier, draws[:1], y, np.arange(60), [Job(np.arange(40), np.arange(40, 60))])
    (found,) = heads.predict(draws[1:])
    share = 2 / 42
    np.testing.assert_allclose(found.probability[:, 1], share)
    own = found.probability[:, 0]
    added = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    np.testing.assert_allclose(
        found.predictive_entropy, added - own * np.log(own) - (1 - own) * np.log(1 - own), rtol=1e-6
    )


def test_labels_are_found_and_calibrated():
    results = evaluate_label_sets(FixedDraws(), synthetic(), "half", 3, samples=8)
    scores = {name: score["mean"] for name, score in summary([results]).items()}
    assert scores["micro_f1"] > 0.9
    assert scores["ece"] < 0.05
    assert results[0].each_label()["average_precision"][:3].min() > 0.9


def test_every_node_is_predicted_and_known_labels_are_kept():
    found = predict_label_sets(FixedDraws(), synthetic(), samples=8)
    columns = found.columns()
    assert columns["label"][0] == ";".join(n for n, has in zip("abcd", true_sets()[0], strict=True) if has)
    assert columns["label"][-1] is None
    assert (found.predicted[:, :3] == true_sets()[:, :3]).mean() > 0.9
    assert list(columns)[-4:] == ["p_a", "p_b", "p_c", "p_d"]


@pytest.mark.parametrize("spread", [True, False])
def test_the_own_labels_of_a_node_do_not_change_its_prediction(spread):
    data = bgcl.example_graph()
    data.y = torch.stack([data.y == 0, data.y < 2], 1).long()
    model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    before = predict_label_sets(model, data, samples=4, spread_labels=spread)
    data.y = data.y.clone()
    data.y[17] = 1 - data.y[17]
    after = predict_label_sets(model, data, samples=4, spread_labels=spread)
    np.testing.assert_allclose(
        after.uncertainty.probability[17], before.uncertainty.probability[17], rtol=1e-5
    )  # the rest changes
    assert np.abs(after.uncertainty.probability - before.uncertainty.probability).max() > 1e-4


def test_the_same_seed_gives_the_same_labels_and_what_is_kept_is_found(tmp_path, monkeypatch):
    data = bgcl.example_graph()
    data.y = torch.stack([data.y == 0, data.y < 2], 1).long()
    model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    kept = KeptResults(tmp_path, model)
    first = predict_label_sets(model, data, samples=4, kept=kept)
    monkeypatch.setattr(bgcl.BGCL, "draws", lambda *_, **__: pytest.fail("what is kept needs no draws"))
    again = predict_label_sets(model, data, samples=4, kept=KeptResults(tmp_path, model))
    for name, values in first.columns().items():
        assert (values == again.columns()[name]).all(), name


def test_labels_of_another_graph_are_matched_by_ids_and_names():
    one = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([[1, 0], [-1, -1], [0, 1]]))
    one.ids, one.classes = ["u", "v", "w"], ["a", "b"]
    other = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([[1, 0], [0, 1], [1, 1]]))
    other.ids, other.classes = ["v", "x", "u"], ["c", "b"]
    known = gather_label_sets(one, other)
    assert known.names == ["a", "b", "c"]
    assert known.of_nodes.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]  # v from the other, u of its own
    assert sorted(map(tuple, known.rows.tolist())) == [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0)]


def test_the_vote_of_neighbors_counts_each_label_like_a_plain_loop():
    data = bgcl.example_graph()
    data.y = torch.stack([data.y == 0, data.y < 2, data.y == 9], 1).long()
    split = splits(data, "half", 1)[0]
    floors = {floor.name: floor for floor in label_set_floors(data, [split])}
    y, n = data.y.numpy(), data.num_nodes
    neighbors = [set(data.edge_index[1][data.edge_index[0] == i].tolist()) - {i} for i in range(n)]
    train = set(split.train.tolist())
    share = (y[split.train].sum(0) + 1) / (len(train) + 2)
    p = np.tile(share, (n, 1))
    for i in range(n):
        near = [j for j in neighbors[i] if j in train] or [k for j in neighbors[i] for k in neighbors[j] if k in train]
        for label in range(2):
            p[i, label] = (sum(y[j, label] for j in near) + share[label]) / (len(near) + 1)
    p = p[split.test]
    expected = LabelSetResult(split.test, y[split.test], SetUncertainty(p, np.zeros(len(p)), np.zeros(len(p))))
    assert floors["vote of neighbors"].micro_f1 == pytest.approx(expected.scores()["micro_f1"])
    assert floors["vote of neighbors"].average_precision == pytest.approx(expected.scores()["average_precision"])


def test_the_verdict_is_by_average_precision():
    low, high = LabelSetFloor("low", 0.9, 0.9, 0.4, 0.1), LabelSetFloor("high", 0.1, 0.1, 0.6, 0.1)
    assert "does not pay: its average precision is 0.200 below that of 'high'" in label_set_verdict(low, [high])
    assert "0.200 above that of the best of them (low)" in label_set_verdict(high, [low])


@pytest.mark.parametrize(
    ("y", "error"),
    [
        ([[2, 0], [0, 1]], "node 0 is neither 1"),
        ([[1, 0], [-1, 1]], "some labels of node 1 are unknown"),
        ([[-1, -1], [-1, -1]], "No node is labeled"),
    ],
)
def test_wrong_values_are_refused(y, error):
    data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor(y))
    with pytest.raises(BGCLError, match=error):
        label_sets_of(data)


def test_reals_and_truth_values_are_labels_too():
    data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]))
    data.y = torch.tensor([[1.0, 0.0], [float("nan")] * 2])
    assert label_sets_of(data).tolist() == [[1, 0], [-1, -1]]
    data.y = torch.tensor([[True, False], [False, False]])
    assert label_sets_of(data).tolist() == [[1, 0], [0, 0]]
    assert usual_protocol(data) == "half"
    with pytest.raises(BGCLError, match="A node may have several labels here"):
        labels_of(data)


def test_too_few_labels_and_samples_are_refused():
    data = copy.copy(synthetic())
    data.y = data.y.clone()
    data.y[5:] = -1
    with pytest.raises(BGCLError, match="Only 5 nodes have labels"):
        predict_label_sets(FixedDraws(), data, samples=4)
    with pytest.raises(BGCLError, match="two samples or more"):
        predict_label_sets(FixedDraws(), data, samples=1)


def test_a_set_is_written_with_semicolons():
    assert written(np.array([[1, 1], [0, 0], [-1, -1]]), ["x", 7]).tolist() == ["x;7", "", None]
