"""Unknown nodes, sets and the cost of a threshold: on the page, and where they come from."""

import re

import numpy as np
import pytest
from synthetic_report import make_contents

import bgcl
from bgcl.conformal import Abstention, node_sets
from bgcl.downstream import NodePredictions
from bgcl.measures.uncertainty import uncertainty
from bgcl.novelty.detector import GROUPS
from bgcl.reporting.report.contents import gather
from bgcl.reporting.report.trust import LEVELS, LISTED, REASONS, cost_figures, most_similar, set_levels, unknown_nodes

DATA = bgcl.example_graph()
MODEL = bgcl.BGCL(widths=(8, 4), part_width=3, epochs=2).fit(DATA, progress=False)


def some_predictions(count: int = 300) -> NodePredictions:
    random = np.random.default_rng(0)
    label = np.where(np.arange(count) % 5 == 4, -1, random.integers(3, size=count))
    logits = random.normal(size=(count, 3)) + 3 * np.eye(3)[label]
    samples = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return NodePredictions(label, np.arange(3), uncertainty(samples[None]), np.zeros(count))


def test_nearest_known_nodes_equal_a_plain_loop():
    random = np.random.default_rng(0)
    embedding, nodes, known = random.normal(size=(20, 4)), np.array([3, 8, 19]), np.arange(0, 20, 2)
    found = most_similar(embedding, nodes, known)
    unit = embedding / np.linalg.norm(embedding, axis=1, keepdims=True)
    for row, node in zip(found, nodes, strict=True):
        order = sorted((other for other in known if other != node), key=lambda other: -(unit[other] @ unit[node]))
        assert row.tolist() == order[:3]
    assert most_similar(embedding, np.array([4]), np.array([4, 6])).tolist() == [[6, -1, -1]]


def test_the_strangest_nodes_come_first_with_labeled_nodes_near_to_them():
    predictions = bgcl.predict(MODEL, DATA, samples=6)
    strangeness, found = unknown_nodes(MODEL, DATA, predictions, 0)
    novelty = bgcl.Novelty(MODEL, seed=0).fit(DATA, predictions).score(DATA, predictions)
    np.testing.assert_allclose(strangeness, 1 - novelty.novelty)
    assert found.nodes.tolist() == np.argsort(-novelty.strangeness, kind="stable")[:LISTED].tolist()
    assert (np.diff(found.novelty) >= 0).all()
    assert (found.nearest != found.nodes[:, None]).all()


def test_every_score_of_the_default_has_a_reason_in_words():
    assert {score for group in GROUPS for score in group} <= set(REASONS)
    assert set(unknown_nodes(MODEL, DATA, None, 0)[1].reasons) <= set(REASONS.values())


def test_sets_by_level_are_those_of_the_library():
    predictions = some_predictions()
    found = set_levels(predictions)
    assert found.levels.tolist() == list(LEVELS)
    for row, level, needed in zip(found.size, LEVELS, found.needed, strict=True):
        sets = node_sets(predictions, level)
        assert row.tolist() == sets.size.tolist()
        np.testing.assert_array_equal(predictions.uncertainty.probability >= needed - 1e-12, sets.sets)
    few = NodePredictions(
        np.where(np.arange(300) < 9, predictions.label.clip(0), -1),
        np.arange(3),
        predictions.uncertainty,
        np.zeros(300),
    )
    assert set_levels(few).levels.max() == 0.9


def test_the_cost_of_a_risk_is_that_of_the_library():
    predictions = some_predictions()
    rows = {row[0]: row for row in cost_figures(predictions).rows}
    nodes = predictions.calibrates
    wrong = (predictions.predicted != predictions.label)[nodes]
    doubt = predictions.uncertainty.least_confidence
    for name, risk in (("10 %", 0.1), ("20 %", 0.2)):
        found = Abstention.at_risk(doubt[nodes], wrong, risk)
        assert rows[name][2] == f"{int((doubt <= found.threshold).sum()):,}"
    assert "1 %" not in rows  # needs 597 labels


def test_a_page_has_them_and_without_labels_it_has_unknown_nodes_alone():
    found = gather(MODEL, DATA, samples=6)
    assert found.sets is not None
    assert "What a threshold costs" in [figures.title for figures in found.figures]
    without = DATA.clone()
    without.y = None
    model = bgcl.BGCL(widths=(8, 4), part_width=3, epochs=2).fit(without, progress=False)
    found = gather(model, without, samples=6)
    assert found.sets is None
    assert len(found.unknown.nodes) == LISTED


def choose_level(page, step: int) -> None:
    page.evaluate(
        """step => { const slider = document.getElementById("level"); slider.value = step;
        slider.dispatchEvent(new Event("input", {bubbles: true})); }""",
        step,
    )


def test_the_level_shows_the_share_of_sets_with_one_class(page, shown):
    for step, sizes in enumerate(shown.sets.size):
        choose_level(page, step)
        assert page.text_content("#level-value") == f"{100 * LEVELS[step]:g} %"
        for name, share in (("one", sizes == 1), ("several", sizes > 1), ("none", sizes == 0)):
            assert float(page.get_attribute(f"#sets-{name}", "data-value")) == pytest.approx(share.mean())
        assert float(page.get_attribute("#sets-mean", "data-value")) == pytest.approx(sizes.mean())


def test_a_selected_node_shows_its_set_at_the_chosen_level(page, shown):
    page.fill("#search", "paper-00123")
    page.press("#search", "Enter")
    for step in (3, len(LEVELS) - 1):
        choose_level(page, step)
        size = shown.sets.size[step, 123]
        names = [shown.classes[c] for c in shown.likeliest[123, :size]]
        words = ", ".join(names) or "empty"
        assert f"Set at {100 * LEVELS[step]:g} %{words}" in re.sub(r"\s+", " ", page.text_content("#details"))


def test_a_strange_node_leads_to_its_place_on_the_map(page, shown):
    rows = page.locator("#unknown tbody tr")
    assert rows.count() == 20
    page.click("#unknown-more")
    assert rows.count() == 30
    assert page.is_hidden("#unknown-more")
    first = shown.unknown.nodes[0]
    assert "it does not fit its neighbors" in rows.nth(0).text_content()
    assert rows.nth(0).locator(".near button").count() == 2  # one has no number
    rows.nth(0).locator("button").first.click()
    assert page.text_content("#details-title") == f"Node {shown.ids[first]}"
    near = shown.unknown.nearest[1, 0]
    rows.nth(1).locator(".near button").first.click()
    assert page.text_content("#details-title") == f"Node {shown.ids[near]}"


def test_a_page_without_labels_has_no_sets(opened):
    page = opened(make_contents(60, 3, labels=False))
    assert page.is_hidden("#sets-section")
    assert page.is_visible("#unknown-section")
