"""Measure a report of 50,000 made-up nodes in Chromium: its size, the time to open it, and the delay of the slider.

    python benchmarks/report_page.py [NODES]

The targets are below 30 MB and a delay below 100 ms; for the 2,708 nodes of Cora below 6 MB and open within 2 s.
"""

import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "reporting"))
from synthetic_report import make_contents

from bgcl.reporting.report.page import render

OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
           "--disable-sync")  # fmt: skip
# The time from an event of the slider to the next frame, with or without fading nodes on the map.
SLIDE = """fade => new Promise((done) => {
  const box = document.getElementById("fade"), slider = document.getElementById("threshold"), times = [];
  if (box.checked !== fade) box.click();
  let step = 0;
  const next = () => {
    if (step === 20) return done(times);
    slider.value = 40 * ++step;
    const start = performance.now();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    requestAnimationFrame(() => setTimeout(() => { times.push(performance.now() - start); next(); }));
  };
  next();
})"""


def slide(page: Page, fade: bool) -> dict[str, float]:
    """Delay of the slider in milliseconds."""
    times = page.evaluate(SLIDE, fade)
    return {"median": round(statistics.median(times), 1), "maximum": round(max(times), 1)}


def main(nodes: int) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        path.write_text(render(make_contents(nodes, 15)), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=OPTIONS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(600_000)
        start = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        opened = time.perf_counter() - start
        figures = {
            "nodes": nodes, "MB": round(path.stat().st_size / 1e6, 2), "seconds to open": round(opened, 2),
            "slider, ms": slide(page, fade=False), "slider with map, ms": slide(page, fade=True),
        }  # fmt: skip
        print(json.dumps(figures, indent=2))
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
