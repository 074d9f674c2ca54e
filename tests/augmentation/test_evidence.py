"""Drop rates by evidence: the posterior, what explains edges and attributes, and graphs with planted noise."""

import logging
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import chisquare
from torch_geometric.data import Data

import bgcl
from bgcl.augmentation.drop_rates import (
    DropRate,
    expected_log_complement,
    kumaraswamy_beta_kl,
    kumaraswamy_log_moment,
    quantile_nodes,
)
from bgcl.augmentation.evidence import Witnesses
from bgcl.augmentation.explanations import DOUBT, Evidence, Explanations, noise_and_repetition
from bgcl.augmentation.rate_evidence import LEAST, MOST, bounded, evidence_lower_bound, fit_kumaraswamy
from small import dense_connections, on_matrix, random_graph, seeded, with_relations, with_weights
from trained import narrow

STARTS = ((1.0, 6.579), (1.0, 1.0), (6.579, 1.0))  # medians of 0.1, 0.5 and 0.9


def evidence_of(share: float, items: int, seed: int = 0) -> Evidence:
    """Items of which a share is not explained at all."""
    random = np.random.default_rng(seed)
    background = random.uniform(1e-3, 0.05, items)
    explained = np.where(random.random(items) < share, 0.0, random.uniform(0.2, 1, items))
    return Evidence(torch.from_numpy(background), torch.from_numpy(explained))


def exact(evidence: Evidence) -> tuple[float, float]:
    """Mean and standard deviation of the posterior under a uniform prior, on a fine grid."""
    grid = torch.linspace(0.00025, 0.99975, 2000, dtype=torch.float64)
    weight = torch.softmax(evidence.log_likelihood(grid), 0)
    mean = float((weight * grid).sum())
    return mean, float((weight * (grid - mean) ** 2).sum().sqrt())


def moments(a: float, b: float) -> tuple[float, float]:
    rate = DropRate((1, 1))
    rate.set_posterior(a, b)
    return rate.mean().item(), rate.std().item()


def test_the_likelihood_equals_a_plain_loop() -> None:
    evidence = evidence_of(0.3, 7)
    rates = [0.1, 0.6]
    plain = [
        sum(math.log(rate * b + (1 - rate) * e) for b, e in zip(evidence.background, evidence.explained, strict=True))
        for rate in rates
    ]
    assert evidence.log_likelihood(torch.tensor(rates, dtype=torch.float64)).tolist() == pytest.approx(plain)


@pytest.mark.parametrize("items", [30, 300, 4096])
@pytest.mark.parametrize("share", [0.03, 0.2, 0.5, 0.75])
def test_the_posterior_has_the_moments_of_the_exact_one(share: float, items: int) -> None:
    evidence = evidence_of(share, items)
    mean, std = exact(evidence)
    found = moments(*fit_kumaraswamy(evidence))
    assert found[0] == pytest.approx(mean, abs=0.1 * std)
    assert found[1] == pytest.approx(std, rel=0.1)


@pytest.mark.parametrize("items", [30, 4096])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.9, 1.0])
def test_every_start_ends_in_the_same_posterior(share: float, items: int) -> None:
    evidence = evidence_of(share, items)
    means = [moments(*fit_kumaraswamy(evidence, start))[0] for start in STARTS]
    assert max(means) - min(means) < 1e-3


def test_the_lower_bound_passes_gradcheck() -> None:
    evidence = evidence_of(0.4, 50)

    def bound(log_a: torch.Tensor, log_b: torch.Tensor) -> torch.Tensor:
        return evidence_lower_bound(log_a.exp(), log_b.exp(), evidence, (1.5, 2.0))

    for a, b in ((0.3, 0.7), (2.0, 4.0), (3.5, 30.0)):  # logarithms; the last one has a series of its own
        inputs = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (a, b)]
        assert torch.autograd.gradcheck(bound, inputs)


