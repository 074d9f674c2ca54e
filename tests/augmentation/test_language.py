"""Sentences describe masks: each mask has a sentence, each sentence has one meaning, and errors say what to do."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bgcl.augmentation.language import check_mask, parse_mask
from bgcl.augmentation.masks import LayerInput, Mask
from bgcl.augmentation.noise import Noise
from bgcl.augmentation.views import Augmentation
from bgcl.errors import BGCLError
from bgcl.graph.prepared import PreparedGraph
from small import dense_connections, in_turn, on_matrix, random_encoder, random_graph

KINDS = ["connections", "edges", "nodes", "subgraph", "features", "entries", "neighbors"]
RATES = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 1e-5]), st.floats(0, 1).map(abs))


@st.composite
def masks(draw: st.DrawFn) -> Mask:
    """Any valid mask."""
    plain = Mask.kinds[draw(st.sampled_from(KINDS))]()
    values = {
        "rate": draw(st.one_of(st.none(), st.tuples(RATES, RATES), RATES.map(lambda rate: (rate, rate)))),
        "layer": None if plain.on == "positives" else draw(st.one_of(st.none(), st.integers(1, 12))),
    }
    if plain.on == "positives":
        values |= {"shared": draw(st.booleans())}
    elif plain.on == "connections":
        values |= {"shared": draw(st.booleans()), "per": draw(st.sampled_from(["view", "layer", "block"]))}
    else:
        values |= {"per": draw(st.sampled_from(["view", "layer"]))}
    if plain.kind == "connections":
        values["blocks"] = draw(st.integers(1, 300))
    return check_mask(replace(plain, **values))


def test_there_are_no_other_kinds() -> None:
    assert list(Mask.kinds) == KINDS


@given(masks())
def test_a_mask_is_read_back_from_its_sentence(mask: Mask) -> None:
    assert parse_mask(str(mask)) == mask


@given(masks())
def test_a_sentence_is_the_same_after_reading_and_writing(mask: Mask) -> None:
    assert str(parse_mask(str(mask))) == str(mask)


@pytest.mark.parametrize(
    ("sentence", "fields"),
    [
        ("connections", {"rate": None, "layer": None, "shared": False, "per": "view", "blocks": 1}),
        ("connections in 8 blocks", {"blocks": 8}),
        ("connections in 1 block", {"blocks": 1}),
        ("edges", {"shared": True, "layer": None}),
        ("edges anew", {"shared": False}),
        ("edges at 0.2/0.4", {"rate": (0.2, 0.4)}),
        ("nodes at 1e-3", {"rate": (0.001, 0.001)}),
        ("features", {"layer": 1, "shared": False}),
        ("features of every layer", {"layer": None}),
        ("entries of layer 2 per layer at 0", {"layer": 2, "per": "layer", "rate": (0.0, 0.0)}),
        ("connections per block at 1 shared of layer 2 in 4 blocks",
         {"blocks": 4, "layer": 2, "shared": True, "per": "block", "rate": (1.0, 1.0)}),
        ("  subgraph   at 0.25  ", {"rate": (0.25, 0.25), "shared": True}),
        ("neighbors at 0.2/0.4", {"rate": (0.2, 0.4), "layer": None, "per": "view", "on": "positives"}),
    ],
)  # fmt: skip
def test_each_phrase_sets_its_field(sentence: str, fields: dict[str, object]) -> None:
    mask = parse_mask(sentence)
    assert mask.kind == sentence.split()[0]
    assert {name: getattr(mask, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("sentence", "canonical"),
    [
        ("connections at 0.3 in 8 blocks", "connections in 8 blocks at 0.3"),
        ("connections in 1 block anew per view", "connections"),
        ("edges shared at 0.2/0.2", "edges at 0.2"),
        ("features of layer 1", "features"),
        ("features of every layer at 0.5", "features of every layer at 0.5"),
    ],
)
def test_a_mask_writes_the_shortest_sentence_in_the_order_of_the_grammar(sentence: str, canonical: str) -> None:
    assert str(parse_mask(sentence)) == canonical


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("egdes at 0.2", "Unknown mask 'egdes' in 'egdes at 0.2'. Did you mean edges"),
        ("", "Unknown mask '' in ''. Known: connections, edges, nodes, subgraph, features, entries, neighbors"),
        ("edges with 0.2", "Cannot read 'with 0.2' in the mask 'edges with 0.2'. Write it as: KIND [in N blocks]"),
        ("edges at 0.2 at 0.3", "Cannot read 'at 0.3'"),
        ("edges shared anew", "Cannot read 'anew'"),
        ("edges at x", "Cannot read 'at x'"),
        ("edges at 0.2.3", "Cannot read 'at 0.2.3'"),
        ("edges at 0.2/0.3/0.4", "Cannot read 'at 0.2/0.3/0.4'"),
        ("edges at -0.2", "Cannot read 'at -0.2'"),
        ("edges per edge", "Cannot read 'per edge'"),
        ("edges at 1.5", "The drop rate of the mask 'edges at 1.5' must be between 0 and 1."),
        ("edges at 0.5/2", "The drop rate of the mask 'edges at 0.5/2' must be between 0 and 1."),
        (
            "edges in 2 blocks",
            "The mask 'edges in 2 blocks' is not valid: only connections have blocks, and at least 1.",
        ),
        ("connections in 0 blocks", "The mask 'connections in 0 blocks' is not valid: only connections have blocks"),
        ("edges of layer 0", "The mask 'edges of layer 0' is not valid: layers are counted from 1."),
        ("features of every layer shared", "is not valid: layers of different widths cannot share a mask of features."),
        ("features per block", "The mask 'features per block' is not valid: only connections have a rate per block."),
        ("neigbors", "Unknown mask 'neigbors' in 'neigbors'. Did you mean neighbors"),
        ("neighbors of layer 1", "'neighbors of layer 1' is not valid: positive pairs do not belong to a layer."),
        (
            "neighbors per layer",
            "'neighbors per layer' is not valid: positive pairs have one drop rate per view or relation.",
        ),
        (
            "neighbors per block",
            "'neighbors per block' is not valid: positive pairs have one drop rate per view or relation.",
        ),
        (
            "neighbors in 2 blocks",
            "'neighbors in 2 blocks' is not valid: only connections have blocks, and at least 1.",
        ),
    ],
)
def test_an_error_names_the_words_that_cannot_be_read_and_what_to_write(sentence: str, message: str) -> None:
    with pytest.raises(BGCLError, match=re.escape(message)) as caught:
        parse_mask(sentence)
    assert "\n" not in str(caught.value)


# Masks that users add


@pytest.fixture
def kinds() -> Iterator[None]:
    """Remove the kinds of masks that a test adds."""
    before = dict(Mask.kinds)
    yield
    Mask.kinds.clear()
    Mask.kinds.update(before)


@pytest.mark.usefixtures("kinds")
def test_a_new_mask_works_by_its_sentence() -> None:
    class DropSenders(Mask):
        """Drop everything that a node sends, to others and to itself."""

        kind = "senders"

        def uniform(self, graph: PreparedGraph, layer: LayerInput, noise: Noise) -> torch.Tensor:
            return noise.nodes(graph)

        def factor(self, keep: torch.Tensor, graph: PreparedGraph) -> torch.Tensor:
            return keep[graph.connections.column]

    mask = parse_mask("senders of layer 2 at 0.5")
    assert isinstance(mask, DropSenders)
    assert str(mask) == "senders of layer 2 at 0.5"
    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    first, second = Augmentation([mask], 2).draw("o", graph, encoder.inputs(graph), in_turn(0), hard=True)
    assert first.connections is None
    silent = in_turn(0).nodes(graph)[:, 0] <= 0.5
    assert 0 < silent.sum() < 8
    expected = dense_connections(graph)
    expected[:, silent.numpy()] = 0
    assert (on_matrix(graph, second.connections[:, 0]) == expected).all()


@pytest.mark.usefixtures("kinds")
def test_a_new_mask_can_drop_columns_of_every_layer() -> None:
    class DropFirst(Mask):
        """Drop the first column, always."""

        kind = "first"
        on = "columns"

        def uniform(self, graph: PreparedGraph, layer: LayerInput, noise: Noise) -> torch.Tensor:
            return torch.tensor([1e-6] + [1 - 1e-6] * (layer.width - 1))

    graph, encoder = random_graph(), random_encoder((5, 4, 3))
    masks = Augmentation([parse_mask("first at 0.5")], 2).draw("o", graph, encoder.inputs(graph), in_turn(0), hard=True)
    assert [mask.columns.tolist() for mask in masks] == [[0, 1, 1, 1, 1], [0, 1, 1, 1]]


@pytest.mark.usefixtures("kinds")
def test_the_error_for_a_mask_without_noise_names_the_missing_method() -> None:
    class Nothing(Mask):
        kind = "nothing"

    graph, encoder = random_graph(), random_encoder((5, 4))
    with pytest.raises(NotImplementedError, match=r"The mask Nothing has no method uniform\(\)"):
        Augmentation([parse_mask("nothing")], 1).draw("o", graph, encoder.inputs(graph), in_turn(0))
