"""The report in Chromium is accessible: by keyboard, by screen reader, in dark and light, on phones and on paper."""

import pytest


def test_everything_can_be_reached_by_tab_and_has_a_name(page):
    page.focus(".skip")  # the first element
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id"))
        if seen[-1] == "more":
            break
    wanted = ["theme", "color", "search", "fade", "map", "zoom-in", "measure", "threshold", "filter", "download"]
    assert [name for name in seen if name in wanted] == wanted
    nameless = page.evaluate("""() => [
        ...document.querySelectorAll("button, select, input, canvas[tabindex], svg[role]")]
        .filter(e => !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length)).map(e => e.id)""")
    assert nameless == []


def test_every_section_is_named_by_its_heading(page):
    names = page.evaluate("""() => [...document.querySelectorAll("section, aside, [role=region]")].map(
        e => document.getElementById(e.getAttribute("aria-labelledby"))?.textContent)""")
    assert len(names) == 12
    assert all(names)


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
def test_text_is_readable_on_light_and_on_dark(opened, shown, scheme):
    page = opened(shown, color_scheme=scheme)
    low, ground = page.evaluate(LUMINANCE)
    assert low == []
    assert (ground < 0.1) == (scheme == "dark")
    for _ in range(2 if scheme == "light" else 1):  # system, light, dark
        page.click("#theme")
    low, other = page.evaluate(LUMINANCE)
    assert low == []
    assert (other < 0.1) == (scheme == "light")


def test_a_phone_does_not_scroll_sideways(opened, shown):
    page = opened(shown, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("#map").tap(position={"x": 150, "y": 150})
    small = page.evaluate("""() => [...document.querySelectorAll("main > section > .controls button, select, #more")]
        .filter(e => e.getClientRects().length && e.getBoundingClientRect().height < 36).map(e => e.id)""")
    assert small == []


def test_a_printed_page_is_light_even_if_the_screen_is_dark(opened, shown, tmp_path):
    page = opened(shown, color_scheme="dark")
    corner = "[...document.getElementById('base').getContext('2d').getImageData(0, 0, 1, 1).data].slice(0, 3)"
    assert max(page.evaluate(corner)) < 60
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert min(page.evaluate(corner)) == 255
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(path=tmp_path / "report.pdf").startswith(b"%PDF")