def test_no_other_posterior_has_a_greater_lower_bound() -> None:
    evidence = evidence_of(0.4, 200)
    a, b = fit_kumaraswamy(evidence, prior=(2.0, 3.0))

    def bound(a: float, b: float) -> float:
        values = (torch.tensor(value, dtype=torch.float64) for value in (a, b))
        return float(evidence_lower_bound(*values, evidence, (2.0, 3.0)))

    best = bound(a, b)
    random = np.random.default_rng(0)
    for _ in range(50):
        assert bound(a * math.exp(random.normal(0, 0.2)), b * math.exp(random.normal(0, 0.5))) <= best + 1e-8


@settings(deadline=None, max_examples=50)
@given(st.floats(0.5, 300), st.floats(-1, 200))
def test_moments_and_kl_of_narrow_posteriors_equal_quadratures(a: float, log_b: float) -> None:
    first, second = torch.tensor(a, dtype=torch.float64), torch.tensor(log_b, dtype=torch.float64).exp()
    rates, weights = quantile_nodes(first, second)
    moment = kumaraswamy_log_moment(first, second, 1.0).exp().item()
    assert moment == pytest.approx(float((rates * weights).sum()), rel=1e-3)
    if rates.max() < 0.999:
        by_nodes = float((torch.log1p(-rates) * weights).sum())
        assert expected_log_complement(first, second).item() == pytest.approx(by_nodes, rel=1e-2, abs=1e-12)
    assert math.isfinite(kumaraswamy_beta_kl(first, second, 1.3, 2.1))


def test_the_share_with_the_greatest_likelihood_is_found_by_a_grid_too() -> None:
    evidence = evidence_of(0.4, 500)
    grid = torch.linspace(0.0005, 0.9995, 1000, dtype=torch.float64)
    assert evidence.share() == pytest.approx(float(grid[evidence.log_likelihood(grid).argmax()]), abs=1e-3)


@pytest.mark.parametrize(("share", "bound"), [(0.97, MOST), (0.0, LEAST)])
def test_a_share_beyond_a_bound_is_held_there(share: float, bound: float) -> None:
    mean, std = moments(*fit_kumaraswamy(bounded(evidence_of(share, 1000))))
    assert mean == pytest.approx(bound, abs=0.01)
    assert std < 0.03


def test_counted_evidence_is_that_of_items_that_are_known() -> None:
    noise = (torch.arange(50) < 15).double()
    counted, plain = Evidence.counted(0.3, 50), Evidence(noise, 1 - noise)
    rates = torch.tensor([0.1, 0.3, 0.8], dtype=torch.float64)
    assert counted.share() == pytest.approx(0.3)
    torch.testing.assert_close(counted.log_likelihood(rates), plain.log_likelihood(rates))


def explanations_of(items: int = 400, seed: int = 0) -> Explanations:
    """Items of which the first explanation knows a half, the second one third of the others, and the last nothing."""
    random = np.random.default_rng(seed)
    first, second = random.random(items) < 0.5, random.random(items) < 1 / 3
    columns = [np.where(first, 0.5, 0.0), np.where(~first & second, 0.5, 0.0)]
    return Explanations.of(np.full(items, 0.01), np.stack(columns, 1), np.zeros(items))


def test_the_best_explanation_is_the_likeliest_and_all_together_leave_less_over() -> None:
    every = explanations_of()
    assert torch.equal(every.by_alike().explained, every.explained[:, 0])
    assert every.by_alike().share() == pytest.approx(float((every.explained[:, 0] == 0).double().mean()), abs=0.02)
    left = (float((every.explained.sum(1) == 0).sum()) + DOUBT) / (400 + DOUBT)
    assert every.by_all().share() == pytest.approx(left, abs=0.02)


def test_weights_of_explanations_maximize_the_likelihood() -> None:
    random = np.random.default_rng(1)
    every = Explanations.of(
        random.uniform(0.01, 0.1, 200), random.uniform(0, 0.3, (200, 2)), random.uniform(0, 0.2, 200)
    )
    together = every.by_all()
    pi = together.share()
    best = float(together.log_likelihood(torch.tensor([pi], dtype=torch.float64)))
    both = torch.cat([every.background[:, None], every.explained], 1)
    for _ in range(200):
        weight = torch.from_numpy(random.dirichlet(np.ones(4)))
        assert float(torch.log(both @ weight).sum() + DOUBT * torch.log(weight[0])) <= best + 1e-3


