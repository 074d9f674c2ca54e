"""The report in a real Chromium: no error, no request, the right numbers, and usable by everyone."""

import csv
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_report import make_contents

from bgcl.measures.metrics import pavpu
from bgcl.reporting.report.page import render

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = os.environ.get("BGCL_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
# Chromium asks its maker for updates by itself; the page must be the only one that could make a request.
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
           "--disable-sync")  # fmt: skip
PATIENCE = 120_000  # milliseconds; a busy machine is slow, not wrong


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=OPTIONS, timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def contents():
    return make_contents(400, 4)


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """Open a report; at its end it must have had no error, and have asked for nothing."""
    contexts, all_troubles = [], []

    def open_(contents, **options):
        troubles: list[str] = []
        all_troubles.append(troubles)
        path = tmp_path_factory.mktemp("report") / "report.html"
        path.write_text(render(contents), encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: troubles.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: _outside(request.url, path, troubles))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        assert not troubles
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not any(all_troubles)


def _outside(url: str, path: Path, troubles: list[str]) -> None:
    if url != path.as_uri() and not url.startswith(("data:", "blob:")):
        troubles.append(f"a request for {url}")


@pytest.fixture(scope="module")
def page(opened, contents):
    return opened(contents)


def move_slider(page, step: int) -> None:
    page.evaluate(
        """step => { const slider = document.getElementById("threshold"); slider.value = step;
        slider.dispatchEvent(new Event("input", {bubbles: true})); }""",
        step,
    )


def shown_number(page, name: str) -> float:
    return float(page.get_attribute(f"#number-{name}", "data-value"))


@pytest.mark.parametrize("measure", ["least_confidence", "variation_ratio", "mutual_information", "astd"])
def test_the_slider_shows_the_numbers_of_the_library(page, contents, measure):
    known = contents.label >= 0
    correct, values = (contents.likeliest[:, 0] == contents.label)[known], contents.measures[measure][known]
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
        assert f"{certain.sum()} of {known.sum()} labelled nodes" in page.text_content("#numbers")
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


def test_search_finds_a_node_by_its_id(page, contents):
    page.fill("#search", "PAPER-00123")
    assert page.locator("#found li").count() == 1
    page.press("#search", "Enter")
    assert page.text_content("#details-title") == "Node paper-00123"
    details = page.text_content("#details")
    assert contents.classes[contents.likeliest[123, 0]] in details
    astd = contents.measures["astd"][123]
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


def test_a_chosen_node_shows_its_draws_and_colours_change_the_map(page):
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
        page.select_option("#colour", value)
        page.wait_for_timeout(300)
        pictures.add(canvas(page, "base"))
    assert len(pictures) == 6
    assert "no label" in page.text_content("#legend")


def screen_place(page, contents, node: int) -> tuple[float, float]:
    """Where a node is on the screen, computed from the map's positions."""
    box = page.locator("#map").bounding_box()
    position = contents.map.position
    low, high = position.min(0), position.max(0)
    share = (position[node] - (low + high) / 2) / (high - low).max()
    scale = 0.93 * min(box["width"], box["height"])
    return box["x"] + box["width"] / 2 + share[0] * scale, box["y"] + box["height"] / 2 - share[1] * scale


def test_hover_and_click_reach_the_node_under_the_pointer(page, contents):
    page.click("#zoom-all")
    page.locator("#stage").scroll_into_view_if_needed()
    position = contents.map.position
    lonely = int(np.linalg.norm(position - position.mean(0), axis=1).argmax())  # none is near the outermost
    page.mouse.move(*screen_place(page, contents, lonely))
    page.wait_for_selector("#tip:not([hidden])")
    assert f"paper-{lonely:05d}" in page.text_content("#tip")
    page.mouse.click(*screen_place(page, contents, lonely))
    assert page.text_content("#details-title") == f"Node paper-{lonely:05d}"


def test_arrow_keys_go_from_node_to_node_and_zoom(page):
    page.focus("#map")
    page.keyboard.press("Escape")
    assert page.text_content("#details-title") == "No node chosen"
    page.keyboard.press("ArrowRight")
    first = page.text_content("#details-title")
    assert first.startswith("Node paper-")
    page.keyboard.press("ArrowRight")
    assert page.text_content("#details-title") not in (first, "No node chosen")
    before = canvas(page, "base")
    page.keyboard.press("+")
    page.wait_for_timeout(300)
    assert canvas(page, "base") != before
    page.keyboard.press("0")


def column(page, number: int) -> list[str]:
    return [text.strip() for text in page.locator(f"#table tbody td:nth-child({number})").all_text_contents()]


def test_the_table_has_the_most_uncertain_first_and_sorts(page, contents):
    expected = np.argsort(-contents.measures["least_confidence"], kind="stable")
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
    wrong = np.flatnonzero((contents.label >= 0) & (contents.likeliest[:, 0] != contents.label))
    most = contents.probability[wrong, 0].max()
    assert float(column(page, 4)[0]) == pytest.approx(most, abs=2e-3)
    assert column(page, 3)[0].startswith("≠")
    page.select_option("#filter", "unlabelled")
    assert f"of {(contents.label < 0).sum()} nodes" in page.text_content("#count")
    page.select_option("#filter", "all")
    page.select_option("#review-measure", "astd")
    assert column(page, 1)[0] == f"paper-{contents.measures['astd'].argmax():05d}"
    page.select_option("#review-measure", "least_confidence")


