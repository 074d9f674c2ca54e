"""The rooms of the package: imports go one way, files stay short, and the page about it is up to date."""

import re

import pytest

import architecture

UNITS = architecture.measure()


def test_every_room_and_root_module_has_a_place_in_the_order():
    assert set(UNITS) == set(architecture.ORDER)


def test_no_room_imports_a_later_one():
    assert architecture.upward_imports(UNITS) == []


def test_an_upward_import_would_be_found():
    """The check reads imports inside functions too, but not those for type checkers."""
    tree = architecture.ast.parse(
        "if TYPE_CHECKING:\n    from bgcl.cli import app\n"
        "def f():\n    from bgcl.reporting.plots import look\n"
        "import bgcl.data"
    )
    assert architecture.imported_modules(tree) == {"reporting.plots", "data"}
    wrong = {**UNITS, "graph": architecture.Unit("graph", 1, 1, ("", 1), ("", 1), frozenset({"model"}))}
    assert architecture.upward_imports(wrong) == ["graph imports model"]


def test_no_file_is_longer_than_350_lines():
    long = {unit.longest_file for unit in UNITS.values() if unit.longest_file[1] > 350}
    assert long == set()


@pytest.mark.parametrize("module", [module for module, _ in architecture.WAY])
def test_the_way_of_an_attribute_names_modules_that_exist(module):
    assert (architecture.PACKAGE / f"{module.replace('.', '/')}.py").is_file()


def test_the_way_of_an_attribute_follows_the_order_of_the_rooms():
    ranks = [architecture.ORDER.index(architecture.unit_of(module)) for module, _ in architecture.WAY]
    # The measures are below the heads that use them, and come after them for an attribute.
    ranks[-2] = ranks[-3]
    assert ranks == sorted(ranks) or ranks[:2] == [architecture.ORDER.index("data")] * 2


def test_the_page_has_todays_rooms():
    """Line counts may differ from the page; `make docs` renews them."""
    words = re.compile(r"[\d,]+")
    first = architecture.page(UNITS).split("## Figures")[0]
    assert words.sub("#", architecture.PAGE.read_text("utf-8").split("## Figures")[0]) == words.sub("#", first)