def test_noise_and_repetition_equals_a_plain_loop() -> None:
    random = np.random.default_rng(0)
    told = random.random(500) < 0.6
    explained = np.where(told, random.uniform(0.05, 0.3, 500), 0.001)
    evidence = Evidence(torch.full((500,), 0.05, dtype=torch.float64), torch.from_numpy(explained))
    pi = evidence.share()
    gain = np.mean([math.log((pi * 0.05 + (1 - pi) * e) / 0.05) for e in explained])
    assert noise_and_repetition(evidence) == pytest.approx(1 - (1 - pi) * math.exp(-gain), abs=1e-6)


@pytest.mark.parametrize("share", [Evidence.share, noise_and_repetition])
def test_the_share_over_resamples_has_the_mean_and_the_variance_of_a_plain_bootstrap(share) -> None:
    """Two explanations are about as good, so which of them is best changes with the items."""
    random = np.random.default_rng(0)
    first, second = random.random(300) < 0.5, random.random(300) < 0.21
    columns = np.stack([np.where(first, 0.1, 0.001), np.where(second, 0.4, 0.004)], 1)
    every = Explanations.of(np.full(300, 0.02), columns, np.zeros(300))
    plain, chosen = [], []
    for _ in range(300):
        items = torch.from_numpy(random.integers(0, 300, 300))
        both = [Evidence(every.background[items], column[items]) for column in every.explained.T[:-1]]
        likelihood = [float(one.log_likelihood(torch.tensor([one.share()], dtype=torch.float64))) for one in both]
        chosen.append(int(np.argmax(likelihood)))
        plain.append(share(both[chosen[-1]]))
    assert 0.1 < np.mean(chosen) < 0.9
    found = every.over_resamples(share, np.random.default_rng(1))
    assert found.share() == pytest.approx(np.mean(plain), abs=4 * np.std(plain) / math.sqrt(32))
    assert found.weight is not None
    std = math.sqrt(found.share() * (1 - found.share()) / float(found.weight.sum()))
    assert std == pytest.approx(np.std(plain), rel=0.4)


def test_resamples_never_count_more_than_the_items_that_there_are() -> None:
    certain = Explanations.of(np.full(50, 0.02), np.full((50, 2), 0.4), np.zeros(50))
    found = certain.over_resamples(Evidence.share, np.random.default_rng(0))
    assert found.weight is not None
    assert float(found.weight.sum()) == pytest.approx(50)


def test_attributes_that_repeat_each_other_are_dropped_more() -> None:
    """Without noise: a group has few words, so that the others tell a word nearly, or many."""

    def share(words: int) -> float:
        return noise_and_repetition(
            Evidence(torch.full((300,), 1 / 120).double(), torch.full((300,), 1 / words).double())
        )

    assert share(2) == pytest.approx(1 - 2 / 120)
    assert share(60) == pytest.approx(0.5)
    assert share(120) == pytest.approx(0, abs=1e-6)


