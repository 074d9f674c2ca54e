"""What a report shows, against the library's own numbers and against other ways to them."""

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
from bgcl import BGCL, BGCLError, predict_nodes
from bgcl.measures.metrics import error_auroc, reliability
from bgcl.measures.uncertainty import MEASURES
from bgcl.reporting.report import node_map
from bgcl.reporting.report.contents import gather
from bgcl.reporting.report.curves import kumaraswamy_density, kumaraswamy_quantile, rate_curves, thin
from bgcl.reporting.report.node_map import make_map, nearest_nodes, place_draws
from bgcl.reporting.report.page import FULL, payload, quantise, render, report

NODES = 48


def make_graph(unlabelled: int = 6, classes: int = 3) -> Data:
    y = torch.arange(NODES) % classes
    y[:unlabelled] = -1
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, 120), generator=generator)
    return Data(x=torch.rand(NODES, 5, generator=generator), edge_index=edges, y=y, name="/some/where/papers.npz")


@pytest.fixture(scope="module")
def model() -> BGCL:
    return BGCL(widths=(8, 4), epochs=3).fit(make_graph(), progress=False)


@pytest.fixture(scope="module")
def contents(model):
    return gather(model, make_graph(), samples=16, tsne=False)


def unpack(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


def payload_of(page: str) -> dict:
    """What the page's script would read, found by a parser of HTML."""

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


def test_predictions_and_measures_are_those_of_predict_nodes(contents, model):
    found = predict_nodes(model, make_graph(), samples=16)
    np.testing.assert_array_equal(contents.likeliest[:, 0], found.uncertainty.probability.argmax(1))
    np.testing.assert_array_equal(contents.probability[:, 0], found.uncertainty.probability.max(1))
    assert (np.diff(contents.probability, axis=1) <= 0).all()
    for name in MEASURES:
        np.testing.assert_array_equal(contents.measures[name], getattr(found.uncertainty, name))
    np.testing.assert_allclose(contents.measures["astd"], found.astd, rtol=1e-6)
    np.testing.assert_array_equal(contents.label, make_graph().y)


def test_disagreement_is_that_of_the_model_though_the_draws_are_made_once(contents, model):
    np.testing.assert_allclose(contents.measures["disagreement"], model.disagreement(make_graph(), 16), atol=1e-9)


def test_scores_and_reliability_are_over_the_labelled_nodes(contents):
    known = contents.label >= 0
    right = (contents.likeliest[:, 0] == contents.label)[known]
    assert contents.scores["accuracy"] == pytest.approx(right.mean())
    assert contents.scores["auroc:margin"] == pytest.approx(error_auroc(right, contents.measures["margin"][known]))
    with_all = np.zeros((NODES, 3))
    np.put_along_axis(with_all, contents.likeliest, contents.probability, 1)
    expected = reliability(with_all[known], contents.label[known])
    np.testing.assert_array_equal(contents.reliability.count, expected.count)
    np.testing.assert_allclose(contents.reliability.accuracy, expected.accuracy)


def test_the_page_carries_measures_to_the_last_bit(contents):
    found = payload_of(render(contents))
    for measure in found["measures"]:
        np.testing.assert_array_equal(unpack(measure["values"], "<f8"), contents.measures[measure["name"]])
    np.testing.assert_array_equal(unpack(found["label"], "<i2"), contents.label)
    probability = unpack(found["probability"], "<u2").reshape(NODES, 3) / FULL
    np.testing.assert_allclose(probability, contents.probability, atol=0.5 / FULL + 1e-12)


def test_places_keep_their_shape_within_a_step_of_sixteen_bits(contents):
    place, cloud = quantise(contents.map)
    position = contents.map.position
    size = np.ptp(position, axis=0).max()
    away = place / FULL * size - position
    np.testing.assert_allclose(away - away.mean(0), 0, atol=size / FULL)  # moved as a whole, not stretched
    assert place.min() >= 0
    assert place.max() <= FULL
    assert cloud.shape == (NODES, len(contents.map.cloud), 2)


def test_the_same_run_gives_the_same_page_byte_for_byte(model, tmp_path):
    pages = [report(model, make_graph(), tmp_path / name, samples=12).read_bytes() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]
    other = report(model, make_graph(), tmp_path / "c.html", samples=12, seed=5).read_bytes()
    assert other != pages[0]


def test_a_page_without_labels_has_the_measures_that_need_none():
    data = make_graph()
    data.y = None
    model = BGCL(widths=(8, 4), epochs=1).fit(data, progress=False)
    found = gather(model, data, samples=12, tsne=False)
    assert list(found.measures) == ["astd", "disagreement"]
    assert found.first_measure == "astd"
    assert found.likeliest is None
    assert "no labels" in found.notes[0]
    assert "likeliest" not in payload_of(render(found))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0, 0, 1, 1, 1], "Class 0 has 2 labelled nodes"),
        ([4, 4, 4, 4], "one class"),
        ([], "No node is labelled"),
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


def test_ids_and_classes_of_the_graph_come_back(model):
    data = make_graph()
    data.ids, data.classes = [f"n{i}" for i in range(NODES)], ["red", "green", "blue"]
    found = gather(model, data, samples=12, tsne=False)
    assert found.ids[7] == "n7"
    assert found.classes == ["red", "green", "blue"]
    assert found.title == "papers"  # a page is passed on: it does not tell where on a machine the graph was


def test_no_text_of_the_user_can_become_markup():
    evil = "</script><script>alert(1)</script><!--&'\"\u2028"
    contents = replace(make_contents(30, 3), ids=[evil] * 30, classes=[evil] * 3, title=evil, facts={evil: evil})
    page = render(contents)
    assert payload_of(page)["ids"] == [evil] * 30
    assert page.count("<script") == 2
    assert "alert(1)</" not in page
    assert "default-src 'none'" in page


