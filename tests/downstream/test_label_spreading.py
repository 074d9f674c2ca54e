"""Labels that spread through graphs: against a plain loop and a closed form, and as heads of a pool."""

import math

import numpy as np
import pytest
import torch

import bgcl
from bgcl import BGCLError, MixtureClassifier
from bgcl.downstream import BestPartClassifier, LabelSpreading, NodeDraws
from bgcl.downstream.head_stack import HeadStack
from bgcl.downstream.label_spreading import FOLDS, PRIOR, SHARE, STEPS, _normalized, _spread
from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.sparse import Pattern, row_pointer

RANDOM = np.random.default_rng(0)


def graph_of(weights: np.ndarray) -> PreparedGraph:
    """A graph with self-connections from a symmetric matrix of weights."""
    full = torch.as_tensor(weights + np.eye(len(weights)), dtype=torch.float32)
    row, column = full.nonzero().T
    pattern = Pattern(row_pointer(row, len(full)), column, len(full))
    return PreparedGraph(pattern, torch.zeros(len(full), 1), weights=full[row, column])


def random_weights(nodes: int = 12, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    upper = np.triu(random.random((nodes, nodes)) * (random.random((nodes, nodes)) < 0.3), 1)
    return upper + upper.T


def loop_logits(weights: np.ndarray, nodes: list[int], codes: list[int], classes: int) -> np.ndarray:
    """The equation, number by number."""
    many = len(weights)
    degree = [sum(weights[i]) for i in range(many)]
    scaled = [
        [weights[i][j] / math.sqrt(degree[i] * degree[j]) if weights[i][j] else 0.0 for j in range(many)]
        for i in range(many)
    ]  # fmt: skip
    label = {node: code for node, code in zip(nodes, codes, strict=True)}
    start = [[float(label.get(i) == c) for c in range(classes)] for i in range(many)]
    found = start
    for _ in range(STEPS):
        found = [
            [
                SHARE * sum(scaled[i][j] * found[j][c] for j in range(many))
                + (1 - SHARE) * start[i][c]
                for c in range(classes)
            ]
            for i in range(many)
        ]  # fmt: skip
    frequency = [(codes.count(c) + 1) / (len(codes) + classes) for c in range(classes)]
    logits = [[found[i][c] + PRIOR * frequency[c] for c in range(classes)] for i in range(many)]
    return np.log([[value / sum(row) for value in row] for row in logits])


def test_logits_equal_a_plain_loop():
    weights, nodes, codes = random_weights(), [0, 3, 4, 7, 9, 11], [0, 1, 2, 0, 1, 2]
    every, _ = LabelSpreading([graph_of(weights)]).logits(np.array(nodes), np.array(codes))
    np.testing.assert_allclose(every[0], loop_logits(weights, nodes, codes, 3), atol=1e-5)


def test_held_out_logits_are_those_of_the_labels_of_other_folds():
    weights, nodes, codes = (
        random_weights(seed=1),
        np.array([0, 1, 3, 4, 5, 7, 9, 11]),
        np.array([0, 1, 2, 0, 1, 2, 0, 1]),
    )
    spreading = LabelSpreading([graph_of(weights)])
    _, held_out = spreading.logits(nodes, codes)
    fold = spreading._folds(len(nodes))
    assert set(fold) == set(range(FOLDS))
    for number in range(FOLDS):
        kept = fold != number
        expected = loop_logits(weights, nodes[kept].tolist(), codes[kept].tolist(), 3)
        np.testing.assert_allclose(held_out[0][~kept], expected[nodes[~kept]], atol=1e-5)


def test_a_node_s_own_label_does_not_reach_its_held_out_logits():
    nodes, codes = np.arange(10), np.arange(10) % 2
    spreading = LabelSpreading([graph_of(random_weights(10, seed=2))])
    _, before = spreading.logits(nodes, codes)
    for node in range(10):
        changed = codes.copy()
        changed[node] = 1 - changed[node]
        _, after = spreading.logits(nodes, changed)
        np.testing.assert_array_equal(before[0, node], after[0, node])


def test_a_node_that_is_given_twice_does_not_see_its_own_label():
    nodes, codes = np.array([0, 1, 2, 3, 4, 5, 5]), np.array([0, 1, 0, 1, 0, 1, 1])
    spreading = LabelSpreading([graph_of(random_weights(10, seed=2))])
    _, before = spreading.logits(nodes, codes)
    _, after = spreading.logits(nodes, np.array([0, 1, 0, 1, 0, 0, 0]))
    np.testing.assert_array_equal(before[0, 5:], after[0, 5:])


def test_many_steps_are_the_closed_form():
    S = _normalized(graph_of(random_weights(seed=3)))
    start = RANDOM.random((12, 2)).astype(np.float32)
    limit = (1 - SHARE) * np.linalg.solve(np.eye(12) - SHARE * S.toarray(), start)
    assert np.abs(_spread(S, start) - limit).max() <= SHARE**STEPS * np.abs(start).sum()


def test_other_numbers_of_the_nodes_give_the_same_logits():
    weights, nodes, codes = random_weights(seed=4), np.array([0, 3, 4, 7]), np.array([0, 1, 1, 0])
    order = RANDOM.permutation(12)
    place = np.argsort(order)
    every, _ = LabelSpreading([graph_of(weights)]).logits(nodes, codes)
    other, _ = LabelSpreading([graph_of(weights[np.ix_(order, order)])]).logits(place[nodes], codes)
    np.testing.assert_allclose(every[0][order], other[0], atol=1e-5)


def test_a_node_without_neighbors_has_the_frequencies():
    weights = random_weights(seed=5)
    weights[2] = weights[:, 2] = 0
    every, _ = LabelSpreading([graph_of(weights)]).logits(np.array([0, 3, 4]), np.array([0, 0, 1]))
    np.testing.assert_allclose(np.exp(every[0, 2]), [3 / 5, 2 / 5], atol=1e-6)


def labeled_draws(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws that say nothing, logits that know the class, and the classes."""
    random = np.random.default_rng(seed)
    y = np.arange(90) % 3
    logits = random.normal(size=(2, 90, 3))
    logits[0] += 3 * np.eye(3)[y]
    return random.normal(size=(3, 90, 8)).astype(np.float32), logits.astype(np.float32), y


def test_a_pool_takes_the_source_that_knows_the_class():
    draws, logits, y = labeled_draws()
    head = MixtureClassifier(parts=2).fit(NodeDraws(draws, logits), y)
    assert head.beside_weights_[0] > 10 * head.beside_weights_[1]
    assert (head.predict(NodeDraws(draws, logits)) == y).mean() > 0.9
    assert (MixtureClassifier(parts=2).fit(draws, y).predict(draws) == y).mean() < 0.8


def test_logits_of_the_pool_are_the_sum_of_all_heads():
    draws, logits, y = labeled_draws(1)
    head = MixtureClassifier(parts=2, kernel=False, normalize=False).fit(NodeDraws(draws, logits), y)
    W, c = head.coefficients_[:-3].reshape(8, 3), head.coefficients_[-3:]
    added = sum(w * source for w, source in zip(head.weights_[-2:], logits, strict=True))
    expected = head.stretch_((draws @ W + c + added).astype(np.float64))
    expected = np.exp(expected) / np.exp(expected).sum(2, keepdims=True)
    np.testing.assert_allclose(head.predict_samples(NodeDraws(draws, logits)), expected, atol=1e-5)


def test_a_stack_of_heads_predicts_what_each_head_predicts():
    draws, logits, y = labeled_draws(2)
    parts = [np.arange(0, 60), np.arange(30, 90)]
    heads = [MixtureClassifier(parts=2).fit(NodeDraws(draws[:, p], logits[:, p]), y[p]) for p in parts]
    nodes = [np.arange(60, 90), np.arange(30)]
    found = HeadStack(heads).predict_proba(draws, nodes, [logits[:, n] for n in nodes])
    expected = [h.predict_proba(NodeDraws(draws[:, n], logits[:, n])) for h, n in zip(heads, nodes, strict=True)]
    np.testing.assert_allclose(found.T, np.concatenate(expected), atol=1e-5)


def test_draws_and_logits_are_indexed_together():
    draws, logits, _ = labeled_draws(3)
    both = NodeDraws(draws, logits)[[4, 2]]
    np.testing.assert_array_equal(both.beside, logits[:, [4, 2]])
    np.testing.assert_array_equal(both.draws, draws[:, [4, 2]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d, b, y: NodeDraws(d, b[:, :5]), "must have the shape"),
        (lambda d, b, y: MixtureClassifier().fit(NodeDraws(d, b[:, :, :2]), y), "of 2 classes, but there are 3"),
        (lambda d, b, y: BestPartClassifier(parts=2).fit(NodeDraws(d, b), y), "cannot take logits beside"),
        (lambda d, b, y: MixtureClassifier().fit(NodeDraws(d, b), y).predict(d), "fitted with 2 sources"),
        (lambda d, b, y: MixtureClassifier().fit(d, y).predict(NodeDraws(d, b)), "fitted with 0 sources"),
        (lambda d, b, y: MixtureClassifier(C=1.0).fit(NodeDraws(d, b), y), 'needs C="cv"'),
    ],
)  # fmt: skip
def test_logits_that_do_not_fit_are_refused(make, message: str):
    with pytest.raises(BGCLError, match=message):
        make(*labeled_draws(4))


def groups_of_nodes():
    """Groups of nodes with many edges within, whose attributes say nothing, and whose classes are random."""
    from torch_geometric.data import Data

    random = np.random.default_rng(0)
    group = np.arange(240) // 12
    same = group[:, None] == group[None, :]
    upper = np.triu(random.random((240, 240)) < np.where(same, 0.5, 0.002), 1)
    label = random.integers(0, 2, 20)[group]
    edges = torch.as_tensor(np.stack(np.nonzero(upper | upper.T)))
    return Data(
        x=torch.as_tensor(random.random((240, 6)), dtype=torch.float32), edge_index=edges, y=torch.as_tensor(label)
    )


def test_labels_of_neighbors_help_where_attributes_say_nothing():
    data = groups_of_nodes()
    model = bgcl.BGCL(widths=(16, 8), epochs=1, part_width=4).fit(data, progress=False)
    with_labels, without = (
        np.mean([r.correct.mean() for r in bgcl.evaluate(model, data, "half", 3, samples=4, spread_labels=spread)])
        for spread in (True, False)
    )
    assert with_labels > without + 0.05
    assert with_labels > 0.9


def test_predictions_of_labeled_nodes_do_not_use_their_own_label():
    data = groups_of_nodes()
    model = bgcl.BGCL(widths=(16, 8), epochs=1, part_width=4).fit(data, progress=False)
    wrong = data.clone()
    wrong.y = data.y.clone()
    wrong.y[5] = 1 - wrong.y[5]
    found = bgcl.predict(model, wrong, samples=4)
    assert found.predicted[5] == int(data.y[5])  # as its group


def test_only_labels_of_the_graph_itself_are_spread():
    data = groups_of_nodes()
    model = bgcl.BGCL(widths=(16, 8), epochs=1).fit(data, progress=False)
    with pytest.raises(BGCLError, match="Only labels of the graph itself"):
        bgcl.predict(model, data, samples=4, labels_from=data, spread_labels=True)
