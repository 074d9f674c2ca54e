"""Contrastive likelihoods against loops and the training loss; disagreement against its formula and its bounds."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from bgcl import BGCL, BGCLError
from bgcl.augmentation.noise import CountedNoise
from bgcl.measures.disagreement import disagreement
from bgcl.model.objectives.infonce import InfoNCE, contrastive_log_likelihood, contrastive_loss, some_nodes
from small import random_data, seeded

TAU = 0.4


def two_views(nodes: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    o, t = torch.randn(2, nodes, 3, dtype=torch.float64, generator=seeded(seed))
    return o, t


def loop_log_likelihood(o: np.ndarray, t: np.ndarray, tau: float) -> list[float]:
    def s(x, y) -> float:
        return float(x @ y / math.sqrt((x @ x) * (y @ y)) / tau)

    def one_way(x, y, i: int) -> float:
        own = math.exp(s(x[i], y[i]))
        others = [k for k in range(len(x)) if k != i]
        return math.log(own / (own + sum(math.exp(s(x[i], y[k])) + math.exp(s(x[i], x[k])) for k in others)))

    return [(one_way(o, t, i) + one_way(t, o, i)) / 2 for i in range(len(o))]


@settings(max_examples=25, deadline=None)
@given(nodes=st.integers(1, 12), tile=st.integers(1, 14), tau=st.sampled_from([0.1, 0.4, 2.0]), seed=st.integers(0, 9))
def test_likelihoods_equal_a_loop_for_any_tile(nodes, tile, tau, seed):
    o, t = two_views(nodes, seed)
    found = contrastive_log_likelihood(o, t, tau, tile=tile)
    np.testing.assert_allclose(found, loop_log_likelihood(o.numpy(), t.numpy(), tau), atol=1e-10)


def test_the_mean_log_likelihood_is_minus_the_training_loss():
    o, t = two_views(30)
    found = contrastive_log_likelihood(o, t, TAU).mean()
    assert float(found) == pytest.approx(-float(contrastive_loss(o, t, TAU)), abs=1e-12)


def test_swapping_the_views_changes_nothing():
    o, t = two_views(9)
    torch.testing.assert_close(contrastive_log_likelihood(o, t, TAU), contrastive_log_likelihood(t, o, TAU))


@pytest.mark.parametrize("negatives", ["both views", "other view"])
def test_likelihoods_among_some_nodes_equal_a_loop(negatives):
    o, t = two_views(11)
    among = torch.tensor([1, 4, 5, 9])
    found = contrastive_log_likelihood(o, t, TAU, negatives, among=among, tile=3)
    x, y = (torch.nn.functional.normalize(view, dim=-1) for view in (o, t))

    def one_way(a, b, i: int) -> float:
        own = math.exp(float(a[i] @ b[i]) / TAU)
        chosen = [k for k in among.tolist() if k != i]
        views = (b, a) if negatives == "both views" else (b,)
        others = sum(math.exp(float(a[i] @ view[k]) / TAU) for k in chosen for view in views)
        return math.log(own / (own + 10 / len(chosen) * others))

    np.testing.assert_allclose(found, [(one_way(x, y, i) + one_way(y, x, i)) / 2 for i in range(11)], atol=1e-10)


@pytest.mark.parametrize("negatives", ["both views", "other view"])
def test_likelihoods_among_some_nodes_agree_with_those_among_all_to_within_the_error_of_sampling(negatives):
    """The ratio of the estimated to the full sum has mean 1, and a standard error that the terms themselves give."""
    o, t = torch.randn(2, 600, 8, dtype=torch.float64, generator=seeded(3))
    full = contrastive_log_likelihood(o, t, TAU, negatives)
    x, y = (torch.nn.functional.normalize(view, dim=-1) for view in (o, t))
    terms = (x @ y.t() / TAU).exp()
    spread = float((terms.std(1) / terms.mean(1)).mean()) / math.sqrt(150)  # of a sum over 150 of 600 nodes
    for seed in range(5):
        among = torch.randperm(600, generator=seeded(seed))[:150]
        error = contrastive_log_likelihood(o, t, TAU, negatives, among=among) - full
        assert float(error.std()) < 1.5 * spread
        assert abs(float(error.mean())) < spread


@pytest.mark.parametrize("negatives", ["both views", "other view"])
def test_in_a_small_graph_likelihoods_are_exact_and_in_a_large_one_nodes_are_the_same_each_time(monkeypatch, negatives):
    o, t = two_views(50)
    objective = InfoNCE(3, tau=TAU, projection=False, negatives=negatives)
    torch.testing.assert_close(objective.log_likelihood(o, t), contrastive_log_likelihood(o, t, TAU, negatives))
    monkeypatch.setattr("bgcl.model.objectives.infonce.MOST", 20)
    some = objective.log_likelihood(o, t)
    torch.testing.assert_close(some, objective.log_likelihood(o, t), rtol=0, atol=0)
    assert not torch.allclose(some, contrastive_log_likelihood(o, t, TAU, negatives))
    assert len(set(some_nodes(50, 20).tolist())) == 20


@settings(max_examples=40, deadline=None)
@given(pairs=st.integers(1, 8), nodes=st.integers(1, 5), seed=st.integers(0, 99))
def test_disagreement_equals_its_formula(pairs, nodes, seed):
    log_l = 3 * np.random.default_rng(seed).normal(size=(pairs, nodes))
    w = np.exp(log_l) / np.exp(log_l).sum(0)
    found = disagreement(torch.as_tensor(row) for row in log_l)
    np.testing.assert_allclose(found, 1 - 1 / (pairs * np.square(w).sum(0)), atol=1e-12)
    assert (found >= 0).all()
    assert (found <= 1 - 1 / pairs + 1e-12).all()


@pytest.mark.parametrize("log_l", [-1.0, -2000.0, 0.0])
@pytest.mark.parametrize("pairs", [1, 2, 7])
def test_pairs_that_agree_have_no_disagreement(log_l, pairs):
    found = disagreement(torch.full((4,), log_l) for _ in range(pairs))
    np.testing.assert_allclose(found, 0, atol=1e-9)


@pytest.mark.parametrize("pairs", [2, 5, 50])
def test_disagreement_is_greatest_if_one_pair_has_all_the_likelihood(pairs):
    stream = (torch.tensor([0.0 if k == 1 else -900.0]) for k in range(pairs))
    assert disagreement(stream)[0] == pytest.approx(1 - 1 / pairs)


def test_a_common_factor_of_the_likelihoods_changes_nothing():
    log_l = torch.randn(6, 4, dtype=torch.float64, generator=seeded(0))
    np.testing.assert_allclose(disagreement(iter(log_l)), disagreement(iter(log_l - 500)), atol=1e-10)


@pytest.fixture(scope="module")
def data() -> Data:
    x = torch.rand(20, 6, generator=seeded(1))
    return Data(x=x, edge_index=torch.randint(20, (2, 50), generator=seeded(2)))


@pytest.fixture(scope="module")
def model(data) -> BGCL:
    return BGCL(encoder="gcn", widths=(8, 4), epochs=2, tau=TAU).fit(data, progress=False)


@pytest.fixture(scope="module", params=["infonce", "decorrelation", "bootstrap"])
def default_model(request, data) -> BGCL:
    return BGCL(objective=request.param, widths=(8, 4), part_width=3, epochs=2).fit(data, progress=False)


class TestModels:
    def test_pairs_are_consecutive_draws(self, model, data):
        with torch.no_grad():
            o_and_t = model.network_.objective.head(model.sample(data, 6, seed=4)).double().numpy()
        log_l = np.array([loop_log_likelihood(o_and_t[i], o_and_t[i + 1], TAU) for i in (0, 2, 4)])
        w = np.exp(log_l) / np.exp(log_l).sum(0)
        found = model.disagreement(data, 6, seed=4)
        np.testing.assert_allclose(found, 1 - 1 / (3 * np.square(w).sum(0)), atol=1e-5)

    def test_pairs_of_embeddings_in_parts_are_draws_of_the_encoder_in_both_views(self, default_model, data):
        """Every objective has a likelihood of its own, of what the encoder hands on before the parts are made."""
        network, graph = default_model._ready(data)
        scale = default_model.settings_.draw_scale
        log_l = []
        with torch.no_grad():
            for i in range(3):
                noise = CountedNoise.of_draw(4, 2 * i), CountedNoise.of_draw(4, 2 * i + 1)
                o, t = (network.encode(*each, graph, of, scale=scale) for each, of in zip("ot", noise, strict=True))
                assert o.shape == (20, 8)  # two members of four columns
                log_l.append(network.objective.log_likelihood(o, t).double().numpy())
        w = np.exp(np.array(log_l))
        w = w / w.sum(0)
        found = default_model.disagreement(data, 6, seed=4)
        np.testing.assert_allclose(found, 1 - 1 / (3 * np.square(w).sum(0)), atol=1e-5)

    def test_the_same_seed_gives_the_same_result_and_another_seed_another(self, model, data):
        one, same, other = (model.disagreement(data, 8, seed=seed) for seed in (1, 1, 2))
        assert one.shape == (20,)
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, other)

    def test_an_odd_sample_is_left_out(self, model, data):
        np.testing.assert_array_equal(model.disagreement(data, 9, seed=1), model.disagreement(data, 8, seed=1))

    def test_masks_that_drop_nothing_give_no_disagreement(self, data):
        for encoder, drop in (("gcn", "connections at 0"), ("mlp", "entries at 0")):
            model = BGCL(encoder=encoder, widths=(8, 4), epochs=1, drop=drop).fit(data, progress=False)
            np.testing.assert_allclose(model.disagreement(data, 6), 0, atol=1e-6)

    def test_fewer_than_two_pairs_are_refused(self, model, data):
        with pytest.raises(BGCLError, match=r"4 samples or more, two pairs. Got 3 instead"):
            model.disagreement(data, 3)


@pytest.mark.parametrize("negatives", ["both views", "other view"])
def test_anchored_likelihoods_equal_a_loop_in_which_only_the_positive_differs(negatives):
    objective = InfoNCE(3, tau=TAU, negatives=negatives, projection=False)
    (x, y), (p, q) = two_views(7), two_views(7, 5)

    def s(a, b) -> float:
        return float(torch.cosine_similarity(a, b, dim=0)) / TAU

    found = list(objective.log_likelihoods(x, y, [p, q]))
    for positive, each in zip((p, q), found, strict=True):
        for i in range(7):
            own = math.exp(s(x[i], positive[i]))
            others = [k for k in range(7) if k != i]
            rest = sum(math.exp(s(x[i], y[k])) for k in others)
            rest += sum(math.exp(s(x[i], x[k])) for k in others) if negatives == "both views" else 0
            assert float(each[i]) == pytest.approx(math.log(own / (own + rest)), abs=1e-10)


def test_anchored_disagreement_is_zero_if_nothing_is_dropped():
    data = random_data(40, 6)
    model = BGCL(encoder="gcn", drop=["edges at 0"], widths=(8, 4), epochs=2).fit(data, progress=False)
    np.testing.assert_allclose(model.disagreement(data, 8, anchored=True), 0, atol=1e-6)
    model = BGCL(encoder="gcn", drop=["edges at 0.5"], widths=(8, 4), epochs=2).fit(data, progress=False)
    found = model.disagreement(data, 8, anchored=True)
    assert (found >= 0).all()
    assert found.max() > 0
    np.testing.assert_array_equal(found, model.disagreement(data, 8, anchored=True))


@pytest.mark.parametrize("objective", ["decorrelation", "bootstrap", "infomax"])
def test_objectives_without_negatives_have_an_anchored_disagreement(objective):
    data = random_data(40, 6)
    model = BGCL(encoder="gcn", objective=objective, widths=(8, 4), epochs=1).fit(data, progress=False)
    assert np.isfinite(model.disagreement(data, 6, anchored=True)).all()