def planted(noise_in_edges: float = 0.0, noise_in_words: float = 0.0, nodes: int = 600, seed: int = 0) -> Data:
    """Six groups. An edge, or a word, is of the node's group; or, with the probability of noise, random."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 6, nodes)
    members = [np.flatnonzero(group == i) for i in range(6)]
    pairs, x = [], np.zeros((nodes, 120), np.float32)
    for node in range(nodes):
        for _ in range(5):
            other = random.integers(nodes) if random.random() < noise_in_edges else random.choice(members[group[node]])
            if other != node:
                pairs.append((node, other))
        for _ in range(12):
            own = 20 * group[node] + random.integers(20)
            x[node, random.integers(120) if random.random() < noise_in_words else own] = 1
    edges = torch.tensor(pairs).T
    return Data(x=torch.from_numpy(x), edge_index=torch.cat([edges, edges.flip(0)], 1), num_nodes=nodes)


def rates_of(data: Data, **given: object) -> dict[str, np.ndarray]:
    """The learned rates of entries and of neighbors in both views, and those of draws."""
    model = bgcl.BGCL(rate_rule="evidence", epochs=1, widths=(8, 4), part_width=8, **given).fit(data, progress=False)
    drawn = np.array([rate.average for rate in model.draw_rates_["o"]])
    return {view: np.array([rate.average for rate in rates]) for view, rates in model.drop_rates_.items()} | {
        "draws": drawn
    }


@pytest.mark.parametrize("what", ["noise_in_words", "noise_in_edges"])
def test_the_rate_of_the_noisy_part_grows_with_the_noise(what: str) -> None:
    found = [rates_of(planted(**{what: noise})) for noise in (0.0, 0.25, 0.5, 0.75)]
    mask = 0 if what == "noise_in_words" else 1
    noisy, other = (np.array([rates["draws"][i] for rates in found]) for i in (mask, 1 - mask))
    assert (np.diff(noisy) > 0.02).all()
    assert (noisy > other)[1:].all()
    if (
        what == "noise_in_edges"
    ):  # from attributes, training also drops what others repeat, which is less where noise is
        assert (np.diff([rates["o"][mask] for rates in found]) > 0.02).all()


def test_rates_of_a_graph_do_not_depend_on_their_start() -> None:
    data = planted(0.3, 0.3)
    found = [rates_of(data, rate_start=start) for start in STARTS]
    for view in ("o", "t", "draws"):
        assert np.ptp([rates[view] for rates in found], axis=0).max() < 0.01


def test_the_posterior_is_as_wide_as_the_rates_of_graphs_of_one_kind_differ() -> None:
    def posterior(nodes: int, seed: int) -> tuple[float, float]:
        model = bgcl.BGCL(rate_rule="evidence", epochs=1, widths=(8, 4), part_width=8, seed=seed)
        rate = model.fit(planted(0.4, 0.0, nodes, seed), progress=False).drop_rates_["o"][1]
        return rate.average, rate.average_std

    assert posterior(600, 0)[1] < posterior(150, 0)[1] / 1.5  # a larger graph tells more
    seen = np.array([posterior(300, seed) for seed in range(12)])
    assert seen[:, 1].mean() / 3 < np.std(seen[:, 0]) < 2 * seen[:, 1].mean()


@pytest.mark.parametrize("rate", [0.15, 0.5, 0.7])
def test_intervals_hold_a_known_rate_as_often_as_they_promise(rate: float) -> None:
    random, inside, trials, words = np.random.default_rng(0), 0, 200, 50
    for _ in range(trials):
        own = random.integers(words, size=300)  # each item has one word that its witnesses explain, with certainty 0.8
        noise = random.random(300) < rate
        told = np.where(random.random(300) < 0.8, own, random.integers(words, size=300))
        item = np.where(noise, random.integers(words, size=300), told)
        explained = np.where(item == own, 0.8, 0.0) + 0.2 / words
        evidence = Evidence(torch.full((300,), 1 / words, dtype=torch.float64), torch.from_numpy(explained))
        a, b = fit_kumaraswamy(evidence)
        low, high = ((-math.expm1(math.log1p(-level) / b)) ** (1 / a) for level in (0.05, 0.95))
        inside += low < rate < high
    assert 0.84 < inside / trials < 0.96  # of 200, 90 % are meant to be


def test_a_graph_of_noise_is_said_to_look_random(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bgcl"):
        rates = rates_of(planted(1.0, 1.0))
    assert "attributes of this graph look random" in caplog.text
    assert "edges of this graph look random" in caplog.text
    assert max(rates["o"].max(), rates["t"].max()) < MOST + 0.05


def test_without_attributes_their_rate_keeps_its_prior() -> None:
    data = planted()
    data.x = torch.zeros_like(data.x)
    model = bgcl.BGCL(rate_rule="evidence", epochs=1, widths=(8, 4), part_width=8).fit(data, progress=False)
    entries, neighbors = model.drop_rates_["o"]
    assert entries.a == entries.b == ((1.0,),)
    assert neighbors.a != ((1.0,),)


def test_numbers_that_alike_nodes_share_are_explained_by_them() -> None:
    data = planted()
    random = torch.Generator().manual_seed(0)
    group = data.x.view(-1, 6, 20).sum(2).argmax(1)
    shared = torch.randn(6, 5, generator=random)[group] + 0.2 * torch.randn(data.num_nodes, 5, generator=random)
    alone = torch.randn(data.num_nodes, 5, generator=random)
    told, noise = (rates_of(Data(x=x, edge_index=data.edge_index))["draws"][0] for x in (shared, alone))
    assert told + 0.3 < noise


@pytest.mark.parametrize("name", ["lr_rates", "kl_weight", "rate_every", "shared_information", "rate_nodes"])
def test_a_setting_of_the_adversary_is_refused(name: str) -> None:
    with pytest.raises(bgcl.BGCLError, match=rf"rate rule 'evidence' does not have the setting '{name}'"):
        bgcl.Settings(rate_rule="evidence", **{name: 0.5 if name != "rate_every" and name != "rate_nodes" else 5})


@pytest.mark.parametrize("encoder", ["mlp", "gcn"])
def test_training_leaves_the_rates_as_they_are_and_resumes_bit_for_bit(tmp_path, encoder: str) -> None:
    data = planted(0.3, 0.3, 200)
    small = {"rate_rule": "evidence", **narrow(encoder)}
    whole = bgcl.BGCL(epochs=4, **small).fit(data, progress=False)
    assert whole.history_[0].rates == whole.history_[-1].rates
    assert whole.history_[-1].objective is None
    bgcl.BGCL(epochs=2, **small).fit(data, out=tmp_path / "run", progress=False)
    resumed = bgcl.BGCL(epochs=4, **small).fit(data, out=tmp_path / "run", resume=True, progress=False)
    both = zip(whole.network_.parameters(), resumed.network_.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in both)
    loaded = bgcl.BGCL.load(tmp_path / "run")
    assert loaded.drop_rates_ == whole.drop_rates_
    assert torch.equal(loaded.sample(data, 2), whole.sample(data, 2))


@pytest.mark.parametrize("kind", ["plain", "weighted", "relation"])
def test_explanations_of_edges_by_neighbors_equal_a_plain_loop(kind: str) -> None:
    graph = random_graph(14, 6, double=False, seed=2)
    graph = graph if kind == "plain" else with_weights(graph)
    graph = with_relations(graph, 2) if kind == "relation" else graph
    witnesses = Witnesses(graph, torch.eye(6), 0, seeded(0))
    drawn: dict[int, tuple[int, float]] = {}

    def noted(adjacency: csr_matrix, node: int) -> tuple[int, float]:
        drawn[node] = Witnesses._edge(witnesses, adjacency, node)
        return drawn[node]

    witnesses._edge = noted  # type: ignore[method-assign]
    found = witnesses.of_edges(1 if kind == "relation" else None)
    assert found is not None
    A = dense_connections(graph) if kind == "plain" else on_matrix(graph, graph.weights)
    A = on_matrix(graph, graph.relations[:, 1]) + np.eye(14) if kind == "relation" else A
    d, others = A.sum(1), A - np.eye(14)
    for i, (v, (j, weight)) in enumerate(drawn.items()):
        assert weight == pytest.approx(A[v, j])
        total = sum(others[v, k] for k in range(14) if k != j)
        told = sum(others[v, k] * A[k, j] / d[k] for k in range(14) if k != j)
        assert found.explained[i, -1] == pytest.approx(told / total if total else 0, abs=1e-9)
        background = (others[:, j].sum() - weight + 0.5) / (others.sum() - weight + 0.5 * 14)
        assert found.background[i] == pytest.approx(background, rel=1e-6)


def test_a_heavy_edge_is_an_item_in_proportion_to_its_weight() -> None:
    graph = with_weights(random_graph(8, 3, double=False, seed=1))
    witnesses = Witnesses(graph, torch.eye(3), 0, seeded(0))
    heavy = on_matrix(graph, graph.weights) - np.eye(8)
    node = int(np.argmax((heavy > 0).sum(1)))
    there = np.flatnonzero(heavy[node])
    counts = np.bincount([witnesses._edge(witnesses.adjacency, node)[0] for _ in range(3000)], minlength=8)
    assert counts.sum() == counts[there].sum()
    assert chisquare(counts[there], 3000 * heavy[node, there] / heavy[node, there].sum()).pvalue > 1e-4
