"""The experiment `trust`: detection, each method on a small graph, and its tables."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bgcl.downstream.property_splits import node_property
from bgcl.estimator import BGCL
from bgcl.measures.metrics import error_auroc
from bgcl.measures.uncertainty import uncertainty
from bgcl.reproduce import compute as computing
from bgcl.reproduce import experiments, trust, trust_page
from bgcl.reproduce.cache import Cache
from bgcl.reproduce.cells import Cell
from bgcl.reproduce.detection import ALL_CLASSES, LEFT_OUT, detect, separation
from bgcl.reproduce.detectors import INFORMATION, NOVELTY, Judgment, fit_bgcl, known_only
from bgcl.reproduce.label_free import (
    ANCHORED,
    CONTROLS,
    MEASURES,
    WHOLE,
    label_free,
    nearest_has_the_same_class,
    without_attributes,
    without_edges,
)
from bgcl.reproduce.set_results import AGAIN, set_results
from bgcl.reproduce.unknown_nodes import trials
from communities import communities


def test_separation_is_the_share_of_pairs_in_the_right_order():
    random = np.random.default_rng(0)
    known, unknown = random.integers(0, 6, 20), random.integers(2, 9, 15)
    pairs = [(u > k) + 0.5 * (u == k) for k in known for u in unknown]
    assert separation(known, unknown) == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize("task", [LEFT_OUT, ALL_CLASSES])
def test_a_method_that_knows_finds_all_and_one_that_does_not_finds_none(task):
    """The method sees what each task changes: it is told the tasks."""
    data = communities(300, 4)
    shifts = {LEFT_OUT: ["left-out"], ALL_CLASSES: ["bernoulli", "normal", "structure"]}[task]
    told = {shift: trials(data, shift, 2) for shift in shifts}
    fits = []

    def fit(graph, split, seed):
        fits.append((split.train.tolist(), seed))
        number = len(fits) - 1

        def judge(other):
            strange = np.zeros(300)
            for shift in shifts:
                one = told[shift][number]
                if shift in ("bernoulli", "normal"):
                    strange[one.unknown] += (other.x.to_dense() != data.x.to_dense()).any(1).numpy()[one.unknown]
                elif shift == "structure":
                    strange += other.edge_index.shape != data.edge_index.shape
                else:
                    strange[one.unknown] = 1
            samples = np.full((2, 300, 4 if task == ALL_CLASSES else 2), 1 / (4 if task == ALL_CLASSES else 2))
            return {"a": Judgment.of_samples(samples, told=strange, blind=np.zeros(300))}

        return judge

    found = detect(fit, data, task, 2, seed=3)
    assert [split for split, _ in fits] == [one.split.train.tolist() for one in told[shifts[0]]]
    assert fits[0][1] != fits[1][1]
    for shift in shifts:
        assert found["detection"]["a"][shift]["told"] == [1.0, 1.0]
        assert found["detection"]["a"][shift]["blind"] == [0.5, 0.5]
    assert len(found["known"]["a"]["accuracy"]) == 2


def test_a_judgment_has_disagreement_only_of_several_draws():
    samples = np.random.default_rng(0).dirichlet(np.ones(3), (4, 5))
    judged = Judgment.of_samples(samples)
    np.testing.assert_allclose(judged.scores[INFORMATION], uncertainty(samples).mutual_information)
    assert INFORMATION not in Judgment.of_samples(samples[:1]).scores


def test_where_a_score_says_nothing_its_mean_stands():
    assert known_only(np.array([1.0, np.nan, 3.0])).tolist() == [1.0, 2.0, 3.0]
    assert known_only(np.array([np.nan])).tolist() == [0.0]


@pytest.mark.parametrize("method", trust.RIVALS)
def test_each_rival_judges_the_nodes_of_a_small_graph(method, tmp_path):
    data = communities(200, 4)
    data.name = "cora"
    for cell in experiments.cells("trust", methods=[method], datasets=["cora"], quick=True):
        found = computing.compute(cell, data, Cache(tmp_path))
        values = [
            value
            for by_shift in found["detection"].values()
            for scores in by_shift.values()
            for per_split in scores.values()
            for value in per_split
        ]
        assert values
        assert all(0 <= value <= 1 for value in values)
        assert set(found["detection"]) == set(found["known"]) <= set(trust_page.VARIANTS)
        assert "AUROC" in found["headline"]


def test_the_default_judges_by_its_head_and_by_its_novelty():
    data = communities(200, 4)
    (trial,) = trials(data, "bernoulli", 1)
    model = BGCL(widths=(16, 8), part_width=8, epochs=5).fit(data, progress=False)
    judge = fit_bgcl(model, data, trial.split, 4)
    usual, changed = judge(data)["bgcl-default"], judge(trial.unknown_graph)["bgcl-default"]
    assert usual.uncertainty.probability.shape == (200, 4)
    assert separation(usual.scores[NOVELTY][trial.known], changed.scores[NOVELTY][trial.unknown]) > 0.5
    again = judge(trial.unknown_graph)["bgcl-default"]
    np.testing.assert_array_equal(changed.scores[NOVELTY], again.scores[NOVELTY])


def detection(method: str, variant: str, score: str, values: list[float], seed: int = 0) -> dict:
    cell = Cell(method, "cora", seed, "bgrl", len(values), evaluation={"task": LEFT_OUT}, label=LEFT_OUT)
    return {"cell": cell.to_dict(), "detection": {variant: {"left-out": {score: values}}}, "seconds": 1.0,
            "versions": {"bgcl": "0"}}  # fmt: skip


def test_the_table_says_who_is_first_and_who_is_last():
    found = [
        detection("ensemble-gcn", "gcn", "energy", [0.7, 0.8]),
        detection("gnnsafe", "gnnsafe", "spread energy", [0.8, 0.9]),
        detection("gnnsafe", "gnnsafe", "energy", [1.0, 1.0], seed=1),  # not its own score
        detection(trust.OURS, trust.OURS, "novelty", [0.9, 0.9]),
        detection(trust.OURS, trust.OURS, "novelty", [0.9, 1.0], seed=1),
    ]
    rows = trust_page.detection_rows(found)
    row = dict(zip(rows[0], rows[1], strict=True))
    assert (row["GCN"], row["GNNSafe"], row["BGCL, novelty"]) == ("0.750", "0.850", "0.925")
    assert row["GPN"] == "-"
    assert row["first"] == "BGCL, novelty"
    assert row["seeds, splits"] == "2, 2"
    assert rows[-1][0] == "BGCL is first in 1 of 1, last in 0"
    assert trust_page.paper_rows(found)[1] == ["cora", "left-out classes", "85.0", "92.8"]
    assert list(trust_page.tables(found)) == [
        "AUROC of unknown nodes", "AUROC of each score", "GNNSafe here and in its paper, AUROC in %",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["popularity", "density"])
def test_nodes_that_differ_by_their_place_are_told_apart_by_this_place(name):
    data = communities(200, 3)
    place = node_property(data, name)

    def fit(graph, split, seed):
        return lambda other: {"a": Judgment.of_samples(np.full((1, 200, 3), 1 / 3), place=-place)}

    found = detect(fit, data, name, 2)
    assert min(found["detection"]["a"][name]["place"]) > (0.99 if name == "popularity" else 0.9)
    assert len(found["known"]["a"]["accuracy of unknown"]) == 2


def test_the_nearest_node_is_found_as_in_a_loop_and_r_auroc_counts_pairs():
    random = np.random.default_rng(0)
    embedding, labels = random.normal(size=(30, 4)), random.integers(-1, 3, 30)
    same, distance = nearest_has_the_same_class(torch.as_tensor(embedding), labels)
    for v in range(30):
        cosine = {
            u: float(embedding[u] @ embedding[v] / np.linalg.norm(embedding[u]) / np.linalg.norm(embedding[v]))
            for u in range(30)
            if u != v and labels[u] >= 0
        }
        best = max(cosine, key=cosine.get)
        assert same[v] == (labels[best] == labels[v])
        assert distance[v] == pytest.approx(1 - cosine[best], abs=1e-9)
    uncertain = random.normal(size=30)
    pairs = [uncertain[w] > uncertain[r] for w in np.flatnonzero(~same) for r in np.flatnonzero(same)]
    assert error_auroc(same, uncertain) == pytest.approx(np.mean(pairs))


def test_masked_nodes_lose_their_edges_or_their_attributes_and_others_do_not():
    data, nodes = communities(60), np.array([3, 7, 20])
    found = without_edges(data, nodes)
    assert not np.isin(found.edge_index.numpy(), nodes).any()
    kept = {tuple(pair) for pair in data.edge_index.T.tolist() if not np.isin(pair, nodes).any()}
    assert {tuple(pair) for pair in found.edge_index.T.tolist()} == kept
    x, before = without_attributes(data, nodes).x.to_dense(), data.x.to_dense()
    assert (x[nodes] == 0).all()
    others = np.setdiff1d(np.arange(60), nodes)
    assert torch.equal(x[others], before[others])


@pytest.fixture(scope="module")
def fitted():
    data = communities(240, 3)
    data.y[::5] = (data.y[::5] + 1) % 3  # so that the nearest node is not always of the same class
    return BGCL(widths=(16, 8), part_width=8, epochs=5).fit(data, progress=False), data


def test_measures_without_labels_see_masked_nodes(fitted):
    found = label_free(*fitted, samples=6)
    assert set(found["r_auroc"]) == {*MEASURES, ANCHORED, WHOLE, *CONTROLS}
    assert set(found["rises"]["edges"]) == {*MEASURES, ANCHORED, WHOLE}
    assert found["rises"]["attributes"][WHOLE] > 0.5
    assert found == label_free(*fitted, samples=6) | {"novelty_seconds": found["novelty_seconds"]}


def test_sets_hold_their_level_over_many_calibrations(fitted):
    found = set_results(*fitted, heads=2, samples=4)["sets"]
    for scores in found.values():
        for level, values in scores.items():
            assert len(values["coverage"]) == len(values["size"]) == 2 * AGAIN
            # 24 calibration nodes: coverage is between the level and 1/25 above it on average, 0.03 is three errors
            assert float(level) - 0.03 < np.mean(values["coverage"]) < float(level) + 0.04 + 0.03
    assert np.mean(found["lac"]["0.95"]["size"]) > np.mean(found["lac"]["0.9"]["size"])


@pytest.mark.parametrize("task", [trust.SETS, trust.WITHOUT_LABELS])
def test_cells_of_the_default_have_their_results(task, tmp_path, fitted):
    _, data = fitted
    (cell,) = [cell for cell in experiments.cells("trust", methods=[trust.OURS], quick=True) if cell.label == task]
    cell = replace(cell, settings={"widths": [16, 8], "part_width": 8, "epochs": 2})
    found = computing.compute(cell, data, Cache(tmp_path))
    assert found["headline"]
    assert ("sets" in found) == (task == trust.SETS)
    assert trust_page.tables([found])
