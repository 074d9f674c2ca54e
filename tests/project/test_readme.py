"""The README shows what the files in results/ say, and what it names exists."""

import importlib.util
import re
from pathlib import Path

import pytest

import bgcl
import site_pages

ROOT = Path(__file__).parents[2]


def test_the_table_of_results_is_that_of_the_files():
    spec = importlib.util.spec_from_file_location("results_pages", ROOT / "scripts" / "results_pages.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    readme = (ROOT / "README.md").read_text("utf-8")
    assert (ROOT / "results" / "table1.json").exists()
    assert script.with_table(readme, ROOT / "results") == readme


PAGES = ["README.md", "CONTRIBUTING.md", *(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_links_and_names_of_a_page_exist(page):
    text = (ROOT / page).read_text("utf-8")
    made = {(ROOT / "docs" / name).resolve() for name in site_pages.pages()}
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        target = (ROOT / page).parent.joinpath(link).resolve()
        assert target.exists() or target in made, link
    for name in re.findall(r"bgcl\.([A-Za-z]\w*)", text):
        home = ROOT / "src" / "bgcl"
        assert name in bgcl.__all__ or (home / f"{name}.py").exists() or (home / name).is_dir(), name
