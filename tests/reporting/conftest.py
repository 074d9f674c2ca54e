"""A report in Chromium, for the tests of the page."""

import os
import shutil
from pathlib import Path

import pytest
from synthetic_report import make_contents

from bgcl.reporting.report.page import render

CHROMIUM = os.environ.get("BGCL_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
# Chromium must not look for updates: only the page may make a request.
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
           "--disable-sync")  # fmt: skip
TIMEOUT = 120_000  # milliseconds; long enough for a busy machine


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=OPTIONS, timeout=TIMEOUT)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def shown():
    """The contents of the page."""
    return make_contents(400, 4)


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """A function that opens a report. At the end it checks that there were no errors and no requests."""
    contexts, all_troubles = [], []

    def open_(contents, **options):
        troubles: list[str] = []
        all_troubles.append(troubles)
        path = tmp_path_factory.mktemp("report") / "report.html"
        path.write_text(render(contents), encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
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
def page(opened, shown):
    return opened(shown)
