"""The experiment `field`: its cells and graphs, what training costs, and its tables."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from bgcl import BGCLError, MixtureClassifier, checkpoint
from bgcl.baselines import baseline
from bgcl.downstream.evaluation import evaluate_draws, head_for
from bgcl.downstream.splits import labels_of, splits
from bgcl.reproduce import compute as computing
from bgcl.reproduce import cost, experiments, field, field_page, graphs, pages, results
from bgcl.reproduce import run as running
from bgcl.reproduce.cache import Cache
from bgcl.reproduce.cells import Cell
from bgcl.settings import Settings
from small import random_data

TINY = {"epochs": 1, "widths": [8, 4], "part_width": 4}
NODES = {"pubmed": 19717, "coauthor-physics": 34493, "blogcatalog": 5196, "actor": 7600, "tolokers": 11758,
         "lastfm": 7624}  # fmt: skip


@pytest.fixture
def data():
    return random_data(120, 12, classes=2, seed=1)


class TestCells:
    def test_all_methods_have_the_same_splits(self):
        for dataset in field.DATASETS:
            cells = experiments.cells("field", datasets=[dataset])
            assert {cell.method for cell in cells} == set(field.METHODS)
            for share, protocol in field.protocols(dataset).items():
                labels = (share, field.labeled(field.WITHOUT_MASKS, share))
                same = [cell for cell in cells if cell.label in labels]
                assert {(cell.protocol, cell.splits) for cell in same} == {(protocol, 20)}
                assert {cell.method for cell in same} == set(field.METHODS)

    def test_each_graph_has_its_protocols(self):
        shares = {dataset: list(field.protocols(dataset).values()) for dataset in field.DATASETS}
        assert shares.pop("cora") == shares.pop("citeseer") == ["grace", "bgrl-20"]
        assert shares.pop("lastfm") == ["half"]
        assert set(map(tuple, shares.values())) == {("bgrl", "bgrl-20")}
        assert {cell.label for cell in experiments.cells("field", datasets=["actor"])} == {
            "", "20 % of the labels", "labels not spread", "labels not spread, 20 % of the labels",
            "without masks", "linear head", "pooled head",
        }  # fmt: skip

    def test_the_others_also_have_the_head_of_the_default_and_the_default_also_theirs(self, data, tmp_path):
        cells = experiments.cells("field", datasets=["cora"])
        assert {cell.method for cell in cells if cell.label == field.POOLED_HEAD} == {
            method for method, variant in field_page.POOLED if variant == field.POOLED_HEAD
        }
        assert {cell.method for cell in cells if cell.label == field.LINEAR_HEAD} == {"bgcl-default"}
        for method, parts in (("propagated-features", 3), ("raw-features", None)):
            cell = Cell(method, "cora", 0, "bgrl", 2, evaluation={"head": "pool"})
            found = computing.compute(cell, data, Cache(tmp_path))
            drawn = [baseline(method).fit(data)]
            head = functools.partial(MixtureClassifier, parts=parts, kernel=True)
            expected = evaluate_draws(drawn, labels_of(data), splits(data, "bgrl", 2), training_draws=1, head=head)
            assert found["accuracy"] == pytest.approx([result.correct.mean() for result in expected], abs=1e-6)

    @pytest.mark.parametrize(("dataset", "seeds"), [("cora", 5), ("actor", 3)])
    def test_only_the_default_has_several_seeds_unless_more_are_asked_for(self, dataset, seeds):
        def counts(**more):
            cells = experiments.cells("field", datasets=[dataset], **more)
            return {method: len({c.seed for c in cells if c.method == method}) for method in field.METHODS}

        assert counts() == dict.fromkeys(field.METHODS, 1) | {"bgcl-default": seeds}
        assert counts(seeds=7) == dict.fromkeys(field.METHODS, 7) | dict.fromkeys(field.NO_SEED, 1)

    def test_the_papers_bgcl_has_batches_of_about_4000_nodes_where_it_has_no_preset(self):
        for dataset, nodes in NODES.items():
            settings = experiments.cells("field", datasets=[dataset], methods=["bgcl"])[0].settings
            batches = math.ceil(nodes / 4000)
            assert settings == {"encoder": "gcn", "batches": batches, "epochs": math.ceil(300 / batches)}
        assert experiments.cells("field", datasets=["cora"], methods=["bgcl"])[0].settings == experiments.settings_of(
            "cora"
        )

    def test_the_default_has_no_settings(self):
        assert all(not cell.settings for cell in experiments.cells("field", methods=["bgcl-default"]))
        assert computing._method(Cell("bgcl-default", "actor", 2, "bgrl", 20)) == Settings(seed=2)

    def test_a_graph_without_a_published_configuration_has_the_defaults(self):
        for method in ("dgi", "grace", "bgrl", "cca-ssg", "signa"):
            cell = Cell(method, "tolokers", 3, "bgrl", 20)
            assert computing._method(cell) == baseline(method, seed=3)
        cell = experiments.cells("field", datasets=["tolokers"], methods=["grace"])[0]
        assert (computing._method(cell).batches, computing._method(cell).epochs) == (3, 100)

    def test_the_paper_has_another_title_here_than_in_its_own_tables(self):
        assert experiments.title_of("field", "bgcl") == "BGCL, the paper's"
        assert experiments.title_of("table1", "bgcl") == "BGCL"


class TestGraphs:
    def test_the_reason_names_the_variable_or_the_file(self, tmp_path, monkeypatch):
        monkeypatch.delenv("BGCL_DATA", raising=False)
        with pytest.raises(BGCLError, match=r"Set \$BGCL_DATA to a folder with actor.npz"):
            graphs.check_graph_is_here("actor")
        monkeypatch.setenv("BGCL_DATA", str(tmp_path))
        with pytest.raises(BGCLError, match=r"lastfm/edges.csv is missing. Put it there"):
            graphs.open_graph("lastfm")

    def test_a_missing_graph_does_not_stop_the_others(self, data, tmp_path, monkeypatch):
        monkeypatch.setenv("BGCL_DATA", str(tmp_path))
        monkeypatch.setattr(running, "open_graph", lambda name: data)
        cells = [Cell("raw-features", name, 0, "bgrl", 2) for name in ("tolokers", "cora")]
        found = {cell.dataset: (result, reason) for cell, result, reason in running.run(cells, Cache(tmp_path))}
        assert found["tolokers"][0] is None
        assert "tolokers.npz is missing" in found["tolokers"][1]
        assert len(found["cora"][0]["accuracy"]) == 2

    def test_files_and_tables_are_opened(self, tmp_path, monkeypatch):
        monkeypatch.setenv("BGCL_DATA", str(tmp_path))
        ring = {(i, (i + 1) % 6) for i in range(6)}
        parts = {"adj": np.zeros((6, 6)), "attr": np.eye(6, 3)}
        for u, v in ring:
            parts["adj"][u, v] = 1
        arrays = {"labels": np.arange(6) % 2}
        for name, dense in parts.items():
            row, column = np.nonzero(dense)
            arrays |= {
                f"{name}_data": dense[row, column], f"{name}_indices": column, f"{name}_shape": np.array(dense.shape),
                f"{name}_indptr": np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(dense)))]),
            }  # fmt: skip
        np.savez(tmp_path / "tolokers.npz", **arrays)
        (tmp_path / "lastfm").mkdir()
        (tmp_path / "lastfm" / "edges.csv").write_text("id_1,id_2\n" + "".join(f"{u},{v}\n" for u, v in ring))
        (tmp_path / "lastfm" / "target.csv").write_text("id,target\n" + "".join(f"{i},{i % 3}\n" for i in range(6)))
        for name, classes in (("tolokers", 2), ("lastfm", 3)):
            graphs.check_graph_is_here(name)
            graph = graphs.open_graph(name)
            assert {tuple(sorted(pair)) for pair in graph.edge_index.t().tolist()} == {tuple(sorted(e)) for e in ring}
            assert graph.y.tolist() == [i % classes for i in range(6)]


class TestCost:
    def test_a_fit_in_its_own_process_is_measured_once(self, tmp_path, monkeypatch):
        cache, method, data = Cache(tmp_path), baseline("raw-features"), graphs.open_graph("cora")
        found = cost.measured_fit("raw-features", method, "cora", data, cache)
        assert found["fit_seconds"] >= 0
        assert 50 < found["peak_mib"] < 5000
        assert found["cost_note"] == ""
        np.testing.assert_array_equal(
            np.load(next((tmp_path / "embeddings").glob("*.npy"))), baseline("raw-features").fit(data)
        )
        monkeypatch.setattr(cost, "_in_child", None)
        assert cost.measured_fit("raw-features", method, "cora", data, cache) == found
        cell = Cell("raw-features", "cora", 0, "bgrl", 2, evaluation={"measure": True})
        monkeypatch.setattr("bgcl.baselines.raw.RawFeatures.fit", None)  # the cell reads what the process has made
        assert computing.compute(cell, data, cache).items() >= found.items()

    def test_an_error_in_the_process_reaches_the_caller(self, tmp_path, monkeypatch):
        folder = tmp_path / "data" / "lastfm"
        folder.mkdir(parents=True)
        (folder / "edges.csv").write_text("id_1,id_2\n0,1\n0,2\n1,2\n")
        (folder / "target.csv").write_text("id,target\n0,0\n1,1\n2,1\n")
        monkeypatch.setenv("BGCL_DATA", str(tmp_path / "data"))
        with pytest.raises(BGCLError, match="The graph is complete"):
            cost.measured_fit("gae", baseline("gae"), "lastfm", graphs.open_graph("lastfm"), Cache(tmp_path / "cache"))
        assert not list(tmp_path.rglob("*.json"))

    def test_a_run_that_was_resumed_has_the_time_of_its_epochs_and_no_memory(self, tmp_path):
        arguments = ("cora", "bgcl-default", Settings(**TINY), tmp_path / "cache", 1)
        first = cost._fit(*arguments)
        assert first["peak_mib"] > 50
        folder = next((tmp_path / "cache" / "runs").glob("*/history.jsonl")).parent
        saved = checkpoint.read(folder)
        checkpoint.write_history(folder, [replace(saved.history[0], seconds=1e4)])
        checkpoint.write_tensors(folder, saved.settings, saved.graph, saved.network, saved.training)
        again = cost._fit(*arguments)
        assert again == {"fit_seconds": 1e4, "peak_mib": 0, "cost_note": "the training was resumed"}

    def test_peak_memory_grows_with_what_a_process_uses(self):
        before = cost.peak_mib()
        block = np.ones((int(before) + 64, 2**17))  # a row is one MiB
        assert cost.peak_mib() > before + 32 > 32
        del block


def test_both_shares_of_labels_and_embeddings_without_masks_use_one_run(data, tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    cell = Cell("bgcl-default", "cora", 0, "bgrl", 2, TINY, {"samples": 8, "training_draws": 4})
    with_masks = computing.compute(cell, data, cache)
    model = computing.trained(data, computing._method(cell), cache)
    assert len(model.parts_) > 1
    monkeypatch.setattr("bgcl.model.training.Training.step", None)
    without = computing.compute(replace(cell, protocol="bgrl-20", evaluation={"masks": False}), data, cache)
    chosen = splits(data, "bgrl-20", 2)
    again = evaluate_draws([model.embed(data)], labels_of(data), chosen, training_draws=1, head=head_for(model.parts_))
    assert without["accuracy"] == pytest.approx([float(result.correct.mean()) for result in again], abs=1e-6)
    assert len(with_masks["accuracy"]) == 2
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_the_auroc_of_the_rare_class_equals_a_loop_over_pairs_of_nodes(data):
    data.y = data.y * (torch.arange(120) % 3 > 0)
    chosen = splits(data, "bgrl", 2)
    found = evaluate_draws([data.x.numpy()], labels_of(data), chosen, training_draws=1)
    for result in found:
        rare = result.uncertainty.probability[:, 1]
        pairs = [(a > b) + 0.5 * (a == b) for a in rare[result.label == 1] for b in rare[result.label == 0]]
        assert computing.rare_auroc(result) == pytest.approx(np.mean(pairs))
    scores = computing.scores(found, [])["scores"]
    assert scores["rare_auroc"][0] == pytest.approx(
        np.mean([computing.rare_auroc(result) for result in found]), abs=1e-6
    )
    data.y = torch.arange(120) % 3
    three = evaluate_draws([data.x.numpy()], labels_of(data), splits(data, "half", 1), training_draws=1)
    assert "rare_auroc" not in computing.scores(three, [])["scores"]


def result(method, seed, accuracy, label="", dataset="cora", **more):
    cell = Cell(method, dataset, seed, "grace", len(accuracy), label=label)
    scores = {"ece": [0.02, 0.1], "auroc:least_confidence": [0.8, 0.1]}
    return {
        "cell": cell.to_dict(),
        "accuracy": accuracy,
        "scores": scores,
        "seconds": 1.0,
        "versions": {"bgcl": "0"},
    } | more


class TestPage:
    def tables(self, *found):
        return {title: {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[1:]} for title, rows in
                field_page.tables(found).items()}  # fmt: skip

    def test_a_table_has_a_row_for_each_graph_and_a_dash_for_what_is_missing(self):
        every = self.tables(
            result("bgcl-default", 0, [0.8, 0.9]), result("bgcl-default", 1, [0.8, 0.9]), result("dgi", 0, [0.7, 0.7]),
            result("bgcl-default", 0, [0.6, 0.6], "without masks"),
            result("signa", 0, [0.5, 0.5], "20 % of the labels", "actor"),
            result("signa", 0, [0.4, 0.4], "50 % of the labels", "lastfm"),
        )  # fmt: skip
        row = every["Accuracy in % with 10 % of the labels"]
        assert row.keys() == {"cora"}
        assert row["cora"]["BGCL, default"] == "85.00 (7.07 / 0.00)"
        assert row["cora"]["BGCL, default, without masks"] == "60.00 (0.00)"
        assert row["cora"]["DGI"] == "70.00 (0.00)"
        assert row["cora"]["GRACE"] == "-"
        assert every["ECE with 10 % of the labels"]["cora"]["DGI"] == "0.020"
        assert every["AUROC of errors with 10 % of the labels"]["cora"]["DGI"] == "0.800"
        assert every["Accuracy in % with 20 % of the labels"]["actor"]["SIGNA, few steps"] == "50.00 (0.00)"
        assert every["Accuracy in % with 50 % of the labels"]["lastfm"]["SIGNA, few steps"] == "40.00 (0.00)"

    def test_methods_are_compared_split_by_split(self):
        random = np.random.default_rng(0)
        ours, theirs = random.random((3, 20)), random.random(20)
        found = [result("bgcl-default", seed, list(row)) for seed, row in enumerate(ours)] + [
            result("dgi", 0, list(theirs))
        ]
        difference = ours.mean(0) - theirs
        cell = self.tables(*found)["BGCL, default minus the others with 10 % of the labels, points (p-value)"]["cora"]
        assert cell["DGI"] == f"{100 * difference.mean():+.2f} ({stats.wilcoxon(difference).pvalue:.4f})"
        assert cell["GRACE"] == "-"
        same = results.compare_by_split(found[:1], found[:1])
        assert same == (0.0, 1.0)

    def test_time_memory_and_the_rare_class_have_their_tables(self):
        cheap = {"fit_seconds": 12.4, "peak_mib": 900, "cost_note": ""}
        resumed = {"fit_seconds": 7.0, "peak_mib": 0, "cost_note": "the training was resumed"}
        rare = result("dgi", 0, [0.7], "20 % of the labels", "tolokers")
        rare["scores"]["rare_auroc"] = [0.65, 0.1]
        every = self.tables(result("dgi", 0, [0.7], **cheap), result("grace", 0, [0.7], **resumed), rare)
        costs = every["Time and memory of training"]["cora"]
        assert (costs["DGI"], costs["GRACE"], costs["BGRL"]) == ("12 s, 900 MiB", "7 s", "-")
        assert every["AUROC of the rare class"]["tolokers"]["DGI"] == "0.650"

    def test_learned_rates_have_a_spread_over_seeds(self):
        def rates(entries, neighbors):
            masks = [{"mask": "entries", "mean": [[entries]]}, {"mask": "neighbors", "mean": [[neighbors, 0.3]]}]
            return {"drop_rates": {"o": masks, "t": masks[:1]}}

        every = self.tables(
            result("bgcl-default", 0, [0.7], **rates(0.5, 0.1)), result("bgcl-default", 1, [0.7], **rates(0.7, 0.1)),
            result("bgcl-default", 0, [0.7], dataset="actor", **rates(0.25, 0.5)), result("dgi", 0, [0.7]),
        )["Drop rates that the default learned"]  # fmt: skip
        assert every["cora"] == {
            "graph": "cora", "seeds": "2", "entries, view o": "0.60 (0.14)", "neighbors, view o": "0.20 (0.00)",
            "entries, view t": "0.60 (0.14)",
        }  # fmt: skip
        assert every["actor"]["neighbors, view o"] == "0.40"
        assert every.keys() == {"cora", "actor"}

    def test_claims_name_split_and_code(self):
        every = self.tables()
        assert every.keys() == {"What papers report, %", "What their code does"}
        signa = every["What papers report, %"]["SIGNA (AAAI 2025)"]
        assert (signa["amazon-photo"], signa["cora"]) == ("95.32", "-")
        assert "10 % validation" in every["What their code does"]["SIGNA"]["in its code"]

    def test_the_section_is_part_of_the_page_and_the_terminal_shows_titles(self, tmp_path):
        found = [result("bgcl-default", 0, [0.8, 0.9])]
        results.write(tmp_path / "field.json", "field", found)
        page = pages.page(tmp_path, "Introduction")
        assert "## The field: other methods on the same splits" in page
        assert "### Accuracy in % with 10 % of the labels" in page
        assert "Wilcoxon" in page
        assert pages.text("field", found).startswith("Accuracy in % with 10 % of the labels\ngraph")
