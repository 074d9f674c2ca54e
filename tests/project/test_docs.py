"""The documentation: its Python runs, its commands exist, and the site builds where mkdocs is installed."""

import importlib
import re
import shlex
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
import typer

import bgcl
import site_pages
from bgcl.cli import app
from bgcl.model.training import Training

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text("utf-8")) if found == language]


@pytest.fixture
def quick(monkeypatch):
    """Trainings of two epochs, whatever a page asks for."""
    monkeypatch.setattr(Training, "run", lambda self: islice(iter(self.step, None), 2))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page, quick, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for number, block in enumerate(blocks(page, "python"), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


def commands():
    for page in PAGES:
        for block in blocks(page, ""):
            for line in block.splitlines():
                if line.startswith("bgcl "):
                    yield pytest.param(line.split(" #")[0].split("   ")[0], id=f"{page.stem}: {line[:40].strip()}")


@pytest.mark.parametrize("line", list(commands()))
def test_a_command_of_a_page_exists_with_its_options(line):
    name, *words = shlex.split(line)[1:]
    command = typer.main.get_command(app).commands[name]
    if hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    known = {flag for option in command.params for flag in [*option.opts, *option.secondary_opts]} | {"--help"}
    assert {word for word in words if word.startswith("-")} <= known


def test_every_page_is_in_the_menu_of_the_site():
    menu = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    for page in [*pages, *site_pages.pages()]:
        assert page in menu, page


def test_the_api_pages_have_every_public_name():
    """The public names are those in the stubs of the package and of its rooms."""
    listed = set()
    for page in (ROOT / "docs" / "api").glob("*.md"):
        listed |= set(re.findall(r"^::: \S+\.(\w+)$", page.read_text("utf-8"), re.M))
    public = set()
    for stub in (ROOT / "src" / "bgcl").rglob("__init__.pyi"):
        package = ".".join(stub.parent.relative_to(ROOT / "src").parts)
        public |= set(importlib.import_module(package).__all__)
    assert public - {"__version__", "DATASETS"} <= listed


def test_the_page_of_settings_has_every_setting_with_its_default_and_range():
    page = site_pages.settings_page()
    for name, field in bgcl.Settings.model_fields.items():
        assert f"| `{name}` | `{field.default!r}` | " in page
        assert field.description in page


def test_every_command_has_a_page_with_all_of_its_options():
    pages = site_pages.command_pages()
    for name, command in typer.main.get_command(app).commands.items():
        for inner in getattr(command, "commands", {name: command}).values():
            for option in inner.params:
                assert (
                    f"`{option.opts[-1] if option.opts[-1].startswith('-') else option.metavar}`"
                    in pages[f"commands/{name}.md"]
                )


def test_every_example_is_in_the_gallery():
    assert {f"gallery/{path.stem}.md" for path in (ROOT / "examples").glob("*.py")} <= set(site_pages.pages())


def test_the_site_builds_without_a_warning_and_asks_for_nothing_from_outside(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text("utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]*src="https?://[^"]*"', text), page.name
        assert not re.findall(r'<link[^>]*rel="(?:stylesheet|preconnect|preload)"[^>]*href="https?://[^"]*"', text)
