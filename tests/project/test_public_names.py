"""The public names: each can be imported and is documented, and type checkers see them."""

import ast
import importlib
from pathlib import Path

import pytest

import bgcl

HOME = Path(bgcl.__file__).parent
PACKAGES = ["bgcl", *(f"bgcl.{path.parent.name}" for path in sorted(HOME.glob("*/__init__.pyi")))]


def stub_of(package: str) -> Path:
    return HOME.joinpath(*package.split(".")[1:], "__init__.pyi")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_in_a_stub_is_exported_from_where_the_stub_says(package):
    module = importlib.import_module(package)
    imports = [node for node in ast.parse(stub_of(package).read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
    home = {alias.name: f"{package}.{node.module}" for node in imports for alias in node.names}
    assert set(module.__all__) - {"__version__"} == set(home)
    for name, where in home.items():
        assert getattr(module, name) is getattr(importlib.import_module(where), name)


def test_the_package_is_typed():
    assert (HOME / "py.typed").exists()


@pytest.mark.parametrize("name", sorted(set(bgcl.__all__) - {"__version__"}))
def test_every_name_at_the_root_has_an_example(name):
    assert ">>>" in getattr(bgcl, name).__doc__