def test_the_page_names_nothing_outside_itself(contents):
    page = re.sub(r'(?s)id="payload">.*?</script>', "", render(contents))  # base64 may look like anything
    page = page.replace("http://www.w3.org/2000/svg", "")  # a name that is never fetched
    assert not re.search(r"https?:|//[a-z]|@import|url\(", page)


def test_quantiles_and_density_of_the_posterior_against_quadrature():
    random = np.random.default_rng(0)
    for a, b in random.uniform(0.4, 6, size=(20, 2)):
        for q in (0.05, 0.5, 0.95):
            pi = float(kumaraswamy_quantile(np.array(a), np.array(b), q))
            # With x = t^(1/a) the density of t = pi^a is b (1 - t)^(b-1): its integral to pi^a must be q.
            t, weight = np.polynomial.legendre.leggauss(200)
            t = (t + 1) / 2 * pi**a
            assert (weight / 2 * pi**a * b * (1 - t) ** (b - 1)).sum() == pytest.approx(q, abs=1e-4)
            step = 1e-6
            below, above = (1 - (1 - (pi + s) ** a) ** b for s in (-step, step))
            assert kumaraswamy_density(a, b, np.array(pi)) == pytest.approx((above - below) / (2 * step), rel=1e-3)


def test_curves_have_a_rate_for_each_mask_and_are_thinned_to_their_ends():
    history = make_history(1000)
    curves = rate_curves(history, most=50)
    assert [curve["name"] for curve in curves] == ["connections in 8 blocks", "features at 0.3/0.4"]
    assert curves[0]["epoch"][0] == 1
    assert curves[0]["epoch"][-1] == 1000
    assert len(curves[0]["epoch"]) == 50
    assert "quantiles" not in curves[1]["views"]["o"]
    assert thin(history[:7], 50) == history[:7]


def test_a_draw_falls_on_the_nodes_that_it_is_like():
    random = np.random.default_rng(0)
    centre = np.eye(3)[np.arange(60) % 3] * 5 + random.normal(scale=0.1, size=(60, 3))
    unit = centre / np.linalg.norm(centre, axis=1, keepdims=True)
    position = np.eye(3)[np.arange(60) % 3][:, :2] * 100
    swapped = np.roll(centre, 1, axis=0)[None]  # each draw looks like a node of another group
    np.testing.assert_allclose(place_draws(swapped, unit, position)[0], np.roll(position, 1, axis=0), atol=1e-6)


def test_placing_draws_equals_a_plain_loop(monkeypatch):
    monkeypatch.setattr(node_map, "_TILE", 7)
    random = np.random.default_rng(1)
    mean, draws, position = random.normal(size=(25, 4)), random.normal(size=(2, 25, 4)), random.normal(size=(25, 2))
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    found = place_draws(draws, unit, position)
    for d in range(2):
        for i in range(25):
            cosine = np.array([draws[d, i] @ u / np.linalg.norm(draws[d, i]) for u in unit])
            near = np.argsort(-cosine)[: node_map.NEIGHBOURS]
            span = cosine[near].max() - cosine[near].min()
            weight = np.exp(-3 * (cosine[near].max() - cosine[near]) / span)
            np.testing.assert_allclose(found[d, i], weight @ position[near] / weight.sum(), atol=1e-4)


def test_with_few_landmarks_a_draw_like_its_own_node_stays_there():
    random = np.random.default_rng(2)
    mean, position = random.normal(size=(200, 16)), random.normal(size=(200, 2)) * 50
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    placed = place_draws(mean[None], unit, position, landmarks=20)[0]
    away = np.linalg.norm(placed - position, axis=1)
    middle = np.linalg.norm(position - position.mean(0), axis=1)
    assert np.median(away) < 0.5 * np.median(middle)


def test_nearest_nodes_against_a_plain_sort(monkeypatch):
    monkeypatch.setattr(node_map, "_TILE", 40)
    random = np.random.default_rng(3)
    x = random.normal(size=(35, 6))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    found, distance = nearest_nodes(x, 4)
    for i in range(35):
        far = np.linalg.norm(x - x[i], axis=1)
        expected = [j for j in np.argsort(far) if j != i][:4]
        assert found[i].tolist() == expected
        np.testing.assert_allclose(distance[i], far[expected], atol=1e-6)


def test_tsne_keeps_groups_together_and_is_the_same_every_time():
    pytest.importorskip("openTSNE")
    random = np.random.default_rng(0)
    group = np.arange(90) % 3
    mean = np.eye(3)[group] * 4 + random.normal(scale=0.3, size=(90, 3))
    first, second = (make_map(mean, mean[None], seed=1) for _ in range(2))
    assert first.method == "t-SNE"
    np.testing.assert_array_equal(first.position, second.position)
    far = np.linalg.norm(first.position[:, None] - first.position[None], axis=-1)
    np.fill_diagonal(far, np.inf)
    assert (group[far.argmin(1)] == group).mean() > 0.95


def test_without_opentsne_the_map_is_pca_and_says_so(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "openTSNE", None)
    random = np.random.default_rng(0)
    mean = random.normal(size=(60, 5))
    found = make_map(mean, mean[None])
    assert found.method == "PCA"
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    centred = unit - unit.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(found.position), np.abs(centred @ axes[:2].T), atol=1e-5)


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_tiny_and_alike_graphs_have_a_map(nodes):
    found = make_map(np.ones((nodes, 4)), np.ones((3, nodes, 4)))
    assert np.isfinite(found.position).all()
    assert np.isfinite(quantise(found)[1]).all()


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
    assert '"bgcl.reporting" = ["assets/*"]' in settings.read_text()
    assert payload(make_contents(20, 2))["nodes"] == 20
