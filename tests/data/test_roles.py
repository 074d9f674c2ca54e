"""Columns that the user does not name are inferred from their names."""

import pytest

import bgcl
from bgcl import BGCLError
from bgcl.data.convert import frame
from bgcl.data.options import Options, make_options
from bgcl.data.roles import find_roles


def roles(edges: list[str], nodes: list[str] | None = None, **options: object) -> tuple[str | None, ...]:
    """Source, target, id and label of tables with these columns."""
    tables = [None if names is None else frame({name: [1] for name in names}, "table") for names in (edges, nodes)]
    found = find_roles(*tables, make_options(**options), [])
    return found.source, found.target, found.id, found.label


@pytest.mark.parametrize(
    ("edges", "ends"),
    [
        (["weight", "target", "source"], ("source", "target")),
        (["From", "To", "weight"], ("From", "To")),
        (["w", "dst", "src"], ("src", "dst")),
        (["a", "b", "c"], ("a", "b")),
    ],
)
def test_ends_of_an_edge_are_found_by_name_or_are_the_first_two_columns(edges, ends):
    assert roles(edges)[:2] == ends


def test_a_named_end_is_not_used_twice():
    assert roles(["source", "target", "x"], source="target")[:2] == ("target", "source")
    assert roles(["source", "target", "x"], target="source")[:2] == ("target", "source")
    assert roles(["a", "b", "c"], target="c")[:2] == ("a", "c")


@pytest.mark.parametrize(
    ("nodes", "options", "found"),
    [
        (["age", "id", "label"], {}, ("id", "label")),
        (["name", "Class"], {}, ("name", "Class")),
        (["name", "age"], {}, ("name", None)),
        (["id", "label", "y"], {"ignore": "label"}, ("id", "y")),
        (["id", "label", "y"], {"id": "label", "label": "id"}, ("label", "id")),
    ],
)
def test_id_and_label_are_found_by_name(nodes, options, found):
    assert roles(["a", "b"], nodes, **options)[2:] == found


def test_only_inferred_roles_are_reported():
    edges, nodes = frame({"a": [1], "b": [1]}, "edges"), frame({"key": [1], "kind": [1]}, "nodes")
    guesses: list[str] = []
    find_roles(edges, nodes, Options(), guesses)
    assert guesses == ["an edge leads from 'a' to 'b'", "a node's id is 'key'", "nodes have no label"]
    guesses.clear()
    find_roles(edges, nodes, Options(id="key", source="a", target="b", label="kind"), guesses)
    assert guesses == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"words": 0}, "number of words must be 1 or more. Got 0 instead"),
        ({"text": "x", "categorical": ["x", "y"]}, "Column 'x' cannot be both categories and text"),
        ({"source": "a", "target": "a"}, "column 'a' cannot be both ends of an edge"),
        ({"label": "x"}, "--label names a column of the nodes, but there is no table of nodes"),
    ],
)
def test_contradicting_options_are_a_one_line_error(options, says):
    with pytest.raises(BGCLError, match=says) as error:
        bgcl.graph_from({"a": [1], "b": [2]}, **options)
    assert "\n" not in str(error.value)
