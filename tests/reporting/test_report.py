"""What a report shows, compared with the numbers of the library and with plain loops."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from synthetic_report import make_contents, make_history
from torch_geometric.data import Data

import bgcl
from bgcl import BGCL, BGCLError, predict
from bgcl.downstream.kept_results import KeptResults
from bgcl.measures.metrics import error_auroc, reliability
from bgcl.measures.uncertainty import MEASURES
from bgcl.reporting.report.contents import gather
from bgcl.reporting.report.curves import QUANTILES, RATES, rate_curves, thin
from bgcl.reporting.report.draw_summary import DrawSummary
from bgcl.reporting.report.node_map import CLOUD
from bgcl.reporting.report.page import FULL, payload, quantize, render, report
from trained import narrow

NODES = 48


def make_graph(unlabeled: int = 6, classes: int = 3) -> Data:
    y = torch.arange(NODES) % classes
    y[:unlabeled] = -1
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, 120), generator=generator)
    return Data(x=torch.rand(NODES, 5, generator=generator), edge_index=edges, y=y, name="/some/where/papers.npz")


def make_model(encoder: str) -> BGCL:
    return BGCL(**narrow(encoder), epochs=3).fit(make_graph(), progress=False)


@pytest.fixture(scope="module", params=["gcn", "mlp"])
def model(request) -> BGCL:
    return make_model(request.param)


@pytest.fixture(scope="module")
def contents(model):
    return gather(model, make_graph(), samples=16, tsne=False)


def unpack(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


def payload_of(page: str) -> dict:
    """The data that the script of a page would read, found by an HTML parser."""

    class Finder(HTMLParser):
        inside, found = False, ""

        def handle_starttag(self, tag, attributes):
            self.inside = tag == "script" and ("id", "payload") in attributes

        def handle_data(self, data):
            self.found += data if self.inside else ""

        def handle_endtag(self, tag):
            self.inside = False

    finder = Finder()
    finder.feed(page)
    return json.loads(finder.found)


def test_predictions_and_measures_are_those_of_predict(contents, model):
    found = predict(model, make_graph(), samples=16)
    np.testing.assert_array_equal(contents.likeliest[:, 0], found.uncertainty.probability.argmax(1))
    np.testing.assert_array_equal(contents.probability[:, 0], found.uncertainty.probability.max(1))
    assert (np.diff(contents.probability, axis=1) <= 0).all()
    for name in MEASURES:
        np.testing.assert_array_equal(contents.measures[name], getattr(found.uncertainty, name))
    np.testing.assert_allclose(contents.measures["astd"], found.astd, rtol=1e-6)
    np.testing.assert_array_equal(contents.label, make_graph().y)


def test_disagreement_is_that_of_the_model(contents, model):
    np.testing.assert_allclose(contents.measures["disagreement"], model.disagreement(make_graph(), 16), atol=1e-9)


def test_a_report_makes_each_draw_once(model, monkeypatch):
    made = []
    draws = BGCL.draws
    monkeypatch.setattr(BGCL, "draws", lambda *args, **options: (made.append(d) or d for d in draws(*args, **options)))
    gather(model, make_graph(), samples=16, tsne=False)
    assert len(made) == 16


@pytest.mark.parametrize("predict", [True, False])
def test_a_summary_has_the_moments_and_the_first_of_the_draws(model, predict):
    data = make_graph()
    summary, draws = DrawSummary.of(model, data, 16, seed=None, predict=predict), model.sample(data, 16)
    torch.testing.assert_close(summary.moments.mean, draws.mean(0))
    torch.testing.assert_close(summary.moments.std, draws.std(0))
    np.testing.assert_array_equal(summary.first, draws[:CLOUD])
    assert (summary.predictions is not None) == predict


@pytest.mark.parametrize("predict", [True, False])
def test_after_a_summary_was_kept_only_the_draws_of_the_map_are_made_again(model, predict, monkeypatch, tmp_path):
    data, kept, made = make_graph(), KeptResults(tmp_path, model), []
    fresh = DrawSummary.of(model, data, 16, seed=None, predict=predict, kept=kept)
    draws = BGCL.draws
    monkeypatch.setattr(BGCL, "draws", lambda *args, **options: (made.append(d) or d for d in draws(*args, **options)))
    again = DrawSummary.of(model, data, 16, seed=None, predict=predict, kept=kept)
    assert len(made) == CLOUD
    np.testing.assert_array_equal(again.first, fresh.first)
    np.testing.assert_array_equal(again.moments.mean, fresh.moments.mean)
    np.testing.assert_array_equal(again.moments.std, fresh.moments.std)
    if predict:
        np.testing.assert_array_equal(
            again.predictions.uncertainty.probability, fresh.predictions.uncertainty.probability
        )


def test_a_graph_that_is_too_large_has_no_disagreement(model, monkeypatch):
    monkeypatch.setattr("bgcl.reporting.report.contents.DISAGREEMENT_WORK", 1.9 * NODES**2)  # less than two pairs
    found = gather(model, make_graph(), samples=16, tsne=False)
    assert "disagreement" not in found.measures
    assert "too large" in found.notes[0]


def test_scores_and_reliability_are_over_the_labeled_nodes(contents):
    known = contents.label >= 0
    right = (contents.likeliest[:, 0] == contents.label)[known]
    assert contents.scores["accuracy"] == pytest.approx(right.mean())
    assert contents.scores["auroc:margin"] == pytest.approx(error_auroc(right, contents.measures["margin"][known]))
    with_all = np.zeros((NODES, 3))
    np.put_along_axis(with_all, contents.likeliest, contents.probability, 1)
    expected = reliability(with_all[known], contents.label[known])
    np.testing.assert_array_equal(contents.reliability.count, expected.count)
    np.testing.assert_allclose(contents.reliability.accuracy, expected.accuracy)


def test_the_page_has_the_measures_to_the_last_bit(contents):
    found = payload_of(render(contents))
    for measure in found["measures"]:
        np.testing.assert_array_equal(unpack(measure["values"], "<f8"), contents.measures[measure["name"]])
    np.testing.assert_array_equal(unpack(found["label"], "<i2"), contents.label)
    probability = unpack(found["probability"], "<u2").reshape(NODES, 3) / FULL
    np.testing.assert_allclose(probability, contents.probability, atol=0.5 / FULL + 1e-12)


def test_quantized_positions_are_moved_but_not_stretched(contents):
    quantized, cloud = quantize(contents.map)
    position = contents.map.position
    size = np.ptp(position, axis=0).max()
    shift = quantized / FULL * size - position
    np.testing.assert_allclose(shift - shift.mean(0), 0, atol=size / FULL)
    assert quantized.min() >= 0
    assert quantized.max() <= FULL
    assert cloud.shape == (NODES, len(contents.map.cloud), 2)


def test_a_large_graph_has_the_disagreement_of_fewer_draws(model, monkeypatch):
    monkeypatch.setattr("bgcl.reporting.report.contents.DISAGREEMENT_WORK", 3.5 * NODES**2)  # three pairs
    found = gather(model, make_graph(), samples=16, tsne=False)
    np.testing.assert_allclose(found.measures["disagreement"], model.disagreement(make_graph(), 6), atol=1e-9)


def test_the_same_run_gives_the_same_page_byte_for_byte(tmp_path):
    model = make_model("mlp")
    pages = [report(model, make_graph(), tmp_path / name, samples=12).read_bytes() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]
    other = report(model, make_graph(), tmp_path / "c.html", samples=12, seed=5).read_bytes()
    assert other != pages[0]


@pytest.mark.parametrize("encoder", ["gcn", "mlp"])
def test_a_page_without_labels_has_the_measures_that_need_none(encoder):
    data = make_graph()
    data.y = None
    model = BGCL(**narrow(encoder), epochs=1).fit(data, progress=False)
    found = gather(model, data, samples=12, tsne=False)
    assert list(found.measures) == ["strangeness", "astd", "disagreement"]
    assert found.first_measure == "astd"
    assert found.likeliest is None
    assert "no labels" in found.notes[0]
    assert "likeliest" not in payload_of(render(found))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([4, 4, 4, 4], "one class"),
        ([], "No node is labeled"),
    ],
)
def test_too_few_labels_are_shown_but_not_learned_from(model, y, words):
    data = make_graph()
    data.y = torch.full((NODES,), -1)
    data.y[: len(y)] = torch.tensor(y, dtype=torch.long)
    found = gather(model, data, samples=12, tsne=False)
    assert words in found.notes[0]
    assert found.likeliest is None
    assert (found.label >= 0).sum() == len(y)


def test_a_class_with_two_labeled_nodes_does_not_keep_the_page_from_predicting(model):
    data = make_graph()
    data.y = torch.full((NODES,), -1)
    data.y[:5] = torch.tensor([0, 0, 1, 1, 1])
    found = gather(model, data, samples=12, tsne=False)
    assert found.likeliest is not None
    assert [figures.title for figures in found.figures] == ["Classes", "Which class is taken for which"]
    assert [row[-1] for row in found.figures[0].rows] == ["2", "3"]
    assert [figures.matrix for figures in found.figures] == [False, True]
    assert found.figures[1].head[1:] == [row[0] for row in found.figures[1].rows]


def test_the_page_has_the_ids_and_class_names_of_the_graph(model):
    data = make_graph()
    data.ids, data.classes = [f"n{i}" for i in range(NODES)], ["red", "green", "blue"]
    found = gather(model, data, samples=12, tsne=False)
    assert found.ids[7] == "n7"
    assert found.classes == ["red", "green", "blue"]
    assert found.title == "papers"  # a page is shared, so it does not show the folder of the graph


def test_text_of_the_user_never_becomes_markup():
    evil = "</script><script>alert(1)</script><!--&'\"\u2028"
    contents = replace(make_contents(30, 3), ids=[evil] * 30, classes=[evil] * 3, title=evil, facts={evil: evil})
    page = render(contents)
    assert payload_of(page)["ids"] == [evil] * 30
    assert page.count("<script") == 2
    assert "alert(1)</" not in page
    assert "default-src 'none'" in page


def test_the_page_refers_to_nothing_outside_itself(contents):
    page = re.sub(r'(?s)id="payload">.*?</script>', "", render(contents))  # base64 can contain anything
    page = page.replace("http://www.w3.org/2000/svg", "")  # a name that is never loaded
    assert not re.search(r"https?:|//[a-z]|@import|url\(", page)


def test_curves_have_the_quantiles_and_densities_of_the_posterior():
    history = make_history(5)
    for view, curve in rate_curves(history)[0]["views"].items():
        for epoch, record in enumerate(history):
            (a,), (b,) = record.rates[view][0].a[0], record.rates[view][0].b[0]
            for q, values in zip(QUANTILES, curve["quantiles"], strict=True):
                # With t = pi^a the density of t is b (1 - t)^(b-1): its integral up to pi^a must be q.
                pi = values[epoch]
                t, weight = np.polynomial.legendre.leggauss(200)
                t = (t + 1) / 2 * pi**a
                assert (weight / 2 * pi**a * b * (1 - t) ** (b - 1)).sum() == pytest.approx(q, abs=1e-4)
        for name, record in (("first", history[0]), ("last", history[-1])):
            (a,), (b,) = record.rates[view][0].a[0], record.rates[view][0].b[0]
            below, above = (1 - (1 - (RATES + step) ** a) ** b for step in (-1e-6, 1e-6))
            np.testing.assert_allclose(curve[name], (above - below) / 2e-6, rtol=1e-3)


def test_curves_have_a_rate_for_each_mask_and_keep_both_ends_when_thinned():
    history = make_history(1000)
    curves = rate_curves(history, most=50)
    assert [curve["name"] for curve in curves] == ["connections in 8 blocks", "features at 0.3/0.4"]
    assert curves[0]["epoch"][0] == 1
    assert curves[0]["epoch"][-1] == 1000
    assert len(curves[0]["epoch"]) == 50
    assert "quantiles" not in curves[1]["views"]["o"]
    assert thin(history[:7], 50) == history[:7]


@pytest.mark.parametrize("labeled", [40, 3, 0])
def test_a_page_says_how_many_nodes_have_a_number_and_if_they_are_too_few(labeled):
    data = make_graph()
    data.y = data.x.sum(1)
    data.y[labeled:] = float("nan")
    model = BGCL(**narrow("gcn"), epochs=2).fit(data, progress=False)
    found = gather(model, data, samples=4, tsne=False)
    assert found.facts["Labeled"] == str(labeled)
    assert ("variance" in found.measures) == (labeled == 40)
    note = {
        40: "Labels are numbers",
        3: "There are no predictions: Only 3 nodes",
        0: "There are no predictions: No node",
    }
    assert found.notes[0].startswith(note[labeled])


def test_the_curve_of_a_relation_has_its_name():
    data = make_graph()
    data.edge_type = torch.arange(data.num_edges) % 2
    data.edge_type_names = ["cites", "writes"]
    drop = ("edges per relation", "features")
    model = BGCL(**narrow("gcn"), drop=drop, epochs=2).fit(data, progress=False)
    names = [curve["name"] for curve in payload(gather(model, data, samples=4))["rates"]]
    assert [name for name in names if "per relation" in name] == [
        "edges per relation, cites", "edges per relation, writes"
    ]  # fmt: skip


def test_bad_input_is_refused_before_any_work(model, tmp_path):
    with pytest.raises(BGCLError, match=r"must end in \.html"):
        bgcl.report(model, make_graph(), tmp_path / "report.pdf")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(BGCLError, match="is a folder"):
        bgcl.report(model, make_graph(), tmp_path / "folder.html")
    with pytest.raises(BGCLError, match="two samples or more"):
        bgcl.report(model, make_graph(), tmp_path / "r.html", samples=1)
    other = make_graph()
    other.x = other.x + 1
    with pytest.raises(BGCLError, match="another graph"):
        bgcl.report(model, other, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder.html"]


def test_every_asset_of_the_page_is_in_the_package():
    settings = Path(__file__).parents[2] / "pyproject.toml"
    assert '"bgcl.reporting.report" = ["assets/*"]' in settings.read_text()
    assert payload(make_contents(20, 2))["nodes"] == 20
