"""The report in Chromium: no errors, no requests, and the numbers of the library."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
from synthetic_report import make_contents

from bgcl.data.output import as_text
from bgcl.measures.metrics import pavpu


def move_slider(page, step: int) -> None:
    page.evaluate(
        """step => { const slider = document.getElementById("threshold"); slider.value = step;
        slider.dispatchEvent(new Event("input", {bubbles: true})); }""",
        step,
    )


def shown_number(page, name: str) -> float:
    return float(page.get_attribute(f"#number-{name}", "data-value"))


@pytest.mark.parametrize("measure", ["least_confidence", "variation_ratio", "mutual_information", "astd"])
def test_the_slider_shows_the_numbers_of_the_library(page, shown, measure):
    known = shown.label >= 0
    correct, values = (shown.likeliest[:, 0] == shown.label)[known], shown.measures[measure][known]
    expected = pavpu(correct, values, thresholds=1001)
    page.select_option("#measure", measure)
    seen = set()
    for step in (0, 1, 137, 250, 500, 777, 999, 1000):
        move_slider(page, step)
        threshold = expected.threshold[step]
        certain = values <= threshold if step < 1000 else np.ones(len(values), dtype=bool)
        assert shown_number(page, "pavpu") == pytest.approx(expected.pavpu[step], abs=1e-12)
        assert shown_number(page, "accuracy") == pytest.approx(expected.accurate_if_certain[step], abs=1e-12)
        assert shown_number(page, "caught") == pytest.approx(expected.uncertain_if_inaccurate[step], abs=1e-12)
        assert shown_number(page, "coverage") == pytest.approx(certain.mean(), abs=1e-12)
        assert page.text_content("#number-pavpu") == f"{100 * expected.pavpu[step]:.1f} %"
        assert f"{certain.sum()} of {known.sum()} labeled nodes" in page.text_content("#numbers")
        seen.add(shown_number(page, "coverage"))
    assert len(seen) > 4


def test_arrow_keys_move_the_slider_and_its_numbers_are_announced(page):
    page.select_option("#measure", "least_confidence")
    move_slider(page, 500)
    page.focus("#threshold")
    before = page.text_content("#threshold-value")
    page.keyboard.press("ArrowRight")
    assert page.input_value("#threshold") == "501"
    assert page.text_content("#threshold-value") != before
    page.keyboard.press("Home")
    page.locator("#announce", has_text="Coverage").wait_for(state="attached")
    assert "at most" in page.get_attribute("#threshold", "aria-valuetext")


def test_search_finds_a_node_by_its_id(page, shown):
    page.fill("#search", "PAPER-00123")
    assert page.locator("#found li").count() == 1
    page.press("#search", "Enter")
    assert page.text_content("#details-title") == "Node paper-00123"
    details = page.text_content("#details")
    assert shown.classes[shown.likeliest[123, 0]] in details
    astd = shown.measures["astd"][123]
    assert (f"{astd:.3f}" if astd >= 0.1 else f"{astd:#.3g}") in details
    page.fill("#search", "0012")
    holding = [f"paper-{i:05d}" for i in range(400) if "0012" in f"paper-{i:05d}"]
    assert page.locator("#found li").all_text_contents() == holding[:8]
    page.keyboard.press("ArrowDown")
    page.press("#search", "Enter")
    assert page.text_content("#details-title") == f"Node {holding[1]}"
    page.fill("#search", "nobody")
    assert "No node has this id" in page.text_content("#found")
    page.keyboard.press("Escape")
    assert page.is_hidden("#found")


def canvas(page, which: str) -> bytes:
    return page.evaluate(f"document.getElementById('{which}').toDataURL()")


def test_a_selected_node_shows_its_draws_and_colors_change_the_map(page):
    page.focus("#map")
    page.keyboard.press("Escape")
    empty, plain = canvas(page, "map"), canvas(page, "base")
    page.fill("#search", "paper-00007")
    page.press("#search", "Enter")
    first = canvas(page, "map")
    assert first != empty
    page.fill("#search", "paper-00008")
    page.press("#search", "Enter")
    assert canvas(page, "map") not in (first, empty)
    pictures = {plain}
    for value in ("prediction", "right", "least_confidence", "mutual_information", "astd", "label"):
        page.select_option("#color", value)
        page.wait_for_timeout(300)
        pictures.add(canvas(page, "base"))
    assert len(pictures) == 6
    assert "no label" in page.text_content("#legend")


def screen_position(page, shown, node: int) -> tuple[float, float]:
    """The position of a node on the screen, computed from the positions on the map."""
    box = page.locator("#map").bounding_box()
    position = shown.map.position
    low, high = position.min(0), position.max(0)
    share = (position[node] - (low + high) / 2) / (high - low).max()
    scale = 0.93 * min(box["width"], box["height"])
    return box["x"] + box["width"] / 2 + share[0] * scale, box["y"] + box["height"] / 2 - share[1] * scale


def test_hover_and_click_reach_the_node_under_the_pointer(page, shown):
    page.click("#zoom-all")
    page.locator("#stage").scroll_into_view_if_needed()
    position = shown.map.position
    lonely = int(
        np.linalg.norm(position - position.mean(0), axis=1).argmax()
    )  # the outermost node has no close neighbor
    page.mouse.move(*screen_position(page, shown, lonely))
    page.wait_for_selector("#tip:not([hidden])")
    assert f"paper-{lonely:05d}" in page.text_content("#tip")
    page.mouse.click(*screen_position(page, shown, lonely))
    assert page.text_content("#details-title") == f"Node paper-{lonely:05d}"


def test_arrow_keys_go_from_node_to_node_and_zoom(page):
    page.focus("#map")
    page.keyboard.press("Escape")
    assert page.text_content("#details-title") == "No node selected"
    page.keyboard.press("ArrowRight")
    first = page.text_content("#details-title")
    assert first.startswith("Node paper-")
    page.keyboard.press("ArrowRight")
    assert page.text_content("#details-title") not in (first, "No node selected")
    before = canvas(page, "base")
    page.keyboard.press("+")
    page.wait_for_timeout(300)
    assert canvas(page, "base") != before
    page.keyboard.press("0")


def column(page, number: int) -> list[str]:
    return [text.strip() for text in page.locator(f"#table tbody td:nth-child({number})").all_text_contents()]


def test_the_table_has_the_most_uncertain_first_and_sorts(page, shown):
    expected = np.argsort(-shown.measures["least_confidence"], kind="stable")
    assert column(page, 1) == [f"paper-{i:05d}" for i in expected[:20]]
    page.click("#more")
    assert len(column(page, 1)) == 40
    page.click("#table th button[data-key=node]")
    assert column(page, 1) == [f"paper-{i:05d}" for i in range(20)]
    assert page.get_attribute("#table th:first-child", "aria-sort") == "ascending"
    page.keyboard.press("Enter")  # the heading keeps the focus
    assert column(page, 1)[0] == "paper-00399"
    page.select_option("#filter", "differ")
    page.click("#table th button[data-key=probability]")
    wrong = np.flatnonzero((shown.label >= 0) & (shown.likeliest[:, 0] != shown.label))
    most = shown.probability[wrong, 0].max()
    assert float(column(page, 4)[0]) == pytest.approx(most, abs=2e-3)
    assert column(page, 3)[0].startswith("≠")
    page.select_option("#filter", "unlabeled")
    assert f"of {(shown.label < 0).sum()} nodes" in page.text_content("#count")
    page.select_option("#filter", "all")
    page.select_option("#review-measure", "astd")
    assert column(page, 1)[0] == f"paper-{shown.measures['astd'].argmax():05d}"
    page.select_option("#review-measure", "least_confidence")


def test_the_download_has_all_nodes_in_the_order_shown(page, shown, tmp_path):
    with page.expect_download() as waiting:
        page.click("#download")
    waiting.value.save_as(tmp_path / "nodes.csv")
    with (tmp_path / "nodes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    order = np.argsort(-shown.measures["least_confidence"], kind="stable")
    assert [row["id"] for row in rows] == [f"paper-{i:05d}" for i in order]
    assert [row["node"] for row in rows] == [str(i) for i in order], "as in the table of predict"
    values = np.array([float(row["least_confidence"]) for row in rows])
    np.testing.assert_array_equal(values, shown.measures["least_confidence"][order])
    assert rows[0].keys() == {"id", "node", "label", "predicted", "probability", "least_confidence", "astd"}


@pytest.mark.parametrize("safe", [True, False])
def test_the_download_has_no_formulas_unless_the_reader_wants_them(opened, tmp_path, safe):
    contents = make_contents(60, 3)
    ids = ["=cmd|x", "-5", "@you", "a=b", *contents.ids[4:]]
    page = opened(replace(contents, ids=ids, classes=["+1+1", "plain", "c"]))
    page.set_checked("#safe", safe)
    with page.expect_download() as waiting:
        page.click("#download")
    waiting.value.save_as(tmp_path / "nodes.csv")
    with (tmp_path / "nodes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cells = {row["id"] for row in rows} | {row["label"] for row in rows}
    expected = {as_text(text) if safe else text for text in [*ids, "+1+1", "plain", "c"]}
    assert cells - {""} == expected
    assert ("'=cmd|x" in cells) == safe


def test_a_page_without_labels_still_works(opened):
    contents = make_contents(60, 3, labels=False, ids=False)
    page = opened(contents)
    assert page.is_hidden("#summary-section")
    assert page.is_hidden("#reliability-section")
    assert page.locator("#color option").all_text_contents() == ["astd", "disagreement"]
    move_slider(page, 400)
    threshold = np.linspace(contents.measures["astd"].min(), contents.measures["astd"].max(), 1001)[400]
    assert shown_number(page, "coverage") == pytest.approx((contents.measures["astd"] <= threshold).mean())
    assert page.locator("#number-accuracy").count() == 0
    page.fill("#search", "17")
    page.press("#search", "Enter")
    assert page.text_content("#details-title") == "Node 17"


def test_ids_that_look_like_markup_are_shown_as_text(opened):
    evil = "</script><img src=x onerror=alert(1)><b>"
    contents = make_contents(30, 3)
    page = opened(replace(contents, ids=[evil + str(i) for i in range(30)], classes=[evil] * 3, title=evil))
    page.fill("#search", evil + "11")
    page.press("#search", "Enter")
    assert page.text_content("#details-title") == f"Node {evil}11"
    assert page.text_content("h1") == evil
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("nodes", [2, 3000])
def test_small_and_larger_graphs_with_many_classes(opened, nodes):
    page = opened(make_contents(nodes, 20, unlabeled=0.0))
    assert re.match(r"^[\d,]+ of [\d,]+ nodes$", page.text_content("#count"))


def test_classes_with_the_same_color_have_another_shape(opened):
    page = opened(make_contents(600, 24, unlabeled=0.0))
    page.select_option("#color", "label")
    looks = page.evaluate(
        """() => [...document.querySelectorAll("#legend path")].map((path) =>
        path.getAttribute("d") + path.getAttribute("fill"))"""
    )
    assert len(looks) == len(set(looks)) == 24
