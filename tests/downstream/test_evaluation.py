"""Evaluation against loops over splits and draws, the procedure of the paper's appendix, and summaries by hand."""

import statistics
import warnings
import weakref

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch_geometric.data import Data

from bgcl import BGCL, BGCLError, MixtureClassifier, evaluate, splits, uncertainty
from bgcl.downstream import LabelSpreading, evaluate_draws, summary
from bgcl.downstream.evaluation import (
    APPENDIX,
    SplitResult,
    default_training_draws,
    head_for,
    predict_all,
)
from bgcl.downstream.splits import Split
from bgcl.measures.metrics import (
    brier,
    error_aupr,
    error_auroc,
    negative_log_likelihood,
    pavpu,
    reliability,
    risk_coverage,
)
from trained import narrow

NODES = 40
LABELS = np.arange(NODES) % 2


def make_draws(count: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    center = random.normal(size=(NODES, 3)) + 0.7 * LABELS[:, None]
    return center + 0.8 * random.normal(size=(count, NODES, 3))


def make_splits(count: int = 3) -> list[Split]:
    shuffled = [np.random.default_rng(i).permutation(NODES) for i in range(count)]
    return [Split(nodes[:12], nodes[:0], nodes[12:]) for nodes in shuffled]


def head() -> MixtureClassifier:
    return MixtureClassifier(1.0)


def assert_same(one, other, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(one.probability, other.probability, atol=tolerance)
    for name, measure in one.measures().items():
        np.testing.assert_allclose(getattr(other, name), measure, atol=tolerance, err_msg=name)


def test_evaluate_draws_equals_a_loop_over_the_splits():
    draws, chosen = make_draws(30), make_splits()
    found = evaluate_draws(iter(draws), LABELS, chosen, training_draws=8)
    for split, result in zip(chosen, found, strict=True):
        fitted = MixtureClassifier().fit(draws[:8][:, split.train], LABELS[split.train])
        assert_same(result.uncertainty, uncertainty(fitted.predict_samples(draws[8:][:, split.test])))
        np.testing.assert_array_equal(result.test, split.test)
        np.testing.assert_array_equal(result.label, LABELS[split.test])
        expected = fitted.predict(draws[8:][:, split.test]) == LABELS[split.test]
        np.testing.assert_array_equal(result.correct, expected)
        assert result.C == fitted.C_


def test_the_appendix_is_49_predictions_of_10_draws_by_a_head_trained_on_the_first_10():
    assert APPENDIX == {"samples": 500, "training_draws": 10, "set_size": 10}
    draws, (split,) = make_draws(500), make_splits(1)
    taken, alive, most = 0, 0, 0

    def deleted() -> None:
        nonlocal alive
        alive -= 1

    def stream():
        nonlocal taken, alive, most
        for draw in draws:
            fresh = draw.copy()
            weakref.finalize(fresh, deleted)
            taken, alive = taken + 1, alive + 1
            most = max(most, alive)
            yield fresh
            del fresh

    (result,) = evaluate_draws(stream(), LABELS, [split], training_draws=10, set_size=10, head=head)
    assert taken == 500
    assert most <= 21, "no more than the current set and the next one may be in memory"
    fitted = head().fit(draws[:10][:, split.train], LABELS[split.train])
    predictions = [
        np.mean([fitted.predict_proba(draw[split.test]) for draw in draws[start : start + 10]], axis=0)
        for start in range(10, 500, 10)
    ]
    assert len(predictions) == 49
    assert_same(result.uncertainty, uncertainty(predictions))
    votes = 49 * result.uncertainty.variation_ratio
    np.testing.assert_allclose(votes, votes.round(), atol=1e-9)


def test_draws_that_do_not_fill_a_set_are_not_used():
    draws, chosen = make_draws(25), make_splits(1)
    longer = evaluate_draws(draws, LABELS, chosen, training_draws=5, set_size=6, head=head)
    shorter = evaluate_draws(draws[:23], LABELS, chosen, training_draws=5, set_size=6, head=head)
    assert_same(longer[0].uncertainty, shorter[0].uncertainty, 0)


def test_the_mean_does_not_depend_on_the_size_of_a_set():
    draws, chosen = make_draws(29), make_splits(1)
    results = [evaluate_draws(draws, LABELS, chosen, training_draws=5, set_size=s, head=head)[0] for s in (1, 4, 8, 24)]
    for result in results[1:]:
        np.testing.assert_allclose(result.uncertainty.probability, results[0].uncertainty.probability, atol=1e-12)
        np.testing.assert_allclose(
            result.uncertainty.predictive_entropy, results[0].uncertainty.predictive_entropy, atol=1e-12
        )


@pytest.mark.parametrize("form", [list, iter, torch.as_tensor, lambda draws: (torch.as_tensor(d) for d in draws)])
def test_draws_may_be_a_list_an_iterator_or_tensors(form):
    draws, chosen = make_draws(14), make_splits(2)
    expected = evaluate_draws(draws, LABELS, chosen, head=head)
    for one, other in zip(evaluate_draws(form(draws), LABELS, chosen, head=head), expected, strict=True):
        assert_same(one.uncertainty, other.uncertainty, 0)


def test_splits_do_not_influence_each_other():
    draws, chosen = make_draws(14), make_splits(3)
    together = evaluate_draws(draws, LABELS, chosen, head=head)
    for split, result in zip(chosen, together, strict=True):
        assert_same(evaluate_draws(draws, LABELS, [split], head=head)[0].uncertainty, result.uncertainty, 1e-12)


def test_single_precision_changes_little():
    draws, chosen = make_draws(14), make_splits(1)
    one, other = (evaluate_draws(d, LABELS, chosen, head=head)[0] for d in (draws, draws.astype(np.float32)))
    assert_same(one.uncertainty, other.uncertainty, 1e-4)


def test_a_fixed_embedding_is_both_the_training_and_the_prediction_draw():
    embedding, chosen = make_draws(1), make_splits(2)
    for split, result in zip(chosen, evaluate_draws(embedding, LABELS, chosen, head=head), strict=True):
        fitted = head().fit(embedding[0][split.train], LABELS[split.train])
        np.testing.assert_allclose(result.uncertainty.probability, fitted.predict_proba(embedding[0][split.test]))
        np.testing.assert_array_equal(result.uncertainty.variation_ratio, 0)
        np.testing.assert_allclose(result.uncertainty.mutual_information, 0, atol=1e-12)


def test_class_numbers_need_not_start_at_zero():
    draws, chosen = make_draws(14), make_splits(1)
    plain = evaluate_draws(draws, LABELS, chosen, head=head)[0]
    other = evaluate_draws(draws, np.array([3, 8])[LABELS], chosen, head=head)[0]
    np.testing.assert_array_equal(plain.correct, other.correct)


def test_predict_all_equals_predicting_with_each_head():
    draws, chosen = make_draws(9), make_splits(3)
    heads = [head().fit(draws[:, split.train], LABELS[split.train]) for split in chosen]
    found = predict_all(heads, iter(draws), [split.test for split in chosen])
    for split, fitted, one in zip(chosen, heads, found, strict=True):
        assert_same(one, uncertainty(fitted.predict_samples(draws[:, split.test])))


def test_labels_of_another_number_of_nodes_are_refused():
    with pytest.raises(BGCLError, match="draws of 40 nodes, but 39 labels"):
        evaluate_draws(make_draws(5), LABELS[:-1], make_splits())


def test_no_draws_are_refused():
    with pytest.raises(BGCLError, match="draw"):
        evaluate_draws([], LABELS, make_splits())


def test_fewer_draws_than_a_set_are_refused():
    with pytest.raises(BGCLError, match="no draws"):
        evaluate_draws(make_draws(14), LABELS, make_splits(), training_draws=10, set_size=5)


def make_result(seed: int, nodes: int = 30, certain: bool = False) -> SplitResult:
    random = np.random.default_rng(seed)
    label = random.integers(3, size=nodes)
    samples = random.dirichlet(np.ones(3), size=(7, nodes))
    if certain:
        samples = np.tile(0.8 * np.eye(3)[label] + 0.2 / 3, (7, 1, 1))
    return SplitResult(np.arange(nodes), np.arange(samples.shape[2]), label, uncertainty(samples), 1.0)


def test_scores_equal_the_functions_that_compute_them():
    result = make_result(0)
    scores, probability = result.scores(), result.uncertainty.probability
    assert scores["accuracy"] == sum(result.correct) / 30
    assert scores["ece"] == reliability(probability, result.label).ece
    assert scores["nll"] == negative_log_likelihood(probability, result.label)
    assert scores["brier"] == brier(probability, result.label)
    for name, measure in result.uncertainty.measures().items():
        assert scores[f"auroc:{name}"] == error_auroc(result.correct, measure)
        assert scores[f"aupr:{name}"] == error_aupr(result.correct, measure)
        assert scores[f"aurc:{name}"] == risk_coverage(result.correct, measure).area
        assert scores[f"pavpu:{name}"] == pavpu(result.correct, measure).area == result.pavpu(name).area


class TestSummary:
    def test_spreads_over_splits_and_over_seeds_by_hand(self):
        runs = [[make_result(10 * seed + split) for split in range(4)] for seed in range(3)]
        found = summary(runs)
        for name in ("accuracy", "nll", "auroc:margin"):
            values = [[result.scores()[name] for result in run] for run in runs]
            assert found[name]["mean"] == pytest.approx(statistics.mean(v for run in values for v in run))
            assert found[name]["over_splits"] == pytest.approx(statistics.mean(map(statistics.stdev, values)))
            assert found[name]["over_seeds"] == pytest.approx(statistics.stdev(map(statistics.mean, values)))

    def test_one_split_or_one_seed_has_no_spread(self):
        one = summary([[make_result(0)]])["accuracy"]
        assert one["mean"] == make_result(0).scores()["accuracy"]
        assert np.isnan(one["over_splits"])
        assert np.isnan(one["over_seeds"])

    def test_a_split_without_errors_is_left_out_of_mean_and_spread(self):
        """Its AUROC is NaN, but the other splits still have a spread."""
        runs = [[make_result(0), make_result(1), make_result(2, certain=True)], [make_result(s) for s in (3, 4, 5)]]
        found = summary(runs)["auroc:margin"]
        values = [[r.scores()["auroc:margin"] for r in run if not r.correct.all()] for run in runs]
        assert [len(run) for run in values] == [2, 3]
        assert found["over_splits"] == pytest.approx(statistics.mean(map(statistics.stdev, values)))
        assert found["over_seeds"] == pytest.approx(statistics.stdev(map(statistics.mean, values)))

    def test_no_errors_at_all_give_nan_without_a_warning(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = summary([[make_result(0, certain=True), make_result(1, certain=True)]])
        assert np.isnan(found["auroc:margin"]["mean"])
        assert found["accuracy"]["mean"] == 1


@pytest.fixture(scope="module")
def data() -> Data:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(80) % 2
    x = torch.rand(80, 6, generator=generator) + y[:, None] * torch.eye(6)[0]
    return Data(x=x, edge_index=torch.randint(80, (2, 200), generator=generator), y=y)


@pytest.fixture(scope="module", params=["gcn", "mlp"])
def model(request, data) -> BGCL:
    return BGCL(**narrow(request.param), epochs=2).fit(data, progress=False)


class TestModels:
    def test_evaluating_a_model_equals_evaluating_its_draws(self, model, data):
        found = evaluate(model, data, "grace", 2, samples=20, training_draws=5, seed=3)
        in_parts = {"parts": model.parts_} if len(model.parts_) > 1 else {}
        made = MixtureClassifier(**in_parts)
        expected = evaluate_draws(
            model.sample(data, 20, seed=3), np.asarray(data.y), splits(data, "grace", 2), training_draws=5,
            head=lambda: clone(made), spreading=LabelSpreading.of(model, data) if in_parts else None,
        )  # fmt: skip
        for one, other in zip(found, expected, strict=True):
            assert_same(one.uncertainty, other.uncertainty, 0)

    def test_the_same_seed_gives_the_same_result(self, model, data):
        one, other = (evaluate(model, data, "grace", 1, samples=14, seed=1)[0].scores() for _ in range(2))
        assert one == other

    def test_a_given_head_is_used(self, model, data):
        found = evaluate(model, data, "grace", 2, samples=20, training_draws=5, seed=3, head=head)
        expected = evaluate_draws(
            model.sample(data, 20, seed=3), np.asarray(data.y), splits(data, "grace", 2), training_draws=5, head=head
        )
        for one, other in zip(found, expected, strict=True):
            assert_same(one.uncertainty, other.uncertainty, 0)

    @pytest.mark.parametrize(("samples", "train"), [(1, 1), (2, 1), (15, 7), (39, 19), (40, 20), (500, 20)])
    def test_twenty_draws_or_half_of_them_train_the_heads(self, samples, train):
        assert default_training_draws(samples, (4,)) == train

    @pytest.mark.parametrize(("samples", "train"), [(1, 1), (2, 1), (3, 1), (4, 2), (500, 2)])
    def test_two_draws_or_half_of_them_train_the_heads_of_embeddings_in_parts(self, samples, train):
        assert default_training_draws(samples, (4, 4)) == train

    def test_the_default_head_knows_the_parts(self):
        assert head_for((4, 2))().get_params() == MixtureClassifier(parts=(4, 2)).get_params()
        assert head_for((4,))().get_params() == MixtureClassifier().get_params()

    def test_too_few_samples_are_refused(self, model, data):
        with pytest.raises(BGCLError, match="Of 19 samples, 10 train the heads"):
            evaluate(model, data, samples=19, training_draws=10, set_size=10)
