"""`is_clean`: true exactly for edges that cleaning would not change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bgcl.data.clean import both_directions, clean_edges, is_clean
from bgcl.errors import BGCLError


@st.composite
def any_pairs(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Pairs `(2, M)` of node numbers: clean edges, clean edges with a small change, or any pairs at all."""
    nodes = draw(st.integers(1, 7))
    number = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(number, number), max_size=12))
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    if not draw(st.booleans()) or not (edges[0] != edges[1]).any():
        return edges, nodes
    edges = both_directions(clean_edges(edges, nodes, where="test"), nodes)
    changes = {
        "none": lambda edges: edges,
        "one direction is missing": lambda edges: np.delete(edges, draw(st.integers(0, edges.shape[1] - 1)), axis=1),
        "an edge is there twice": lambda edges: np.insert(edges, 1, edges[:, 0], axis=1),
        "two edges are swapped": lambda edges: edges[:, [1, 0, *range(2, edges.shape[1])]],
        "a self-loop": lambda edges: np.insert(edges, 0, 0, axis=1),
        "the rows are swapped": lambda edges: edges[::-1],
        "another end": lambda edges: np.where(np.arange(edges.size).reshape(edges.shape) == 0, nodes - 1, edges),
    }
    return changes[draw(st.sampled_from(sorted(changes)))](edges), nodes


def cleaned(pairs: np.ndarray, nodes: int) -> np.ndarray | None:
    """The pairs after cleaning; None if they are refused."""
    try:
        return both_directions(clean_edges(pairs, nodes, where="test"), nodes)
    except BGCLError:
        return None


@settings(max_examples=500)
@given(any_pairs())
def test_edges_are_clean_exactly_if_cleaning_changes_nothing(case: tuple[np.ndarray, int]) -> None:
    pairs, nodes = case
    expected = cleaned(pairs, nodes)
    assert is_clean(pairs, nodes) == (expected is not None and np.array_equal(pairs, expected))


@given(any_pairs())
def test_cleaned_edges_are_clean(case: tuple[np.ndarray, int]) -> None:
    edges = cleaned(*case)
    assert edges is None or is_clean(edges, case[1])


@pytest.mark.parametrize(
    "pairs",
    [
        np.array([[0, 1], [1, 0]], dtype=np.int32),
        np.array([[0.0, 1.0], [1.0, 0.0]]),
        np.array([[0, 1, 2], [1, 0, 2], [0, 0, 0]]),
        np.array([0, 1]),
        np.empty((2, 0), dtype=np.int64),
        np.array([[-1, 0], [0, -1]]),
        np.array([[0, 3], [3, 0]]),
    ],
    ids=["int32", "floats", "three rows", "one row", "no edges", "negative", "beyond the nodes"],
)
def test_arrays_of_another_form_are_not_clean(pairs: np.ndarray) -> None:
    """They go through `clean_edges`, which converts or refuses them."""
    assert not is_clean(pairs, 3)