def test_the_download_has_all_nodes_in_the_order_shown(page, contents, tmp_path):
    with page.expect_download() as waiting:
        page.click("#download")
    waiting.value.save_as(tmp_path / "nodes.csv")
    with (tmp_path / "nodes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    order = np.argsort(-contents.measures["least_confidence"], kind="stable")
    assert [row["node"] for row in rows] == [f"paper-{i:05d}" for i in order]
    values = np.array([float(row["least_confidence"]) for row in rows])
    np.testing.assert_array_equal(values, contents.measures["least_confidence"][order])
    assert rows[0].keys() == {"node", "label", "predicted", "probability", "least_confidence", "astd"}


def test_everything_can_be_reached_by_tab_and_has_a_name(page):
    page.focus(".skip")  # the first of all
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id"))
        if seen[-1] == "more":
            break
    wanted = ["theme", "colour", "search", "fade", "map", "zoom-in", "measure", "threshold", "filter", "download"]
    assert [name for name in seen if name in wanted] == wanted
    nameless = page.evaluate("""() => [
        ...document.querySelectorAll("button, select, input, canvas[tabindex], svg[role]")]
        .filter(e => !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length)).map(e => e.id)""")
    assert nameless == []


LUMINANCE = """() => {
  const part = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = rgb => { const [r, g, b] = rgb.match(/[\\d.]+/g).map(Number);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
  const ground = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)|transparent/.test(c)) return c; } return "rgb(255,255,255)"; };
  const low = [];
  const texts = "p, h1, h2, h3, dt, dd, label, button, select, td, th, span, output, svg text";
  for (const e of document.querySelectorAll(texts)) {
    if (!e.textContent.trim() || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), a = light(e.closest("svg") ? style.fill : style.color), b = light(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push([e.textContent.trim().slice(0, 30), ratio]);
  }
  return [low, light(ground(document.body))];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_on_light_and_on_dark(opened, contents, scheme):
    page = opened(contents, color_scheme=scheme)
    low, ground = page.evaluate(LUMINANCE)
    assert low == []
    assert (ground < 0.1) == (scheme == "dark")
    for _ in range(2 if scheme == "light" else 1):  # system, light, dark
        page.click("#theme")
    low, other = page.evaluate(LUMINANCE)
    assert low == []
    assert (other < 0.1) == (scheme == "light")


def test_a_phone_does_not_scroll_sideways(opened, contents):
    page = opened(contents, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("#map").tap(position={"x": 150, "y": 150})
    small = page.evaluate("""() => [...document.querySelectorAll("main > section > .controls button, select, #more")]
        .filter(e => e.getClientRects().length && e.getBoundingClientRect().height < 36).map(e => e.id)""")
    assert small == []


def test_paper_is_light_even_from_a_dark_screen(opened, contents, tmp_path):
    page = opened(contents, color_scheme="dark")
    corner = "[...document.getElementById('base').getContext('2d').getImageData(0, 0, 1, 1).data].slice(0, 3)"
    assert max(page.evaluate(corner)) < 60
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert min(page.evaluate(corner)) == 255
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(path=tmp_path / "report.pdf").startswith(b"%PDF")


def test_a_page_without_labels_still_works(opened):
    contents = make_contents(60, 3, labels=False, ids=False)
    page = opened(contents)
    assert page.is_hidden("#summary-section")
    assert page.is_hidden("#reliability-section")
    assert page.locator("#colour option").all_text_contents() == ["astd", "disagreement"]
    move_slider(page, 400)
    threshold = np.linspace(contents.measures["astd"].min(), contents.measures["astd"].max(), 1001)[400]
    assert shown_number(page, "coverage") == pytest.approx((contents.measures["astd"] <= threshold).mean())
    assert page.locator("#number-accuracy").count() == 0
    page.fill("#search", "17")
    page.press("#search", "Enter")
    assert page.text_content("#details-title") == "Node 17"


def test_ids_that_look_like_markup_are_shown_as_they_are(opened):
    evil = "</script><img src=x onerror=alert(1)><b>"
    contents = make_contents(30, 3)
    page = opened(replace(contents, ids=[evil + str(i) for i in range(30)], classes=[evil] * 3, title=evil))
    page.fill("#search", evil + "11")
    page.press("#search", "Enter")
    assert page.text_content("#details-title") == f"Node {evil}11"
    assert page.text_content("h1") == evil
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("nodes", [2, 3000])
def test_small_and_larger_graphs_of_many_classes(opened, nodes):
    page = opened(make_contents(nodes, 20, unlabelled=0.0))
    assert re.match(r"^[\d,]+ of [\d,]+ nodes$", page.text_content("#count"))
