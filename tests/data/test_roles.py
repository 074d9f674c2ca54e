"""Columns that the user does not name are inferred from their names."""

import networkx
import numpy as np
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
    assert guesses == [
        "an edge leads from 'a' to 'b' (--directed to use its direction)",
        "a node's id is 'key'",
        "nodes have no label",
    ]
    guesses.clear()
    find_roles(edges, nodes, Options(id="key", source="a", target="b", label="kind"), guesses)
    assert guesses == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"words": 0}, "number of words must be 1 or more. Got 0 instead"),
        ({"text": "x", "categorical": ["x", "y"]}, "Column 'x' is named by --categorical and by --text"),
        ({"source": "a", "target": "a"}, "column 'a' cannot be both ends of an edge"),
        ({"label": "x"}, "--label names a column of the nodes, but there is no table of nodes"),
    ],
)
def test_contradicting_options_are_a_one_line_error(options, says):
    with pytest.raises(BGCLError, match=says) as error:
        bgcl.graph_from({"a": [1], "b": [2]}, **options)
    assert "\n" not in str(error.value)


RING = np.roll(np.eye(4), 1, axis=1)
FRAME = {"name": ["a", "b", "c", "d"], "size": [1.0, 2.0, 3.0, 4.0]}
EDGES = {"a": [0, 1], "b": [1, 2]}
NETWORK = networkx.Graph([(0, 1), (1, 2)])


@pytest.mark.parametrize(
    ("given", "options", "says"),
    [
        *(((RING, np.eye(4)), {name: "x"}, f"no columns to name: leave out '{name}'") for name in ("id", "label")),
        *(((RING,), {name: value}, f"leave out '{name}'") for name, value in (("words", 5), ("skip_unknown", True))),
        ((RING, np.eye(4)), {"ignore": ["x"]}, "A matrix has no columns to name: leave out 'ignore'"),
        *(((RING, FRAME), {name: "name"}, f"numbers of its rows: leave out '{name}'") for name in ("id", "source")),
        ((RING, FRAME), {"skip_unknown": True}, "leave out 'skip_unknown'"),
        *(((NETWORK,), {name: "x"}, f"already has edges .* leave out '{name}'") for name in ("source", "target")),
        ((NETWORK, FRAME), {}, "A NetworkX graph already has nodes: leave out 'nodes'"),
        ((EDGES,), {"skip_unknown": True}, "no node is unknown: leave out --skip-unknown"),
        ((EDGES, {"id": [0, 1, 2], "size": [1.0, 2.0, 3.0]}), {"words": 5}, "no words to limit: leave out --words"),
        (("cora",), {"labels": [1]}, "'labels' needs matrices"),
        ((EDGES, FRAME), {"id": "name", "label": "name"}, "named by --id and by --label"),
    ],
)
def test_an_option_without_effect_on_a_graph_in_memory_is_refused(given, options, says):
    with pytest.raises(BGCLError, match=says):
        bgcl.graph_from(*given, **options)


@pytest.mark.parametrize("options", [{"id": None}, {"ignore": ()}, {"skip_unknown": False}, {"text": []}], ids=str)
def test_an_option_that_says_nothing_is_accepted(options):
    assert bgcl.graph_from(RING, np.eye(4), **options).num_nodes == 4
